//! Limits and defaults, with their units in the names. Each is configuration where a program offers it.

use std::time::Duration;

/// Largest input or result, in bytes.
pub const PAYLOAD_BYTES_MAX: usize = 256 * 1024;
/// Largest checkpoint or step value, in bytes.
pub const CHECKPOINT_BYTES_MAX: usize = 1024 * 1024;
/// Longest error text kept, in bytes; longer ones are cut and say so.
pub const ERROR_BYTES_MAX: usize = 8 * 1024;
/// Most tasks in one submit.
pub const SUBMIT_BATCH_MAX: usize = 10_000;
/// Longest queue, kind or tenant name, in characters.
pub const NAME_CHARS_MAX: usize = 200;
/// Longest idempotency key, in characters.
pub const KEY_CHARS_MAX: usize = 255;
/// How long an idempotency key is kept after submit, in milliseconds.
pub const KEY_KEPT_MS: i64 = 30 * 24 * 3600 * 1000;
/// Most tasks in one claim.
pub const CLAIM_MAX: usize = 500;
/// Work held in the local queue, in milliseconds.
pub const LOCAL_QUEUE_WORK_MS: u64 = 50;
/// A worker's lease, in milliseconds.
pub const LEASE_TTL_MS: u64 = 30_000;
/// From a cancel request or a deadline until the execution is ended for it, in milliseconds.
pub const KILL_AFTER_MS: i64 = 30_000;
/// Quiet after a lost answer, beyond the call's timeout, in milliseconds.
pub const QUIET_MS: i64 = 30_000;
/// Most rows in a group of completions.
pub const COMPLETION_GROUP_MAX: usize = 200;
/// Longest wait of a group of completions, in milliseconds.
pub const COMPLETION_GROUP_MS: u64 = 5;
/// Time between two notifications of a queue from one store, on average, in milliseconds.
pub const NOTIFY_EVERY_MS: u64 = 50;
/// Notifications of a queue that may go at once after a pause.
pub const NOTIFY_BURST: u32 = 8;
/// Longest duration that is stored, in milliseconds: 10 years. Longer ones would leave the range of the database's clock.
pub const DURATION_MS_MAX: i64 = 10 * 365 * 24 * 3600 * 1000;
/// Failures until a task is given up.
pub const MAX_FAILURES: i32 = 10;
/// Crashes alone until a task is quarantined.
pub const MAX_CRASHES: i32 = 3;

/// A duration as it is stored: whole milliseconds, at most [`DURATION_MS_MAX`].
pub fn duration_ms(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).map_or(DURATION_MS_MAX, |ms| ms.min(DURATION_MS_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_duration_is_stored_longer_than_ten_years() {
        assert_eq!(DURATION_MS_MAX, 315_360_000_000);
        assert_eq!(duration_ms(Duration::from_secs(2)), 2000);
        assert_eq!(duration_ms(Duration::MAX), DURATION_MS_MAX);
    }
}
