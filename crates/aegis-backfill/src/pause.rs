//! The wait for what somebody else has, and gives back by itself: a lock, a table, a session that the server has not ended yet.
//!
//! Invariants: it grows to a bound and no farther; no two processes that began together ask together for long: each wait has up to a
//! half more, by chance.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

/// Waits that grow.
#[derive(Debug)]
pub struct Pause {
    next: Duration,
    max: Duration,
    /// Seeded by the operating system.
    chance: RandomState,
    taken: u64,
}

impl Pause {
    /// The first one takes `first`, each later one twice as long, at most `max`; and what chance adds.
    pub fn growing(first: Duration, max: Duration) -> Self {
        Self {
            next: first,
            max,
            chance: RandomState::new(),
            taken: 0,
        }
    }

    /// Each takes `each`, and what chance adds.
    pub fn of(each: Duration) -> Self {
        Self::growing(each, each)
    }

    /// How long the next one takes.
    pub fn take(&mut self) -> Duration {
        let base = self.next.min(self.max);
        self.next = (base * 2).min(self.max);
        self.taken += 1;
        let mut hasher = self.chance.build_hasher();
        hasher.write_u64(self.taken);
        // In parts of 1024: of a half, by chance.
        let part = u32::try_from(hasher.finish() % 1024).unwrap_or_default();
        base + base / 2 * part / 1024
    }

    /// Waits.
    pub async fn wait(&mut self) {
        tokio::time::sleep(self.take()).await;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Pause;

    #[test]
    fn a_pause_doubles_to_its_bound_and_no_two_go_together() {
        let made = || Pause::growing(Duration::from_millis(50), Duration::from_secs(1));
        let (mut one, mut other) = (made(), made());
        let mut base = Duration::from_millis(50);
        let mut together = 0;
        for _ in 0..20 {
            let (first, second) = (one.take(), other.take());
            for pause in [first, second] {
                assert!(
                    pause >= base && pause < base * 3 / 2,
                    "{pause:?} of {base:?}"
                );
            }
            together += u32::from(first == second);
            base = (base * 2).min(Duration::from_secs(1));
        }
        assert!(together < 10, "{together} of 20 are the same");
        let mut steady = Pause::of(Duration::from_millis(200));
        for _ in 0..5 {
            let pause = steady.take();
            assert!((200..300).contains(&pause.as_millis()), "{pause:?}");
        }
    }
}
