//! What breaks, and when: a schedule that a seed decides.
//!
//! Invariants: every schedule has each kind at least once before it has one twice; the same seed and length give the same
//! schedule. What a machine cannot make is in [`NOT_RUN`], by name.

use std::time::Duration;

use rand::rngs::StdRng;
use rand::seq::SliceRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use serde::{Deserialize, Serialize};

use crate::proxy::Place;

/// One fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// A worker is killed by SIGKILL.
    WorkerKilled,
    /// A worker is asked to end by SIGTERM and drains.
    WorkerTerminated,
    /// A worker is stopped for longer than its lease and goes on.
    WorkerFrozen,
    /// A process with a claim is frozen beyond its lease and then reports success.
    LateSuccess,
    /// The same, and it reports a failure.
    LateFailure,
    /// PostgreSQL is restarted in order.
    PostgresRestarted,
    /// PostgreSQL ends at once (SIGQUIT) and is started again.
    PostgresImmediate,
    /// The postmaster is killed by SIGKILL and started again.
    PostgresKilled,
    /// A statement that writes is lost on its way to the server.
    CutBefore,
    /// A statement that writes reaches the server and the connection ends at once.
    CutAfter,
    /// The server has answered and the answer is lost.
    CutReplied,
    /// A connection goes dead in the middle of a statement that writes, and nobody says so.
    HalfOpen,
    /// A statement of housekeeping arrives five seconds late.
    HousekeepingLate,
    /// All connections are cut while others hold every place at the server.
    Exhausted,
    /// The wall clocks of all workers are set wrong, by up to thirty days.
    WorkerClocks,
}

impl Fault {
    /// All that is made here.
    pub const ALL: [Self; 15] = [
        Self::WorkerKilled,
        Self::WorkerTerminated,
        Self::WorkerFrozen,
        Self::LateSuccess,
        Self::LateFailure,
        Self::PostgresRestarted,
        Self::PostgresImmediate,
        Self::PostgresKilled,
        Self::CutBefore,
        Self::CutAfter,
        Self::CutReplied,
        Self::HalfOpen,
        Self::HousekeepingLate,
        Self::Exhausted,
        Self::WorkerClocks,
    ];

    /// Its name in history and report.
    pub const fn name(self) -> &'static str {
        match self {
            Self::WorkerKilled => "worker_killed",
            Self::WorkerTerminated => "worker_terminated",
            Self::WorkerFrozen => "worker_frozen",
            Self::LateSuccess => "late_success",
            Self::LateFailure => "late_failure",
            Self::PostgresRestarted => "postgres_restarted",
            Self::PostgresImmediate => "postgres_immediate",
            Self::PostgresKilled => "postgres_killed",
            Self::CutBefore => "cut_before_forward",
            Self::CutAfter => "cut_after_forward",
            Self::CutReplied => "cut_after_reply",
            Self::HalfOpen => "half_open",
            Self::HousekeepingLate => "housekeeping_late",
            Self::Exhausted => "connections_exhausted",
            Self::WorkerClocks => "clock_jumps_of_workers",
        }
    }

    /// Where the proxy cuts, when it is the proxy's.
    pub const fn cut(self) -> Option<Place> {
        match self {
            Self::CutBefore => Some(Place::Before),
            Self::CutAfter => Some(Place::After),
            Self::CutReplied => Some(Place::Replied),
            _ => None,
        }
    }
}

/// Faults of the design that this version does not make.
pub const NOT_RUN: [&str; 4] = [
    "clock_jumps_of_the_database",
    "disk_full",
    "promotion_with_a_lost_tail",
    "rollback_after_a_newer_checkpoint",
];

/// A fault and its moment, from the start of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Planned {
    /// Milliseconds after the start.
    pub at_ms: u64,
    /// What.
    pub fault: Fault,
}

/// The schedule of a seed: about two faults every three seconds, the last two seconds without one.
pub fn schedule(seed: u64, length: Duration) -> Vec<Planned> {
    let mut random = StdRng::seed_from_u64(seed);
    let length_ms = u64::try_from(length.as_millis()).unwrap_or(u64::MAX);
    let mut planned = Vec::new();
    let mut at_ms = 1500;
    let mut next: Vec<Fault> = Vec::new();
    while at_ms + 2000 < length_ms {
        if next.is_empty() {
            next = Fault::ALL.to_vec();
            next.shuffle(&mut random);
        }
        if let Some(fault) = next.pop() {
            planned.push(Planned { at_ms, fault });
        }
        at_ms += random.random_range(1400..1650);
    }
    planned
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_a_minute_has_each_fault() {
        for seed in 0..200 {
            let planned = schedule(seed, Duration::from_secs(30));
            for fault in Fault::ALL {
                assert!(planned.iter().any(|one| one.fault == fault), "{seed}");
            }
        }
    }

    #[test]
    fn a_seed_decides_it() {
        let length = Duration::from_mins(1);
        assert_eq!(schedule(7, length), schedule(7, length));
        assert_ne!(schedule(7, length), schedule(8, length));
    }
}
