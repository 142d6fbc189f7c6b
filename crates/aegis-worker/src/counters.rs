//! What a worker has counted since it started, for tests, health and metrics.

use std::sync::atomic::{AtomicU64, Ordering};

/// One number that only grows.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, n: usize) {
        self.0.fetch_add(n as u64, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        #[derive(Debug, Default)]
        pub(crate) struct Counters { $(pub(crate) $name: Counter),* }

        /// What a worker has counted since it started. Numbers only grow.
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct Counts { $($(#[$doc])* pub $name: u64),* }

        impl Counters {
            pub(crate) fn read(&self) -> Counts {
                Counts { $($name: self.$name.get()),* }
            }
        }
    };
}

counters! {
    /// Tasks claimed.
    claimed,
    /// Acquire calls sent.
    acquisitions,
    /// Results that were accepted.
    completed,
    /// Handlers' errors that were charged.
    failed,
    /// Executions given up without a charge (snooze, quiet period, cancelled, unknown).
    released,
    /// Executions handed back by a drain, started or not.
    handed_back,
    /// Of these: executions that a drain had to cancel.
    cut_short,
    /// Executions whose end could not be reported, or was refused: somebody else has their tasks, or will.
    lost,
    /// Guarded writes that were refused.
    fenced,
    /// Guarded writes whose answer was lost and then read back.
    unknown_resolved,
    /// Acquire calls whose answer was lost and then repeated.
    acquire_repeated,
    /// Tasks that two beats did not name, returned to their lanes.
    absent_returned,
    /// Leases lost.
    leases_lost,
    /// Times the worker fenced itself before the database did.
    self_fenced,
    /// Renewals that were applied.
    renewals,
    /// Renewals that failed or were late.
    renewals_missed,
    /// Operations dispatched, repeats included.
    dispatched,
    /// Ticks of housekeeping sent.
    ticks,
    /// Times the claim loop went round.
    claim_ticks,
    /// Steps, checkpoints, results of operations and calls of `progress`.
    progress_ticks,
}

impl Counts {
    /// What stands still only when no execution moves: progress, and every beginning and end. Short executions that report
    /// nothing between are no stuck ones.
    pub fn movements(&self) -> u64 {
        [
            self.progress_ticks,
            self.claimed,
            self.completed,
            self.failed,
            self.released,
            self.handed_back,
            self.lost,
        ]
        .into_iter()
        .fold(0, u64::saturating_add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_beginning_and_an_end_are_movements_too() {
        let counters = Counters::default();
        let mut before = counters.read().movements();
        for counter in [
            &counters.progress_ticks,
            &counters.claimed,
            &counters.completed,
            &counters.failed,
            &counters.released,
            &counters.handed_back,
            &counters.lost,
        ] {
            counter.add(1);
            let after = counters.read().movements();
            assert_eq!(after, before + 1);
            before = after;
        }
        counters.ticks.add(1);
        assert_eq!(counters.read().movements(), before);
    }
}
