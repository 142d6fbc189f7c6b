//! The three outcomes of a guarded write, as a type that cannot be ignored.
//!
//! Invariants: [`Outcome::Fenced`] is never retried; [`Outcome::Unknown`] is never repeated before it was read back.

use std::fmt;

/// What became of a guarded write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "a write that was fenced ends its execution; one that is unknown has to be read back"]
pub enum Outcome<T> {
    /// Committed.
    Applied(T),
    /// Refused: this execution is over.
    Fenced(FenceReason),
    /// The answer was lost: committed or not, to be read back by claim and rev.
    Unknown,
}

impl<T> Outcome<T> {
    /// The applied value with something done to it.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Outcome<U> {
        match self {
            Self::Applied(value) => Outcome::Applied(f(value)),
            Self::Fenced(reason) => Outcome::Fenced(reason),
            Self::Unknown => Outcome::Unknown,
        }
    }

    /// The applied value, if it was applied.
    pub fn applied(self) -> Option<T> {
        match self {
            Self::Applied(value) => Some(value),
            Self::Fenced(_) | Self::Unknown => None,
        }
    }
}

/// Why a guarded write was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FenceReason {
    /// The task is not live any more.
    Gone,
    /// The task moved to another epoch: it was taken over, handed back, or overridden.
    Epoch {
        /// The row's epoch now.
        current: i64,
    },
    /// The task is not running.
    NotRunning,
    /// Another worker incarnation owns it.
    Owner,
    /// It was claimed again by another acquire call.
    Claim,
    /// Another write of this claim came first.
    Rev {
        /// The row's rev now.
        current: i64,
    },
    /// The database lives another life than at the claim (promotion, restore, copy).
    Lineage,
    /// The owner's lease has run out.
    Lease,
}

impl FenceReason {
    /// A stable word for logs, events and the API.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Gone => "gone",
            Self::Epoch { .. } => "epoch",
            Self::NotRunning => "not_running",
            Self::Owner => "owner",
            Self::Claim => "claim",
            Self::Rev { .. } => "rev",
            Self::Lineage => "lineage",
            Self::Lease => "lease",
        }
    }
}

impl fmt::Display for FenceReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gone => f.write_str("the task has ended"),
            Self::Epoch { current } => write!(f, "the task is at epoch {current} now"),
            Self::NotRunning => f.write_str("the task is not running"),
            Self::Owner => f.write_str("another worker owns the task"),
            Self::Claim => f.write_str("the task was claimed again"),
            Self::Rev { current } => write!(f, "another write came first (rev {current})"),
            Self::Lineage => f.write_str("the database is not the one of the claim"),
            Self::Lease => f.write_str("the worker's lease has run out"),
        }
    }
}
