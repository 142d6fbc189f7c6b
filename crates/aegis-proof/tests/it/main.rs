//! The protocol holds within its bounds, and every rule that is taken away is missed.
#![expect(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "helpers of tests; each exploration says how many states it saw"
)]

mod configurations;
mod liveness;
mod mutants;
mod support;
