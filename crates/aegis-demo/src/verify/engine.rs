//! What the database alone can break: a task that is gone, that has not ended, or ended by a stale write; an operation
//! that is open beside an ended task, or that left `unknown` without a person.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::breach::{Breach, BreachKind, Counts};
use super::facts::{
    EndCause, EngineFacts, OperationState, TaskFact, TaskState, TaskWait, WorkerFact,
};

pub(super) fn judge(facts: &EngineFacts, counts: &mut Counts, breaches: &mut Vec<Breach>) {
    counts.submitted = facts.submissions.len() as u64;
    let found: HashMap<&str, &TaskFact> = facts
        .tasks
        .iter()
        .map(|task| (task.id.as_str(), task))
        .collect();
    for submission in facts
        .submissions
        .iter()
        .filter(|s| !found.contains_key(s.task.as_str()))
    {
        counts.tasks_lost += 1;
        let text = format!(
            "order {} was accepted as task {}, and that task is nowhere: not live, not ended, not parked",
            submission.key, submission.task
        );
        breaches.push(Breach::new(
            BreachKind::TaskLost,
            Some(&submission.task),
            None,
            text,
        ));
    }
    for task in &facts.tasks {
        outcome(task, counts, breaches);
    }
    rights(facts, &found, counts, breaches);
    operations(facts, &found, counts, breaches);
    receipts(facts, counts, breaches);
    let waited: HashSet<&str> = facts
        .waits
        .iter()
        .filter(|wait| for_protocol(wait, &facts.workers))
        .map(|wait| wait.task.as_str())
        .collect();
    counts.waited_for_protocol = waited.len() as u64;
}

fn outcome(task: &TaskFact, counts: &mut Counts, breaches: &mut Vec<Breach>) {
    let bad_code = task.error_code.as_deref() == Some(crate::orders::CODE_BAD_ORDER);
    let text = match (task.state, task.order_is_good) {
        (TaskState::Succeeded, true) => {
            counts.succeeded += 1;
            return;
        }
        (TaskState::Failed, false) if bad_code => {
            counts.failed_as_expected += 1;
            return;
        }
        (TaskState::Succeeded, false) => {
            counts.succeeded += 1;
            format!(
                "task {} succeeded with an order that must not be executed",
                task.id
            )
        }
        (state @ (TaskState::Failed | TaskState::Cancelled | TaskState::Quarantined), good) => {
            format!(
                "task {} with a {} order ended as {state:?} ({})",
                task.id,
                if good { "good" } else { "bad" },
                task.error_code
                    .as_deref()
                    .unwrap_or("without an error code")
            )
        }
        // A doubt of its own.
        (TaskState::Other, _) => return,
        (state, _) => {
            counts.tasks_unfinished += 1;
            let text = format!(
                "task {} has not ended: it is {state:?} at epoch {}",
                task.id, task.epoch
            );
            breaches.push(Breach::new(
                BreachKind::TaskUnfinished,
                Some(&task.id),
                None,
                text,
            ));
            return;
        }
    };
    breaches.push(Breach::new(
        BreachKind::TaskOutcome,
        Some(&task.id),
        None,
        text,
    ));
}

fn has_ended(task: &TaskFact) -> bool {
    matches!(
        task.state,
        TaskState::Succeeded | TaskState::Failed | TaskState::Cancelled | TaskState::Quarantined
    )
}

fn rights(
    facts: &EngineFacts,
    found: &HashMap<&str, &TaskFact>,
    counts: &mut Counts,
    breaches: &mut Vec<Breach>,
) {
    let ended_by = |task: &str| {
        found
            .get(task)
            .filter(|task| has_ended(task))
            .map(|task| task.epoch)
    };
    let mut accused = HashSet::new();
    let mut accuse = |task: &str, epoch: u64, why: &str| {
        if ended_by(task) == Some(epoch) && accused.insert(task.to_owned()) {
            let text = format!("the end of task {task} was written by epoch {epoch}, {why}");
            breaches.push(Breach::new(
                BreachKind::StaleAccepted,
                Some(task),
                None,
                text,
            ));
        }
    };
    for end in &facts.ends {
        match end.cause {
            EndCause::WorkerLost => counts.takeovers += 1,
            EndCause::HandedBack => counts.handed_back += 1,
            EndCause::Attempt | EndCause::Other => {}
        }
        if matches!(end.cause, EndCause::WorkerLost | EndCause::HandedBack) {
            accuse(
                &end.task,
                end.epoch,
                "which had been taken from its worker before",
            );
        }
    }
    for refused in &facts.stale_writes {
        counts.stale_writes_refused += 1;
        // A refusal at the task's own epoch is a late write behind one's own completion, not a lost right.
        if refused.current_epoch > refused.epoch {
            accuse(
                &refused.task,
                refused.epoch,
                "of which another write had been refused as stale",
            );
        }
    }
    counts.stale_accepted += accused.len() as u64;
}

fn operations(
    facts: &EngineFacts,
    found: &HashMap<&str, &TaskFact>,
    counts: &mut Counts,
    breaches: &mut Vec<Breach>,
) {
    for operation in &facts.operations {
        let (task, id) = (operation.task.as_str(), operation.id.as_str());
        let unknown = operation.state == OperationState::Unknown;
        let by_state = u64::from(matches!(operation.state, OperationState::Resolved(_)));
        let resolved = operation.resolutions.max(by_state);
        let opened = resolved + u64::from(unknown);
        counts.unknown_opened += opened.max(u64::from(operation.was_unknown));
        counts.unknown_resolved += resolved;
        counts.unknown_left += u64::from(unknown);
        if operation.was_unknown && opened == 0 {
            let text = format!(
                "operation {id} ({}) of task {task} was unknown and is {:?} now, and no person resolved it",
                operation.name, operation.state
            );
            breaches.push(Breach::new(
                BreachKind::UnknownBypassed,
                Some(task),
                Some(id),
                text,
            ));
        }
        let open = matches!(
            operation.state,
            OperationState::Dispatched | OperationState::Unknown
        );
        if open && found.get(task).is_none_or(|task| has_ended(task)) {
            let text = format!(
                "operation {id} ({}) is {:?} although its task {task} has ended",
                operation.name, operation.state
            );
            breaches.push(Breach::new(
                BreachKind::OperationOpen,
                Some(task),
                Some(id),
                text,
            ));
        }
    }
}

/// A receipt is written in the transaction of the completion: both stand, or neither.
fn receipts(facts: &EngineFacts, counts: &mut Counts, breaches: &mut Vec<Breach>) {
    let mut written: BTreeMap<&str, u64> = BTreeMap::new();
    for task in &facts.receipts {
        *written.entry(task).or_default() += 1;
    }
    counts.receipts = facts.receipts.len() as u64;
    let succeeded = facts
        .tasks
        .iter()
        .filter(|task| task.state == TaskState::Succeeded);
    let succeeded: BTreeSet<&str> = succeeded.map(|task| task.id.as_str()).collect();
    let wrong = succeeded
        .iter()
        .map(|task| (*task, written.get(task).copied().unwrap_or_default(), 1))
        .chain(
            written
                .iter()
                .filter(|(task, _)| !succeeded.contains(*task))
                .map(|(task, found)| (*task, *found, 0)),
        )
        .filter(|(_, found, expected)| found != expected);
    for (task, found, expected) in wrong {
        let text = format!(
            "task {task} has {found} receipts in the handler's own table, and its end allows {expected}: they are written in \
             one transaction"
        );
        breaches.push(Breach::new(
            BreachKind::ReceiptMismatch,
            Some(task),
            None,
            text,
        ));
    }
}

/// Whether, at some moment of the wait, somebody accepted work and nobody of them could read the task.
fn for_protocol(wait: &TaskWait, workers: &[WorkerFact]) -> bool {
    let inside = |at: i64| at >= wait.from_ms && wait.until_ms.is_none_or(|until| at < until);
    let accepts = |worker: &WorkerFact, at: i64| {
        at >= worker.from_ms && worker.until_ms.is_none_or(|until| at < until)
    };
    let reads = |worker: &WorkerFact| worker.reads_min <= wait.lo && wait.hi <= worker.reads_max;
    // Who accepts changes only when somebody comes or goes.
    let moments = std::iter::once(wait.from_ms)
        .chain(
            workers
                .iter()
                .flat_map(|w| [Some(w.from_ms), w.until_ms])
                .flatten(),
        )
        .filter(|at| inside(*at));
    moments.into_iter().any(|at| {
        let mut accepting = workers.iter().filter(|w| accepts(w, at)).peekable();
        accepting.peek().is_some() && !accepting.any(reads)
    })
}
