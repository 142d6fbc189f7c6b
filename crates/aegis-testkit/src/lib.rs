//! What the tests of every crate share: databases from a template, interleavings on real
//! connections, slots for tests that start processes, waits that look instead of sleeping.
//!
//! Everything here panics with a sentence instead of returning an error: it is for tests only,
//! and must never be a dependency of anything but tests.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a panic with a sentence is how a test fails"
)]

mod db;
mod server;
mod skip;
mod slot;
mod stepper;
mod template;
mod wait;

pub use db::TestDb;
pub use server::server_url;
pub use skip::skipped;
pub use slot::{ProcessSlot, process_slot};
pub use stepper::{Pending, StepConn, Stepper};
pub use wait::wait_until;
