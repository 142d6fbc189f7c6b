//! Tests of aegis-backfill, in one binary.
#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests may fail like the tests that they help"
)]

mod hollow;
mod job;
mod pass;
mod planted;
mod standby;
mod stays;
mod sync;
mod throttle;
