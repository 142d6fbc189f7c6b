//! Table-level locks. Source: postgresql.org/docs/18/explicit-locking.html, tables 13.2 and the list above it.

use serde::{Deserialize, Serialize};

use crate::name::QualifiedName;

/// A table-level lock mode; a later one conflicts with at least as much, but for SHARE against SHARE UPDATE EXCLUSIVE.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum LockMode {
    /// Taken by SELECT.
    AccessShare,
    /// Taken by SELECT FOR UPDATE.
    RowShare,
    /// Taken by INSERT, UPDATE, DELETE.
    RowExclusive,
    /// Lets rows be written; conflicts with itself.
    ShareUpdateExclusive,
    /// Keeps writers out.
    Share,
    /// Keeps writers out; conflicts with itself.
    ShareRowExclusive,
    /// Keeps all but readers out.
    Exclusive,
    /// Keeps everybody out.
    AccessExclusive,
}

impl LockMode {
    /// As in `LOCK TABLE … IN … MODE`.
    pub const fn sql(self) -> &'static str {
        match self {
            Self::AccessShare => "ACCESS SHARE",
            Self::RowShare => "ROW SHARE",
            Self::RowExclusive => "ROW EXCLUSIVE",
            Self::ShareUpdateExclusive => "SHARE UPDATE EXCLUSIVE",
            Self::Share => "SHARE",
            Self::ShareRowExclusive => "SHARE ROW EXCLUSIVE",
            Self::Exclusive => "EXCLUSIVE",
            Self::AccessExclusive => "ACCESS EXCLUSIVE",
        }
    }

    /// Whether a SELECT waits behind it.
    pub const fn blocks_reads(self) -> bool {
        matches!(self, Self::AccessExclusive)
    }

    /// Whether an INSERT, UPDATE or DELETE waits behind it.
    pub fn blocks_writes(self) -> bool {
        self >= Self::Share
    }
}

impl std::fmt::Display for LockMode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.sql())
    }
}

/// A lock on a relation.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Lock {
    /// On what.
    pub relation: QualifiedName,
    /// Which.
    pub mode: LockMode,
}
