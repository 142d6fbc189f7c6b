//! Moves the rows of a change: the trigger that keeps both sides alike, the batches that fill the new one, and the full count
//! that proves it.
//!
//! Invariants: whatever a batch did is committed with the cursor that says so, under the job's epoch; what a pass counted is
//! evidence, and is never corrected.
//!
//! It knows tables, keys and expressions; folders, locks and phases are `aegis-migrate`'s.

pub mod job;
mod key;
pub mod pass;
pub mod sync;
pub mod throttle;

/// The tables of jobs and passes in the target. Idempotent; the schema `aegis_migrate` is there.
pub const SCHEMA: &str = include_str!("../schema/0007_backfill.sql");
