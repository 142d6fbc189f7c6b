//! Why an execution ended, and who is charged. Four counters, kept apart.
//!
//! Words are stored in `task_event.cause`: never change one. `aegis.end_attempt` restates [`Cause::bumps_epoch`] and the
//! counters.

/// Why an execution that was not its task's end has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Cause {
    /// The handler's error: charged to `failures`.
    Failure,
    /// The handler postponed it: `snoozes`, no charge.
    Snooze,
    /// The worker drained and handed it back: `interruptions`.
    Drain,
    /// A worker's two beats did not name it: `interruptions`.
    Absent,
    /// Lost, but by the database's doing or with a successor: `interruptions`.
    Interruption,
    /// Lost with its worker: `crashes`.
    Crash,
    /// An operation needs a person: no charge.
    Unknown,
    /// Its execution has stopped on request: no charge.
    Cancelled,
    /// It did not stop within `kill_after`.
    Kill,
    /// A claim that only settled open operations: no charge.
    Settled,
}

/// All causes.
pub const CAUSES: [Cause; 10] = [
    Cause::Failure,
    Cause::Snooze,
    Cause::Drain,
    Cause::Absent,
    Cause::Interruption,
    Cause::Crash,
    Cause::Unknown,
    Cause::Cancelled,
    Cause::Kill,
    Cause::Settled,
];

impl Cause {
    /// The stored word.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Failure => "failure",
            Self::Snooze => "snooze",
            Self::Drain => "drain",
            Self::Absent => "absent",
            Self::Interruption => "interruption",
            Self::Crash => "crash",
            Self::Unknown => "unknown",
            Self::Cancelled => "cancelled",
            Self::Kill => "kill",
            Self::Settled => "settled",
        }
    }

    /// Does the task's epoch grow? It does whenever somebody else than the claim's own worker, or a worker that stops, ends it.
    pub const fn bumps_epoch(self) -> bool {
        matches!(
            self,
            Self::Drain | Self::Absent | Self::Interruption | Self::Crash | Self::Kill
        )
    }
}

/// Why a running task was asked to stop. The number is what the database stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CancelCause {
    /// 0: somebody asked.
    Requested,
    /// 1: its total deadline has passed.
    Deadline,
    /// 2: this attempt took longer than start-to-close.
    StartToClose,
}

impl CancelCause {
    /// The cause of a stored number; a number of a newer schema counts as a request.
    pub const fn from_number(number: i16) -> Self {
        match number {
            1 => Self::Deadline,
            2 => Self::StartToClose,
            _ => Self::Requested,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_differ() {
        for (n, cause) in CAUSES.iter().enumerate() {
            assert!(
                CAUSES[n + 1..]
                    .iter()
                    .all(|other| other.word() != cause.word())
            );
        }
    }

    #[test]
    fn the_epoch_grows_when_somebody_else_or_a_worker_that_stops_ends_the_attempt() {
        let bump: Vec<&str> = CAUSES
            .iter()
            .filter(|cause| cause.bumps_epoch())
            .map(|cause| cause.word())
            .collect();
        assert_eq!(bump.len(), 5, "{bump:?}");
        for word in ["drain", "absent", "interruption", "crash", "kill"] {
            assert!(bump.contains(&word), "{word}");
        }
    }

    #[test]
    fn a_cancel_cause_of_a_newer_schema_is_a_request() {
        assert_eq!(
            [0, 1, 2, 3].map(CancelCause::from_number),
            [
                CancelCause::Requested,
                CancelCause::Deadline,
                CancelCause::StartToClose,
                CancelCause::Requested
            ]
        );
    }
}
