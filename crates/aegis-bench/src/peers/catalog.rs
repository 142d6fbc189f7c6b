//! The engines of the table: what each is, its settings in words, and how its jobs are looked at from outside.
//!
//! Invariant: the settings in words are those that its driver sets; versions are those of the drivers' lock files.

/// What a driver is written in, and so what has to be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Toolchain {
    /// This program.
    Own,
    Node,
    Rust,
    Go,
}

/// One engine.
#[derive(Debug)]
pub(crate) struct Peer {
    pub(crate) name: &'static str,
    pub(crate) package: &'static str,
    pub(crate) toolchain: Toolchain,
    /// The driver's file, without its ending; a name of its own, for the databases too.
    pub(crate) driver: &'static str,
    /// Jobs that wait or run.
    pub(crate) remaining: &'static str,
    /// Jobs known as completed; `None` where a completed one leaves nothing.
    pub(crate) completed: Option<&'static str>,
    /// All that is stored of the jobs, without what moves by itself: one JSON value.
    pub(crate) rows: &'static str,
    /// The concurrency that suits it, beside the one that all have.
    pub(crate) roomy: u32,
    pub(crate) throughput: &'static str,
    pub(crate) latency: &'static str,
    pub(crate) fast: &'static str,
    /// Its driver's environment.
    pub(crate) environment: &'static [(&'static str, &'static str)],
    /// A takeover needs an operator's call.
    pub(crate) forced: bool,
    /// One process of the fleet does what all need (rescue), so a third one is started that has it.
    pub(crate) led: bool,
}

const GRAPHILE_REMAINING: &str = "SELECT count(*) FROM graphile_worker._private_jobs";
const GRAPHILE_ROWS: &str = "SELECT coalesce(jsonb_agg(to_jsonb(j) - 'updated_at'), '[]') FROM graphile_worker._private_jobs j";

/// All of them, in the order of the table.
pub(crate) const PEERS: [Peer; 7] = [
    Peer {
        name: "aegis",
        package: "this commit",
        toolchain: Toolchain::Own,
        driver: "aegis",
        remaining: "SELECT count(*) FROM aegis.task",
        completed: Some("SELECT count(*) FROM aegis.task_history WHERE state = 5"),
        // When a worker comes back that was taken for dead, its loss is no longer counted as a crash but as an interruption.
        rows: "SELECT coalesce(jsonb_agg(to_jsonb(t) - 'crashes' - 'interruptions'), '[]') FROM aegis.task_any t",
        roomy: 100,
        throughput: "slots C, `submit_batch`, all else default, `statements=named`",
        latency: "defaults: a notification at submit",
        fast: "`lease_ttl` 1 s (default 30 s)",
        environment: &[],
        forced: false,
        led: false,
    },
    Peer {
        name: "graphile-worker",
        package: "graphile-worker 0.18.0 (npm)",
        toolchain: Toolchain::Node,
        driver: "graphile-worker",
        remaining: GRAPHILE_REMAINING,
        completed: None,
        rows: GRAPHILE_ROWS,
        roomy: 10,
        throughput: "`localQueue.size` 5000, `completeJobBatchDelay` 0, `failJobBatchDelay` 0, `maxPoolSize` C + 2 (at most 66), `addJobs`",
        latency: "defaults (LISTEN)",
        fast: "none: a lock lasts 4 hours; `forceUnlockWorkers` is called by hand at the kill, `pollInterval` 100 ms",
        environment: &[("NO_LOG_SUCCESS", "1")],
        forced: true,
        led: false,
    },
    Peer {
        name: "pg-boss",
        package: "pg-boss 12.38.0 (npm)",
        toolchain: Toolchain::Node,
        driver: "pg-boss",
        remaining: "SELECT count(*) FROM pgboss.job WHERE name = 'q' AND state < 'completed'",
        completed: Some("SELECT count(*) FROM pgboss.job WHERE name = 'q' AND state = 'completed'"),
        rows: "SELECT coalesce(jsonb_agg(to_jsonb(j) - 'heartbeat_on'), '[]') FROM pgboss.job j WHERE name = 'q'",
        roomy: 10,
        throughput: "`batchSize` 500, `localConcurrency` C, `burstWhenBatchFull`, `pollingIntervalSeconds` 0.5, `insert`",
        latency: "`useListenNotify`, the queue's `notify` (default: a poll every 2 s)",
        fast: "`heartbeatSeconds` 10 (its least), supervise and monitor every 1 s, `retryDelay` 0, poll 0.5 s",
        environment: &[],
        forced: false,
        led: false,
    },
    Peer {
        name: "river",
        package: "river 0.51.2 with riverpgxv5 (Go)",
        toolchain: Toolchain::Go,
        driver: "river",
        remaining: "SELECT count(*) FROM river_job WHERE state IN ('available', 'pending', 'retryable', 'running', 'scheduled')",
        completed: Some("SELECT count(*) FROM river_job WHERE state = 'completed'"),
        rows: "SELECT coalesce(jsonb_agg(to_jsonb(j)), '[]') FROM river_job j WHERE kind = 'hold'",
        roomy: 1000,
        throughput: "`MaxWorkers` C, `FetchCooldown` 1 ms (its least), `FetchPollInterval` 20 ms, `InsertManyFast` (COPY)",
        latency: "`FetchCooldown` 1 ms in the inserting client too (default 100 ms), `FetchPollInterval` 20 ms",
        fast: "`RescueStuckJobsAfter` 5 s = `JobTimeout`, `NextRetry` now; its leader's 10 to 21 s, rescuer's 30 s and scheduler's 5 s are fixed",
        environment: &[],
        forced: false,
        led: false,
    },
    Peer {
        name: "graphile_worker",
        package: "graphile_worker 0.14.1 (crate)",
        toolchain: Toolchain::Rust,
        driver: "graphile",
        remaining: GRAPHILE_REMAINING,
        completed: None,
        rows: GRAPHILE_ROWS,
        roomy: 10,
        throughput: "`concurrency` C, `local_queue` 5000, `complete_job_batch_delay` 5 ms, `poll_interval` 5 ms (as in its own benchmark), `add_jobs`",
        latency: "defaults (LISTEN)",
        fast: "recovery (off by default): heartbeat 1 s, sweep 1 s, threshold 2 s, no delay, poll 0.1 s",
        environment: &[],
        forced: false,
        led: false,
    },
    Peer {
        name: "apalis",
        package: "apalis 1.0.0 with apalis-postgres 1.0.0 (crates)",
        toolchain: Toolchain::Rust,
        driver: "apalis",
        remaining: "SELECT count(*) FROM apalis.jobs WHERE status IN ('Pending', 'Queued', 'Running')",
        completed: Some("SELECT count(*) FROM apalis.jobs WHERE status = 'Done'"),
        rows: "SELECT coalesce(jsonb_agg(to_jsonb(j)), '[]') FROM apalis.jobs j",
        roomy: 10,
        throughput: "`concurrency` C, `batch_size` 5000, `with_pubsub` and `poll_with_interval`, `push_bulk`",
        latency: "`with_pubsub` and `poll_with_interval` 5 s",
        fast: "`heartbeat_interval` 1 s, `missed_heartbeats` 2, poll 0.5 s",
        environment: &[],
        forced: false,
        led: false,
    },
    Peer {
        name: "awa",
        package: "awa 0.6.9 (crate)",
        toolchain: Toolchain::Rust,
        driver: "awa",
        remaining: include_str!("../../sql/peers/awa_remaining.sql"),
        completed: Some(include_str!("../../sql/peers/awa_completed.sql")),
        rows: include_str!("../../sql/peers/awa_rows.sql"),
        roomy: 2000,
        throughput: "`max_workers` C, `deadline_duration` 0 and `poll_interval` 50 ms (as in its own benchmark), `AWA_COMPLETION_FLUSH_MS` 10, `enqueue_params_copy`",
        latency: "`deadline_duration` 0, `poll_interval` 50 ms (LISTEN)",
        fast: "heartbeat 0.5 s, staleness 1.5 s (3 heartbeats, its advised least), rescue and election every 0.25 s, promotion every 50 ms; its retry backoff of 2 to 2.5 s is fixed",
        environment: &[("AWA_COMPLETION_FLUSH_MS", "10")],
        forced: false,
        led: true,
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_those_of_the_lock_files() {
        let read = |path: &str| {
            let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../bench/peers");
            std::fs::read_to_string(format!("{folder}/{path}")).unwrap()
        };
        let (node, rust, go) = (
            read("node/package-lock.json"),
            read("rust/Cargo.lock"),
            read("go/go.mod"),
        );
        for peer in PEERS {
            let words: Vec<&str> = peer.package.split_whitespace().collect();
            let versions: Vec<(&str, &str)> = words
                .windows(2)
                .filter(|two| two[1].starts_with(|char: char| char.is_ascii_digit()))
                .map(|two| (two[0], two[1]))
                .collect();
            assert_eq!(
                versions.is_empty(),
                peer.toolchain == Toolchain::Own,
                "{peer:?}"
            );
            for (name, version) in versions {
                let (file, pinned) = match peer.toolchain {
                    Toolchain::Own => continue,
                    Toolchain::Node => (
                        &node,
                        format!("\"node_modules/{name}\": {{\n      \"version\": \"{version}\""),
                    ),
                    Toolchain::Rust => (
                        &rust,
                        format!("name = \"{name}\"\nversion = \"{version}\"\n"),
                    ),
                    Toolchain::Go => (&go, format!("github.com/riverqueue/{name} v{version}\n")),
                };
                assert!(file.contains(&pinned), "{name} is not pinned to {version}");
            }
        }
    }
}
