//! `aegis doctor`: the engine's invariants over a live database, looked at by the reader role.
//!
//! Invariants: each check answers ok, notice, warning, critical or unknown, with what it saw and what to do; one that could not
//! run is unknown, never ok, and does not stop the others. Nothing is written.
//!
//! Never: judge by what this machine believes where the database can be asked.

mod clocks;
mod database;
mod look;
mod operations;
mod server;
mod storage;
mod tasks;
mod verdict;
mod workers;

use std::future::Future;
use std::pin::Pin;
use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::Value;

use crate::config::Config;
use crate::error::StoreError;

pub use look::Look;
pub use verdict::{Severity, Verdict};

/// What a check's look will answer.
type Looking<'a> = Pin<Box<dyn Future<Output = Result<Verdict, StoreError>> + Send + 'a>>;

/// One check.
pub struct Check {
    /// Its stable name.
    pub id: &'static str,
    /// What it means when it is not ok.
    pub means: &'static str,
    run: for<'a> fn(&'a Look) -> Looking<'a>,
}

macro_rules! checks {
    ($($id:literal $run:path: $means:literal;)*) => {
        /// All checks, in the order in which they are run and shown.
        pub static CHECKS: &[Check] = &[$(Check { id: $id, means: $means, run: |look| Box::pin($run(look)) }),*];
    };
}

checks! {
    "server-version" server::version: "Aegis needs PostgreSQL 15 or newer and writes to a primary; 15 to 18 are what it was made for.";
    "durability" server::durability: "With fsync or full_page_writes off a crash of the machine loses or corrupts what was committed: accepted tasks, claims, dispatches.";
    "autovacuum" server::autovacuum: "Without autovacuum dead rows are never removed: every claim walks over them and becomes slower without bound.";
    "schema" database::schema: "The schema must be one that this binary knows; otherwise its statements and its checks may be wrong.";
    "lineage" database::lineage: "Which life of the database this is decides whose claims stand. Not adopted or closed: nothing can be claimed. Not readable: failover is not fenced.";
    "role-settings" database::role_settings: "The roles carry isolation, jit and timeouts, because a pooler forwards none; without them guarded writes fail, plans are slow, or locks are held for ever.";
    "pooler" server::pooler: "A transaction pooler breaks statements prepared by name.";
    "connections" server::connections: "When the server has no connection left, renewals fail and leases are lost.";
    "notify-queue" server::notify_queue: "When the queue of notifications is full, commits that notify fail. A session that listens and never reads fills it.";
    "sync-standby" server::standbys: "Without a synchronous standby an asynchronous failover may lose the dispatch of a queryable or blind operation, which is then done twice. Configured and missing, every commit hangs.";
    "kept-wal" server::kept_wal: "A replication slot that nobody reads keeps write-ahead log until the disk is full.";
    "clock-database" clocks::database: "The database's clock decides about every lease. Set back, leases last longer and due work waits.";
    "clock-here" clocks::here: "This machine's clock decides nothing, but logs and what people compare are wrong by this much.";
    "clock-workers" clocks::workers: "A worker's clock decides nothing, but its logs are wrong by this much.";
    "workers" workers::alive: "Without a living worker that accepts, nothing is executed and nobody keeps house.";
    "renewals" workers::renewals: "A worker whose beats are late is about to lose its lease: its executions are cancelled and its tasks taken over.";
    "claim-loops" workers::claim_loops: "Alive but deaf: the worker renews its lease and its claim loop stands still, so it takes no work and keeps no house.";
    "executions" workers::executions: "Alive but stuck: executions hold slots, none begins or ends, and none reports a step, checkpoint or progress. Slow handlers without `progress()` look the same.";
    "slots" workers::slots: "A worker that holds more running rows than it has room for was given tasks that it does not execute.";
    "drains" workers::drains: "A drain that lasts longer than its budgets keeps its tasks from everybody else.";
    "expired-running" tasks::expired_running: "Running rows without a live owner go back to their lanes within a second by whoever is alive. Older ones mean that nobody reaps.";
    "stranded" tasks::stranded: "Tasks stand in lanes that no accepting worker reads: they wait for ever, until a worker that reads them starts.";
    "pauses" tasks::pauses: "What is paused is claimed by nobody. Forgotten pauses look like lost tasks.";
    "parked" tasks::parked: "Failed and quarantined tasks wait for a person who redrives or discards them.";
    "twice" tasks::twice: "A task may stand in one place only. An id that is live and parked was restored by hand, or is a defect of Aegis.";
    "unknown-operations" operations::unknown: "Nobody knows whether these effects happened, and their tasks wait until a person decides with evidence.";
    "open-operations" operations::open: "The ledger and its tasks must agree, and an operation whose quiet period is over is settled by the next claim. Otherwise a task waits for nobody.";
    "oldest-snapshot" storage::snapshots: "The oldest snapshot keeps dead rows from being removed: claims become slower with every completion.";
    "dead-rows" storage::dead_rows: "Dead rows of the hot tables make every claim and every completion slower; autovacuum does not keep up or is held back.";
    "xid-age" storage::xid_age: "When transaction ids run out, the server refuses every write.";
    "indexes" storage::indexes: "Without its indexes a claim reads the whole table.";
    "partitions" storage::partitions: "On a day without partitions every submit and every completion fails.";
    "old-partitions" storage::old_partitions: "Days past their retention are removed by `aegis db maintain` only; otherwise the database grows without bound.";
    "housekeeping" tasks::housekeeping: "Promotion, reaping, deadlines and expiry are done by whoever is alive. Overdue, scheduled tasks do not start and lost ones do not come back.";
    "expired-keys" storage::expired_keys: "Idempotency keys past their time are removed by housekeeping; when they are not, the table grows without bound.";
}

/// What one check found, with what it means.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    /// The check.
    pub check: &'static str,
    /// How bad.
    pub severity: Severity,
    /// What was seen.
    pub seen: String,
    /// What it means when it is not ok.
    pub means: &'static str,
    /// What to do.
    pub todo: Vec<String>,
    /// What was seen, for programs.
    pub values: Value,
    /// How long the look took.
    pub took_ms: u64,
}

/// Runs these checks, one after another, each within `timeout`.
///
/// # Errors
/// [`StoreError::Url`], or [`StoreError::Unreachable`] when there is no connection at all: then there is nothing to judge.
pub async fn examine(
    config: Config,
    timeout: Duration,
    checks: &[&'static Check],
) -> Result<Vec<Finding>, StoreError> {
    let role = config.role().to_owned();
    let look = Look::open(config, timeout)?;
    drop(look.store.conn().await?);
    let mut findings = Vec::new();
    for check in checks {
        let begun = Instant::now();
        let verdict = match (check.run)(&look).await {
            Ok(verdict) => verdict,
            Err(error) => look::could_not_run(&error, &role, timeout),
        };
        findings.push(Finding {
            check: check.id,
            severity: verdict.severity,
            seen: verdict.seen,
            means: check.means,
            todo: verdict.todo,
            values: verdict.values,
            took_ms: u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX),
        });
    }
    Ok(findings)
}

/// The check of this name.
pub fn find(id: &str) -> Option<&'static Check> {
    CHECKS.iter().find(|check| check.id == id)
}

/// The worst of all; unknown when nothing was looked at.
pub fn worst(findings: &[Finding]) -> Severity {
    findings
        .iter()
        .map(|finding| finding.severity)
        .max()
        .unwrap_or(Severity::Unknown)
}
