//! The worker runtime on a real PostgreSQL: one database a test, no sleeps where a wait on something observable works.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a panic with a sentence is how a test fails"
)]

mod checkpoints;
mod commit;
mod drain;
mod ends;
mod happy;
mod hostile;
mod http;
mod lease;
mod lost_answers;
mod observed;
mod operations;
mod process;
mod steps;
mod support;
mod suspects;
mod traces;
