//! Tests of the private PostgreSQL: real servers, real processes, real signals.

#![expect(clippy::unwrap_used, reason = "tests")]

mod run;
mod support;
