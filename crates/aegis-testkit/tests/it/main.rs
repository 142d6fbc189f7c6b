//! Tests of the test kit itself, on a real server.

#![expect(clippy::unwrap_used, reason = "a test fails by a panic")]

mod database;
mod interleaving;
mod shared_server;
mod waiting;
