//! The drain: close, hand back the unstarted, let the rest finish, cancel at the deadline, flush, and only then stop renewing.
//!
//! Invariants: nothing is set back to ready in the hope that its execution stops; what has stopped is handed back, what has
//! not is left to expiry and the epoch; SIGTERM never leaves a worse state than SIGKILL.

use std::sync::Arc;

use aegis_model::Outcome;
use tokio::time::Instant;

use crate::cancel::CancelReason;
use crate::execution::{Execution, Stage};
use crate::exit::Exit;
use crate::gate::{GateState, Word};
use crate::metrics::Ended;
use crate::shared::Shared;
use crate::writer::{Pause, Resolved};

/// Drains. Renewal goes on; its owner stops it after this has returned.
pub(crate) async fn drain(shared: &Arc<Shared>) -> Exit {
    let budgets = shared.options.budgets;
    tracing::info!(budgets = ?budgets, "draining");
    let lost_before = shared.counters.lost.get();
    close(shared).await;

    let all_done = shared.gate.until(Word::is_empty);
    tokio::select! {
        () = all_done => return finished(shared, lost_before),
        () = shared.cancel_now.cancelled() => tracing::warn!("asked to stop now; executions are cancelled"),
        () = tokio::time::sleep(budgets.drain) => tracing::warn!("the drain budget is used up; executions are cancelled"),
    }

    for execution in shared.gate.in_flight() {
        execution.canceller.cancel(CancelReason::Drain);
    }
    let all_stopped = shared.gate.until(|view| {
        view.in_flight()
            .all(|execution| execution.stage() == Stage::Stopped)
    });
    if tokio::time::timeout(budgets.cancel_and_save, all_stopped)
        .await
        .is_err()
    {
        tracing::error!("executions have not stopped; they are left to lease expiry");
    }

    // What has stopped is being reported; half of the margin is for that, the rest for the process itself.
    let reported = shared.gate.until(|view| {
        view.permits() == 0
            && view
                .in_flight()
                .all(|execution| execution.stage() != Stage::Stopped)
    });
    if tokio::time::timeout(budgets.exit_margin / 2, reported)
        .await
        .is_err()
    {
        tracing::error!("ends of executions could not be reported; they are left to lease expiry");
    }
    finished(shared, lost_before)
}

fn finished(shared: &Shared, lost_before: u64) -> Exit {
    let lost = shared.counters.lost.get().saturating_sub(lost_before);
    let cut_short = shared.counters.cut_short.get();
    said(shared.gate.count(), lost, cut_short)
}

/// What is said of executions that are still in flight, were lost in the drain, and were cut short by it.
fn said(in_flight: usize, lost: u64, cut_short: u64) -> Exit {
    let to_usize = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
    match (in_flight + to_usize(lost), to_usize(cut_short)) {
        (0, 0) => Exit::Drained,
        (0, tasks) => Exit::HandedBack { tasks },
        (tasks, _) => Exit::LeftToExpiry { tasks },
    }
}

/// Closes the gate here and in the database, waits for the claim call on its way, hands the unstarted back. All within the
/// budget.
pub(crate) async fn close(shared: &Arc<Shared>) {
    shared.gate.set(GateState::Draining);
    let deadline = Instant::now() + shared.options.budgets.stop_acquiring;
    let queued = shared.executor.take_queued();
    let in_database = async {
        let Some(incarnation) = shared.incarnation() else {
            return;
        };
        let mut pause = Pause::new();
        while let Err(error) = shared.store.drain(incarnation.id).await {
            tracing::warn!(error = %error, "the gate cannot be closed in the database yet; it is closed here");
            pause.wait().await;
        }
    };
    let no_claim_on_its_way = shared.gate.until(|view| view.permits() == 0);
    let all = async {
        tokio::join!(in_database, no_claim_on_its_way, hand_back(shared, queued));
    };
    if tokio::time::timeout_at(deadline, all).await.is_err() {
        tracing::warn!("acquisition could not be closed in the database within its budget");
    }
}

/// Hands back what has not started. What cannot be handed back is left to expiry.
pub(crate) async fn hand_back(shared: &Shared, executions: Vec<Arc<Execution>>) {
    let mut left = executions;
    let mut pause = Pause::new();
    while !left.is_empty() {
        // One owner a statement; a queue holds those of one incarnation, or of two for a moment.
        let owner = left[0].claim.held.owner;
        let (group, others): (Vec<_>, Vec<_>) = left
            .into_iter()
            .partition(|execution| execution.claim.held.owner == owner);
        left = others;
        let held = group.iter().map(|execution| execution.claim.held).collect();
        let sent = Instant::now();
        let answer = shared.store.hand_back(held).await;
        shared.metrics.write_took("hand_back", sent.elapsed());
        match answer {
            Ok(answers) => {
                for (execution, answer) in group.into_iter().zip(answers) {
                    match answer {
                        Outcome::Applied(_) => execution.count(Ended::HandedBack),
                        Outcome::Fenced(reason) => {
                            execution.refused(reason);
                        }
                        Outcome::Unknown => {
                            match execution.read_back(execution.claim.held, None).await {
                                Resolved::NotApplied => {
                                    left.push(execution);
                                    continue;
                                }
                                Resolved::Applied { .. } | Resolved::Fenced(_) => {
                                    execution.count(Ended::HandedBack);
                                }
                            }
                        }
                    }
                    shared.gate.remove(execution.key());
                }
            }
            Err(error) => {
                tracing::warn!(tasks = group.len(), error = %error, "unstarted tasks cannot be handed back yet");
                left.extend(group);
                if shared.ended.is_cancelled() || !left[0].incarnation.fence.is_eligible() {
                    for execution in left {
                        shared.gate.remove(execution.key());
                    }
                    return;
                }
                pause.wait().await;
            }
        }
    }
}

#[cfg(test)]
#[path = "drain_tests.rs"]
mod tests;
