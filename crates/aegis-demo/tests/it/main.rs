//! The integration tests of the demo crate: the payment service over real HTTP, judged by its own record.

#![expect(clippy::unwrap_used, reason = "helpers of tests may fail like tests")]

mod behaviours;
mod promises;
mod support;
mod verified;
