//! The catalog of a real server, read and compared.
#![expect(
    clippy::unwrap_used,
    reason = "a panic with a sentence is how a test fails"
)]

mod drift;
mod order;
mod reading;
mod zoo;
