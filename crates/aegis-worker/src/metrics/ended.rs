//! How an attempt ended, as it is counted.

use aegis_model::Cause;

/// How an attempt of this worker ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    /// Its result was accepted.
    Completed,
    /// Charged to the handler.
    Failed,
    /// Postponed by the handler, or until no late request can arrive.
    Snoozed,
    /// Stopped when it was asked to.
    Cancelled,
    /// An operation of it waits for a person.
    Unknown,
    /// A drain gave it back, or it found no slot in time.
    HandedBack,
    /// Its end could not be reported, or was refused: somebody else has the task, or will.
    Lost,
}

/// All of them, in the order of their numbers.
pub(crate) const ENDED: [Ended; 7] = [
    Ended::Completed,
    Ended::Failed,
    Ended::Snoozed,
    Ended::Cancelled,
    Ended::Unknown,
    Ended::HandedBack,
    Ended::Lost,
];

impl Ended {
    /// The label.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Snoozed => "snoozed",
            Self::Cancelled => "cancelled",
            Self::Unknown => "unknown",
            Self::HandedBack => "handed_back",
            Self::Lost => "lost",
        }
    }

    /// A release by its cause.
    pub(crate) fn released(cause: Cause) -> Self {
        match cause {
            Cause::Snooze => Self::Snoozed,
            Cause::Unknown => Self::Unknown,
            Cause::Drain => Self::HandedBack,
            Cause::Failure => Self::Failed,
            Cause::Cancelled
            | Cause::Kill
            | Cause::Settled
            | Cause::Absent
            | Cause::Interruption
            | Cause::Crash => Self::Cancelled,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_places() {
        for (place, ended) in ENDED.into_iter().enumerate() {
            assert_eq!(ended as usize, place, "{}", ended.word());
        }
    }
}
