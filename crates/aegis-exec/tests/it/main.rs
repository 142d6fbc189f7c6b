//! Handlers that are programs, on a real PostgreSQL: what they may say, what they do wrong, and that they end.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a panic with a sentence is how a test fails"
)]

mod bad_programs;
mod cancelled;
mod examples;
mod operations;
mod speaks;
mod start;
mod support;
mod watched;
