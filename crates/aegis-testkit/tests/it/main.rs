//! Tests of the test kit itself, on a real server.

mod database;
mod interleaving;
mod waiting;
