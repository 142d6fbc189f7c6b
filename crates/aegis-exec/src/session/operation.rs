//! An operation of a handler: the ledger decides, the handler calls and probes when a reply says so.
//!
//! Invariants: `call` is said only inside the call of the context's operation, so after its dispatch was applied; what the
//! handler settles later than its timeout is still heard while the operation is repeated, and answered with its outcome
//! afterwards.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use aegis_protocol::{Answer, Found, OperationRequest, Outcome, Settle};
use aegis_worker::{
    CallError, Class, OperationBuilder, OperationCall, OperationError, Probe, TaskError,
};
use serde_json::Value;
use tokio::sync::mpsc;

use super::flow::{At, Ended, Place, Replies, refused};
use super::turn::{Allowed, Desk, Said};

/// What the calls and probes of one operation share.
struct Asked<'a> {
    replies: &'a Replies,
    /// The request that waits for an answer.
    asking: Mutex<Option<u64>>,
    said: tokio::sync::Mutex<mpsc::UnboundedReceiver<Said>>,
    allowed: &'a Allowed,
    timeout_ms: u64,
}

/// Performs an operation with the handler as the one that calls.
pub(super) async fn perform(
    replies: Replies,
    request: OperationRequest,
    desk: Desk,
    protocol: Option<i32>,
) -> Ended {
    const TIMEOUT_MS: u64 = 30_000;
    let ctx = replies.ctx.clone();
    let asked = Asked {
        replies: &replies,
        asking: Mutex::new(Some(request.id)),
        said: tokio::sync::Mutex::new(desk.said),
        allowed: &desk.allowed,
        timeout_ms: request.timeout_ms.unwrap_or(TIMEOUT_MS),
    };
    let described = describe(ctx.operation(&request.name, &request.key), &request)
        .timeout(Duration::from_millis(asked.timeout_ms));
    let outcome: Result<Value, OperationError> = match request.class {
        Class::Queryable => {
            Box::pin(
                described
                    .probe(|call| asked.probe(call))
                    .execute(|call| asked.call(call)),
            )
            .await
        }
        class => Box::pin(described.class(class).execute(|call| asked.call(call))).await,
    };
    let place = At::Operation(Place::new(&request.name, &request.key));
    let (answer, raised) = match outcome {
        Ok(result) => {
            // What was done in this attempt was written in what this handler writes; see `protocol` for the rest.
            let protocol = protocol
                .filter(|_| !asked.has_called())
                .unwrap_or_else(|| ctx.protocol_range().writes());
            (Answer::Done { protocol, result }, None)
        }
        Err(OperationError::Failed {
            operation,
            message,
            detail,
        }) => {
            let answer = Answer::Refused {
                operation,
                message,
                detail,
            };
            (answer, None)
        }
        Err(OperationError::Compensated { operation }) => (Answer::Compensated { operation }, None),
        Err(OperationError::GivenUp { operation }) => (Answer::GivenUp { operation }, None),
        Err(OperationError::Task(error)) => refused(error),
        Err(other) => refused(TaskError::retryable("operation", other.to_string())),
    };
    let unsent = match asked.waiting() {
        Some(id) => {
            replies.send(id, answer);
            None
        }
        None => Some(answer),
    };
    Ended {
        place,
        raised,
        unsent,
    }
}

fn describe<'a>(
    operation: OperationBuilder<'a>,
    request: &OperationRequest,
) -> OperationBuilder<'a> {
    let ms = Duration::from_millis;
    let mut operation = operation.request(&request.request);
    if let Some(version) = request.version {
        operation = operation.version(version);
    }
    if let Some(quiet_ms) = request.quiet_ms {
        operation = operation.quiet(ms(quiet_ms));
    }
    if let Some(retention_ms) = request.key_retention_ms {
        operation = operation.key_retention(ms(retention_ms));
    }
    if let Some(margin_ms) = request.margin_ms {
        operation = operation.margin(ms(margin_ms));
    }
    if let Some(repeats) = request.repeats {
        operation = operation.repeats(repeats);
    }
    operation
}

impl Asked<'_> {
    fn asking(&self) -> std::sync::MutexGuard<'_, Option<u64>> {
        self.asking.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The request that the outcome answers: the one that waits, or one that came in the moment of the end.
    fn waiting(&self) -> Option<u64> {
        let waiting = self.asking().take();
        waiting.or_else(|| match self.said.try_lock().ok()?.try_recv().ok()? {
            Said::Settle(settle) => Some(settle.id),
            Said::Probed(probed) => Some(probed.id),
        })
    }

    async fn call(&self, call: OperationCall) -> Result<Value, CallError> {
        let waiting = self.asking().take();
        if let Some(id) = waiting {
            self.allowed.allow_settle();
            self.replies.send(
                id,
                Answer::Call {
                    operation: call.id,
                    fencing_token: call.fencing_token.to_string(),
                    dispatches: call.dispatches,
                    timeout_ms: self.timeout_ms,
                },
            );
        }
        loop {
            // What was said about a probe that took too long says nothing about this call.
            if let Said::Settle(settle) = self.hear().await {
                *self.asking() = Some(settle.id);
                return settled(settle);
            }
        }
    }

    async fn probe(&self, call: OperationCall) -> Result<Probe<Value>, TaskError> {
        let waiting = self.asking().take();
        if let Some(id) = waiting {
            self.allowed.allow_probed();
            self.replies.send(
                id,
                Answer::Probe {
                    operation: call.id,
                    fencing_token: call.fencing_token.to_string(),
                    dispatches: call.dispatches,
                    timeout_ms: self.timeout_ms,
                },
            );
        }
        loop {
            if let Said::Probed(probed) = self.hear().await {
                *self.asking() = Some(probed.id);
                return Ok(match probed.found {
                    Found::Happened => Probe::Happened(probed.result),
                    Found::DidNotHappen => Probe::DidNotHappen,
                    _ => Probe::CannotTell,
                });
            }
        }
    }

    /// Did the handler settle or probe in this attempt?
    fn has_called(&self) -> bool {
        self.allowed.was_used()
    }

    async fn hear(&self) -> Said {
        match self.said.lock().await.recv().await {
            Some(said) => said,
            // The conversation is over, and with it this future.
            None => std::future::pending().await,
        }
    }
}

fn settled(settle: Settle) -> Result<Value, CallError> {
    let (message, detail) = (settle.message, settle.detail);
    Err(match settle.outcome {
        Outcome::Succeeded => return Ok(settle.result),
        Outcome::Failed => CallError::Failed { message, detail },
        Outcome::TurnedAway => CallError::TurnedAway { message, detail },
        Outcome::NotApplied => CallError::NotApplied { message },
        _ => CallError::Doubtful { message },
    })
}
