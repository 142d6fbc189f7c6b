// The driver of graphile-worker (npm).
import { Logger, makeWorkerUtils, run } from "graphile-worker";
import {
  args, callCount, command, connections, emit, enqueue, feed, hold, lat, noop, now, openEffects, stdinLine, url,
} from "./common.mjs";

const quiet = new Logger(() => () => {});
const base = { connectionString: url, ...(args.log ? {} : { logger: quiet }) };
const taskList = {
  noop: () => noop(),
  lat: (payload) => lat(payload.seq),
  hold: (_payload, helpers) => hold(helpers.job.attempts),
};

/** The settings of a mode. */
const settings = {
  throughput: { localQueue: { size: 5000 }, completeJobBatchDelay: 0, failJobBatchDelay: 0 },
  fast: { pollInterval: 100 },
}[args.mode] ?? {};

async function withUtils(body) {
  const utils = await makeWorkerUtils(base);
  await body(utils);
  await utils.release();
}

// A dead worker's lock lasts four hours; the documented way out is a call by hand.
async function force(utils) {
  emit({ ev: "ready", t: now() });
  await stdinLine();
  const sql = "SELECT locked_by FROM graphile_worker._private_jobs WHERE locked_by IS NOT NULL";
  const { rows } = await utils.withPgClient((client) => client.query(sql));
  await utils.forceUnlockWorkers(rows.map((row) => row.locked_by));
}

async function work() {
  await openEffects();
  const runner = await run({
    noHandleSignals: true,
    taskList,
    preset: { worker: { ...base, concurrentJobs: args.c, maxPoolSize: connections, ...settings } },
  });
  emit({ ev: "ready", t: now() });
  await stdinLine();
  await runner.stop();
  emit({ ev: "end", calls: callCount() });
}

const commands = {
  setup: () => withUtils((utils) => utils.migrate()),
  enqueue: () =>
    withUtils((utils) =>
      enqueue((numbers) => utils.addJobs(numbers.map((i) => ({ identifier: "noop", payload: { i } })))),
    ),
  feed: () => withUtils((utils) => feed((seq) => utils.addJob("lat", { seq }))),
  hold: () => withUtils((utils) => utils.addJob("hold", {})),
  force: () => withUtils(force),
  worker: work,
};
await commands[command]();
process.exit(0);
