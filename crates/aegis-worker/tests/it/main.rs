//! The worker runtime on a real PostgreSQL: one database a test, no sleeps where a wait on something observable works.

mod happy;
mod support;
