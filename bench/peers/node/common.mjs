// What the drivers of peers in Node share: the arguments, the events, the three jobs.
//
// Invariants: the same jobs for every peer; an event is one JSON line on standard output with its time by CLOCK_MONOTONIC,
// which is one clock for all processes of the machine.
// Never: look at the peer's tables, which is the orchestrator's part.
import pg from "pg";

export const url = process.env.DATABASE_URL;
export const command = process.argv[2];
export const args = {
  n: 0, c: 10, chunk: 1000, ms: 50, hold_ms: 0, name: "w", mode: "", log: false,
  ...JSON.parse(process.argv[3] ?? "{}"),
};
export const now = () => Number(process.hrtime.bigint());
export const emit = (event) => process.stdout.write(JSON.stringify(event) + "\n");
export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
export const connections = Math.min(args.c, 64) + 2;

/** Until the orchestrator writes a line, or is gone. */
export function stdinLine() {
  return new Promise((resolve) => {
    process.stdin.on("data", (data) => data.includes("\n") && resolve());
    process.stdin.on("end", resolve);
  });
}

/** The bulk calls: lists of job numbers. */
export function* chunks() {
  for (let from = 0; from < args.n; from += args.chunk) {
    const length = Math.min(args.chunk, args.n - from);
    yield Array.from({ length }, (_, at) => from + at);
  }
}

/** Puts `n` jobs in by `add(seq)`, one every `ms`; the first one wakes the worker up. */
export async function feed(add) {
  await add(-1);
  await sleep(500);
  for (let seq = 0; seq < args.n; seq++) {
    const t0 = now();
    await add(seq);
    emit({ ev: "sent", seq, t0, t1: now() });
    await sleep(args.ms);
  }
}

/** Puts `n` jobs in by `add(numbers)`. */
export async function enqueue(add) {
  const t0 = now();
  for (const numbers of chunks()) await add(numbers);
  emit({ ev: "enqueued", t0, t1: now() });
}

let effects;
/** The handler's own connection, over which the long job leaves its effects. */
export async function openEffects() {
  effects = new pg.Client({ connectionString: url });
  effects.on("error", (error) => console.error("effects connection:", error.message));
  await effects.connect();
}
const effect = (what, attempt) =>
  effects.query("INSERT INTO bench_effects (worker, attempt, what) VALUES ($1, $2, $3)", [args.name, attempt, what]);

let calls = 0;
export const callCount = () => calls;
export function noop() {
  calls++;
  if (calls === 1) emit({ ev: "first", t: now() });
  if (calls === args.n) emit({ ev: "last", t: now() });
}
export const lat = (seq) => emit({ ev: "lat", seq, t: now() });
export async function hold(attempt) {
  emit({ ev: "start", t: now(), attempt });
  await effect("begin", attempt);
  await sleep(args.hold_ms);
  await effect("end", attempt);
  emit({ ev: "handler_done", t: now() });
}

process.on("unhandledRejection", (error) => {
  console.error("unhandledRejection", error);
  process.exit(9);
});
