//! The driver of awa (crates.io), on its queue storage.
//!
//! Its completion batcher takes a setting from the environment alone (`AWA_COMPLETION_FLUSH_MS`): the orchestrator sets it.

use std::sync::Arc;
use std::time::Duration;

use awa::{
    Client, ClientBuilder, InsertOpts, JobArgs, JobContext, JobError, JobResult, QueueConfig,
    QueueStorage, QueueStorageConfig,
};
use peers::{Arguments, Command, Effects, Payload, calls, emit, now, run, stdin_line};
use serde::{Deserialize, Serialize};
use serde_json::json;
use sqlx08::PgPool;
use sqlx08::postgres::PgPoolOptions;

const QUEUE: &str = "q";

#[derive(Serialize, Deserialize, JobArgs)]
struct Job {
    p: Payload,
}

async fn pool(url: &str, connections: usize) -> anyhow::Result<PgPool> {
    Ok(PgPoolOptions::new()
        .max_connections(u32::try_from(connections)?)
        .connect(url)
        .await?)
}

fn opts() -> InsertOpts {
    InsertOpts {
        queue: QUEUE.to_owned(),
        ..InsertOpts::default()
    }
}

/// The settings of a mode.
fn builder(arguments: &Arguments, pool: PgPool, queue: &str) -> anyhow::Result<ClientBuilder> {
    let mut config = QueueConfig {
        max_workers: u32::try_from(arguments.c)?,
        ..QueueConfig::default()
    };
    if matches!(arguments.mode.as_str(), "throughput" | "latency") {
        // The short receipt path of its own benchmark_test.rs: no deadline for each attempt.
        config.deadline_duration = Duration::ZERO;
        config.poll_interval = Duration::from_millis(50);
    }
    let builder = Client::builder(pool).queue(queue, config);
    if arguments.mode != "fast" {
        return Ok(builder);
    }
    Ok(builder
        .heartbeat_interval(Duration::from_millis(500))
        .heartbeat_staleness(Duration::from_millis(1500))
        .heartbeat_rescue_interval(Duration::from_millis(250))
        .leader_election_interval(Duration::from_millis(250))
        .leader_check_interval(Duration::from_secs(1))
        .promote_interval(Duration::from_millis(50)))
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let (command, arguments, url) = Arguments::read()?;
    match command {
        Command::Setup => {
            let pool = pool(&url, 12).await?;
            awa::migrations::run(&pool).await?;
            // A fresh database turns to the queue storage when the first worker starts.
            let refuse =
                |_: Job, _: &JobContext| async { Err(JobError::terminal("no jobs in setup")) };
            let client = builder(&arguments, pool, QUEUE)?
                .register::<Job, _, _>(refuse)
                .build()?;
            client.start().await?;
            client.shutdown(Duration::from_secs(5)).await;
        }
        Command::Enqueue => {
            let pool = pool(&url, 4).await?;
            let storage = QueueStorage::new(QueueStorageConfig::default())?;
            let started = now();
            for chunk in arguments.chunks() {
                let jobs = chunk
                    .map(|i| {
                        awa::model::insert::params_with(
                            &Job {
                                p: Payload::Noop { i },
                            },
                            opts(),
                        )
                    })
                    .collect::<Result<Vec<_>, _>>()?;
                storage.enqueue_params_copy(&pool, &jobs).await?;
            }
            emit(&json!({"ev": "enqueued", "t0": started, "t1": now()}));
        }
        Command::Feed => {
            let pool = pool(&url, 4).await?;
            awa::insert_with(
                &pool,
                &Job {
                    p: Payload::Lat { seq: -1 },
                },
                opts(),
            )
            .await?;
            tokio::time::sleep(Duration::from_millis(500)).await;
            for seq in 0..i64::try_from(arguments.n)? {
                let started = now();
                awa::insert_with(
                    &pool,
                    &Job {
                        p: Payload::Lat { seq },
                    },
                    opts(),
                )
                .await?;
                emit(&json!({"ev": "sent", "seq": seq, "t0": started, "t1": now()}));
                tokio::time::sleep(Duration::from_millis(arguments.ms)).await;
            }
        }
        Command::Hold => {
            awa::insert_with(&pool(&url, 4).await?, &Job { p: Payload::Hold }, opts()).await?;
        }
        Command::Worker => Box::pin(work(arguments, &url, QUEUE)).await?,
        Command::Leader => Box::pin(work(arguments, &url, "other")).await?,
    }
    Ok(())
}

async fn work(arguments: Arguments, url: &str, queue: &str) -> anyhow::Result<()> {
    let pool = pool(url, arguments.c.min(64) + 10).await?;
    let builder = builder(&arguments, pool, queue)?;
    let own = Arc::new((arguments, Effects::connect(url).await?));
    let handler = move |job: Job, context: &JobContext| {
        let (own, attempt) = (Arc::clone(&own), i32::from(context.job.attempt));
        async move {
            let (arguments, effects) = &*own;
            let ran = run(job.p, arguments, effects, attempt).await;
            ran.map_err(|error| JobError::retryable_msg(error.to_string()))?;
            Ok(JobResult::Completed)
        }
    };
    let client = builder.register::<Job, _, _>(handler).build()?;
    client.start().await?;
    emit(&json!({"ev": "ready", "t": now()}));
    stdin_line().await;
    client.shutdown(Duration::from_secs(10)).await;
    emit(&json!({"ev": "end", "calls": calls()}));
    Ok(())
}
