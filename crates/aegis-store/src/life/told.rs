//! From rows to moments: what is stored in seven tables, once each, in the order of time.
//!
//! Invariant: pure; nothing is guessed. A claim is known by the event or the row that ended it, an unknown operation by the
//! end of its execution.

use std::collections::BTreeSet;

use aegis_model::cause::CAUSES;
use aegis_model::{OperationState, Resolution, State};
use jiff::Timestamp;
use serde_json::Value;
use uuid::Uuid;

use super::{Life, Moment};
use crate::view::TaskEvent;

/// Moments of the same microsecond stand in this order.
const RANKS: [&str; 4] = ["submitted", "claimed", "operation_dispatched", "step"];

pub(super) fn moments(life: &Life) -> Vec<Moment> {
    let mut all = vec![submitted(life)];
    claims(life, &mut all);
    all.extend(life.events.iter().map(of_event));
    errors_without_event(life, &mut all);
    saved(life, &mut all);
    operations(life, &mut all);
    all.extend(end(life));
    all.sort_by_key(|moment| {
        let rank = RANKS.iter().position(|what| *what == moment.what);
        (moment.at, rank.unwrap_or(RANKS.len()))
    });
    all
}

fn moment(at: Timestamp, epoch: Option<i64>, what: &str, text: String) -> Moment {
    Moment {
        at,
        epoch,
        what: what.to_owned(),
        worker: None,
        actor: None,
        text,
        detail: None,
    }
}

fn submitted(life: &Life) -> Moment {
    let task = &life.task;
    let protocol = task.protocol.unwrap_or(task.lo);
    let by = task.submitter.as_deref().map(|name| format!(", by {name}"));
    moment(
        task.submitted_at,
        None,
        "submitted",
        format!(
            "{}/{} for tenant {}, protocol {protocol}{}",
            task.queue,
            task.kind,
            task.tenant,
            by.unwrap_or_default()
        ),
    )
}

/// A worker as people look for it: its name, machine, release and build.
fn who(life: &Life, worker: Option<Uuid>) -> String {
    let Some(id) = worker else {
        return "nobody".to_owned();
    };
    match life.workers.get(&id) {
        Some(w) => format!(
            "{} on {} (pid {}), release {}, build {}",
            w.name, w.host, w.pid, w.release, w.build
        ),
        None => format!("worker {id}, forgotten since"),
    }
}

fn claims(life: &Life, all: &mut Vec<Moment>) {
    let task = &life.task;
    let mut seen = BTreeSet::new();
    let of_events = life
        .events
        .iter()
        .map(|event| (event.claimed_at, event.epoch, event.owner));
    let of_task = [(task.claimed_at, task.epoch, task.owner)];
    for (claimed_at, epoch, owner) in of_events.chain(of_task) {
        let Some(at) = claimed_at else { continue };
        if seen.insert((at, epoch)) {
            let mut claim = moment(
                at,
                Some(epoch),
                "claimed",
                format!("by {}", who(life, owner)),
            );
            claim.worker = owner;
            all.push(claim);
        }
    }
}

fn word<'a>(detail: Option<&'a Value>, key: &str) -> Option<&'a str> {
    detail?.get(key)?.as_str()
}

fn of_event(event: &TaskEvent) -> Moment {
    let detail = event.detail.as_ref();
    let reason = word(detail, "reason").map_or(String::new(), |why| format!(": {why}"));
    let later = word(detail, "run_at").map_or(String::new(), |at| format!("; tried again at {at}"));
    let from_to = || {
        let of = |key| {
            detail
                .and_then(|d| d.get(key))
                .map_or_else(|| "none".to_owned(), plain)
        };
        format!("from {} to {}", of("from"), of("to"))
    };
    let text = match event.cause.as_str() {
        "failure" => format!(
            "the attempt failed with {}{}{later}",
            word(detail, "code").unwrap_or("an error"),
            word(detail, "message").map_or(String::new(), |message| format!(": {message}"))
        ),
        "snooze" => format!("its handler postponed it{later}"),
        "drain" => "its worker drained and handed it back".to_owned(),
        "absent" => "its worker did not know of it (two beats); taken back".to_owned(),
        "interruption" => "its worker was lost, not by its own doing; taken back".to_owned(),
        "crash" => "its worker was lost with it; taken back".to_owned(),
        "unknown" => {
            "the execution ended beside an operation that nobody knows the result of".to_owned()
        }
        "cancelled" => "the execution stopped on request".to_owned(),
        "kill" => "the execution did not stop in time; ended for it".to_owned(),
        "settled" => "the execution settled operations".to_owned(),
        "fenced" => format!(
            "a stale write was refused ({}, {})",
            word(detail, "verb").unwrap_or("a write"),
            word(detail, "reason").unwrap_or("stale")
        ),
        "cancel_requested" => format!("its end was asked for{reason}"),
        "redriven" => format!("sent again{reason}"),
        "discarded" => format!("given up for good{reason}"),
        "retried" => format!("made ready before its back-off had passed{reason}"),
        "run_now" => format!("made ready before its time{reason}"),
        "rescheduled" => format!(
            "starts {}{reason}",
            word(detail, "run_at").map_or("now".to_owned(), |at| format!("at {at}"))
        ),
        "reprioritised" => format!("priority {}{reason}", from_to()),
        "erased" => format!("its payload was erased{reason}"),
        "operation_taken" => format!(
            "operation {} was taken",
            word(detail, "operation").unwrap_or_default()
        ),
        "operation_resolved" => format!(
            "operation {} was decided: {}; evidence: {}",
            word(detail, "operation").unwrap_or_default(),
            resolution(detail),
            word(detail, "evidence").unwrap_or_default()
        ),
        other => other.to_owned(),
    };
    Moment {
        at: event.at,
        epoch: Some(event.epoch),
        what: event.cause.clone(),
        worker: event.owner,
        actor: event.actor.clone(),
        text,
        detail: event.detail.clone(),
    }
}

fn plain(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

fn resolution(detail: Option<&Value>) -> &'static str {
    detail
        .and_then(|d| d.get("resolution")?.as_i64())
        .and_then(|number| i16::try_from(number).ok())
        .and_then(Resolution::from_number)
        .map_or("decided", Resolution::word)
}

/// The error of an attempt that ended the task has no event of its own.
fn errors_without_event(life: &Life, all: &mut Vec<Moment>) {
    for error in &life.errors {
        let told = life
            .events
            .iter()
            .any(|event| event.cause == "failure" && event.epoch == error.epoch);
        if !told {
            let text = format!("the attempt failed with {}: {}", error.code, error.message);
            let mut failed = moment(error.at, Some(error.epoch), "failure", text);
            failed.worker = error.owner;
            failed.detail.clone_from(&error.details);
            all.push(failed);
        }
    }
}

fn saved(life: &Life, all: &mut Vec<Moment>) {
    for step in &life.steps {
        let text = format!(
            "{} {} kept ({} bytes, protocol {})",
            step.name, step.key, step.bytes, step.protocol
        );
        all.push(moment(step.written_at, Some(step.epoch), "step", text));
    }
    let task = &life.task;
    if let (Some(at), Some(seq)) = (task.checkpoint_at, task.checkpoint_seq) {
        let protocol = task.checkpoint_protocol.unwrap_or(task.hi);
        let text = format!("number {seq} saved, the newest, protocol {protocol}");
        all.push(moment(at, task.checkpoint_epoch, "checkpoint", text));
    }
}

fn operations(life: &Life, all: &mut Vec<Moment>) {
    for o in &life.operations {
        let epoch = Some(o.epoch);
        let note = o
            .note
            .as_deref()
            .map_or(String::new(), |note| format!(": {note}"));
        if let Some(first) = o.first_dispatched_at {
            let mut go = moment(
                first,
                (o.dispatches <= 1).then_some(o.epoch),
                "operation_dispatched",
                format!("{} {}", o.name, o.key),
            );
            go.worker = o.worker.filter(|_| o.dispatches <= 1);
            all.push(go);
        }
        if let Some(again) = o.dispatched_at.filter(|_| o.dispatches > 1) {
            let text = format!("{} {} again, the {}th time", o.name, o.key, o.dispatches);
            let mut go = moment(again, epoch, "operation_dispatched", text);
            go.worker = o.worker;
            all.push(go);
        }
        match (OperationState::from_number(o.state), o.finished_at) {
            (Some(OperationState::Succeeded), Some(at)) => {
                let text = format!("{} {}", o.name, o.key);
                all.push(moment(at, epoch, "operation_succeeded", text));
            }
            (Some(OperationState::Failed), Some(at)) => {
                let text = format!("{} {}{note}", o.name, o.key);
                all.push(moment(at, epoch, "operation_failed", text));
            }
            (Some(OperationState::Unknown), _) => {
                if let Some(at) = doubted_at(life, o.epoch, o.dispatched_at) {
                    let text = format!("{} {}{note}; a person decides", o.name, o.key);
                    all.push(moment(at, epoch, "operation_unknown", text));
                }
            }
            _ => {}
        }
    }
}

/// An operation became unknown when its execution ended; where no end is stored, it is known since the dispatch only.
fn doubted_at(life: &Life, epoch: i64, dispatched_at: Option<Timestamp>) -> Option<Timestamp> {
    let ended = life.events.iter().filter(|event| {
        event.epoch >= epoch && CAUSES.iter().any(|cause| cause.word() == event.cause)
    });
    ended.map(|event| event.at).min().or(dispatched_at)
}

fn end(life: &Life) -> Option<Moment> {
    let task = &life.task;
    let state = State::from_number(task.state);
    let at = task.finished_at?;
    // One that was discarded has the event that says so, and its failure.
    if state.is_parked() && !task.parked {
        return None;
    }
    let code = word(task.error.as_ref(), "code").unwrap_or("no code");
    let why =
        word(task.error.as_ref(), "message").map_or(String::new(), |text| format!(": {text}"));
    let text = match state {
        State::Succeeded => "ended with its result".to_owned(),
        State::Cancelled => format!("ended on request{why}"),
        State::Failed => {
            format!("given up with {code}{why}; parked until a person redrives or discards it")
        }
        State::Quarantined => {
            format!("set aside with {code}{why}; parked until a person redrives or discards it")
        }
        other => format!("ended as {other}"),
    };
    let mut ended = moment(at, Some(task.epoch), state.word(), text);
    ended.worker = task.owner;
    Some(ended)
}
