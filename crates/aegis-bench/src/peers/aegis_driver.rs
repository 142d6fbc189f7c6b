//! Aegis's own driver: the same commands, jobs and events as those in `bench/peers/`, by the public API alone.
//!
//! Invariants: what it prints on standard output are events, one JSON line each; its handlers do what those of the other
//! drivers do, which is to work on whatever the engine says.
//!
//! Never: look at the engine's tables, which is the orchestrator's part.

use std::str::FromStr as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use aegis_store::{Config, NewTask, Store};
use aegis_worker::{TaskContext, TaskError, Worker, handler_fn};
use anyhow::{Context as _, bail};
use clap::Args;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio_postgres::{Client, NoTls};

use super::clock::now;

/// What every driver is started with.
#[derive(Debug, Clone, Args)]
pub(crate) struct DriverArguments {
    /// setup, enqueue, feed, hold or worker
    command: String,
    /// What to do it with.
    json: String,
    /// Where.
    #[arg(long, env = "DATABASE_URL", hide_env_values = true)]
    database_url: String,
}

/// The JSON; what is not said has a default.
#[derive(Debug, Clone, Deserialize)]
#[serde(default)]
struct Asked {
    n: u64,
    c: usize,
    chunk: u64,
    ms: u64,
    hold_ms: u64,
    name: String,
    mode: String,
}

impl Default for Asked {
    fn default() -> Self {
        Self {
            n: 0,
            c: 10,
            chunk: 1000,
            ms: 50,
            hold_ms: 0,
            name: "w".to_owned(),
            mode: String::new(),
        }
    }
}

/// Runs one command.
pub(super) async fn run(arguments: &DriverArguments) -> anyhow::Result<()> {
    let asked: Asked = serde_json::from_str(&arguments.json)
        .with_context(|| format!("the driver's arguments {}", arguments.json))?;
    let url = arguments.database_url.as_str();
    match arguments.command.as_str() {
        "setup" => setup(url).await,
        "enqueue" => enqueue(url, &asked).await,
        "feed" => feed(url, &asked).await,
        "hold" => {
            store(url, 1)
                .await?
                .submit(NewTask::new("hold", "null"))
                .await?;
            Ok(())
        }
        "worker" => work(url, asked).await,
        other => bail!("unknown command {other}: setup, enqueue, feed, hold or worker"),
    }
}

/// The schema, and the engine's roles over TCP.
async fn setup(url: &str) -> anyhow::Result<()> {
    aegis_schema::install(&Config::from_url(url)?, 2).await?;
    let config = tokio_postgres::Config::from_str(url)?;
    let password = std::str::from_utf8(config.get_password().unwrap_or_default())?;
    let client = connect(url).await?;
    for role in ["aegis_engine", "aegis_lease"] {
        let sql = "SELECT format('ALTER ROLE %I PASSWORD %L', $1::text, $2::text)";
        let alter: String = client
            .query_one(sql, &[&role, &password])
            .await?
            .try_get(0)?;
        client.batch_execute(&alter).await?;
    }
    Ok(())
}

async fn store(url: &str, connections: usize) -> anyhow::Result<Store> {
    let config = Config::from_url(&format!("{url}?statements=named"))?;
    Ok(Store::connect(config.as_role("aegis_engine").with_pool_size(connections)).await?)
}

async fn connect(url: &str) -> anyhow::Result<Client> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

async fn enqueue(url: &str, asked: &Asked) -> anyhow::Result<()> {
    let store = store(url, 2).await?;
    let started = now();
    let mut from = 0;
    while from < asked.n {
        let to = (from + asked.chunk.max(1)).min(asked.n);
        let tasks = (from..to)
            .map(|i| NewTask::new("noop", json!({"i": i}).to_string()))
            .collect();
        store.submit_batch(tasks).await?;
        from = to;
    }
    emit(&json!({"ev": "enqueued", "t0": started, "t1": now()}));
    Ok(())
}

async fn feed(url: &str, asked: &Asked) -> anyhow::Result<()> {
    let store = store(url, 2).await?;
    // The first one wakes the worker up.
    store
        .submit(NewTask::new("lat", json!({"seq": -1}).to_string()))
        .await?;
    tokio::time::sleep(Duration::from_millis(500)).await;
    for seq in 0..asked.n {
        let started = now();
        store
            .submit(NewTask::new("lat", json!({"seq": seq}).to_string()))
            .await?;
        emit(&json!({"ev": "sent", "seq": seq, "t0": started, "t1": now()}));
        tokio::time::sleep(Duration::from_millis(asked.ms)).await;
    }
    Ok(())
}

async fn work(url: &str, asked: Asked) -> anyhow::Result<()> {
    let effects = Arc::new(connect(url).await?);
    let calls = Arc::new(AtomicU64::new(0));
    let (counter, n) = (Arc::clone(&calls), asked.n);
    let noop = handler_fn("noop", move |_: TaskContext, _: Value| {
        let call = counter.fetch_add(1, Ordering::SeqCst) + 1;
        if call == 1 {
            emit(&json!({"ev": "first", "t": now()}));
        }
        if call == n {
            emit(&json!({"ev": "last", "t": now()}));
        }
        async { Ok(()) }
    });
    let lat = handler_fn("lat", |_: TaskContext, input: Value| async move {
        emit(&json!({"ev": "lat", "seq": input["seq"], "t": now()}));
        Ok(())
    });
    let (name, hold_ms) = (asked.name.clone(), asked.hold_ms);
    let hold = handler_fn("hold", move |ctx: TaskContext, _: Value| {
        let (effects, name) = (Arc::clone(&effects), name.clone());
        async move {
            hold_for(&effects, &name, ctx.epoch(), hold_ms)
                .await
                .map_err(|error| TaskError::retryable("effect", error.to_string()))
        }
    });
    let mut worker = Worker::builder(store(url, 6).await?)
        .name(asked.name)
        .slots(asked.c)
        .handler(noop)
        .handler(lat)
        .handler(hold);
    if asked.mode == "fast" {
        worker = worker.lease_ttl(Duration::from_secs(1));
    }
    let worker = worker.build()?;
    let handle = worker.handle();
    let running = tokio::spawn(worker.run(std::future::pending()));
    emit(&json!({"ev": "ready", "t": now()}));
    stdin_line().await;
    handle.drain();
    running.await??;
    emit(&json!({"ev": "end", "calls": calls.load(Ordering::SeqCst)}));
    Ok(())
}

/// Until a line comes, or the end of the orchestrator. A thread, because a read of standard input cannot be given up.
async fn stdin_line() {
    let (sender, line) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        std::io::stdin().read_line(&mut String::new()).ok();
        // Nobody waits any more when the worker has ended by itself.
        sender.send(()).ok();
    });
    line.await.ok();
}

/// The long job: it leaves its effects over a connection of its own.
async fn hold_for(effects: &Client, worker: &str, epoch: i64, hold_ms: u64) -> anyhow::Result<()> {
    let attempt = i32::try_from(epoch)?;
    let sql = "INSERT INTO bench_effects (worker, attempt, what) VALUES ($1, $2, $3)";
    emit(&json!({"ev": "start", "t": now(), "attempt": attempt}));
    effects.execute(sql, &[&worker, &attempt, &"begin"]).await?;
    tokio::time::sleep(Duration::from_millis(hold_ms)).await;
    effects.execute(sql, &[&worker, &attempt, &"end"]).await?;
    emit(&json!({"ev": "handler_done", "t": now()}));
    Ok(())
}

#[expect(clippy::print_stdout, reason = "events are its output")]
fn emit(event: &Value) {
    println!("{event}");
}
