//! How a handler says that an attempt did not succeed.
//!
//! Invariant: what the engine raises ([`TaskError::Engine`]) is passed on with `?`; returning something else instead changes
//! nothing, because the runtime remembers it.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;

use crate::cancel::CancelReason;

/// Why an attempt ended without a result.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum TaskError {
    /// Charged as a failure and tried again with back-off, until the policy's maximum.
    #[error("{code}: {message} (retryable)")]
    Retryable {
        /// A stable word.
        code: String,
        /// What a person reads; cut at 8 KiB.
        message: String,
        /// Anything that helps.
        details: Option<Value>,
        /// Instead of the policy's back-off.
        retry_after: Option<Duration>,
    },
    /// The task is given up at once (dead letter), until somebody redrives it.
    #[error("{code}: {message} (terminal)")]
    Terminal {
        /// A stable word.
        code: String,
        /// What a person reads; cut at 8 KiB.
        message: String,
        /// Anything that helps.
        details: Option<Value>,
    },
    /// Postponed, without a charge.
    #[error("postponed by {} ms", after.as_millis())]
    Snooze {
        /// Counted from the database's now.
        after: Duration,
    },
    /// Postponed to a moment, without a charge.
    #[error("postponed until {at}")]
    SleepUntil {
        /// By the database's clock.
        at: Timestamp,
    },
    /// Raised by the engine: pass it on.
    #[error(transparent)]
    Engine(#[from] EngineStop),
}

/// What the engine raises. The execution is over: pass it on with `?`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EngineStop {
    /// A write was refused, or the worker is no longer eligible.
    #[error("the execution lost its eligibility; nothing it writes is accepted any more")]
    LeaseLost,
    /// Nobody knows whether an operation happened, and nothing automatic is left.
    #[error("operation {operation} is unknown; a person has to decide")]
    EffectUnknown {
        /// The operation's id.
        operation: String,
    },
    /// A late request may still arrive; the task comes back after the quiet period and probes.
    #[error("operation {operation} is doubtful; it is probed in {} ms", after.as_millis())]
    QuietPeriod {
        /// The operation's id.
        operation: String,
        /// From now.
        after: Duration,
    },
    /// The execution was asked to stop.
    #[error("the execution was asked to stop ({})", reason.word())]
    Cancelled {
        /// Why.
        reason: CancelReason,
    },
    /// This claim only settles open operations; it does no new work.
    #[error("the task's outcome is stored; this claim only settles its open operations")]
    SettlingOnly,
    /// The handler has returned already, and something that it left behind still wrote.
    #[error("the execution has ended; do not keep its context after the handler has returned")]
    Ended,
}

impl TaskError {
    /// What it is, in a word or a code: never its message, which may quote anything.
    pub(crate) fn word(&self) -> &str {
        match self {
            Self::Retryable { code, .. } | Self::Terminal { code, .. } => code,
            Self::Snooze { .. } | Self::SleepUntil { .. } => "postponed",
            Self::Engine(EngineStop::LeaseLost) => "lease_lost",
            Self::Engine(EngineStop::EffectUnknown { .. }) => "effect_unknown",
            Self::Engine(EngineStop::QuietPeriod { .. }) => "quiet_period",
            Self::Engine(EngineStop::Cancelled { .. }) => "cancelled",
            Self::Engine(EngineStop::SettlingOnly) => "settling_only",
            Self::Engine(EngineStop::Ended) => "ended",
        }
    }

    /// An error that may pass: tried again.
    pub fn retryable(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self::Retryable {
            code: code.into(),
            message: message.into(),
            details: None,
            retry_after: None,
        }
    }

    /// An error that no retry mends: given up at once.
    pub fn terminal(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self::Terminal {
            code: code.into(),
            message: message.into(),
            details: None,
        }
    }

    /// Any error, with its causes, as one that may pass: for `.map_err(TaskError::passing)?`.
    pub fn passing(error: impl std::error::Error) -> Self {
        Self::retryable("error", chain(&error))
    }

    /// Postpones the task, without a charge: `return Err(TaskError::snooze(…))`.
    pub fn snooze(after: Duration) -> Self {
        Self::Snooze { after }
    }

    /// Postpones the task to a moment of the database's clock, without a charge.
    pub fn sleep_until(at: Timestamp) -> Self {
        Self::SleepUntil { at }
    }

    /// The same with details; those that are not an error of the handler's are unchanged.
    #[must_use]
    pub fn with_details(mut self, value: Value) -> Self {
        if let Self::Retryable { details, .. } | Self::Terminal { details, .. } = &mut self {
            *details = Some(value);
        }
        self
    }

    /// The same with a back-off of its own; only a retryable one has one.
    #[must_use]
    pub fn with_retry_after(mut self, after: Duration) -> Self {
        if let Self::Retryable { retry_after, .. } = &mut self {
            *retry_after = Some(after);
        }
        self
    }
}

/// An error with its causes, in one line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

impl From<serde_json::Error> for TaskError {
    /// What cannot be encoded or decoded now cannot be later either.
    fn from(error: serde_json::Error) -> Self {
        Self::terminal("json", error.to_string())
    }
}

impl From<tokio_postgres::Error> for TaskError {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::retryable("sql", chain(&error))
    }
}

impl From<std::io::Error> for TaskError {
    fn from(error: std::io::Error) -> Self {
        Self::retryable("io", error.to_string())
    }
}

impl From<aegis_store::StoreError> for TaskError {
    fn from(error: aegis_store::StoreError) -> Self {
        let code = error
            .code()
            .map_or("database", aegis_model::ErrorCode::as_str);
        match &error {
            aegis_store::StoreError::TooLarge { .. } => Self::terminal(code, error.to_string()),
            _ => Self::retryable(code, chain(&error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_told_with_its_causes() {
        #[derive(Debug, thiserror::Error)]
        #[error("the parcel was not sent")]
        struct Outer(#[source] std::io::Error);
        let error = TaskError::passing(Outer(std::io::Error::other("no stamps")));
        assert_eq!(
            error.to_string(),
            "error: the parcel was not sent: no stamps (retryable)"
        );
    }

    #[test]
    fn only_a_retryable_error_has_a_back_off() {
        let error = TaskError::retryable("busy", "later").with_retry_after(Duration::from_secs(2));
        assert!(
            matches!(error, TaskError::Retryable { retry_after: Some(after), .. } if after == Duration::from_secs(2))
        );
        let error = TaskError::terminal("bad", "never").with_retry_after(Duration::from_secs(2));
        assert!(matches!(error, TaskError::Terminal { .. }));
    }
}
