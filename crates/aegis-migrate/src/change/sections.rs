//! `change.toml` as types: one struct a table, in the names of the file.
//!
//! Invariants: an unknown key is an error; a key that is not written is left out of what is hashed, so that a key that a
//! later version of the tool learns moves no hash of before.
//!
//! Never: a default that changes what an old file means.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::duration::{self, Length};
use super::id::PhaseOf;
use crate::contract::need::Need;

/// The whole file.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Document {
    pub(super) format: i64,
    pub(super) id: String,
    pub(super) schema: String,
    pub(super) run_as: Option<String>,
    #[serde(default)]
    pub(super) requires: Vec<PhaseOf>,
    pub(super) baseline: Option<Baseline>,
    pub(super) expand: Option<Expand>,
    pub(super) migrate: Option<Migrate>,
    pub(super) sync: Option<Sync>,
    pub(super) backfill: Option<Backfill>,
    pub(super) throttle: Option<Throttle>,
    pub(super) reconcile: Option<Reconcile>,
    pub(super) switch: Option<Switch>,
    pub(super) contract: Option<Contract>,
}

/// `[baseline]`: what was there before; made by `adopt` and `squash`. Its statements run on fresh databases only: on any
/// other one it has to be recorded (by `adopt`, `squash` or `baseline`), never executed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Baseline {
    /// What made the structure before: `changes` (squashed ones), or the name of another tool.
    pub from: String,
}

/// `[expand]`: short statements that the previous version lives with.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expand {
    /// The file of its statements.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sql: Option<String>,
    /// All statements in one transaction.
    #[serde(default, skip_serializing_if = "is_false")]
    pub atomic: bool,
    /// Rules of compatibility that the author overrides.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub compatible: Vec<Compatible>,
    /// How the result of SQL that cannot be read is proven.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub opaque: Option<Opaque>,
}

/// `[migrate]`: statements that are long, or run outside a transaction.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Migrate {
    /// Statements before the backfill, such as the index that serves it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sql: Option<String>,
    /// Statements after the backfill, such as `VALIDATE CONSTRAINT`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after_backfill: Option<String>,
    /// Rules of compatibility that the author overrides.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub compatible: Vec<Compatible>,
    /// How the result of SQL that cannot be read is proven.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub opaque: Option<Opaque>,
}

/// A rule of compatibility that does not apply here, and why.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Compatible {
    /// Its name, such as `add-column`.
    pub rule: String,
    /// Why the previous version lives with it.
    pub reason: String,
}

/// SQL that builds SQL: what it left is asked for afterwards.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Opaque {
    /// A file with queries that each answer one row with `true`.
    pub verify: String,
    /// Why it cannot be written as plain statements.
    pub reason: String,
}

/// `[sync]`: the generated trigger that keeps both sides of a table alike.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sync {
    /// The table, in the schema of the change.
    pub table: String,
    /// Columns that the previous version writes.
    pub old: Vec<String>,
    /// Columns that the new version writes.
    pub new: Vec<String>,
    /// What holds when one write changes both.
    #[serde(default)]
    pub both_changed: BothChanged,
    /// New column ← expression over the old ones.
    pub forward: BTreeMap<String, String>,
    /// Old column ← expression over the new ones.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub backward: BTreeMap<String, String>,
}

/// What holds when one write changes both sides.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BothChanged {
    /// The new side wins.
    #[default]
    New,
    /// The write is refused.
    Reject,
}

/// `[backfill]`: what is computed for the rows of before.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Backfill {
    /// The table; without it that of `[sync]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub table: Option<String>,
    /// Unique, NOT NULL, immutable columns.
    pub key: Vec<String>,
    /// `sync.forward`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub set: Option<String>,
    /// A file with one statement over the key range (:from, :to].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub statement: Option<String>,
    /// Rows of a batch.
    #[serde(default)]
    pub batch: Batch,
}

/// How many rows a batch has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Batch {
    /// Rows of the first.
    #[serde(default = "Batch::start")]
    pub start: u32,
    /// Rows of the largest.
    #[serde(default = "Batch::max")]
    pub max: u32,
    /// How long one should take.
    #[serde(default = "Batch::target_ms")]
    pub target_ms: u32,
}

impl Batch {
    fn start() -> u32 {
        1000
    }

    fn max() -> u32 {
        50_000
    }

    fn target_ms() -> u32 {
        500
    }
}

impl Default for Batch {
    fn default() -> Self {
        Self {
            start: Self::start(),
            max: Self::max(),
            target_ms: Self::target_ms(),
        }
    }
}

/// `[throttle]`: when a backfill waits. Not hashed: it may change while it runs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Throttle {
    /// The farthest a standby may be behind.
    pub max_lag_bytes: Option<u64>,
    /// The most WAL that a replication slot may hold back.
    pub max_slot_bytes: Option<u64>,
    /// The most WAL that the server may write in a second.
    pub max_wal_bytes_s: Option<u64>,
    /// The most sessions that may be active beside it.
    pub max_active: Option<u32>,
    /// Whether it waits while autovacuum works on the table.
    pub autovacuum: Option<bool>,
    /// A query that answers one row with `true` while it has to wait.
    pub query: Option<String>,
    /// A file that stops it while it exists.
    pub file: Option<String>,
    /// What a source that gives no answer means.
    #[serde(default)]
    pub on_unknown: OnUnknown,
}

/// What a source that gives no answer means.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnUnknown {
    /// Wait: unknown is not fine.
    #[default]
    Pause,
    /// Go on, and say so.
    Continue,
}

/// `[reconcile]`: what is counted after the backfill.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reconcile {
    /// `sync`: the directions of `[sync]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compare: Option<String>,
    /// A file with a query of rows (key, missing | mismatch | orphaned).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sql: Option<String>,
    /// How old a result may be to count as evidence.
    #[serde(
        default = "duration::day",
        with = "duration",
        skip_serializing_if = "is_day"
    )]
    pub max_age: Length,
}

/// `[switch]`: what applications may be told to read and write.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Switch {
    /// Sides in the order in which they are read: first the one of before.
    pub reads: Vec<String>,
    /// Sides in the order in which they are written.
    pub writes: Vec<String>,
    /// How long an application may believe what it was told.
    pub cache_ttl_ms: u64,
}

/// `[contract]`: what ends the previous version.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Contract {
    /// Statements that make the new side the only one, such as NOT NULL.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tighten: Option<String>,
    /// Statements that drop the old side.
    pub sql: String,
    /// Roles that lose the old columns before anything is dropped.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub revoke_from: Vec<String>,
    /// For how long nobody may have used the old side.
    #[serde(with = "duration")]
    pub observe: Length,
    /// Facts that must be shown.
    pub evidence: Vec<Need>,
    /// How the result of SQL that cannot be read is proven.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub opaque: Option<Opaque>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it so")]
fn is_false(value: &bool) -> bool {
    !value
}

fn is_day(length: &Length) -> bool {
    length.0 == Duration::from_hours(24)
}
