//! What can go wrong when a database goes over from another tool.

use crate::change::Problems;

/// Why nothing was adopted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AdoptError {
    /// The folder cannot be read.
    #[error("{0}")]
    Folder(#[from] Problems),
    /// No ledger of the tool.
    #[error(
        "the database has no table {table}, so {tool} has applied nothing here; check --database-url, or name the table by --ledger SCHEMA.TABLE"
    )]
    NoLedger {
        /// The tool.
        tool: &'static str,
        /// Its table.
        table: String,
    },
    /// More than one.
    #[error("more than one ledger of {tool} is there: {found}; name one by --ledger SCHEMA.TABLE")]
    ManyLedgers {
        /// The tool.
        tool: &'static str,
        /// The tables.
        found: String,
    },
    /// Another tool writes the same schema.
    #[error(
        "two runners: {schema} has a ledger of {other} beside that of {tool}; end one of them first (drop or rename the table that is not used)"
    )]
    TwoRunners {
        /// The schema.
        schema: String,
        /// The tool that is adopted.
        tool: &'static str,
        /// The other one.
        other: &'static str,
    },
    /// The tool is at work.
    #[error(
        "{tool} is running now: process {pid} ({application}, {state}) holds its lock; wait for its end, or end it"
    )]
    Running {
        /// The tool.
        tool: &'static str,
        /// Process id of the server.
        pid: i32,
        /// What it calls itself.
        application: String,
        /// What it does.
        state: String,
    },
    /// Its ledger could not be locked.
    #[error(
        "{tool} is running now: its ledger {ledger} is locked by another session; wait for its end, or end it"
    )]
    LedgerLocked {
        /// The tool.
        tool: &'static str,
        /// Its table.
        ledger: String,
    },
    /// Something of it was cut short.
    #[error("{tool} has not finished {version}; mend it with {tool} first")]
    Unfinished {
        /// The tool.
        tool: &'static str,
        /// What was cut short.
        version: String,
    },
    /// Folder and ledger differ.
    #[error("the folder is not what {tool} has applied: {}; nothing was adopted: apply what is missing with {tool}, or put the files back", differences.join("; "))]
    Differs {
        /// The tool.
        tool: &'static str,
        /// Each difference.
        differences: Vec<String>,
    },
    /// The server refused.
    #[error("the database refused: {0}")]
    Sql(#[source] tokio_postgres::Error),
}

impl AdoptError {
    /// The exit code of `aegis migrate`.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Folder(problems) => problems.exit_code(),
            Self::NoLedger { .. } | Self::ManyLedgers { .. } => 17,
            Self::TwoRunners { .. } | Self::Running { .. } | Self::LedgerLocked { .. } => 10,
            Self::Unfinished { .. } | Self::Differs { .. } => 11,
            Self::Sql(_) => 20,
        }
    }
}
