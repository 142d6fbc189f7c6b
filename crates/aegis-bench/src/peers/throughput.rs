//! Jobs a second, WAL and transactions: a backlog of no-op jobs, drained by one worker process.
//!
//! Time runs from the first handler's start to the moment at which the server shows no job left that waits or runs, looked
//! at every 2 ms after the last handler's start. Connecting and registering are not in it, for anybody.
//!
//! Never: a figure of a drain in which a handler ran more or less often than once a job.

use std::time::Duration;

use anyhow::{Context as _, ensure};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::catalog::Peer;
use super::clock::{now, seconds};
use super::lab::{Lab, database};
use super::limits::flush_us;

/// Jobs of one bulk call, for everybody.
pub(crate) const CHUNK: u64 = 1000;
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// One drain.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Throughput {
    pub(crate) concurrency: u32,
    pub(crate) jobs_per_second: f64,
    pub(crate) enqueues_per_second: f64,
    /// Enqueue and drain together, and the drain's part.
    pub(crate) wal_bytes_per_job: f64,
    pub(crate) wal_bytes_per_drained_job: f64,
    pub(crate) transactions_per_job: f64,
    pub(crate) transactions_per_drained_job: f64,
    /// What a write of 8 kB to the disk took just before: the weather.
    pub(crate) flush_us: f64,
}

/// Fills and drains once.
#[expect(
    clippy::cast_precision_loss,
    reason = "counts of jobs, bytes and transactions"
)]
pub(crate) async fn measure(
    lab: &Lab,
    peer: &Peer,
    jobs: u64,
    c: u32,
) -> anyhow::Result<Throughput> {
    let db = database(peer, "throughput");
    lab.fresh(peer, &db, "throughput", c).await?;
    let n = jobs as f64;
    lab.admin().batch_execute("CHECKPOINT").await?;
    let (wal_0, transactions_0) = (lab.wal_bytes().await?, lab.transactions(&db).await?);
    let with = json!({"mode": "throughput", "n": jobs, "c": c, "chunk": CHUNK});
    let enqueue = lab
        .start_driver(peer, &db, "enqueue", &with)?
        .finish(Duration::from_mins(15))
        .await?;
    let enqueued = enqueue.await_event("enqueued", Duration::ZERO).await?;
    let (wal_1, transactions_1) = (lab.wal_bytes().await?, lab.transactions(&db).await?);

    // As autovacuum would have done by the time that a real backlog is drained.
    let look = lab.client(&db).await?;
    let waiting: i64 = look.query_one(peer.remaining, &[]).await?.try_get(0)?;
    ensure!(
        waiting.unsigned_abs() == jobs,
        "{waiting} of {jobs} jobs wait after the enqueue"
    );
    look.batch_execute("VACUUM (ANALYZE)").await?;
    drop(look);
    lab.admin().batch_execute("CHECKPOINT").await?;
    let flush_us = tokio::task::spawn_blocking(flush_us).await??;
    let (wal_2, transactions_2) = (lab.wal_bytes().await?, lab.transactions(&db).await?);

    let with = json!({"mode": "throughput", "n": jobs, "c": c, "name": "A"});
    let worker = lab.start_driver(peer, &db, "worker", &with)?;
    let first = worker.await_event("first", Duration::from_mins(1)).await?;
    worker.await_event("last", Duration::from_mins(15)).await?;
    let look = lab.client(&db).await?;
    let remaining = look.prepare(peer.remaining).await?;
    let looking = async {
        let mut looks = 1;
        while look
            .query_one(&remaining, &[])
            .await?
            .try_get::<_, i64>(0)?
            > 0
        {
            looks += 1;
            tokio::time::sleep(LOOK_EVERY).await;
        }
        anyhow::Ok((looks, now()))
    };
    let (looks, end) = tokio::time::timeout(Duration::from_mins(2), looking)
        .await
        .context("jobs are not completed 2 minutes after the last handler")??;
    let wal_3 = lab.wal_bytes().await?;
    let completed: Option<i64> = match peer.completed {
        Some(sql) => Some(look.query_one(sql, &[]).await?.try_get(0)?),
        None => None,
    };
    // Its connecting, the preparation, each look, and the last question with a preparation of its own.
    let own = looks + 2 + 2 * i64::from(completed.is_some());
    drop(look);
    let worker = worker.stop(Duration::from_secs(30)).await?;
    let transactions_3 = lab.transactions(&db).await? - own;
    let calls = worker.await_event("end", Duration::ZERO).await?["calls"].as_u64();
    ensure!(
        calls == Some(jobs),
        "the handler ran {calls:?} times for {jobs} jobs"
    );
    ensure!(
        completed.is_none_or(|completed| completed.unsigned_abs() == jobs),
        "{completed:?} of {jobs} jobs are stored as completed"
    );
    lab.drop_database(&db).await?;

    let took = seconds(end - time(&first, "t")?);
    let filled = seconds(time(&enqueued, "t1")? - time(&enqueued, "t0")?);
    let per_job = |from: i64, to: i64| (to - from).max(0) as f64 / n;
    Ok(Throughput {
        concurrency: c,
        jobs_per_second: n / took,
        enqueues_per_second: n / filled,
        wal_bytes_per_job: per_job(wal_0, wal_1) + per_job(wal_2, wal_3),
        wal_bytes_per_drained_job: per_job(wal_2, wal_3),
        transactions_per_job: per_job(transactions_0, transactions_1)
            + per_job(transactions_2, transactions_3),
        transactions_per_drained_job: per_job(transactions_2, transactions_3),
        flush_us,
    })
}

/// A time of an event.
pub(crate) fn time(event: &serde_json::Value, field: &str) -> anyhow::Result<i64> {
    event[field]
        .as_i64()
        .with_context(|| format!("an event without the time `{field}`: {event}"))
}
