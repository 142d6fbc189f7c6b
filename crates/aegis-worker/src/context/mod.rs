//! What a handler can do: the context of one attempt.
//!
//! Invariant: everything that a handler writes goes through its execution's writer, so parallel steps and operations are
//! fine and a stale execution is refused.

mod checkpoint;
mod commit;
mod known;
mod step;

pub use known::{Known, KnownOperation, KnownStep, KnownValue};

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::sync::Arc;

use aegis_model::TraceContext;
use serde_json::Value;
use uuid::Uuid;

use crate::cancel::{CancelReason, Cancellation};
use crate::execution::{Execution, Used};
use crate::operation::{FencingToken, OperationBuilder};
use crate::poison::Poison;
use crate::task_error::{EngineStop, TaskError};

/// The context of one attempt. Cheap to clone; worthless after the handler has returned.
///
/// `C` is the handler's checkpoint.
pub struct TaskContext<C = Value> {
    execution: Arc<Execution>,
    checkpoint: PhantomData<fn() -> C>,
}

impl<C> Clone for TaskContext<C> {
    fn clone(&self) -> Self {
        Self::new(Arc::clone(&self.execution))
    }
}

impl<C> fmt::Debug for TaskContext<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskContext")
            .field("task", &self.task_id())
            .field("epoch", &self.epoch())
            .finish_non_exhaustive()
    }
}

impl<C> TaskContext<C> {
    pub(crate) fn new(execution: Arc<Execution>) -> Self {
        Self {
            execution,
            checkpoint: PhantomData,
        }
    }

    /// The task.
    pub fn task_id(&self) -> Uuid {
        self.execution.claim.held.task
    }

    /// Its fencing number: grows at each claim, never reused.
    pub fn epoch(&self) -> i64 {
        self.execution.claim.held.epoch
    }

    /// What travels to downstreams that can refuse an older execution.
    pub fn fencing_token(&self) -> FencingToken {
        FencingToken::of(&self.execution.claim.held)
    }

    /// The queue it waited in.
    pub fn queue(&self) -> &str {
        &self.execution.kind.queue
    }

    /// Its kind.
    pub fn kind(&self) -> &str {
        &self.execution.kind.name
    }

    /// The worker incarnation that executes it.
    pub fn worker_id(&self) -> Uuid {
        self.execution.incarnation.id
    }

    /// Failures of earlier attempts: the handler's own errors.
    pub fn failures(&self) -> i32 {
        self.execution.claim.failures
    }

    /// Attempts that ended by a drain, or by a loss that nobody is to blame for.
    pub fn interruptions(&self) -> i32 {
        self.execution.claim.interruptions
    }

    /// Attempts that were lost together with their worker.
    pub fn crashes(&self) -> i32 {
        self.execution.claim.crashes
    }

    /// Times it was postponed.
    pub fn snoozes(&self) -> i32 {
        self.execution.claim.snoozes
    }

    /// The protocol that the input was submitted in; it was brought to the handler's own before.
    pub fn input_protocol(&self) -> i32 {
        self.execution.claim.protocol
    }

    /// Does this attempt only settle open operations of a task whose outcome is stored already? New steps, checkpoints and
    /// operations are refused then.
    pub fn is_settling(&self) -> bool {
        self.execution.is_settling()
    }

    /// This attempt's place in the submitter's trace (it prints as a W3C `traceparent`), for requests of the handler's own.
    /// `None`: nobody traces this task.
    pub fn trace(&self) -> Option<TraceContext> {
        self.execution.traced.context(None)
    }

    /// Was this execution asked to stop, and why?
    pub fn cancelled(&self) -> Cancellation<'_> {
        self.execution.canceller.view()
    }

    /// The error to return after a cancellation was noticed: what stopped because of it is not charged.
    pub fn stop(&self, reason: CancelReason) -> TaskError {
        // A handler cannot cancel itself; without a request this is an error like any other.
        if let Some(reason) = self.execution.canceller.reason() {
            self.execution.poison(match reason {
                CancelReason::LeaseLost => Poison::LeaseLost,
                other => Poison::Cancelled(other),
            });
        }
        EngineStop::Cancelled { reason }.into()
    }

    /// Awaits something of the handler's own, unless this execution is asked to stop first; it is dropped then.
    ///
    /// # Errors
    /// [`EngineStop::Cancelled`]: pass it on.
    pub async fn unless_cancelled<T>(
        &self,
        work: impl Future<Output = T> + Send,
    ) -> Result<T, TaskError> {
        tokio::select! {
            biased;
            reason = self.cancelled().wait() => Err(self.stop(reason)),
            value = work => Ok(value),
        }
    }

    /// Says that the execution moves, so that one that is stuck can be told from one that is slow.
    pub fn progress(&self) {
        self.execution.progress();
    }

    /// An external side effect, under a name and a key that are stable across attempts and code versions.
    pub fn operation(
        &self,
        name: impl Into<String>,
        key: impl fmt::Display,
    ) -> OperationBuilder<'_> {
        OperationBuilder::new(&self.execution, name.into(), key.to_string())
    }

    fn first_use(&self, what: Used, name: &str, key: &str) -> Result<(), TaskError> {
        first_use(&self.execution, what, name, key)
    }
}

/// Checks a (name, key) and marks it as used.
pub(crate) fn first_use(
    execution: &Execution,
    what: Used,
    name: &str,
    key: &str,
) -> Result<(), TaskError> {
    let word = match what {
        Used::Step => "step",
        Used::Operation => "operation",
    };
    let nul = name.contains('\0') || key.contains('\0');
    if name.is_empty() || name.len() > 200 || key.len() > 500 || nul {
        return Err(TaskError::terminal(
            "bad_key",
            format!(
                "{word} `{name}` key `{key}`: use a name of 1 to 200 bytes and a key of at most 500, without NUL"
            ),
        ));
    }
    if execution.first_use(what, name, key) {
        return Ok(());
    }
    let code = aegis_model::ErrorCode::USED_TWICE.as_str();
    Err(TaskError::terminal(
        code,
        format!(
            "{word} `{name}` key `{key}` was used twice in one attempt; give each use a key of its own, such as the item's id"
        ),
    ))
}
