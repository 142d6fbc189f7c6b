//! When a claimer that has run out of tasks looks again without being told: soon after it found some, then ever later, then
//! not at all.
//!
//! Why: hints are debounced, so whoever submits shortly after a hint sends none; and where tasks keep coming, a look every few
//! milliseconds starts them sooner than hints ever could. A worker that stays idle asks for nothing beyond its ticks.
//!
//! Invariant: the last look comes later after a hint than a submitter's debounce lasts, so no submit is left to a tick that
//! another one's hint has swallowed.

use std::time::Duration;

use aegis_model::limits::NOTIFY_EVERY_MS;
use tokio::time::Instant;

use crate::writer::jittered;

/// Between the looks after tasks were found, in milliseconds. Where tasks keep coming only the first counts: a claim has a fixed
/// cost, so a shorter one would cost a busy database more than it gives.
const PAUSES_MS: [u64; 6] = [2, 4, 8, 16, 24, 24];
/// Until the only look after a hint of which others took the tasks.
const AFTER_HINT: Duration = Duration::from_millis(NOTIFY_EVERY_MS + NOTIFY_EVERY_MS / 4);

/// The next look, if there is one.
#[derive(Debug)]
pub(crate) struct Warm {
    look_at: Option<Instant>,
    /// Looks since tasks were found.
    looked: usize,
    /// Behind the debounce of the last hint.
    behind_hint: Option<Instant>,
}

impl Default for Warm {
    /// Nothing was found yet, so nothing is looked for.
    fn default() -> Self {
        Self {
            look_at: None,
            looked: PAUSES_MS.len(),
            behind_hint: None,
        }
    }
}

impl Warm {
    /// An acquisition gave tasks.
    pub(crate) fn found(&mut self, now: Instant) {
        self.looked = 0;
        self.look_at = Self::after(self.looked, now);
    }

    /// A hint came. What it was sent for is looked for at once; this is about what came after it.
    pub(crate) fn hinted(&mut self, now: Instant) {
        self.behind_hint = Some(now + AFTER_HINT);
        // A look that comes sooner stays: others may follow this hint at once.
        self.look_at = self.look_at.or(self.behind_hint);
    }

    /// It is time: looked at `now`, and unless tasks are found, later once more.
    pub(crate) fn looks(&mut self, now: Instant) {
        self.looked = self.looked.saturating_add(1);
        self.look_at = Self::after(self.looked, now).or(self.behind_hint.filter(|at| *at > now));
    }

    fn after(looked: usize, now: Instant) -> Option<Instant> {
        let pause_ms = PAUSES_MS.get(looked)?;
        Some(now + jittered(Duration::from_millis(*pause_ms)))
    }

    /// Ends when it is time to look; never without a look.
    pub(crate) async fn wait(&self) {
        match self.look_at {
            Some(at) => tokio::time::sleep_until(at).await,
            None => std::future::pending().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEBOUNCE: Duration = Duration::from_millis(NOTIFY_EVERY_MS);

    /// How long after `begin` it looks, when it never finds anything.
    fn all_looks(mut warm: Warm, begin: Instant) -> Vec<Duration> {
        let mut looks = Vec::new();
        while let Some(at) = warm.look_at {
            looks.push(at - begin);
            warm.looks(at);
        }
        looks
    }

    #[test]
    fn after_tasks_it_looks_soon_and_ever_later_until_no_hint_can_be_swallowed() {
        for _ in 0..100 {
            let (mut warm, begin) = (Warm::default(), Instant::now());
            warm.found(begin);
            let looks = all_looks(warm, begin);
            assert_eq!(looks.len(), PAUSES_MS.len(), "{looks:?}");
            assert!(looks[0] <= Duration::from_millis(3), "{looks:?}");
            let last = looks[looks.len() - 1];
            assert!(last > DEBOUNCE && last < DEBOUNCE * 2, "{looks:?}");
        }
    }

    #[test]
    fn after_a_hint_it_looks_once_behind_the_debounce() {
        let (mut warm, begin) = (Warm::default(), Instant::now());
        warm.hinted(begin);
        let looks = all_looks(warm, begin);
        assert_eq!(looks.len(), 1, "{looks:?}");
        assert!(looks[0] > DEBOUNCE, "{looks:?}");
    }

    /// A hint that comes while it is warm neither delays the next look nor goes without its own.
    #[test]
    fn a_hint_in_between_takes_no_look_away() {
        for after_ms in [1, 30, 50] {
            let (mut warm, begin) = (Warm::default(), Instant::now());
            warm.found(begin);
            let hint = begin + Duration::from_millis(after_ms);
            while warm.look_at.is_some_and(|at| at < hint) {
                let at = warm.look_at.unwrap_or(hint);
                warm.looks(at);
            }
            let next = warm.look_at;
            warm.hinted(hint);
            assert_eq!(warm.look_at, next, "{after_ms}");
            let looks = all_looks(warm, begin);
            let behind = Duration::from_millis(after_ms) + DEBOUNCE;
            assert!(looks.iter().any(|at| *at > behind), "{after_ms}: {looks:?}");
        }
    }
}
