//! The worker's own belief about its eligibility: a hint that stops it earlier than the database would refuse it.
//!
//! Invariants: eligibility ends at the boot-time clock read *before* sending the last renewal that was applied, plus the
//! lease, minus a margin. The boot-time clock goes on while a machine sleeps or is suspended; a monotonic one does not.
//!
//! Never: decide by it that a write is allowed. It only forbids; the guard in the database allows.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

use nix::time::ClockId;

/// Nanoseconds since boot, sleep included.
pub(crate) fn boot_ns() -> i64 {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    let clock = ClockId::CLOCK_BOOTTIME;
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    let clock = ClockId::CLOCK_MONOTONIC;
    // The clock cannot fail for a known id; the fallback fences, which is the safe side.
    clock.now().map_or(i64::MAX, |now| {
        now.tv_sec()
            .saturating_mul(1_000_000_000)
            .saturating_add(now.tv_nsec())
    })
}

pub(crate) fn to_ns(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}

/// Until when one incarnation believes to be eligible.
#[derive(Debug)]
pub(crate) struct SelfFence {
    until_ns: AtomicI64,
    lost: AtomicBool,
    /// Lease minus margin.
    span_ns: i64,
}

impl SelfFence {
    /// After a registration that was sent at `sent_ns`.
    pub(crate) fn new(sent_ns: i64, ttl: Duration) -> Self {
        let span_ns = to_ns(ttl.saturating_sub(ttl / 5));
        Self {
            until_ns: AtomicI64::new(sent_ns.saturating_add(span_ns)),
            lost: AtomicBool::new(false),
            span_ns,
        }
    }

    /// A renewal that was sent at `sent_ns` was applied.
    pub(crate) fn extend(&self, sent_ns: i64) {
        self.until_ns
            .fetch_max(sent_ns.saturating_add(self.span_ns), Ordering::SeqCst);
    }

    /// The database said that the lease is lost.
    pub(crate) fn lose(&self) {
        self.lost.store(true, Ordering::SeqCst);
    }

    /// May an operation be dispatched, an execution be started?
    pub(crate) fn is_eligible(&self) -> bool {
        self.is_eligible_at(boot_ns())
    }

    fn is_eligible_at(&self, now_ns: i64) -> bool {
        !self.is_lost() && now_ns < self.until_ns.load(Ordering::SeqCst)
    }

    /// Proven: the database said so.
    pub(crate) fn is_lost(&self) -> bool {
        self.lost.load(Ordering::SeqCst)
    }

    /// How long eligibility still lasts.
    pub(crate) fn left(&self) -> Duration {
        if self.is_lost() {
            return Duration::ZERO;
        }
        let left_ns = self
            .until_ns
            .load(Ordering::SeqCst)
            .saturating_sub(boot_ns());
        Duration::from_nanos(u64::try_from(left_ns).unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eligibility_ends_a_margin_before_the_lease() {
        let fence = SelfFence::new(1_000, Duration::from_nanos(500));
        assert!(fence.is_eligible_at(1_399));
        assert!(!fence.is_eligible_at(1_400));
        fence.extend(2_000);
        assert!(fence.is_eligible_at(2_399));
        fence.extend(1_500);
        assert!(
            fence.is_eligible_at(2_399),
            "an older renewal never shortens"
        );
    }

    #[test]
    fn a_lost_lease_stays_lost() {
        let fence = SelfFence::new(boot_ns(), Duration::from_mins(1));
        assert!(fence.is_eligible());
        fence.lose();
        fence.extend(boot_ns());
        assert!(!fence.is_eligible());
        assert_eq!(fence.left(), Duration::ZERO);
    }

    #[test]
    fn what_is_left_is_the_lease_without_its_margin_and_what_has_passed() {
        let hour = Duration::from_hours(1);
        let fence = SelfFence::new(boot_ns(), hour);
        let left = fence.left();
        assert!(left <= hour / 5 * 4, "{left:?}");
        assert!(left > hour / 2, "{left:?}");
        let long_ago = boot_ns().saturating_sub(to_ns(hour * 2));
        let fence = SelfFence::new(long_ago, hour);
        assert_eq!(fence.left(), Duration::ZERO);
        assert!(!fence.is_eligible());
        assert!(!fence.is_lost(), "nobody said so");
    }

    #[test]
    fn nanoseconds_are_counted_one_by_one() {
        assert_eq!(to_ns(Duration::from_secs(3)), 3_000_000_000);
        assert_eq!(to_ns(Duration::MAX), i64::MAX);
    }

    #[test]
    fn the_clock_moves() {
        let before = boot_ns();
        assert!(before > 0);
        assert!(
            (0..10_000_000).any(|_| boot_ns() > before),
            "it stands still"
        );
    }
}
