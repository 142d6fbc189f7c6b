//! What became of a task that somebody wanted to change, or why it was left alone.
//!
//! Invariant: the words are stable; programs read them.

/// What became of one task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// Cancelled: it had not started.
    Cancelled,
    /// It runs: its worker is told, and after `kill_after` it is ended for it.
    Requested,
    /// An operation is open: it is cancelled when that is settled.
    Pending,
    /// Ready now.
    Ready,
    /// Waits for its new time.
    Scheduled,
    /// Has its new priority.
    Reprioritised,
    /// Sent again.
    Redriven,
    /// Given up for good.
    Discarded,
    /// Its payload is gone.
    Erased,
    /// Left alone.
    Skipped(Skip),
}

/// Why a task was left alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Skip {
    /// There is no such task.
    Missing,
    /// It is not in a state of the filter any more.
    MovedOn,
    /// Somebody held its row for too long.
    Busy,
    /// It has ended.
    Ended,
    /// It is parked: redrive or discard it.
    Parked,
    /// It has not ended.
    Live,
    /// It does not wait for its time.
    NotWaiting,
    /// It is ready already.
    ReadyAlready,
    /// It waits, but not after a failed attempt.
    NotFailed,
    /// It would start after its deadline.
    PastDeadline,
    /// It has that time, or that priority.
    Same,
    /// Its payload is gone already.
    ErasedAlready,
    /// The database refused it.
    Refused(String),
}

impl Answer {
    pub(super) fn of(word: &str, problem: Option<String>) -> Self {
        let skip = match word {
            "cancelled" => return Self::Cancelled,
            "requested" => return Self::Requested,
            "pending" => return Self::Pending,
            "ready" => return Self::Ready,
            "scheduled" => return Self::Scheduled,
            "reprioritised" => return Self::Reprioritised,
            "redriven" => return Self::Redriven,
            "discarded" => return Self::Discarded,
            "erased" => return Self::Erased,
            "missing" => Skip::Missing,
            "moved_on" => Skip::MovedOn,
            "busy" => Skip::Busy,
            "ended" => Skip::Ended,
            "parked" => Skip::Parked,
            "live" => Skip::Live,
            "not_waiting" => Skip::NotWaiting,
            "ready_already" => Skip::ReadyAlready,
            "not_failed" => Skip::NotFailed,
            "past_deadline" => Skip::PastDeadline,
            "same" => Skip::Same,
            "erased_already" => Skip::ErasedAlready,
            other => Skip::Refused(problem.unwrap_or_else(|| {
                format!("the database answered `{other}`, which this version does not know")
            })),
        };
        Self::Skipped(skip)
    }

    /// Why it was left alone, when it was.
    pub fn skip(&self) -> Option<&Skip> {
        match self {
            Self::Skipped(skip) => Some(skip),
            _ => None,
        }
    }

    /// The stable word.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Cancelled => "cancelled",
            Self::Requested => "requested",
            Self::Pending => "pending",
            Self::Ready => "ready",
            Self::Scheduled => "scheduled",
            Self::Reprioritised => "reprioritised",
            Self::Redriven => "redriven",
            Self::Discarded => "discarded",
            Self::Erased => "erased",
            Self::Skipped(skip) => skip.word(),
        }
    }
}

impl Skip {
    /// The stable word.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::MovedOn => "moved_on",
            Self::Busy => "busy",
            Self::Ended => "ended",
            Self::Parked => "parked",
            Self::Live => "live",
            Self::NotWaiting => "not_waiting",
            Self::ReadyAlready => "ready_already",
            Self::NotFailed => "not_failed",
            Self::PastDeadline => "past_deadline",
            Self::Same => "same",
            Self::ErasedAlready => "erased_already",
            Self::Refused(_) => "refused",
        }
    }
}
