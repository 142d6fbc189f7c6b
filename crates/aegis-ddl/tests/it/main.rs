//! Tests of aegis-ddl, in one binary.
#![expect(
    clippy::unwrap_used,
    reason = "a panic with a sentence is how a test fails"
)]

mod history;
mod hostile;
mod judge;
mod plain;
mod reading;
mod sets;
