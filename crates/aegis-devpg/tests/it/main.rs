//! Tests of the private PostgreSQL: real servers, real processes, real signals.

mod run;
mod support;
