//! The clock by which worker and supervisor agree: nanoseconds since boot, sleep included, the same in both processes.

use std::time::Duration;

use nix::time::ClockId;

/// Now. A clock that cannot be read gives the end of time, at which everything has run out.
pub(crate) fn boot_ns() -> i64 {
    ClockId::CLOCK_BOOTTIME.now().map_or(i64::MAX, |now| {
        now.tv_sec()
            .saturating_mul(1_000_000_000)
            .saturating_add(now.tv_nsec())
    })
}

/// The moment that is `left` from now.
pub(crate) fn boot_ns_in(left: Duration) -> i64 {
    boot_ns().saturating_add(i64::try_from(left.as_nanos()).unwrap_or(i64::MAX))
}
