//! Tests of aegis-ddl, in one binary.
#![expect(
    clippy::unwrap_used,
    reason = "a panic with a sentence is how a test fails"
)]

mod borders;
mod calls;
mod classes;
mod expand;
mod families;
mod history;
mod hostile;
mod judge;
mod known;
mod nested;
mod plain;
mod reading;
mod real;
mod sets;
mod silent;
