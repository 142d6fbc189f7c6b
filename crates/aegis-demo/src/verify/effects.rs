//! What the two witnesses break together: effects that were lost, doubled, made by nobody, or that the ledger denies.
//!
//! Effects are counted by operation, and by order too: a doubled charge under two operation ids is a doubled charge.
//! An effect that a person compensated does not count as one for the order.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::breach::{Breach, BreachKind, Counts};
use super::facts::{EngineFacts, OperationFact, OperationState, Resolution, TaskState};
use crate::payments::record::{Call, Event, RecordLine, Refusal};
use crate::payments::{Behaviour, Effect, EffectClass, FencingToken};

/// What the record says about one operation.
#[derive(Debug, Default)]
struct Seen<'a> {
    /// The lines in which it took place, in order.
    applied: Vec<(u64, &'a Call)>,
    /// Every call of it that may have taken place for all that its caller knew.
    calls: u64,
}

pub(super) fn judge(
    facts: &EngineFacts,
    lines: &[RecordLine],
    counts: &mut Counts,
    breaches: &mut Vec<Breach>,
) {
    let mut seen: BTreeMap<&str, Seen<'_>> = BTreeMap::new();
    for line in lines {
        let Some(call) = line.event.call() else {
            continue;
        };
        let entry = seen.entry(call.operation_id.as_str()).or_default();
        // A doubling service writes one call twice; by its number it is one call still.
        let again = entry
            .applied
            .last()
            .is_some_and(|(_, last)| last.call == call.call);
        // Answered before anything took place: the caller was told, so calling again repeats nothing.
        let told = matches!(
            line.event,
            Event::Dropped {
                behaviour: Behaviour::ErrorBefore,
                ..
            }
        );
        entry.calls += u64::from(!again && !told);
        if let Event::Applied { call, .. } = &line.event {
            entry.applied.push((line.seq, call));
            counts.effects_applied += 1;
        }
    }
    let ledger: HashMap<&str, &OperationFact> = facts
        .operations
        .iter()
        .map(|op| (op.id.as_str(), op))
        .collect();
    per_operation(&seen, &ledger, counts, breaches);
    per_order(&seen, &ledger, counts, breaches);
    for operation in &facts.operations {
        answered_for(operation, seen.get(operation.id.as_str()), counts, breaches);
    }
    nothing_missing(facts, &seen, counts, breaches);
    bad_orders_have_none(facts, &seen, breaches);
    tokens(lines, counts, breaches);
}

fn numbers(applied: &[(u64, &Call)]) -> String {
    applied
        .iter()
        .map(|(seq, _)| seq.to_string())
        .collect::<Vec<_>>()
        .join(", ")
}

fn per_operation(
    seen: &BTreeMap<&str, Seen<'_>>,
    ledger: &HashMap<&str, &OperationFact>,
    counts: &mut Counts,
    breaches: &mut Vec<Breach>,
) {
    for (id, seen) in seen {
        let Some((_, call)) = seen.applied.first() else {
            continue;
        };
        let (task, name, class) = (call.task.as_str(), call.effect.name(), call.class.name());
        let times = seen.applied.len() as u64;
        if times > 1 {
            counts.effects_duplicated += times - 1;
            let text = format!(
                "the {name} of order {} took place {times} times under one operation, {id} ({class}, task {task}; \
                 record numbers {})",
                call.reference,
                numbers(&seen.applied)
            );
            breaches.push(Breach::new(
                BreachKind::EffectDuplicated,
                Some(task),
                Some(id),
                text,
            ));
        }
        let text = match ledger.get(id) {
            None => format!(
                "the {name} of order {} took place for operation {id}, which no ledger row knows",
                call.reference
            ),
            Some(operation) if operation.task != call.task => format!(
                "the {name} of order {} took place for task {task}, and operation {id} belongs to task {}",
                call.reference, operation.task
            ),
            Some(_) => continue,
        };
        counts.effects_phantom += 1;
        breaches.push(Breach::new(
            BreachKind::EffectPhantom,
            Some(task),
            Some(id),
            text,
        ));
    }
    for (id, seen) in seen {
        // Again only after a person said that it had not happened.
        let Some(operation) = ledger.get(id).filter(|operation| {
            operation.class == EffectClass::Blind && seen.calls > 1 + operation.said_not_happened
        }) else {
            continue;
        };
        let text = format!(
            "operation {id} ({}) of task {} is blind and was called {} times; it must never be repeated without a person",
            operation.name, operation.task, seen.calls
        );
        breaches.push(Breach::new(
            BreachKind::BlindRepeated,
            Some(&operation.task),
            Some(id),
            text,
        ));
    }
}

fn per_order(
    seen: &BTreeMap<&str, Seen<'_>>,
    ledger: &HashMap<&str, &OperationFact>,
    counts: &mut Counts,
    breaches: &mut Vec<Breach>,
) {
    let mut orders: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
    for (id, seen) in seen {
        let undone = ledger.get(id).is_some_and(|operation| {
            operation.state == OperationState::Resolved(Resolution::Compensated)
        });
        if let (Some((_, call)), false) = (seen.applied.first(), undone) {
            orders
                .entry((call.reference.as_str(), call.effect.name()))
                .or_default()
                .push(id);
        }
    }
    for ((order, effect), operations) in orders
        .into_iter()
        .filter(|(_, operations)| operations.len() > 1)
    {
        counts.effects_duplicated += operations.len() as u64 - 1;
        let text = format!(
            "the {effect} of order {order} took place under {} operations: {}",
            operations.len(),
            operations.join(", ")
        );
        let task = ledger
            .get(operations[0])
            .map(|operation| operation.task.as_str());
        breaches.push(Breach::new(
            BreachKind::EffectDuplicated,
            task,
            Some(operations[0]),
            text,
        ));
    }
}

fn answered_for(
    operation: &OperationFact,
    seen: Option<&Seen<'_>>,
    counts: &mut Counts,
    breaches: &mut Vec<Breach>,
) {
    let applied = seen.and_then(|seen| seen.applied.first());
    let (id, name, task) = (
        operation.id.as_str(),
        operation.name.as_str(),
        operation.task.as_str(),
    );
    let happened = matches!(
        operation.state,
        OperationState::Succeeded | OperationState::Resolved(Resolution::Happened)
    );
    let denied = matches!(
        operation.state,
        OperationState::Intended
            | OperationState::Failed
            | OperationState::Resolved(Resolution::DidNotHappen)
    );
    match applied {
        None if happened => {
            counts.effects_lost += 1;
            let text = format!(
                "the ledger says that operation {id} ({name}) of task {task} took place ({:?}), and the payment service \
                 never applied it",
                operation.state
            );
            breaches.push(Breach::new(
                BreachKind::EffectLost,
                Some(task),
                Some(id),
                text,
            ));
        }
        Some((seq, _)) if denied => {
            let text = format!(
                "the ledger says that operation {id} ({name}) of task {task} did not take place ({:?}), and record number \
                 {seq} says that it did",
                operation.state
            );
            breaches.push(Breach::new(
                BreachKind::OutcomeContradicted,
                Some(task),
                Some(id),
                text,
            ));
        }
        _ => {}
    }
}

/// Of a task that succeeded each effect took place: by the ledger, or at least by the record. Else the effect was lost
/// together with its row, or the task went on without it.
fn nothing_missing(
    facts: &EngineFacts,
    seen: &BTreeMap<&str, Seen<'_>>,
    counts: &mut Counts,
    breaches: &mut Vec<Breach>,
) {
    let by_ledger = facts.operations.iter().filter(|op| {
        matches!(
            op.state,
            OperationState::Succeeded
                | OperationState::Resolved(Resolution::Happened | Resolution::Compensated)
        )
    });
    let by_record = seen.values().filter_map(|seen| seen.applied.first());
    let have: HashSet<(&str, &str)> = by_ledger
        .map(|op| (op.task.as_str(), op.name.as_str()))
        .chain(by_record.map(|(_, call)| (call.task.as_str(), call.effect.name())))
        .collect();
    for task in facts
        .tasks
        .iter()
        .filter(|task| task.state == TaskState::Succeeded)
    {
        for effect in Effect::ALL
            .iter()
            .filter(|effect| !have.contains(&(task.id.as_str(), effect.name())))
        {
            counts.effects_lost += 1;
            let text = format!(
                "task {} succeeded without its {}: no operation says that it took place, nor does the record",
                task.id,
                effect.name()
            );
            breaches.push(Breach::new(
                BreachKind::EffectLost,
                Some(&task.id),
                None,
                text,
            ));
        }
    }
}

fn bad_orders_have_none(
    facts: &EngineFacts,
    seen: &BTreeMap<&str, Seen<'_>>,
    breaches: &mut Vec<Breach>,
) {
    let bad: HashSet<&str> = facts
        .tasks
        .iter()
        .filter(|task| !task.order_is_good)
        .map(|task| task.id.as_str())
        .collect();
    for (id, (_, call)) in seen
        .iter()
        .filter_map(|(id, seen)| seen.applied.first().map(|first| (id, first)))
    {
        if bad.contains(call.task.as_str()) {
            let text = format!(
                "order {} is bad, and its {} took place (operation {id})",
                call.reference,
                call.effect.name()
            );
            breaches.push(Breach::new(
                BreachKind::TaskOutcome,
                Some(&call.task),
                Some(id),
                text,
            ));
        }
    }
}

/// Fenced calls in the order of the record: what came with an older token than one before must have been refused.
fn tokens(lines: &[RecordLine], counts: &mut Counts, breaches: &mut Vec<Breach>) {
    let mut newest: HashMap<&str, FencingToken> = HashMap::new();
    for line in lines {
        match &line.event {
            Event::Refused {
                reason: Refusal::StaleToken,
                ..
            } => counts.stale_tokens_refused += 1,
            Event::Refused {
                reason: Refusal::KeyReused,
                call,
                ..
            } => {
                let text = format!(
                    "operation {} ({}) of task {} was sent with two different requests",
                    call.operation_id,
                    call.effect.name(),
                    call.task
                );
                let (task, id) = (call.task.as_str(), call.operation_id.as_str());
                breaches.push(Breach::new(
                    BreachKind::RequestChanged,
                    Some(task),
                    Some(id),
                    text,
                ));
            }
            Event::Applied { call, .. } | Event::Replayed { call, .. }
                if call.class == EffectClass::Fenced =>
            {
                let (task, id) = (call.task.as_str(), call.operation_id.as_str());
                let before = newest.get(task).copied();
                match (call.fencing_token, before) {
                    (Some(token), Some(before)) if token < before => {
                        counts.stale_accepted += 1;
                        let text = format!(
                            "record number {} accepts the {} of order {} with token {token} of task {task}, after token \
                             {before} had been seen",
                            line.seq,
                            call.effect.name(),
                            call.reference
                        );
                        breaches.push(Breach::new(
                            BreachKind::StaleAccepted,
                            Some(task),
                            Some(id),
                            text,
                        ));
                    }
                    (Some(token), _) => {
                        newest.insert(task, token);
                    }
                    (None, _) => {
                        counts.stale_accepted += 1;
                        let text = format!(
                            "record number {} accepts a fenced effect without a token",
                            line.seq
                        );
                        breaches.push(Breach::new(
                            BreachKind::StaleAccepted,
                            Some(task),
                            Some(id),
                            text,
                        ));
                    }
                }
            }
            _ => {}
        }
    }
}
