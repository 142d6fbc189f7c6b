//! What breaks, and when: a schedule that a seed decides.
//!
//! Invariants: every schedule has each kind at least once before it has one twice; the same seed and length give the same
//! schedule. The great ones take seconds each and come one by one: a run of less than two minutes has one of them.

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
    /// The process whose statement of housekeeping is on its way is stopped until others have taken its tasks; then both go on.
    HousekeeperFrozen,
    /// The process that only does housekeeping is killed while its statement is on its way.
    ReaperKilled,
    /// The same process is stopped then, until others have taken lost tasks back; then both go on.
    ReaperFrozen,
    /// A worker is asked to end while its claim is on its way, which arrives when its gate is closed.
    DrainRaced,
    /// All connections are cut while others hold every place at the server.
    Exhausted,
    /// The wall clocks of all workers are set wrong, by up to thirty days.
    WorkerClocks,
    /// The primary is killed and an asynchronous standby that lacks its last transactions is promoted.
    Promotion,
    /// The database's clock goes an hour forward, back, and forward again, with small steps between.
    DatabaseClock,
    /// The file system of the write-ahead log fills up under load.
    DiskFull,
}

impl Fault {
    /// All of them.
    pub fn all() -> impl Iterator<Item = Self> {
        Self::ORDINARY.into_iter().chain(Self::GREAT)
    }

    /// Those that take seconds, and the whole database.
    pub const GREAT: [Self; 3] = [Self::Promotion, Self::DatabaseClock, Self::DiskFull];

    /// Those that every run has.
    pub const ORDINARY: [Self; 19] = [
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
        Self::HousekeeperFrozen,
        Self::ReaperKilled,
        Self::ReaperFrozen,
        Self::DrainRaced,
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
            Self::HousekeeperFrozen => "housekeeper_frozen",
            Self::ReaperKilled => "reaper_killed",
            Self::ReaperFrozen => "reaper_frozen",
            Self::DrainRaced => "claim_races_a_drain",
            Self::WorkerClocks => "clock_jumps_of_workers",
            Self::Promotion => "promotion_with_a_lost_tail",
            Self::DatabaseClock => "clock_jumps_of_the_database",
            Self::DiskFull => "disk_full",
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

/// A fault and its moment, from the start of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Planned {
    /// Milliseconds after the start.
    pub at_ms: u64,
    /// What.
    pub fault: Fault,
}

/// Below this a run has one great fault, by its seed; from here on it has all.
const LONG: Duration = Duration::from_mins(2);
const GREAT_EVERY_MS: usize = 35_000;

/// The schedule of a seed: about three faults every four seconds, the last two seconds without one; and great ones between.
pub fn schedule(seed: u64, length: Duration) -> Vec<Planned> {
    let mut random = StdRng::seed_from_u64(seed);
    let length_ms = u64::try_from(length.as_millis()).unwrap_or(u64::MAX);
    let mut planned = Vec::new();
    let mut at_ms = 1500;
    let mut next: Vec<Fault> = Vec::new();
    while at_ms + 2000 < length_ms {
        if next.is_empty() {
            next = Fault::ORDINARY.to_vec();
            next.shuffle(&mut random);
        }
        if let Some(fault) = next.pop() {
            planned.push(Planned { at_ms, fault });
        }
        at_ms += random.random_range(1270..1470);
    }
    planned.extend(great(seed, length, length_ms));
    planned.sort_by_key(|one| one.at_ms);
    planned
}

fn great(seed: u64, length: Duration, length_ms: u64) -> Vec<Planned> {
    if length < LONG {
        let fault = Fault::GREAT[(seed % 3) as usize];
        let at_ms = length_ms / 3;
        return vec![Planned { at_ms, fault }];
    }
    let mut random = StdRng::seed_from_u64(seed ^ 0x6EA7);
    let mut next: Vec<Fault> = Vec::new();
    let mut planned = Vec::new();
    for at_ms in (10_000..length_ms.saturating_sub(10_000)).step_by(GREAT_EVERY_MS) {
        if next.is_empty() {
            next = Fault::GREAT.to_vec();
            next.shuffle(&mut random);
        }
        planned.extend(next.pop().map(|fault| Planned { at_ms, fault }));
    }
    planned
}

#[cfg(test)]
mod tests {
    use super::*;

    fn has(seed: u64, length: Duration, fault: Fault) -> bool {
        let planned = schedule(seed, length);
        planned.iter().any(|one| one.fault == fault)
    }

    #[test]
    fn half_a_minute_has_each_ordinary_fault_and_a_great_one() {
        let half = Duration::from_secs(30);
        for seed in 0..200 {
            for fault in Fault::ORDINARY {
                assert!(has(seed, half, fault), "{seed}: {fault:?}");
            }
        }
        for fault in Fault::GREAT {
            assert!((1..4).any(|seed| has(seed, half, fault)), "{fault:?}");
        }
    }

    #[test]
    fn two_minutes_have_each_fault() {
        for seed in 0..200 {
            for fault in Fault::all() {
                assert!(has(seed, LONG, fault), "{seed}: {fault:?}");
            }
        }
    }

    #[test]
    fn a_seed_decides_it() {
        let length = Duration::from_mins(3);
        assert_eq!(schedule(7, length), schedule(7, length));
        assert_ne!(schedule(7, length), schedule(8, length));
    }
}
