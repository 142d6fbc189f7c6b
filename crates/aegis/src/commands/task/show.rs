//! `aegis task show`: what a task is now, and its whole life on one time line.

use aegis_model::{Class, OperationState, Resolution, State};
use aegis_store::Store;
use aegis_store::life::Life;
use aegis_store::view::{OperationSummary, TaskDetail};
use serde_json::{Value, json};

use super::list::{protocols, standing};
use super::timeline;
use crate::commands::find;
use crate::failure::Failure;
use crate::output::{Output, at, line, maybe_at, note, payload};

pub(super) async fn run(store: &Store, prefix: &str, output: Output) -> Result<(), Failure> {
    let id = find::task(store, prefix).await?;
    let life = store
        .life(id)
        .await?
        .ok_or_else(|| super::watch::missing(prefix))?;
    let state = State::from_number(life.task.state);
    output.one(&fields(&life, state), &document(&life, state));
    if output == Output::Table {
        line("");
        let moments = life.moments();
        output.list(
            timeline::COLUMNS,
            moments
                .iter()
                .map(|moment| timeline::row(&life, moment))
                .collect(),
            Vec::new(),
        );
        if life.is_cut() {
            note("it has more steps or operations; the first 1,000 of each are shown");
        }
    }
    Ok(())
}

/// What somebody on call asks first: what is it waiting for?
fn now(life: &Life, state: State) -> String {
    let task = &life.task;
    let ago = |time| timeline::long(life.read_at.duration_since(time));
    match state {
        State::Scheduled => match task.run_at {
            Some(run_at) if run_at > life.read_at => format!(
                "waits until {}, {} from now",
                at(run_at),
                timeline::long(run_at.duration_since(life.read_at))
            ),
            _ => "is due; made ready by the next tick of a worker".to_owned(),
        },
        State::Ready if task.crashes > 0 => {
            "has crashed with its worker: waits for one that holds nothing else".to_owned()
        }
        State::Ready => format!(
            "waits for a worker of {}/{} that reads protocol {}",
            task.queue,
            task.kind,
            protocols(task.lo, task.hi)
        ),
        State::Running => {
            let owner = task.owner.map(|id| timeline::worker(life, id));
            let mut text = format!(
                "executed by {} for {}",
                owner.unwrap_or_default(),
                task.claimed_at.map(ago).unwrap_or_default()
            );
            if let Some(asked) = task.cancel_at {
                text = format!("{text}; asked to stop {} ago", ago(asked));
            }
            text
        }
        State::Reconciling => {
            "an operation is unknown: a person decides (aegis operation list)".to_owned()
        }
        State::Waiting => "waits for an event, a child or an approval".to_owned(),
        _ => match (task.parked, task.finished_at) {
            (true, Some(time)) => {
                format!("parked {} ago: a person redrives or discards it", ago(time))
            }
            (false, Some(time)) => format!("ended {} ago", ago(time)),
            _ => String::new(),
        },
    }
}

fn fields(life: &Life, state: State) -> Vec<(&'static str, String)> {
    let task = &life.task;
    let text = |value: Option<&Value>| value.map(Value::to_string).unwrap_or_default();
    // What was there once and is not any more; a task that was cancelled never had a result.
    let erased = |bytes: Option<&[u8]>, was_there: bool| match task.erased_at {
        Some(_) if was_there => "(erased)".to_owned(),
        Some(_) => String::new(),
        None => text(bytes.map(payload).as_ref()),
    };
    let mut fields = vec![
        ("id", task.id.to_string()),
        ("state", standing(state, task.parked)),
        ("now", now(life, state)),
        ("queue/kind", format!("{}/{}", task.queue, task.kind)),
        ("tenant", task.tenant.clone()),
        ("labels", text(task.labels.as_ref())),
        (
            "priority",
            task.priority.map(|p| p.to_string()).unwrap_or_default(),
        ),
        ("protocols stored", protocols(task.lo, task.hi)),
        ("epoch, rev", format!("{}, {}", task.epoch, task.rev)),
        (
            "counters",
            format!(
                "failures {}, interruptions {}, crashes {}, snoozes {}",
                task.failures, task.interruptions, task.crashes, task.snoozes
            ),
        ),
        ("deadline", maybe_at(task.deadline_at)),
        (
            "open operations",
            if task.open_ops > 0 {
                task.open_ops.to_string()
            } else {
                String::new()
            },
        ),
        (
            "stored outcome",
            task.pending
                .map(|number| State::from_number(number).to_string())
                .unwrap_or_default(),
        ),
        ("input", erased(task.input.as_deref(), true)),
        (
            "result",
            erased(task.result.as_deref(), state == State::Succeeded),
        ),
        ("error", text(task.error.as_ref())),
        ("erased", maybe_at(task.erased_at)),
    ];
    fields.retain(|(_, value)| !value.is_empty());
    fields
}

fn operation(o: &OperationSummary) -> Value {
    json!({
        "id": o.id, "name": o.name, "key": o.key, "class": Class::from_number(o.class).map(Class::word),
        "state": OperationState::from_number(o.state).map_or("other", OperationState::word), "dispatches": o.dispatches,
        "epoch": o.epoch, "worker": o.worker, "release": o.release,
        "first_dispatched_at": o.first_dispatched_at.map(|x| x.to_string()),
        "dispatched_at": o.dispatched_at.map(|x| x.to_string()), "finished_at": o.finished_at.map(|x| x.to_string()),
        "note": o.note, "taken_by": o.taken_by, "taken_at": o.taken_at.map(|x| x.to_string()),
        "resolution": o.resolution.and_then(Resolution::from_number).map(Resolution::word), "resolved_by": o.resolved_by,
        "resolved_at": o.resolved_at.map(|x| x.to_string()), "evidence": o.evidence,
    })
}

/// What the task is, without its life.
fn facts(task: &TaskDetail, state: State) -> Value {
    json!({
        "id": task.id, "state": state.word(), "parked": task.parked, "queue": task.queue, "kind": task.kind, "tenant": task.tenant,
        "protocol": task.protocol, "protocol_lo": task.lo, "protocol_hi": task.hi, "priority": task.priority,
        "epoch": task.epoch, "rev": task.rev, "owner": task.owner, "failures": task.failures, "interruptions": task.interruptions,
        "crashes": task.crashes, "snoozes": task.snoozes, "open_operations": task.open_ops,
        "pending": task.pending.map(|p| State::from_number(p).word()), "submitted_at": task.submitted_at.to_string(),
        "run_at": task.run_at.map(|x| x.to_string()), "claimed_at": task.claimed_at.map(|x| x.to_string()),
        "finished_at": task.finished_at.map(|x| x.to_string()), "cancel_at": task.cancel_at.map(|x| x.to_string()),
        "deadline_at": task.deadline_at.map(|x| x.to_string()), "erased_at": task.erased_at.map(|x| x.to_string()),
        "checkpoint_protocol": task.checkpoint_protocol, "checkpoint_seq": task.checkpoint_seq,
        "checkpoint_epoch": task.checkpoint_epoch, "checkpoint_at": task.checkpoint_at.map(|x| x.to_string()),
        "labels": task.labels, "submitter": task.submitter, "trace": task.trace,
        "input": task.input.as_deref().map(payload), "result": task.result.as_deref().map(payload), "error": task.error,
    })
}

fn document(life: &Life, state: State) -> Value {
    let mut document = facts(&life.task, state);
    document["timeline"] = life.moments().iter().map(timeline::document).collect();
    document["events"] = life.events.iter().map(super::events::document).collect();
    document["errors"] = life
        .errors
        .iter()
        .map(|e| {
            json!({ "epoch": e.epoch, "at": e.at.to_string(), "owner": e.owner, "code": e.code, "message": e.message,
                    "retryable": e.retryable, "details": e.details })
        })
        .collect();
    document["steps"] = life
        .steps
        .iter()
        .map(|s| {
            json!({ "name": s.name, "key": s.key, "epoch": s.epoch, "protocol": s.protocol, "bytes": s.bytes,
                    "written_at": s.written_at.to_string() })
        })
        .collect();
    document["operations"] = life.operations.iter().map(operation).collect();
    document["workers"] = life
        .workers
        .values()
        .map(|w| {
            json!({ "id": w.id, "name": w.name, "host": w.host, "pid": w.pid, "release": w.release, "build": w.build })
        })
        .collect();
    document["cut"] = json!(life.is_cut());
    document
}
