//! The (queue, kind) pairs that a worker executes, each with its slots and the measured time of its handler.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use aegis_store::worker::Capability;

use crate::handler::Erased;
use crate::protocols::Protocols;

/// One (queue, kind) with its handler.
pub(crate) struct Kind {
    /// Its place in [`Kinds`].
    pub(crate) index: usize,
    pub(crate) queue: String,
    /// Its queue's place among the queues.
    pub(crate) queue_index: usize,
    pub(crate) name: String,
    pub(crate) protocols: Protocols,
    pub(crate) slots: usize,
    pub(crate) handler: Arc<dyn Erased>,
    pub(crate) pace: Pace,
}

/// What a kind is taken for before anything was measured: one that failed at once is no sample of those that follow, so it
/// takes some thirty short ones until a worker claims ahead.
const UNMEASURED_NS: u64 = 1_000_000_000;

/// How long executions of a kind take, as an average that forgets. Unmeasured counts as long.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    /// 0: not measured yet.
    average_ns: AtomicU64,
}

impl Pace {
    /// One more execution took so long. Longer ones count for more, so that a claim is rather too small than too large.
    pub(crate) fn measured(&self, took: Duration) {
        let took = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX).max(1);
        let average = match self.average_ns.load(Ordering::Relaxed) {
            0 => UNMEASURED_NS,
            measured => measured,
        };
        let next = if took > average {
            average + (took - average) / 4
        } else {
            average - (average - took) / 10
        };
        // Two at once may lose one measurement: an average does not mind.
        self.average_ns.store(next.max(1), Ordering::Relaxed);
    }

    /// How many executions one slot gets through in `window`; 0 for long and unmeasured ones.
    pub(crate) fn fit_into(&self, window: Duration) -> usize {
        match self.average_ns.load(Ordering::Relaxed) {
            0 => 0,
            average => usize::try_from(window.as_nanos() / u128::from(average)).unwrap_or(0),
        }
    }
}

/// All of them.
pub(crate) struct Kinds {
    pub(crate) all: Vec<Arc<Kind>>,
    /// Queues by name, with their slots.
    pub(crate) queues: Vec<(String, usize)>,
}

impl Kinds {
    /// The one of a lane.
    pub(crate) fn find(&self, queue: &str, kind: &str) -> Option<&Arc<Kind>> {
        self.all
            .iter()
            .find(|one| one.queue == queue && one.name == kind)
    }

    /// What is registered in the database.
    pub(crate) fn capabilities(&self) -> Vec<Capability> {
        self.all
            .iter()
            .map(|one| Capability {
                queue: one.queue.clone(),
                kind: one.name.clone(),
                protocols: one.protocols.range(),
                slots: i32::try_from(one.slots).unwrap_or(i32::MAX),
            })
            .collect()
    }

    /// The queues to listen for.
    pub(crate) fn queue_names(&self) -> Vec<String> {
        self.queues.iter().map(|(name, _)| name.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: Duration = Duration::from_millis(50);

    #[test]
    fn the_unmeasured_and_the_long_get_nothing_ahead() {
        let pace = Pace::default();
        assert_eq!(pace.fit_into(WINDOW), 0);
        pace.measured(Duration::from_secs(3));
        assert_eq!(pace.fit_into(WINDOW), 0);
    }

    #[test]
    fn te_72_short_ones_get_what_fits_into_the_window() {
        let pace = Pace::default();
        for _ in 0..200 {
            pace.measured(Duration::from_millis(1));
        }
        // The average comes near to 1 ms from above.
        assert_eq!(pace.fit_into(WINDOW), 49);
    }

    #[test]
    fn one_short_sample_is_no_reason_to_claim_ahead() {
        let pace = Pace::default();
        for _ in 0..10 {
            pace.measured(Duration::from_micros(10));
            assert_eq!(pace.fit_into(WINDOW), 0);
        }
    }

    #[test]
    fn one_long_execution_shrinks_the_next_claims_at_once() {
        let pace = Pace::default();
        for _ in 0..200 {
            pace.measured(Duration::from_millis(1));
        }
        pace.measured(Duration::from_secs(1));
        assert_eq!(pace.fit_into(WINDOW), 0);
    }
}
