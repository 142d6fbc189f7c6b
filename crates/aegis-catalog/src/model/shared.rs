//! What stands beside tables: schemas, extensions, publications, extended statistics, and kinds that are only known to exist.

use serde::{Deserialize, Serialize};

use crate::name::Name;

/// A schema.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Schema {
    /// Its name.
    pub name: String,
    /// The role that owns it.
    pub owner: String,
}

/// An extension; what it owns is not told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Extension {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Where its objects stand.
    pub schema: String,
}

/// A publication of logical replication.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Publication {
    /// Its name.
    pub name: String,
    /// The role that owns it.
    pub owner: String,
    /// FOR ALL TABLES.
    pub all_tables: bool,
    /// `insert`, `update`, `delete`, `truncate`.
    pub operations: Vec<String>,
    /// Changes of partitions are told as the root's.
    pub via_root: bool,
    /// Named tables.
    pub tables: Vec<PublishedTable>,
    /// TABLES IN SCHEMA, sorted.
    pub schemas: Vec<String>,
}

/// A table in a publication.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedTable {
    /// Which one.
    pub table: Name,
    /// Its columns in order, when they are named.
    pub columns: Option<Vec<String>>,
    /// The row filter.
    pub filter: Option<String>,
}

/// Extended statistics.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Statistics {
    /// Their name.
    pub name: Name,
    /// Of which table.
    pub table: Name,
    /// As the server prints it.
    pub definition: String,
}

/// An object of a kind that is not modelled: only that it exists is known and compared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Other {
    /// The server's word for its kind, as `operator`.
    pub kind: String,
    /// The server's name for it.
    pub identity: String,
    /// Its schema, where it has one.
    pub schema: Option<String>,
}
