//! `adopt`: a database that another tool has migrated goes over to this one.
//!
//! Invariants: nothing is adopted that the other tool has not finished, or that is not in its folder as it was applied; its
//! ledger is kept as it was, and shut, so that two runners never write one schema; all of it is one transaction.
//!
//! Never: a statement of the other tool's migrations on a database that has them.

mod error;
mod folder;
mod ledger;
mod take;

pub use error::AdoptError;
pub use folder::{AdoptedChange, write_change};
pub use ledger::{Applied, Ledger, applied, find};
pub use take::{Taken, take, undo};

use sha2::{Digest as _, Sha384};

use crate::foreign::{ForeignFile, Tool};

impl Tool {
    /// The table in which the tool keeps what it has applied.
    pub const fn ledger_table(self) -> Option<&'static str> {
        match self {
            Self::Sqlx => Some("_sqlx_migrations"),
            Self::Refinery => Some("refinery_schema_history"),
            Self::Goose => Some("goose_db_version"),
            Self::Flyway => Some("flyway_schema_history"),
            Self::Rails => Some("schema_migrations"),
            _ => None,
        }
    }

    /// The advisory lock that a run of the tool holds in a database, where it has one.
    pub fn lock_key(self, database: &str) -> Option<i64> {
        let crc = i64::from(crc32fast::hash(database.as_bytes()));
        match self {
            Self::Sqlx => Some(crc.wrapping_mul(0x3d32_ad9e)),
            Self::Rails => Some(crc.wrapping_mul(2_053_462_845)),
            // `lock.DefaultLockID`.
            Self::Goose => Some(4_097_083_626),
            _ => None,
        }
    }
}

/// The folder and the ledger say the same; each difference in words.
pub fn differences(tool: Tool, files: &[ForeignFile], applied: &[Applied]) -> Vec<String> {
    if tool == Tool::Rails {
        return folder::rails_differences(files, applied);
    }
    let mut found = Vec::new();
    for file in files {
        let shown = file.path.display();
        match applied.iter().find(|row| row.is_of(file)) {
            None => found.push(format!("{shown} was never applied")),
            Some(row) => {
                if tool == Tool::Sqlx && row.checksum.as_deref() != Some(&sha384_of(file)) {
                    found.push(format!(
                        "{shown} is not what was applied: its checksum differs"
                    ));
                }
            }
        }
    }
    for row in applied
        .iter()
        .filter(|row| !files.iter().any(|file| row.is_of(file)))
    {
        found.push(format!("{} was applied, and no file has it", row.named()));
    }
    found
}

/// sqlx hashes the bytes as they are.
fn sha384_of(file: &ForeignFile) -> String {
    use std::fmt::Write as _;
    let bytes = std::fs::read(&file.path).unwrap_or_default();
    Sha384::digest(&bytes)
        .iter()
        .fold(String::new(), |mut hex, byte| {
            // Into a string: cannot fail.
            write!(hex, "{byte:02x}").ok();
            hex
        })
}
