//! The three jobs: one that does nothing, one that tells when it started, one that works for a while.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::json;
use sqlx::PgPool;
use sqlx::postgres::PgPoolOptions;

use crate::{Arguments, emit, now};

/// What a job carries.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "k", rename_all = "lowercase")]
pub enum Payload {
    /// Throughput.
    Noop {
        /// Its number.
        i: u64,
    },
    /// Start latency.
    Lat {
        /// Its number; -1 wakes the worker up.
        seq: i64,
    },
    /// Takeover and late completion.
    Hold,
}

static CALLS: AtomicU64 = AtomicU64::new(0);

/// How often the no-op job ran.
pub fn calls() -> u64 {
    CALLS.load(Ordering::SeqCst)
}

/// The handler's own connection, over which the long job leaves its effects.
#[derive(Debug, Clone)]
pub struct Effects(PgPool);

impl Effects {
    /// Connects.
    ///
    /// # Errors
    /// The driver's.
    pub async fn connect(url: &str) -> Result<Self, sqlx::Error> {
        Ok(Self(
            PgPoolOptions::new().max_connections(2).connect(url).await?,
        ))
    }

    async fn leave(&self, what: &str, worker: &str, attempt: i32) -> Result<(), sqlx::Error> {
        sqlx::query("INSERT INTO bench_effects (worker, attempt, what) VALUES ($1, $2, $3)")
            .bind(worker)
            .bind(attempt)
            .bind(what)
            .execute(&self.0)
            .await?;
        Ok(())
    }
}

/// Runs one job.
///
/// # Errors
/// The driver's, of an effect.
pub async fn run(
    payload: Payload,
    arguments: &Arguments,
    effects: &Effects,
    attempt: i32,
) -> Result<(), sqlx::Error> {
    match payload {
        Payload::Noop { .. } => noop(arguments.n),
        Payload::Lat { seq } => emit(&json!({"ev": "lat", "seq": seq, "t": now()})),
        Payload::Hold => hold(arguments, effects, attempt).await?,
    }
    Ok(())
}

fn noop(n: u64) {
    let calls = CALLS.fetch_add(1, Ordering::SeqCst) + 1;
    if calls == 1 {
        emit(&json!({"ev": "first", "t": now()}));
    }
    if calls == n {
        emit(&json!({"ev": "last", "t": now()}));
    }
}

async fn hold(arguments: &Arguments, effects: &Effects, attempt: i32) -> Result<(), sqlx::Error> {
    let worker = arguments.name.as_str();
    emit(&json!({"ev": "start", "t": now(), "attempt": attempt}));
    effects.leave("begin", worker, attempt).await?;
    tokio::time::sleep(Duration::from_millis(arguments.hold_ms)).await;
    effects.leave("end", worker, attempt).await?;
    emit(&json!({"ev": "handler_done", "t": now()}));
    Ok(())
}
