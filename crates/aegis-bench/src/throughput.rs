//! 20,000 no-op tasks through one worker of 10 slots: guarded claim to durable completion, against the bare limit.

use std::time::{Duration, Instant};

use aegis_store::{NewTask, Store};
use aegis_worker::{TaskContext, Worker, handler_fn};
use anyhow::bail;

use crate::setting::Setting;
use crate::{Figures, bare, figure, median};

/// Measures both sides in turns.
#[expect(clippy::cast_precision_loss, reason = "counts of rows")]
pub(crate) async fn measure(
    setting: &Setting,
    input: &[u8],
    tasks: usize,
    rounds: usize,
) -> anyhow::Result<Figures> {
    let (mut ratios, mut rates, mut limits, mut wal, mut transactions) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rounds {
        let limit = bare::limit_rows_per_second(setting, tasks).await?;
        let (wal_before, transactions_before) =
            (setting.wal_bytes().await?, setting.transactions().await?);
        fill(setting, input, tasks).await?;
        setting.tidy_up().await?;
        let rate = tasks as f64 / drain_backlog(setting, tasks).await?.as_secs_f64();
        wal.push((setting.wal_bytes().await? - wal_before) / tasks as f64);
        transactions.push((setting.transactions().await? - transactions_before) / tasks as f64);
        ratios.push(rate / limit);
        rates.push(rate);
        limits.push(limit);
    }
    Ok(vec![
        figure("claim_complete_vs_limit", median(&mut ratios)),
        figure("tasks_per_second", median(&mut rates)),
        figure("limit_rows_per_second", median(&mut limits)),
        figure("wal_bytes_per_task", median(&mut wal)),
        figure("transactions_per_task", median(&mut transactions)),
        ("limit_by".to_owned(), bare::limit_by(setting).into()),
    ])
}

/// Tasks a second of this run, once, after a warm-up: what other parts call the peak.
#[expect(clippy::cast_precision_loss, reason = "a count")]
pub(crate) async fn peak(setting: &Setting, input: &[u8], tasks: usize) -> anyhow::Result<f64> {
    let mut rates = Vec::new();
    for _ in 0..3 {
        fill(setting, input, tasks).await?;
        setting.tidy_up().await?;
        rates.push(tasks as f64 / drain_backlog(setting, tasks).await?.as_secs_f64());
    }
    Ok(median(&mut rates))
}

/// Submits so many tasks that do nothing.
pub(crate) async fn fill(setting: &Setting, input: &[u8], tasks: usize) -> anyhow::Result<()> {
    fill_with(&setting.store(2).await?, input, tasks).await
}

/// The same through a store that the caller keeps.
pub(crate) async fn fill_with(store: &Store, input: &[u8], tasks: usize) -> anyhow::Result<()> {
    let mut left = tasks;
    while left > 0 {
        let batch = left.min(10_000);
        store
            .submit_batch(
                (0..batch)
                    .map(|_| NewTask::new("bench.noop", input))
                    .collect(),
            )
            .await?;
        left -= batch;
    }
    Ok(())
}

/// Runs a worker until nothing is live any more: from its start, registration included, to the last durable completion.
async fn drain_backlog(setting: &Setting, tasks: usize) -> anyhow::Result<Duration> {
    let noop = handler_fn("bench.noop", |_: TaskContext, _: serde_json::Value| async {
        Ok(())
    });
    let store = setting.store(6).await?;
    let start = Instant::now();
    let worker = Worker::builder(store)
        .name("bench")
        .handler(noop)
        .slots(10)
        .build()?;
    let handle = worker.handle();
    let running = tokio::spawn(worker.run(std::future::pending()));
    loop {
        if handle.snapshot().counts.completed >= tasks as u64 {
            break;
        }
        if running.is_finished() || start.elapsed() > Duration::from_mins(5) {
            bail!(
                "the worker ended early or took too long: {:?}",
                handle.snapshot()
            );
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let took = start.elapsed();
    // The worker counts what was Applied; the database has the last word.
    let live: i64 = setting.client().query_one("SELECT count(*) FROM aegis.task WHERE lane IN (SELECT id FROM aegis.lane WHERE kind = 'bench.noop' AND queue = 'default')", &[]).await?.try_get(0)?;
    anyhow::ensure!(
        live == 0,
        "{live} tasks are still live although the worker counted {tasks}"
    );
    handle.drain();
    running.await??;
    Ok(took)
}
