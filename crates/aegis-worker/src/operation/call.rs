//! What a call gets, what it answers, and what the handler gets in the end.

use std::fmt;

use aegis_model::{Held, TraceContext};
use uuid::Uuid;

use crate::task_error::{EngineStop, TaskError};

/// The fencing token of a claim: floor and timeline of the database's lineage, then the task's epoch, compared in that
/// order. Written `floor.timeline.epoch`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FencingToken {
    // The order of the fields is the order of comparison.
    /// Raised by `aegis db adopt`.
    pub floor: i32,
    /// The WAL timeline.
    pub timeline: i32,
    /// The task's epoch.
    pub epoch: i64,
}

impl FencingToken {
    pub(crate) fn of(held: &Held) -> Self {
        Self {
            floor: held.lineage.floor,
            timeline: held.lineage.timeline,
            epoch: held.epoch,
        }
    }
}

impl fmt::Display for FencingToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.floor, self.timeline, self.epoch)
    }
}

/// What a call or a probe may tell the downstream.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct OperationCall {
    /// The operation's id: the idempotency key.
    pub id: String,
    /// The task.
    pub task: Uuid,
    /// Refuse an older one.
    pub fencing_token: FencingToken,
    /// How many times it was dispatched by now, this one included; for a probe, before it.
    pub dispatches: i32,
    /// The trace that the request belongs to, for a `traceparent` header; `None`: nobody traces this task.
    pub trace: Option<TraceContext>,
}

/// A call that gave no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// The downstream refused for sure: it has not happened and never will under this id.
    #[error("refused: {message}")]
    Failed {
        /// What a person reads.
        message: String,
        /// What the handler may want to look into, JSON.
        detail: serde_json::Value,
    },
    /// This call was turned away before anybody looked at it: not authorised, or not even sent. It says nothing about an
    /// earlier call of this operation, so it is a refusal only when none can have left.
    #[error("turned away: {message}")]
    TurnedAway {
        /// What a person reads.
        message: String,
        /// What the handler may want to look into, JSON.
        detail: serde_json::Value,
    },
    /// Surely not applied, and it may be tried again: it could not even connect, or was told to come back later.
    #[error("not applied: {message}")]
    NotApplied {
        /// What a person reads.
        message: String,
    },
    /// Nobody knows: the answer was lost, timed out, or told nothing.
    #[error("doubtful: {message}")]
    Doubtful {
        /// What is known.
        message: String,
    },
}

impl CallError {
    /// Refused for sure.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::Failed {
            message: message.into(),
            detail: serde_json::Value::Null,
        }
    }

    /// Turned away before anybody looked at it, and no retry of this call mends that.
    pub fn turned_away(message: impl Into<String>) -> Self {
        Self::TurnedAway {
            message: message.into(),
            detail: serde_json::Value::Null,
        }
    }

    /// Surely not applied, and it may be tried again.
    pub fn not_applied(message: impl Into<String>) -> Self {
        Self::NotApplied {
            message: message.into(),
        }
    }

    /// Nobody knows.
    pub fn doubtful(message: impl Into<String>) -> Self {
        Self::Doubtful {
            message: message.into(),
        }
    }
}

/// What a probe found out, asking the downstream by operation id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Probe<T> {
    /// It happened, with this result.
    Happened(T),
    /// It did not happen: it is dispatched again, under the same id.
    DidNotHappen,
    /// The downstream cannot tell, and never will: a person decides.
    CannotTell,
}

/// Why an operation gave no result.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum OperationError {
    /// The downstream refused for sure. The answer stands for this id: later attempts get it, too.
    #[error("operation {operation} failed: {message}")]
    Failed {
        /// The operation's id.
        operation: String,
        /// What the downstream said.
        message: String,
        /// What the call kept.
        detail: serde_json::Value,
    },
    /// It happened and a person undid it.
    #[error("operation {operation} was compensated by a person")]
    Compensated {
        /// The operation's id.
        operation: String,
    },
    /// A person gave it up.
    #[error("operation {operation} was given up by a person")]
    GivenUp {
        /// The operation's id.
        operation: String,
    },
    /// Not about the operation's result: pass it on.
    #[error(transparent)]
    Task(#[from] TaskError),
}

impl From<EngineStop> for OperationError {
    fn from(stop: EngineStop) -> Self {
        Self::Task(stop.into())
    }
}

impl From<OperationError> for TaskError {
    /// The answers of the ledger stand for ever, so no retry mends them: terminal, unless the handler deals with them.
    fn from(error: OperationError) -> Self {
        let message = error.to_string();
        match error {
            OperationError::Failed { detail, .. } => {
                Self::terminal("operation_failed", message).with_details(detail)
            }
            OperationError::Compensated { .. } => Self::terminal("operation_compensated", message),
            OperationError::GivenUp { .. } => Self::terminal("operation_given_up", message),
            OperationError::Task(error) => error,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_of_a_newer_life_is_newer_whatever_its_epoch() {
        let token = |floor, timeline, epoch| FencingToken {
            floor,
            timeline,
            epoch,
        };
        assert!(token(0, 2, 1) > token(0, 1, 9));
        assert!(token(1, 1, 1) > token(0, 9, 9));
        assert_eq!(token(0, 1, 7).to_string(), "0.1.7");
    }
}
