// The driver of pg-boss (npm).
import { PgBoss } from "pg-boss";
import {
  args, callCount, command, connections, emit, enqueue, feed, hold, lat, noop, now, openEffects, stdinLine, url,
} from "./common.mjs";

const QUEUE = "q";
const fast = args.mode === "fast";
const latency = args.mode === "latency";

function boss(extra = {}) {
  const made = new PgBoss({
    connectionString: url,
    max: connections,
    schedule: false,
    ...(fast ? { superviseIntervalSeconds: 1, monitorIntervalSeconds: 1 } : {}),
    ...extra,
  });
  made.on("error", (error) => console.error("pg-boss error:", error.message));
  made.on("warning", (warning) => console.error("pg-boss warning:", warning.message));
  return made;
}

async function withBoss(extra, body) {
  const started = boss(extra);
  await started.start();
  await body(started);
  await started.stop();
}
const inserting = (body) => withBoss({ supervise: false }, body);

async function work() {
  await openEffects();
  const started = boss({ useListenNotify: latency });
  await started.start();
  const options = {
    localConcurrency: args.c,
    ...(args.mode === "throughput" ? { batchSize: 500, burstWhenBatchFull: true } : {}),
    ...(fast ? { includeMetadata: true } : {}),
    pollingIntervalSeconds: 0.5,
  };
  await started.work(QUEUE, options, async (jobs) => {
    for (const job of jobs) {
      if (job.data.k === "noop") noop();
      else if (job.data.k === "lat") lat(job.data.seq);
      else await hold(job.retryCount);
    }
  });
  emit({ ev: "ready", t: now() });
  await stdinLine();
  await started.stop({ graceful: true, timeout: 10000 });
  emit({ ev: "end", calls: callCount() });
}

const commands = {
  setup: () =>
    withBoss({}, (started) =>
      started.createQueue(QUEUE, {
        ...(latency ? { notify: true } : {}),
        ...(fast ? { heartbeatSeconds: 10, retryDelay: 0 } : {}),
      }),
    ),
  enqueue: () =>
    inserting((started) =>
      enqueue((numbers) => started.insert(QUEUE, numbers.map((i) => ({ data: { k: "noop", i } })))),
    ),
  feed: () => inserting((started) => feed((seq) => started.send(QUEUE, { k: "lat", seq }))),
  hold: () => inserting((started) => started.send(QUEUE, { k: "hold" })),
  worker: work,
};
await commands[command]();
process.exit(0);
