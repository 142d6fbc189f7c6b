//! The kit on right handlers, in which it must find nothing, and on deliberately wrong ones, in which it must find the mistake.
#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests may fail like the tests that they help"
)]

mod clock;
mod faults;
mod right;
mod support;
mod wrong;
