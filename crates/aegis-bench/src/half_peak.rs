//! Submit to handler start while tasks arrive at half of the peak rate: open loop, so a late start of one is no excuse for
//! the next.
//!
//! Invariants: a task's latency counts from the moment at which it was due to be submitted, whether the submitter was on time
//! or not; the peak is the rate at which this worker emptied a backlog in the same run.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use aegis_store::NewTask;
use aegis_worker::{TaskContext, Worker, handler_fn};
use anyhow::bail;
use serde::Deserialize;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::setting::Setting;
use crate::{Figures, figure, quantile, throughput};

/// How long tasks arrive.
const SECONDS: u64 = 10;
/// How often a batch is due.
const EVERY_MS: u64 = 5;
/// Batches on their way at once, each on a connection of its own. A batch that finds none waits, and its tasks' clocks run.
const CONNECTIONS: usize = 4;
/// Batches before the measuring begins.
const WARM_BATCHES: usize = 50;

#[derive(Debug, Deserialize)]
struct Due {
    due_us: u64,
}

/// The peak, then the arrival at half of it.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "counts and rates"
)]
pub(crate) async fn measure(
    setting: &Setting,
    input: &[u8],
    tasks: usize,
) -> anyhow::Result<Figures> {
    let peak = throughput::peak(setting, input, tasks).await?;
    let batch = (peak / 2.0 * EVERY_MS as f64 / 1000.0).round().max(1.0) as usize;
    let batches = SECONDS * 1000 / EVERY_MS;
    let total = batch * batches as usize;

    let zero = Instant::now();
    let starts_ms = Arc::new(Mutex::new(Vec::with_capacity(total)));
    let record = Arc::clone(&starts_ms);
    let handler = handler_fn("bench.half", move |_: TaskContext, input: Due| {
        let late = zero
            .elapsed()
            .saturating_sub(Duration::from_micros(input.due_us));
        record
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(late.as_secs_f64() * 1000.0);
        async { Ok(()) }
    });
    let worker = Worker::builder(setting.store(6).await?)
        .name("half-peak")
        .handler(handler)
        .slots(10)
        .build()?;
    let handle = worker.handle();
    let running = tokio::spawn(worker.run(std::future::pending()));
    let client = setting.store(CONNECTIONS).await?;
    // Until statements are prepared and the worker knows how short these tasks are.
    for _ in 0..WARM_BATCHES {
        let some = (0..batch)
            .map(|_| NewTask::new("bench.half", r#"{"due_us":0}"#))
            .collect();
        client.submit_batch(some).await?;
    }
    wait_until_started(&starts_ms, WARM_BATCHES * batch, Duration::from_secs(30)).await?;
    starts_ms
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .clear();

    let commits = tokio::spawn(bare_commits(setting.bare().await?, SECONDS));
    let lanes = Arc::new(Semaphore::new(CONNECTIONS));
    let mut sending = JoinSet::new();
    let begin = zero.elapsed();
    for n in 0..batches {
        let due = begin + Duration::from_millis(n * EVERY_MS);
        tokio::time::sleep_until((zero + due).into()).await;
        let input = format!(r#"{{"due_us":{}}}"#, due.as_micros());
        let (client, lanes) = (client.clone(), Arc::clone(&lanes));
        sending.spawn(async move {
            let _lane = lanes.acquire_owned().await?;
            let due = (0..batch)
                .map(|_| NewTask::new("bench.half", input.clone()))
                .collect();
            client.submit_batch(due).await?;
            anyhow::Ok(())
        });
    }
    while let Some(sent) = sending.join_next().await {
        sent??;
    }
    let submitted = zero.elapsed().saturating_sub(begin).as_secs_f64();
    wait_until_started(&starts_ms, total, Duration::from_mins(1)).await?;
    handle.drain();
    running.await??;
    let mut commits_ms = commits.await??;
    let mut starts_ms = starts_ms.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(vec![
        figure("half_peak_tasks_per_second", total as f64 / submitted),
        figure("half_peak_of_tasks_per_second", peak),
        figure("half_peak_start_p50_ms", quantile(&mut starts_ms, 0.5)),
        figure("half_peak_start_p99_ms", quantile(&mut starts_ms, 0.99)),
        figure("half_peak_start_max_ms", quantile(&mut starts_ms, 1.0)),
        figure(
            "half_peak_bare_commit_p50_ms",
            quantile(&mut commits_ms, 0.5),
        ),
        figure(
            "half_peak_bare_commit_p99_ms",
            quantile(&mut commits_ms, 0.99),
        ),
    ])
}

async fn wait_until_started(
    starts_ms: &Mutex<Vec<f64>>,
    wanted: usize,
    within: Duration,
) -> anyhow::Result<()> {
    let begin = Instant::now();
    loop {
        let started = starts_ms
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .len();
        if started >= wanted {
            return Ok(());
        }
        if begin.elapsed() > within {
            bail!("{started} of {wanted} tasks have started after {within:?}");
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// What one bare commit takes beside all that, to tell the disk from the engine.
async fn bare_commits(client: tokio_postgres::Client, seconds: u64) -> anyhow::Result<Vec<f64>> {
    client
        .batch_execute(
            "CREATE TABLE IF NOT EXISTS bench.commits (at timestamptz NOT NULL DEFAULT now())",
        )
        .await?;
    let insert = client
        .prepare("INSERT INTO bench.commits DEFAULT VALUES")
        .await?;
    let begin = Instant::now();
    let mut commits_ms = Vec::new();
    while begin.elapsed() < Duration::from_secs(seconds) {
        tokio::time::sleep(Duration::from_millis(50)).await;
        let bare = Instant::now();
        client.execute(&insert, &[]).await?;
        commits_ms.push(bare.elapsed().as_secs_f64() * 1000.0);
    }
    Ok(commits_ms)
}
