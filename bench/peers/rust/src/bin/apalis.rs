//! The driver of apalis with apalis-postgres (crates.io).

use std::time::Duration;

use apalis::layers::WorkerBuilderExt;
use apalis::prelude::*;
use apalis_postgres::{Config, PostgresStorage};
use peers::{Arguments, Command, Effects, Payload, calls, emit, now, run, stdin_line};
use serde_json::json;
use sqlx::postgres::PgPoolOptions;

#[derive(Clone)]
struct Own {
    arguments: Arguments,
    effects: Effects,
}

async fn handle(payload: Payload, attempt: Attempt, own: Data<Own>) -> Result<(), BoxDynError> {
    let attempt = i32::try_from(attempt.current())?;
    Ok(run(payload, &own.arguments, &own.effects, attempt).await?)
}

/// The settings of a mode.
fn config(mode: &str) -> Config {
    let config = Config::default().queue("q");
    match mode {
        "throughput" => config.batch_size(5000),
        "fast" => config
            .heartbeat_interval(Duration::from_secs(1))
            .missed_heartbeats(2),
        _ => config,
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let (command, arguments, url) = Arguments::read()?;
    let connections = u32::try_from(arguments.c.min(64) + 4)?;
    let pool = PgPoolOptions::new()
        .max_connections(connections)
        .connect(&url)
        .await?;
    let mut storage = PostgresStorage::<Payload>::new(&pool).with_config(config(&arguments.mode));
    match command {
        Command::Setup => PostgresStorage::<()>::setup(&pool).await?,
        Command::Enqueue => {
            let started = now();
            for chunk in arguments.chunks() {
                storage
                    .push_bulk(chunk.map(|i| Payload::Noop { i }).collect())
                    .await?;
            }
            emit(&json!({"ev": "enqueued", "t0": started, "t1": now()}));
        }
        Command::Feed => {
            storage.push(Payload::Lat { seq: -1 }).await?;
            tokio::time::sleep(Duration::from_millis(1500)).await;
            for seq in 0..i64::try_from(arguments.n)? {
                let started = now();
                storage.push(Payload::Lat { seq }).await?;
                emit(&json!({"ev": "sent", "seq": seq, "t0": started, "t1": now()}));
                tokio::time::sleep(Duration::from_millis(arguments.ms)).await;
            }
        }
        Command::Hold => storage.push(Payload::Hold).await?,
        Command::Worker | Command::Leader => {
            let own = Own {
                arguments: arguments.clone(),
                effects: Effects::connect(&url).await?,
            };
            // The README's "Pubsub listener example": LISTEN, and a slow poll beside it.
            let every_ms = if arguments.mode == "fast" { 500 } else { 5000 };
            let worker = WorkerBuilder::new(arguments.name.as_str())
                .backend(
                    storage
                        .with_pubsub()
                        .poll_with_interval(Duration::from_millis(every_ms)),
                )
                .concurrency(arguments.c)
                .data(own)
                .on_event(|_, event| {
                    if let Event::Error(error) = event {
                        eprintln!("apalis worker error: {error}");
                    }
                })
                .build(handle);
            emit(&json!({"ev": "ready", "t": now()}));
            let stopped = async {
                stdin_line().await;
                Ok::<(), std::io::Error>(())
            };
            worker.run_until(stopped).await?;
            emit(&json!({"ev": "end", "calls": calls()}));
        }
    }
    Ok(())
}
