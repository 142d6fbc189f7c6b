//! Moves the rows of a change: the trigger that keeps both sides alike, the batches that fill the new one, and the full count
//! that proves it.
//!
//! Invariants: whatever a batch did is committed with the cursor that says so, under the job's epoch; what a pass counted is
//! evidence, and is never corrected.
//!
//! It knows tables, keys and expressions; folders, locks and phases are `aegis-migrate`'s.

mod digest;
pub mod job;
mod key;
pub mod pass;
mod pause;
pub mod sync;
pub mod throttle;

pub use key::KeyFault;
pub use pause::Pause;

/// What a setting of a session, or of a transaction (`SET LOCAL`), gives to whoever stands still inside a transaction, with locks in its
/// hands, frozen or on a host that is gone: the server ends its session, and nobody waits longer for it. Nothing but the server's
/// answers is waited for inside a transaction.
pub const STANDSTILL: &str = "idle_in_transaction_session_timeout = '3s'";

/// The tables of jobs and passes in the target. Idempotent; the schema `aegis_migrate` is there.
pub const SCHEMA: &str = include_str!("../schema/0007_backfill.sql");
