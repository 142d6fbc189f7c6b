//! A build without the mutex: while it runs, others may change what it does not touch.
//!
//! Invariants: the lock of its change is had under the mutex, before anything of the step is looked at, and held until the verdict is in
//! the ledger, so nobody else judges the step meanwhile; it is of the session, so it ends with the process; nobody waits for it inside
//! of the server, and nobody waits for it with the mutex in hand, which the builder needs to end; what wants a relation on which somebody
//! builds waits before its first lock, where it stands in nobody's way.

use std::time::{Duration, Instant};

use aegis_backfill::Pause;
use serde_json::Value;
use tokio_postgres::{Client, Row};

use super::locks::Wanted;
use super::outside::{self, Begin};
use super::watch::{Keeper, Watch};
use super::{RunError, Work, lost};
use crate::change::ChangeId;
use crate::ledger::{self, StepState};
use crate::mutex::{Held, MutexError};

const FIRST_PAUSE: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// What came of a step.
pub(super) enum Came {
    /// It is done.
    Done(StepState),
    /// Somebody else built for this change; now nobody does. The ledger has to be read again.
    Again,
}

/// Runs one step outside of a transaction, and of the mutex.
pub(super) async fn run(
    held: &mut Held,
    work: &Work<'_>,
    begun: Option<outside::Begun<'_>>,
    told: &mut (dyn FnMut(&Value) + Send),
) -> Result<Came, RunError> {
    let change = held.who.ledger.lock_of(work.step.at.id.as_str());
    if !try_lock(&held.session.client, &change).await? {
        wait_for_others(held, &change).await?;
        return Ok(Came::Again);
    }
    let ran = locked(held, work, &change, begun, told).await;
    if !ran.as_ref().is_err_and(RunError::is_lost) {
        // The session's end gives it back too. The first error is what is told.
        let back = unlock(&held.session.client, &change).await;
        if ran.is_ok() {
            back?;
        }
    }
    Ok(Came::Done(ran?))
}

async fn locked(
    held: &mut Held,
    work: &Work<'_>,
    change: &str,
    begun: Option<outside::Begun<'_>>,
    told: &mut (dyn FnMut(&Value) + Send),
) -> Result<StepState, RunError> {
    let client = &mut held.session.client;
    let todo = match outside::begin(client, work, &held.who, begun, false).await? {
        Begin::Reconciled => return Ok(StepState::Reconciled),
        Begin::ToDo(todo) => todo,
    };
    let before = held.who.clone();
    held.step_aside().await?;
    let pid = held.session.pid;
    let watch = held.watch.as_mut().map(|client| Watch {
        client,
        pid,
        keeper: Keeper::Builder(change),
    });
    let made = todo
        .execute(&held.session.client, work, watch, &before, told)
        .await?;
    // Also after an error: its verdict is a write of the ledger.
    held.step_back().await?;
    carry(held, before.epoch).await?;
    todo.end(&mut held.session.client, work, &held.who, made)
        .await
}

/// What was begun goes on under the new epoch.
pub(super) async fn carry(held: &mut Held, before: i64) -> Result<(), RunError> {
    if held.who.epoch == before {
        return Ok(());
    }
    let transaction = held.session.client.transaction().await?;
    ledger::fence(&transaction, &held.who).await?;
    ledger::carry(&transaction, &held.who, before).await?;
    lost::commit(transaction, "a build that goes on").await
}

/// Waits, without the mutex, until nobody builds for this change.
async fn wait_for_others(held: &mut Held, change: &str) -> Result<(), RunError> {
    tracing::info!(
        change,
        "somebody builds for this change: waiting without the mutex"
    );
    held.step_aside().await?;
    let started = Instant::now();
    let mut pause = Pause::growing(FIRST_PAUSE, PAUSE_MAX);
    let ended = loop {
        let client = &held.session.client;
        let holder = client
            .query_opt(include_str!("../../sql/build/holder.sql"), &[&change])
            .await?;
        let Some(row) = holder else { break Ok(()) };
        if started.elapsed() >= held.wait {
            break Err(RunError::Builds {
                what: change.to_owned(),
                holder: holder_of(&row)?,
                waited_s: started.elapsed().as_secs(),
            });
        }
        pause.wait().await;
    };
    // Also when it is told as busy: the end of the run is an event.
    held.step_back().await?;
    ended
}

/// Waits until nobody builds on what these locks are for, with nothing in hand but the mutex: the build itself needs it only at its end,
/// when its relation is free again.
pub(super) async fn nobody_builds(
    client: &Client,
    wanted: &Wanted,
    bound: Duration,
) -> Result<(), RunError> {
    let (schemas, names) = wanted.names();
    if names.is_empty() {
        return Ok(());
    }
    let started = Instant::now();
    let mut pause = Pause::growing(FIRST_PAUSE, PAUSE_MAX);
    loop {
        let building = client
            .query_opt(
                include_str!("../../sql/build/on_relations.sql"),
                &[&schemas, &names],
            )
            .await?;
        let Some(row) = building else { return Ok(()) };
        if started.elapsed() >= bound {
            let (schema, name): (String, String) = (row.try_get("schema")?, row.try_get("name")?);
            return Err(RunError::Builds {
                what: format!("{schema}.{name}"),
                holder: holder_of(&row)?,
                waited_s: started.elapsed().as_secs(),
            });
        }
        pause.wait().await;
    }
}

/// As `process 12 (aegis migrate/r1/0af3 from 10.0.0.7)`.
fn holder_of(row: &Row) -> Result<String, RunError> {
    let (pid, program, from): (i32, String, String) = (
        row.try_get("pid")?,
        row.try_get("application_name")?,
        row.try_get("client")?,
    );
    Ok(format!("process {pid} ({program} from {from})"))
}

/// Refuses while somebody builds for this change: what a verb of people would judge is under way.
///
/// # Errors
/// [`RunError::Builds`].
pub(crate) async fn nobody_builds_for(held: &Held, id: &ChangeId) -> Result<(), RunError> {
    let change = held.who.ledger.lock_of(id.as_str());
    let client = &held.session.client;
    let holder = client
        .query_opt(include_str!("../../sql/build/holder.sql"), &[&change])
        .await?;
    match holder {
        None => Ok(()),
        Some(row) => Err(RunError::Builds {
            what: id.to_string(),
            holder: holder_of(&row)?,
            waited_s: 0,
        }),
    }
}

async fn try_lock(client: &Client, change: &str) -> Result<bool, RunError> {
    let row = client
        .query_one(include_str!("../../sql/build/try.sql"), &[&change])
        .await?;
    Ok(row.try_get(0)?)
}

async fn unlock(client: &Client, change: &str) -> Result<(), RunError> {
    let row = client
        .query_one(include_str!("../../sql/build/unlock.sql"), &[&change])
        .await?;
    if row.try_get(0)? {
        Ok(())
    } else {
        Err(MutexError::NotHeld.into())
    }
}
