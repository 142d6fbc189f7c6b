//! How a worker ended, and the exit code that says so.
//!
//! Codes are a promise: never change one. 2 (configuration) and 5 (database, as everywhere in the command line) are [`WorkerError::exit_code`]'s.
//!
//! [`WorkerError::exit_code`]: crate::WorkerError::exit_code

use std::fmt;

/// How a worker ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Exit {
    /// 0: everything that had started has ended; what had not started was handed back.
    Drained,
    /// 10: at the drain deadline (or the second signal) executions were cancelled, stopped, and were handed back, uncharged.
    HandedBack {
        /// How many.
        tasks: usize,
    },
    /// 11: executions had not stopped when their time was over, or results could not be delivered: lease expiry and epoch do
    /// the rest.
    LeftToExpiry {
        /// How many.
        tasks: usize,
    },
    /// 12: every slot was held by an execution that had been cancelled and did not stop.
    Stuck,
    /// 13: the lease was lost, and an execution outlived `kill_after`.
    LeaseOutlived,
    /// 14: handlers blocked every thread of the runtime for longer than `stuck_after`; the lease was given up.
    RuntimeStuck,
}

impl Exit {
    /// The process's exit code.
    pub const fn code(self) -> u8 {
        match self {
            Self::Drained => 0,
            Self::HandedBack { .. } => 10,
            Self::LeftToExpiry { .. } => 11,
            Self::Stuck => 12,
            Self::LeaseOutlived => 13,
            Self::RuntimeStuck => 14,
        }
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Drained => f.write_str("drained"),
            Self::HandedBack { tasks } => write!(f, "drained, {tasks} handed back"),
            Self::LeftToExpiry { tasks } => write!(f, "{tasks} left to lease expiry"),
            Self::Stuck => f.write_str("stuck: no slot left that stops when cancelled"),
            Self::LeaseOutlived => f.write_str("lease lost, and an execution did not stop in time"),
            Self::RuntimeStuck => f.write_str("stuck: handlers block every thread of the runtime"),
        }
    }
}
