//! `CLOCK_MONOTONIC`: one clock for all processes of the machine, which `Instant` does not let one compare.

use nix::time::{ClockId, clock_gettime};

/// Nanoseconds. A system without this clock does not exist.
pub(crate) fn now() -> i64 {
    clock_gettime(ClockId::CLOCK_MONOTONIC)
        .map_or(0, |at| at.tv_sec() * 1_000_000_000 + at.tv_nsec())
}

/// Nanoseconds as seconds.
#[expect(clippy::cast_precision_loss, reason = "a duration of minutes at most")]
pub(crate) fn seconds(nanoseconds: i64) -> f64 {
    nanoseconds as f64 / 1e9
}
