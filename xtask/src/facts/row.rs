//! What was seen of one case.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

/// Everything that was seen on one major.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Facts {
    pub(super) major: u32,
    pub(super) rows: Vec<Row>,
}

/// One case.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Row {
    pub(super) form: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) with: Option<String>,
    pub(super) statement: String,
    /// The error's SQLSTATE, where the server refused; then the rest says what was seen until then, which is nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) sqlstate: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) message: Option<String>,
    /// Relations that were there before → the strongest mode that it held on them (or waited for).
    pub(super) locks: BTreeMap<String, String>,
    /// Tables whose file is another one.
    pub(super) rewrites: BTreeSet<String>,
    /// Tables that were read from one end to the other.
    pub(super) scans: BTreeSet<String>,
    /// Indexes whose file is another one, or that were made again.
    pub(super) rebuilds: BTreeSet<String>,
    pub(super) blocks_reads: bool,
    pub(super) blocks_writes: bool,
    /// Concurrent forms: whether it waited for a transaction that had written before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) waits_for_writers: Option<bool>,
}

impl Row {
    /// Keeps the stronger mode.
    pub(super) fn lock(&mut self, relation: &str, mode: &str) {
        let kept = self.locks.entry(relation.to_owned()).or_default();
        if rank(mode) > rank(kept) {
            mode.clone_into(kept);
        }
    }

    /// What the modes mean for others (tables 13.2 and 13.3 of the manual).
    pub(super) fn judge_by_locks(&mut self) {
        self.blocks_reads = self.locks.values().any(|mode| rank(mode) >= 8);
        self.blocks_writes = self.locks.values().any(|mode| rank(mode) >= 5);
    }

    pub(super) fn refused(&mut self, error: &tokio_postgres::Error) -> anyhow::Result<()> {
        let Some(db) = error.as_db_error() else {
            anyhow::bail!("{error}");
        };
        self.sqlstate = Some(db.code().code().to_owned());
        self.message = Some(db.message().to_owned());
        Ok(())
    }
}

/// How strong a mode is, as pg_locks calls it.
pub(super) fn rank(mode: &str) -> u8 {
    match mode {
        "AccessShareLock" => 1,
        "RowShareLock" => 2,
        "RowExclusiveLock" => 3,
        "ShareUpdateExclusiveLock" => 4,
        "ShareLock" => 5,
        "ShareRowExclusiveLock" => 6,
        "ExclusiveLock" => 7,
        "AccessExclusiveLock" => 8,
        _ => 0,
    }
}
