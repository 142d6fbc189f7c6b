//! Completions, written in groups.
//!
//! Invariants: a group holds one owner's tasks, at most 200, gathered for at most 5 ms, and not at all when nothing else is
//! running; each row is answered by itself; one group is in flight at a time, on another connection than the claims.
//!
//! Never: repeat a completion before the row was read back; let one task's bad data or lost row touch another's.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use aegis_model::{Held, Outcome, State};
use aegis_store::StoreError;
use aegis_store::guarded::{Completion, Failure};
use aegis_telemetry::Role;
use futures_util::future::BoxFuture;
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::execution::Execution;
use crate::metrics::Ended;
use crate::points::{Cut, Subject};
use crate::shared::Shared;
use crate::writer::{Pause, Resolved};

/// How long a result is offered to a database that refuses it for a reason that it is not known to get over.
const PATIENCE: Duration = Duration::from_mins(1);

/// An execution whose result is ready.
pub(crate) struct Finished {
    pub(crate) execution: Arc<Execution>,
    /// With the rev of its last write.
    pub(crate) held: Held,
    pub(crate) result: Option<Vec<u8>>,
}

/// Runs until the channel is closed and everything in it has been answered.
pub(crate) async fn run(shared: Arc<Shared>, mut ready: mpsc::Receiver<Finished>) {
    let mut group = Vec::with_capacity(shared.options.tuning.completion_group_max);
    while let Some(first) = ready.recv().await {
        group.push(first);
        gather(&shared, &mut ready, &mut group).await;
        for part in by_owner(std::mem::take(&mut group)) {
            write(&shared, part).await;
        }
    }
}

/// Waits for company, unless nothing else is running that could bring some.
async fn gather(shared: &Shared, ready: &mut mpsc::Receiver<Finished>, group: &mut Vec<Finished>) {
    let deadline = Instant::now() + shared.options.tuning.completion_group;
    while group.len() < shared.options.tuning.completion_group_max {
        if let Ok(next) = ready.try_recv() {
            group.push(next);
            continue;
        }
        let (executing, queued) = shared.executor.load();
        if executing == 0 && queued == 0 {
            return;
        }
        match tokio::time::timeout_at(deadline, ready.recv()).await {
            Ok(Some(next)) => group.push(next),
            Ok(None) | Err(_) => return,
        }
    }
}

/// A process that has registered anew still holds results of its former incarnation.
fn by_owner(group: Vec<Finished>) -> Vec<Vec<Finished>> {
    let mut parts: HashMap<_, Vec<Finished>> = HashMap::new();
    for one in group {
        parts.entry(one.held.owner).or_default().push(one);
    }
    parts.into_values().collect()
}

/// Writes one owner's group until each of its rows is answered, or the worker has ended.
async fn write(shared: &Arc<Shared>, mut group: Vec<Finished>) {
    let since = Instant::now();
    let mut pause = Pause::new();
    while !group.is_empty() {
        let completions = group
            .iter()
            .map(|one| Completion {
                held: one.held,
                result: one.result.clone(),
            })
            .collect();
        let sent = Instant::now();
        let began = SystemTime::now();
        shared.metrics.completion_group(group.len());
        let answer = shared.store.complete(completions).await;
        shared.metrics.write_took("complete", sent.elapsed());
        match answer {
            Ok(answers) => {
                let mut again = Vec::new();
                for (one, answer) in group.into_iter().zip(answers) {
                    let refused = matches!(answer, Outcome::Fenced(_)).then(|| "fenced".to_owned());
                    let execution = &one.execution;
                    execution.tell(
                        "aegis.complete",
                        Role::Internal,
                        None,
                        began,
                        Vec::new,
                        refused,
                    );
                    if let Some(one) = settle(shared, one, answer, pause.waited()).await {
                        again.push(one);
                    }
                }
                group = again;
            }
            Err(error) if error.is_passing() => {
                tracing::warn!(tasks = group.len(), error = %error, "completions wait for the database");
            }
            Err(error) if group.len() == 1 => {
                // Perhaps the database's mood and not the row's fault: a result is worth some patience.
                let over = error.blames_data()
                    || since.elapsed() > PATIENCE
                    || !group[0].execution.incarnation.fence.is_eligible();
                if over && let Some(one) = group.pop() {
                    charge(shared, one, &error).await;
                } else {
                    tracing::error!(error = %crate::task_error::chain(&error), "a completion was refused; it is tried again");
                }
            }
            Err(error) => {
                // Not one row's data (those are bisected by the store): each by itself, so that no row holds up the others.
                tracing::error!(tasks = group.len(), error = %error, "a group of completions was refused; each is tried alone");
                for one in std::mem::take(&mut group) {
                    let shared = Arc::clone(shared);
                    // In flight until it is answered, so a drain waits for it.
                    tokio::spawn(write_apart(shared, one));
                }
            }
        }
        if group.is_empty() {
            break;
        }
        if shared.ended.is_cancelled() {
            tracing::error!(
                tasks = group.len(),
                "results could not be delivered; their tasks are left to expiry"
            );
            break;
        }
        pause.wait().await;
    }
    shared.wake.notify_one();
}

fn write_apart(shared: Arc<Shared>, one: Finished) -> BoxFuture<'static, ()> {
    Box::pin(async move { write(&shared, vec![one]).await })
}

/// Takes one row's answer. Gives it back when it has to be sent again.
async fn settle(
    shared: &Shared,
    one: Finished,
    answer: Outcome<State>,
    repeated: bool,
) -> Option<Finished> {
    let execution = &one.execution;
    let mut stored = true;
    match answer {
        // The store charges a result that the database cannot take.
        Outcome::Applied(State::Scheduled | State::Failed) if !execution.is_settling() => {
            execution.count(Ended::Failed);
        }
        Outcome::Applied(_) => execution.count(Ended::Completed),
        Outcome::Fenced(reason) if !repeated => {
            stored = false;
            execution.refused(reason);
            execution.count(Ended::Lost);
        }
        Outcome::Fenced(_) | Outcome::Unknown => {
            let digest = Completion {
                held: one.held,
                result: one.result.clone(),
            }
            .digest();
            match execution.read_back(one.held, Some(digest)).await {
                Resolved::Applied { .. } => execution.count(Ended::Completed),
                Resolved::NotApplied => return Some(one),
                Resolved::Fenced(reason) => {
                    stored = false;
                    execution.refused(reason);
                    execution.count(Ended::Lost);
                }
            }
        }
    }
    if stored {
        execution.at(Cut::Stored, || Subject::Handler).await;
    }
    shared.gate.remove(execution.key());
    None
}

/// The database refuses to complete this task, and not because of its result: charged, so that it does not come back for ever
/// unseen.
async fn charge(shared: &Shared, one: Finished, error: &StoreError) {
    let task = one.held.task;
    tracing::error!(%task, error = %error, "a result was refused by the database");
    let failure = Failure {
        held: one.held,
        code: "completion_refused".to_owned(),
        message: crate::task_error::chain(error),
        retryable: true,
        details: None,
        retry_after_ms: None,
    };
    match shared.store.fail(vec![failure]).await {
        Ok(_) => one.execution.count(Ended::Failed),
        Err(error) => {
            tracing::error!(%task, error = %error, "the refusal could not be charged; the task is left to expiry");
        }
    }
    shared.gate.remove(one.execution.key());
}
