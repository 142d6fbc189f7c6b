//! `targets.toml`: one run over many databases, or over many schemas of one.
//!
//! Invariants: every target is named before the first one is touched; no two have one name; a target that was not tried is told
//! as such and never as done.
//!
//! Never: a password in a message.

mod each;
mod file;
mod resolve;

use serde::{Deserialize, Serialize};

use crate::ledger::{LedgerName, belongs_to};

pub use each::{Each, each};
pub use file::read;
pub use resolve::resolve;

/// The file beside `migrations.lock`.
pub const TARGETS_FILE: &str = "targets.toml";

/// Where a run goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Targets {
    /// So many at once.
    pub parallel: usize,
    /// When no further one is begun.
    pub stop: Stop,
    /// The databases that are named.
    pub targets: Vec<Named>,
    /// The databases that a query names.
    pub queried: Vec<Queried>,
}

/// When no further target is begun. Those that are under way are finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Stop {
    /// After the first failure.
    First,
    /// After so many failures.
    Failures(usize),
    /// After none.
    Never,
}

impl Stop {
    /// Whether to stop after so many failures.
    pub const fn after(self, failures: usize) -> bool {
        match self {
            Self::First => failures >= 1,
            Self::Failures(most) => failures >= most,
            Self::Never => false,
        }
    }
}

/// `[[target]]`: a database by its URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// How results call it.
    pub name: String,
    /// The environment variable with its URL.
    pub url_env: String,
    /// One schema of it, which stands for that of the changes.
    pub schema: Option<String>,
}

/// `[[query]]`: databases of one server, or schemas of one database, by a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Queried {
    /// What stands before each name in results.
    pub name: String,
    /// The environment variable with the URL of the database that is asked; the others are on the same server, by the same role.
    pub url_env: String,
    /// A query of one text column: names of databases.
    pub databases: Option<String>,
    /// A query of one text column: names of schemas of the database that is asked.
    pub schemas: Option<String>,
    /// The line of `schemas`, from 1; 0 without one.
    pub schemas_line: usize,
}

/// Why a schema can be no tenant's; none when it can.
pub(crate) fn not_a_tenant(schema: &str) -> Option<String> {
    let whose = match schema {
        "aegis" => "the engine",
        _ => belongs_to(schema)?,
    };
    Some(format!(
        "the schema {schema}, which belongs to {whose}: changes for a tenant would be made among its tables"
    ))
}

/// What to do about it.
pub(crate) const NAME_TENANTS: &str = "name only schemas of tenants";

/// One database, or one schema of one, to run on.
#[derive(Clone, PartialEq, Eq)]
pub struct Target {
    /// How results call it.
    pub name: String,
    /// Where it is.
    pub url: String,
    /// The schema that stands for that of the changes. None: the changes say it.
    pub schema: Option<String>,
}

impl Target {
    /// Its books.
    pub fn ledger(&self) -> LedgerName {
        match &self.schema {
            Some(schema) => LedgerName::of_schema(schema),
            None => LedgerName::Application,
        }
    }
}

impl std::fmt::Debug for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Target")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}
