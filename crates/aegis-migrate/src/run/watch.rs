//! A statement that runs outside of a transaction, watched from a second connection: how far it is, and whom it waits for.
//!
//! Invariants: the second connection is optional, and its loss ends nothing but the watching; it holds no transaction open, since a
//! concurrent build would wait for it; it writes events only, behind the fence of the mutex or, for a build that holds none,
//! as long as the lock of its change is held.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, MissedTickBehavior, interval_at, timeout};
use tokio_postgres::{Client, Row};

use crate::ledger::{self, LedgerError, Who};

/// Between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// How long one look may take.
const LOOK_MAX: Duration = Duration::from_secs(5);
/// Without news it is told again after so many looks.
const TOLD_EVERY: u32 = 20;

/// The second connection, and the process that it looks at.
pub(super) struct Watch<'a> {
    pub(super) client: &'a mut Client,
    pub(super) pid: i32,
    pub(super) keeper: Keeper<'a>,
}

/// What a build holds while it runs: behind which fence its events are kept.
#[derive(Debug, Clone, Copy)]
pub(super) enum Keeper<'a> {
    /// The mutex.
    Mutex,
    /// The lock of this change.
    Builder(&'a str),
}

/// What a look has seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Seen {
    phase: Option<String>,
    blocker: Option<i32>,
}

/// Runs the statement and tells what is seen meanwhile.
///
/// # Errors
/// The statement's.
pub(super) async fn watched(
    client: &Client,
    text: &str,
    watch: Option<Watch<'_>>,
    step: &str,
    who: &Who,
    told: &mut (dyn FnMut(&Value) + Send),
) -> Result<(), tokio_postgres::Error> {
    let Some(mut watch) = watch else {
        return client.batch_execute(text).await;
    };
    let runs = client.batch_execute(text);
    tokio::pin!(runs);
    let mut looks = interval_at(Instant::now() + LOOK_EVERY, LOOK_EVERY);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut last, mut since) = (None, 0);
    loop {
        tokio::select! {
            ended = &mut runs => return ended,
            _ = looks.tick() => {}
        }
        let (seen, event) = match timeout(LOOK_MAX, look(&watch, step)).await {
            Ok(Ok(Some(found))) => found,
            Ok(Err(error)) => {
                tracing::warn!(%error, step, "the second connection is lost: the build goes on unwatched");
                return runs.await;
            }
            // Nothing to tell, or a look that took too long.
            Ok(Ok(None)) | Err(_) => continue,
        };
        let is_new = last.as_ref() != Some(&seen);
        since += 1;
        if is_new || since >= TOLD_EVERY {
            told(&event);
            since = 0;
        }
        if is_new {
            let kept = timeout(LOOK_MAX, keep(&mut watch, who, &event)).await;
            if !matches!(kept, Ok(Ok(()))) {
                tracing::warn!(step, "what was seen of the build could not be kept");
            }
            last = Some(seen);
        }
    }
}

async fn look(
    watch: &Watch<'_>,
    step: &str,
) -> Result<Option<(Seen, Value)>, tokio_postgres::Error> {
    let row = watch
        .client
        .query_one(include_str!("../../sql/run/progress.sql"), &[&watch.pid])
        .await?;
    let mut event = json!({ "event": "build", "step": step });
    let seen = into(&row, &mut event)?;
    Ok((seen.phase.is_some() || seen.blocker.is_some()).then_some((seen, event)))
}

/// How far a build is and whom it waits for, as an event has it.
pub(super) fn into(row: &Row, event: &mut Value) -> Result<Seen, tokio_postgres::Error> {
    let phase: Option<String> = row.try_get("phase")?;
    let blocker: Option<i32> = row.try_get("blocker")?;
    event["phase"] = json!(phase);
    for unit in ["blocks", "tuples", "lockers"] {
        let total: Option<i64> = row.try_get(&*format!("{unit}_total"))?;
        let done: Option<i64> = row.try_get(&*format!("{unit}_done"))?;
        if let (Some(total @ 1..), Some(done)) = (total, done) {
            event[unit] = json!({ "done": done, "total": total });
        }
    }
    if let Some(pid) = blocker {
        let (program, state): (String, String) = (row.try_get("program")?, row.try_get("state")?);
        let age_s: i64 = row.try_get("age_s")?;
        event["waits_for"] =
            json!({ "pid": pid, "program": program, "state": state, "transaction_age_s": age_s });
    }
    Ok(Seen { phase, blocker })
}

async fn keep(watch: &mut Watch<'_>, who: &Who, event: &Value) -> Result<(), LedgerError> {
    if let Keeper::Builder(change) = watch.keeper {
        return ledger::event_of_build(watch.client, who, event, watch.pid, change).await;
    }
    let transaction = watch.client.transaction().await?;
    ledger::fence(&transaction, who).await?;
    ledger::event(&transaction, who, event).await?;
    transaction.commit().await?;
    Ok(())
}
