//! Tests of aegis-migrate, in one binary.
#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests may fail like the tests that they help"
)]

mod adopt;
mod change;
mod contract;
mod dev;
mod folder;
mod foreign;
mod lint;
mod run;
mod set;
mod standing;
mod structure;
mod sync;
