//! Tests of the private PostgreSQL: real servers, real processes, real signals.
#![expect(clippy::unwrap_used, reason = "a test fails by a panic")]

mod fetch;
mod folders;
mod helper;
mod killed;
mod pid_file;
mod run;
mod standby;
mod support;
mod user;
