//! What a worker gathers before it asks the database: sizes and waits that trade latency for throughput.
//!
//! Never: a value that changes what is promised; these change how many tasks share a statement.

use std::time::Duration;

use aegis_model::limits::{
    CLAIM_MAX, COMPLETION_GROUP_MAX, COMPLETION_GROUP_MS, LOCAL_QUEUE_WORK_MS,
};

/// How much is gathered. [`Tuning::default`] is what was measured; see `docs/benchmarks.md`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Tuning {
    /// How long a finished execution waits for others to be written with; 5 ms.
    pub completion_group: Duration,
    /// The most that are written together; 200.
    pub completion_group_max: usize,
    /// So much work is claimed ahead where tasks are very short; 50 ms, and 0 claims nothing ahead.
    pub local_queue: Duration,
    /// The most that are claimed at once; 500.
    pub claim_max: usize,
}

impl Default for Tuning {
    fn default() -> Self {
        Self {
            completion_group: Duration::from_millis(COMPLETION_GROUP_MS),
            completion_group_max: COMPLETION_GROUP_MAX,
            local_queue: Duration::from_millis(LOCAL_QUEUE_WORK_MS),
            claim_max: CLAIM_MAX,
        }
    }
}

impl Tuning {
    /// The nearest that works: one at least, and no more than the statements are made for.
    pub(crate) fn bounded(self) -> Self {
        Self {
            completion_group: self.completion_group.min(Duration::from_secs(1)),
            completion_group_max: self.completion_group_max.clamp(1, CLAIM_MAX),
            local_queue: self.local_queue.min(Duration::from_secs(10)),
            claim_max: self.claim_max.clamp(1, CLAIM_MAX),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_work_becomes_what_can() {
        let none = Tuning {
            completion_group_max: 0,
            claim_max: 0,
            ..Tuning::default()
        };
        assert_eq!(
            (
                none.bounded().completion_group_max,
                none.bounded().claim_max
            ),
            (1, 1)
        );
        let all = Tuning {
            claim_max: usize::MAX,
            completion_group: Duration::MAX,
            ..Tuning::default()
        };
        assert_eq!(
            (all.bounded().claim_max, all.bounded().completion_group),
            (500, Duration::from_secs(1))
        );
        assert_eq!(Tuning::default().bounded(), Tuning::default());
    }
}
