//! How an execution ends: decided by one pure function, then reported in a guarded write.
//!
//! Invariants: what the engine raised stands, whatever the handler returned; a result that is ready is sent even when the
//! lease is believed to be lost, for the database to refuse; errors while reporting never touch other executions.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use aegis_model::limits::{PAYLOAD_BYTES_MAX, duration_ms};
use aegis_model::{Cause, ErrorCode, Held, OperationState, Outcome, State};
use aegis_store::StoreError;
use aegis_store::guarded::{Failure, Release};
use jiff::Timestamp;
use serde_json::Value;

use crate::cancel::CancelReason;
use crate::completer::Finished;
use crate::execution::{Execution, Used};
use crate::metrics::Ended;
use crate::points::{Cut, Subject};
use crate::poison::Poison;
use crate::task_error::TaskError;
use crate::writer::{Pause, Resolved};

/// What came out of a handler.
#[derive(Debug, Clone)]
pub(crate) enum Returned {
    Result(Vec<u8>),
    Error(TaskError),
    Panicked(String),
    /// It was cancelled, or no longer eligible, before it began.
    NotStarted,
}

/// What decides about an end.
#[derive(Debug, Clone)]
pub(crate) struct Facts {
    pub(crate) returned: Returned,
    pub(crate) poison: Option<Poison>,
    pub(crate) cancelled: Option<CancelReason>,
    pub(crate) standing: Standing,
    /// A claim that only settles open operations: the dispatched ones that this attempt did not reach.
    pub(crate) settling: Option<Vec<String>>,
    /// The same: those that it did reach, and left without an answer.
    pub(crate) left_open: Vec<String>,
}

/// How the claim stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// The worker believes to be eligible.
    Eligible,
    /// It does not, or knows that somebody else has the task: only a result is worth sending, for the database to refuse.
    Doubtful,
    /// The database has refused a write of this claim.
    Fenced,
    /// The completion was done inside the handler's own transaction.
    Completed,
}

/// What is reported.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum End {
    Complete(Option<Vec<u8>>),
    Fail {
        code: String,
        message: String,
        retryable: bool,
        details: Option<Value>,
        retry_after: Option<Duration>,
    },
    Release {
        cause: Cause,
        run_at: Option<Timestamp>,
        after: Option<Duration>,
        unknown: Vec<String>,
        note: Option<String>,
    },
    /// It was reported already, or nothing may be said any more.
    Nothing,
}

fn release(cause: Cause) -> End {
    End::Release {
        cause,
        run_at: None,
        after: None,
        unknown: Vec::new(),
        note: None,
    }
}

fn doubt(unknown: Vec<String>, note: String) -> End {
    End::Release {
        cause: Cause::Unknown,
        run_at: None,
        after: None,
        unknown,
        note: Some(note),
    }
}

fn fail(code: &str, message: String, retryable: bool) -> End {
    End::Fail {
        code: code.to_owned(),
        message,
        retryable,
        details: None,
        retry_after: None,
    }
}

/// Decides. Pure.
pub(crate) fn decide(facts: Facts) -> End {
    let eligible = match facts.standing {
        Standing::Completed | Standing::Fenced => return End::Nothing,
        Standing::Eligible => true,
        Standing::Doubtful => false,
    };
    match facts.poison {
        Some(Poison::Unknown { operations, note }) => return doubt(operations, note),
        Some(Poison::Quiet { after }) => {
            return End::Release {
                cause: Cause::Snooze,
                run_at: None,
                after: Some(after),
                unknown: Vec::new(),
                note: Some("a late request may still arrive".to_owned()),
            };
        }
        Some(Poison::LeaseLost) => return given_up(CancelReason::LeaseLost, eligible),
        Some(Poison::Cancelled(reason)) => return given_up(reason, eligible),
        Some(Poison::SettlingOnly) => {
            return settled(facts.settling.unwrap_or_default(), &facts.left_open);
        }
        None => {}
    }
    let error = match (facts.returned, facts.settling) {
        (Returned::Result(_), Some(untouched)) => return settled(untouched, &facts.left_open),
        (Returned::Result(result), None) if result.len() > PAYLOAD_BYTES_MAX => {
            return fail(
                ErrorCode::PAYLOAD_TOO_LARGE.as_str(),
                format!(
                    "the result has {} bytes; the limit is {PAYLOAD_BYTES_MAX}; store large data elsewhere and pass a reference",
                    result.len()
                ),
                false,
            );
        }
        (Returned::Result(result), None) => return End::Complete(Some(result)),
        (Returned::Panicked(text), _) => return fail("panic", text, true),
        (Returned::NotStarted, _) => {
            return given_up(facts.cancelled.unwrap_or(CancelReason::LeaseLost), eligible);
        }
        (Returned::Error(error), _) => error,
    };
    let postponed = |run_at, after| End::Release {
        cause: Cause::Snooze,
        run_at,
        after,
        unknown: Vec::new(),
        note: None,
    };
    match (error, facts.cancelled) {
        (TaskError::Snooze { after }, None | Some(CancelReason::Drain)) => {
            postponed(None, Some(after))
        }
        (TaskError::SleepUntil { at }, None | Some(CancelReason::Drain)) => {
            postponed(Some(at), None)
        }
        (_, Some(reason)) => given_up(reason, eligible),
        (
            TaskError::Retryable {
                code,
                message,
                details,
                retry_after,
            },
            None,
        ) => End::Fail {
            code,
            message,
            retryable: true,
            details,
            retry_after,
        },
        (
            TaskError::Terminal {
                code,
                message,
                details,
            },
            None,
        ) => End::Fail {
            code,
            message,
            retryable: false,
            details,
            retry_after: None,
        },
        // The engine raised nothing: the handler made it up, or wrote after its end.
        (other, None) => fail("engine", other.to_string(), true),
    }
}

/// What stopped because it was asked to.
fn given_up(reason: CancelReason, eligible: bool) -> End {
    match reason {
        CancelReason::Drain => release(Cause::Drain),
        CancelReason::Requested | CancelReason::Deadline => release(Cause::Cancelled),
        CancelReason::StartToClose => fail(
            "start_to_close_exceeded",
            "the attempt took longer than start_to_close and stopped when asked".to_owned(),
            true,
        ),
        // Believed lost and then renewed after all: the task is still held.
        CancelReason::LeaseLost if eligible => release(Cause::Drain),
        CancelReason::LeaseLost => End::Nothing,
    }
}

/// The end of a claim that only settles. What its handler no longer reaches, nothing automatic will settle.
fn settled(untouched: Vec<String>, left_open: &[String]) -> End {
    if untouched.is_empty() {
        // Charged, although the handler swallowed it: else it would come back for ever.
        if !left_open.is_empty() {
            let open = left_open.join(", ");
            let message = format!("the handler returned and left {open} without an answer");
            return fail("operation_open", message, true);
        }
        return End::Complete(None);
    }
    let note = format!(
        "the handler does not reach {} any more",
        untouched.join(", ")
    );
    doubt(untouched, note)
}

/// Decides how an execution ended, and reports it.
pub(crate) async fn report(execution: Arc<Execution>, returned: Returned) {
    let held = {
        // Waits for a write that the handler left under way, and closes the queue of writes.
        let mut position = execution.writer.turn().await;
        position.ended = true;
        position.held
    };
    let (settling, left_open) = open_operations(&execution).await;
    let facts = Facts {
        returned,
        poison: execution.poisoned(),
        cancelled: execution.canceller.reason(),
        standing: standing(&execution),
        settling,
        left_open,
    };
    let drained = facts.cancelled == Some(CancelReason::Drain);
    match decide(facts) {
        End::Nothing => {
            if standing(&execution) != Standing::Completed {
                execution.count(Ended::Lost);
            }
            execution.shared.gate.remove(execution.key());
        }
        End::Complete(result) => {
            // The completer answers for it from here on; its queue is closed only after everything has ended.
            let finished = Finished {
                execution,
                held,
                result,
            };
            let completions = finished.execution.shared.completions.clone();
            if let Err(unsent) = completions.send(finished).await {
                let execution = unsent.0.execution;
                execution.shared.gate.remove(execution.key());
            }
        }
        end => {
            let delivered = deliver(&execution, held, &end).await;
            if delivered {
                count(&execution, &end, drained);
                execution.at(Cut::Stored, || Subject::Handler).await;
            } else {
                execution.count(Ended::Lost);
            }
            execution.shared.gate.remove(execution.key());
            execution.shared.wake.notify_one();
        }
    }
}

fn count(execution: &Execution, end: &End, drained: bool) {
    match end {
        End::Fail { code, .. } => {
            execution.traced.failed(code);
            execution.count(Ended::Failed);
            // Its text may quote what it worked on: that stands in the database, for those who may read it.
            tracing::info!(code, "an attempt failed");
        }
        End::Release { cause, .. } => {
            execution.count(Ended::released(*cause));
            if *cause == Cause::Drain && drained {
                execution.shared.counters.cut_short.add(1);
            }
        }
        End::Complete(_) | End::Nothing => {}
    }
}

/// In a claim that only settles: the open operations that this attempt did not reach, and those that it left open.
async fn open_operations(execution: &Execution) -> (Option<Vec<String>>, Vec<String>) {
    if !execution.is_settling() {
        return (None, Vec::new());
    }
    let Ok(parts) = execution.parts().await else {
        return (Some(Vec::new()), Vec::new());
    };
    let ledger = parts
        .ledger
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    let (mut untouched, mut left_open) = (Vec::new(), Vec::new());
    for entry in ledger.entries.values() {
        if entry.state != OperationState::Dispatched || execution.was_settled(&entry.id) {
            continue;
        }
        if execution.was_used(Used::Operation, &entry.name, &entry.key) {
            left_open.push(entry.id.clone());
        } else {
            untouched.push(entry.id.clone());
        }
    }
    (Some(untouched), left_open)
}

fn standing(execution: &Execution) -> Standing {
    if execution.completed.load(Ordering::SeqCst) {
        Standing::Completed
    } else if execution.fenced.load(Ordering::SeqCst) {
        Standing::Fenced
    } else if !execution.taken.load(Ordering::SeqCst) && execution.incarnation.fence.is_eligible() {
        Standing::Eligible
    } else {
        Standing::Doubtful
    }
}

/// Sends an end other than a completion until it is answered, or nobody may care any more. True: it was applied.
async fn deliver(execution: &Execution, held: Held, end: &End) -> bool {
    let mut pause = Pause::new();
    loop {
        let sent = Instant::now();
        let answer = send(execution, held, end).await;
        let verb = match end {
            End::Fail { .. } => "fail",
            _ => "release",
        };
        execution.shared.metrics.write_took(verb, sent.elapsed());
        match answer {
            Ok(Outcome::Applied(_)) => return true,
            Ok(Outcome::Fenced(reason)) if !pause.waited() => {
                execution.refused(reason);
                return false;
            }
            Ok(Outcome::Fenced(_) | Outcome::Unknown) => {
                match execution.read_back(held, None).await {
                    Resolved::Applied { .. } => return true,
                    Resolved::NotApplied => {}
                    Resolved::Fenced(reason) => {
                        execution.refused(reason);
                        return false;
                    }
                }
            }
            Err(error) if error.is_passing() => {
                tracing::warn!(task = %held.task, error = %error, "the end of an execution waits for the database");
            }
            Err(error) => {
                tracing::error!(task = %held.task, error = %error, "the end of an execution cannot be stored; it is left to expiry");
                return false;
            }
        }
        if !execution.incarnation.fence.is_eligible() || execution.shared.ended.is_cancelled() {
            return false;
        }
        pause.wait().await;
    }
}

async fn send(execution: &Execution, held: Held, end: &End) -> Result<Outcome<State>, StoreError> {
    let store = &execution.shared.store;
    match end {
        End::Fail {
            code,
            message,
            retryable,
            details,
            retry_after,
        } => {
            let failure = Failure {
                held,
                code: code.clone(),
                message: message.clone(),
                retryable: *retryable,
                details: details.clone(),
                retry_after_ms: retry_after.map(duration_ms),
            };
            let answers = store.fail(vec![failure]).await?;
            Ok(answers.into_iter().next().unwrap_or(Outcome::Unknown))
        }
        End::Release {
            cause,
            run_at,
            after,
            unknown,
            note,
        } => {
            store
                .release(Release {
                    held,
                    cause: *cause,
                    run_at: *run_at,
                    run_after_ms: after.map(duration_ms),
                    unknown_operations: unknown.clone(),
                    note: note.clone(),
                })
                .await
        }
        End::Complete(_) | End::Nothing => Ok(Outcome::Unknown),
    }
}

#[cfg(test)]
#[path = "ending_tests.rs"]
mod tests;
