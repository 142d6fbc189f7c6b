//! The driver of `graphile_worker` (crates.io), the port of graphile-worker to Rust.

use std::sync::Arc;
use std::time::Duration;

use graphile_worker::{
    IntoTaskHandlerResult, JobSpec, LocalQueueConfig, TaskHandler, WorkerContext, WorkerOptions,
};
use peers::{Arguments, Command, Effects, Payload, calls, emit, now, run, stdin_line};
use serde::{Deserialize, Serialize};
use serde_json::json;
use sqlx::postgres::{PgPool, PgPoolOptions};

#[derive(Clone, Debug)]
struct Extension {
    arguments: Arguments,
    effects: Effects,
}

#[derive(Clone, Serialize, Deserialize)]
struct Job(Payload);

impl TaskHandler for Job {
    const IDENTIFIER: &'static str = "job";

    async fn run(self, context: WorkerContext) -> impl IntoTaskHandlerResult {
        let Some(own) = context.get_ext::<Extension>() else {
            return Err("the worker has no extension".to_owned());
        };
        let attempt = i32::from(*context.job().attempts());
        run(self.0, &own.arguments, &own.effects, attempt)
            .await
            .map_err(|error| error.to_string())
    }
}

async fn pool(url: &str, connections: usize) -> anyhow::Result<PgPool> {
    Ok(PgPoolOptions::new()
        .max_connections(u32::try_from(connections)?)
        .connect(url)
        .await?)
}

async fn options(
    arguments: &Arguments,
    url: &str,
    connections: usize,
) -> anyhow::Result<WorkerOptions> {
    Ok(WorkerOptions::default()
        .concurrency(arguments.c)
        .pg_pool(pool(url, connections).await?)
        .define_job::<Job>())
}

/// The settings of a mode.
fn tuned(options: WorkerOptions, mode: &str) -> WorkerOptions {
    match mode {
        // As in the crate's own benches/perf_test.rs, with the concurrency asked for.
        "throughput" => options
            .local_queue(LocalQueueConfig::default().with_size(5000))
            .complete_job_batch_delay(Duration::from_millis(5))
            .poll_interval(Duration::from_millis(5)),
        // Recovery of dead workers is off unless it is asked for.
        "fast" => options
            .heartbeat_interval(Duration::from_secs(1))
            .sweep_interval(Duration::from_secs(1))
            .sweep_threshold(Duration::from_secs(2))
            .recovery_delay(Duration::ZERO)
            .poll_interval(Duration::from_millis(100)),
        _ => options,
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let (command, arguments, url) = Arguments::read()?;
    if matches!(command, Command::Worker | Command::Leader) {
        return Box::pin(work(arguments, &url)).await;
    }
    let worker = Box::pin(options(&arguments, &url, 4).await?.init()).await?;
    let utils = worker.create_utils();
    match command {
        Command::Enqueue => {
            let spec = JobSpec::default();
            let started = now();
            for chunk in arguments.chunks() {
                let jobs: Vec<_> = chunk.map(|i| (Job(Payload::Noop { i }), &spec)).collect();
                utils.add_jobs::<Job>(&jobs).await?;
            }
            emit(&json!({"ev": "enqueued", "t0": started, "t1": now()}));
        }
        Command::Feed => {
            utils
                .add_job(Job(Payload::Lat { seq: -1 }), JobSpec::default())
                .await?;
            tokio::time::sleep(Duration::from_millis(500)).await;
            for seq in 0..i64::try_from(arguments.n)? {
                let started = now();
                utils
                    .add_job(Job(Payload::Lat { seq }), JobSpec::default())
                    .await?;
                emit(&json!({"ev": "sent", "seq": seq, "t0": started, "t1": now()}));
                tokio::time::sleep(Duration::from_millis(arguments.ms)).await;
            }
        }
        Command::Hold => {
            utils
                .add_job(Job(Payload::Hold), JobSpec::default())
                .await?;
        }
        // `init` has made the schema.
        Command::Setup | Command::Worker | Command::Leader => {}
    }
    Ok(())
}

async fn work(arguments: Arguments, url: &str) -> anyhow::Result<()> {
    let own = Extension {
        arguments: arguments.clone(),
        effects: Effects::connect(url).await?,
    };
    let options = options(&arguments, url, arguments.c.min(64) + 4)
        .await?
        .add_extension(own);
    let worker = Arc::new(Box::pin(tuned(options, &arguments.mode).init()).await?);
    let running = tokio::spawn({
        let worker = Arc::clone(&worker);
        async move { worker.run().await }
    });
    emit(&json!({"ev": "ready", "t": now()}));
    stdin_line().await;
    worker.request_shutdown();
    running.await??;
    emit(&json!({"ev": "end", "calls": calls()}));
    Ok(())
}
