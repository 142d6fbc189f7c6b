//! The other witness, read from the engine's own tables, all in one snapshot, and nothing written.
//!
//! Must never ask a worker or the demo. What the database does not say is left out, and that can only lower a count of good
//! things or raise a doubt.

use std::collections::{HashMap, HashSet};

use aegis_model::cause::CAUSES;
use aegis_model::{Cause, Class, State};
use aegis_store::{Config, Store, StoreError};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{IsolationLevel, Row};

use super::facts::{
    EndCause, EngineFacts, ExecutionEnd, OperationFact, OperationState, Resolution, StaleWrite,
    Submission, TaskFact, TaskState, WorkerFact,
};
use super::waits::{Execution, TaskTimes, waits};
use crate::orders::Order;
use crate::payments::EffectClass;

/// Why the database could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FactsError {
    /// It cannot be reached, or its URL makes no sense.
    #[error("the database of the run cannot be reached")]
    Unreachable(#[source] StoreError),
    /// It can be reached and does not hold what a run leaves behind.
    #[error(
        "the database cannot be read as that of a demo; give the URL that `aegis demo` was run with, or that --keep printed"
    )]
    Unreadable(#[source] tokio_postgres::Error),
}

impl From<tokio_postgres::Error> for FactsError {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Unreadable(error)
    }
}

/// Reads the facts of the run that `record_run` names, or of the newest one when it is not there.
///
/// # Errors
/// [`FactsError`].
pub async fn read_facts(
    config: Config,
    record_run: Option<&str>,
) -> Result<EngineFacts, FactsError> {
    let store =
        Store::connect_unverified(config.with_pool_size(1)).map_err(FactsError::Unreachable)?;
    let mut client = store.handler_pool().get().await.map_err(|error| {
        FactsError::Unreachable(StoreError::Unreachable {
            place: store.config().place(),
            source: Box::new(error),
        })
    })?;
    let transaction = client
        .build_transaction()
        .isolation_level(IsolationLevel::RepeatableRead)
        .read_only(true)
        .start()
        .await?;
    // Sent unnamed with their types, since a pooler may stand between.
    let ask = async |sql: &str, values: &[&(dyn ToSql + Sync)]| {
        let typed: Vec<(&(dyn ToSql + Sync), Type)> =
            values.iter().map(|value| (*value, Type::TEXT)).collect();
        transaction.query_typed(sql, &typed).await
    };
    let runs = ask(include_str!("sql/run.sql"), &[&record_run]).await?;
    let Some(run) = runs.first() else {
        return Ok(EngineFacts::default());
    };
    let (id, tenant, queue, kind): (String, String, String, String) = (
        run.try_get(0)?,
        run.try_get(1)?,
        run.try_get(2)?,
        run.try_get(3)?,
    );
    let submissions = ask(include_str!("sql/submissions.sql"), &[&tenant, &kind]).await?;
    let task_rows = ask(include_str!("sql/tasks.sql"), &[&tenant]).await?;
    let operation_rows = ask(include_str!("sql/operations.sql"), &[&tenant]).await?;
    let event_rows = ask(include_str!("sql/events.sql"), &[&tenant]).await?;
    let worker_rows = ask(include_str!("sql/workers.sql"), &[&queue, &kind]).await?;
    let receipt_rows = ask(include_str!("sql/receipts.sql"), &[&queue]).await?;
    let mut facts = EngineFacts {
        run: Some(id),
        ..EngineFacts::default()
    };
    for row in &submissions {
        facts.submissions.push(Submission {
            key: row.try_get(0)?,
            task: row.try_get(1)?,
        });
    }
    let mut times = HashMap::new();
    for row in &task_rows {
        let (task, time) = task(row)?;
        times.insert(task.id.clone(), time);
        facts.tasks.push(task);
    }
    events(&event_rows, &mut times, &mut facts)?;
    operations(&operation_rows, &event_rows, &mut facts)?;
    for row in &worker_rows {
        facts.workers.push(WorkerFact {
            reads_min: protocol(row.try_get(0)?),
            reads_max: protocol(row.try_get(1)?),
            from_ms: row.try_get(2)?,
            until_ms: row.try_get(3)?,
        });
    }
    for row in &receipt_rows {
        facts.receipts.push(row.try_get(0)?);
    }
    for (task, times) in &times {
        facts.waits.extend(waits(task, times));
    }
    Ok(facts)
}

fn protocol(number: i32) -> u32 {
    u32::try_from(number).unwrap_or_default()
}

fn epoch(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default()
}

fn task(row: &Row) -> Result<(TaskFact, TaskTimes), tokio_postgres::Error> {
    let state = state(row.try_get("state")?);
    let input: Option<Vec<u8>> = row.try_get("input")?;
    let order = input.and_then(|bytes| serde_json::from_slice::<Order>(&bytes).ok());
    let protocol = protocol(
        row.try_get::<_, Option<i32>>("protocol")?
            .unwrap_or_default(),
    );
    let ended = matches!(
        state,
        TaskState::Succeeded | TaskState::Failed | TaskState::Cancelled | TaskState::Quarantined
    );
    let times = TaskTimes {
        submitted_ms: row.try_get("submitted_ms")?,
        submitted_protocol: protocol,
        claimed_ms: row.try_get("claimed_ms")?,
        ended_ms: if ended {
            row.try_get("finished_ms")?
        } else {
            None
        },
        executions: Vec::new(),
        resolved_ms: Vec::new(),
    };
    let fact = TaskFact {
        id: row.try_get("id")?,
        state,
        epoch: epoch(row.try_get("epoch")?),
        error_code: row.try_get("error_code")?,
        order_is_good: order.is_some_and(|order| order.validate().is_ok()),
    };
    Ok((fact, times))
}

fn state(number: i16) -> TaskState {
    match State::from_number(number) {
        State::Scheduled => TaskState::Scheduled,
        State::Ready => TaskState::Ready,
        State::Running => TaskState::Running,
        State::Waiting => TaskState::Waiting,
        State::Reconciling => TaskState::Reconciling,
        State::Succeeded => TaskState::Succeeded,
        State::Failed => TaskState::Failed,
        State::Cancelled => TaskState::Cancelled,
        State::Quarantined => TaskState::Quarantined,
        _ => TaskState::Other,
    }
}

fn events(
    rows: &[Row],
    times: &mut HashMap<String, TaskTimes>,
    facts: &mut EngineFacts,
) -> Result<(), tokio_postgres::Error> {
    let final_epochs: HashMap<String, u64> = facts
        .tasks
        .iter()
        .map(|task| (task.id.clone(), task.epoch))
        .collect();
    for row in rows {
        let task: String = row.try_get("task")?;
        let cause: String = row.try_get("cause")?;
        let epoch = epoch(row.try_get("epoch")?);
        if cause == "fenced" {
            // Without an epoch the task was gone: ended, at the epoch that stands there.
            let current: Option<i64> = row.try_get("current_epoch")?;
            let current_epoch = current.map_or_else(
                || final_epochs.get(&task).copied().unwrap_or_default(),
                self::epoch,
            );
            facts.stale_writes.push(StaleWrite {
                task,
                epoch,
                current_epoch,
            });
            continue;
        }
        let at_ms: i64 = row.try_get("at_ms")?;
        if cause == "operation_resolved" {
            if let Some(times) = times.get_mut(&task) {
                times.resolved_ms.push(at_ms);
            }
            continue;
        }
        let Some(end) = CAUSES.into_iter().find(|end| end.word() == cause) else {
            continue;
        };
        let claimed_ms: Option<i64> = row.try_get("claimed_ms")?;
        let (lo, hi): (Option<i32>, Option<i32>) = (row.try_get("lo")?, row.try_get("hi")?);
        if let (Some(times), Some(claimed_ms)) = (times.get_mut(&task), claimed_ms) {
            times.executions.push(Execution {
                claimed_ms,
                at_ms,
                run_ms: row.try_get("run_ms")?,
                lane: lo.zip(hi).map(|(lo, hi)| (protocol(lo), protocol(hi))),
            });
        }
        facts.ends.push(ExecutionEnd {
            task,
            epoch,
            cause: match end {
                Cause::Crash | Cause::Interruption => EndCause::WorkerLost,
                Cause::Drain => EndCause::HandedBack,
                Cause::Absent | Cause::Kill => EndCause::Other,
                Cause::Failure
                | Cause::Snooze
                | Cause::Unknown
                | Cause::Cancelled
                | Cause::Settled => EndCause::Attempt,
            },
        });
    }
    Ok(())
}

fn operations(
    rows: &[Row],
    event_rows: &[Row],
    facts: &mut EngineFacts,
) -> Result<(), tokio_postgres::Error> {
    let mut taken = HashSet::new();
    let mut resolutions: HashMap<String, (u64, u64)> = HashMap::new();
    for row in event_rows {
        let (cause, operation): (String, Option<String>) =
            (row.try_get("cause")?, row.try_get("operation")?);
        match (cause.as_str(), operation) {
            ("operation_resolved", Some(id)) => {
                let (all, said_not_happened) = resolutions.entry(id).or_default();
                *all += 1;
                let decided = row.try_get::<_, Option<i16>>("resolution")?;
                *said_not_happened +=
                    u64::from(decided == Some(aegis_model::Resolution::DidNotHappen.number()));
            }
            ("operation_taken", Some(id)) => {
                taken.insert(id);
            }
            _ => {}
        }
    }
    for row in rows {
        let id: String = row.try_get("id")?;
        let state: i16 = row.try_get("state")?;
        let (resolutions, said_not_happened) = resolutions.get(&id).copied().unwrap_or_default();
        let state = operation_state(state, row.try_get("resolution")?);
        facts.operations.push(OperationFact {
            was_unknown: taken.contains(&id)
                || resolutions > 0
                || matches!(state, OperationState::Unknown | OperationState::Resolved(_)),
            resolutions,
            said_not_happened,
            task: row.try_get("task")?,
            name: row.try_get("name")?,
            class: class(row.try_get("class")?),
            state,
            id,
        });
    }
    Ok(())
}

fn operation_state(state: i16, resolution: Option<i16>) -> OperationState {
    use aegis_model::OperationState as Stored;
    use aegis_model::Resolution as Decided;
    match Stored::from_number(state) {
        Some(Stored::Intended) => OperationState::Intended,
        Some(Stored::Dispatched) => OperationState::Dispatched,
        Some(Stored::Succeeded) => OperationState::Succeeded,
        Some(Stored::Failed) => OperationState::Failed,
        Some(Stored::Resolved) => match resolution.and_then(Decided::from_number) {
            Some(Decided::Happened) => OperationState::Resolved(Resolution::Happened),
            Some(Decided::DidNotHappen) => OperationState::Resolved(Resolution::DidNotHappen),
            Some(Decided::Compensated) => OperationState::Resolved(Resolution::Compensated),
            Some(Decided::GiveUp) => OperationState::Resolved(Resolution::GivenUp),
            None => OperationState::Unknown,
        },
        // A state of a newer schema is as good as unknown.
        Some(Stored::Unknown) | None => OperationState::Unknown,
    }
}

fn class(number: i16) -> EffectClass {
    match Class::from_number(number) {
        Some(Class::Idempotent) => EffectClass::Idempotent,
        Some(Class::Fenced) => EffectClass::Fenced,
        Some(Class::Queryable) => EffectClass::Queryable,
        // The strictest reading of what is not known.
        Some(Class::Blind) | None => EffectClass::Blind,
    }
}
