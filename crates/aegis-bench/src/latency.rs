//! Submit to handler start on an idle worker, with notifications.

use std::time::{Duration, Instant};

use aegis_store::NewTask;
use aegis_worker::{TaskContext, Worker, handler_fn};

use crate::setting::Setting;
use crate::{Figures, figure, quantile};

const SAMPLES: usize = 200;

/// One task at a time, each submitted when the worker has been idle for a moment.
pub(crate) async fn measure(setting: &Setting) -> anyhow::Result<Figures> {
    let (started, mut starts) = tokio::sync::mpsc::unbounded_channel();
    let handler = handler_fn(
        "bench.latency",
        move |_: TaskContext, _: serde_json::Value| {
            let started = started.clone();
            async move {
                // The receiver outlives the worker.
                started.send(Instant::now()).ok();
                Ok(())
            }
        },
    );
    let worker = Worker::builder(setting.store(4).await?)
        .name("bench")
        .handler(handler)
        .slots(10)
        .build()?;
    let handle = worker.handle();
    let running = tokio::spawn(worker.run(std::future::pending()));
    let client = setting.store(2).await?;
    setting
        .client()
        .batch_execute(
            "CREATE TABLE IF NOT EXISTS bench.commits (at timestamptz NOT NULL DEFAULT now())",
        )
        .await?;
    let mut samples_ms = Vec::new();
    let mut commits_ms = Vec::new();
    for _ in 0..SAMPLES {
        // Longer than the debounce of notifications, so that each submit sends its own.
        tokio::time::sleep(Duration::from_millis(120)).await;
        // What one bare commit costs here, to tell the disk from the engine.
        let bare = Instant::now();
        setting
            .client()
            .execute("INSERT INTO bench.commits DEFAULT VALUES", &[])
            .await?;
        commits_ms.push(bare.elapsed().as_secs_f64() * 1000.0);
        let submitted = Instant::now();
        client.submit(NewTask::new("bench.latency", "{}")).await?;
        let at = tokio::time::timeout(Duration::from_secs(10), starts.recv()).await?;
        let at = at.ok_or_else(|| anyhow::anyhow!("the worker ended early"))?;
        samples_ms.push(at.duration_since(submitted).as_secs_f64() * 1000.0);
    }
    handle.drain();
    running.await??;
    Ok(vec![
        figure("start_p50_ms", quantile(&mut samples_ms, 0.5)),
        figure("start_p99_ms", quantile(&mut samples_ms, 0.99)),
        figure("start_max_ms", quantile(&mut samples_ms, 1.0)),
        figure("bare_commit_p50_ms", quantile(&mut commits_ms, 0.5)),
        figure("bare_commit_p99_ms", quantile(&mut commits_ms, 0.99)),
    ])
}
