//! Indexes.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::name::Name;

/// An index.
#[expect(
    clippy::struct_excessive_bools,
    reason = "they are columns of pg_index"
)]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Index {
    /// Its name.
    pub name: Name,
    /// Of which table.
    pub table: Name,
    /// `btree`, `gin`, …
    pub method: String,
    /// What it is built over, in order.
    pub keys: Vec<IndexKey>,
    /// INCLUDE columns.
    pub include: Vec<String>,
    /// WHERE, as the server prints it.
    pub predicate: Option<String>,
    /// Refuses doubles.
    pub unique: bool,
    /// NULL counts as a double of NULL (PostgreSQL 15).
    pub nulls_not_distinct: bool,
    /// Of the primary key.
    pub primary: bool,
    /// Of an exclusion constraint.
    pub exclusion: bool,
    /// The constraint that it supports.
    pub constraint: Option<String>,
    /// Queries may use it (`indisvalid`).
    pub valid: bool,
    /// Writes keep it up (`indisready`).
    pub ready: bool,
    /// It is not being dropped (`indislive`).
    pub live: bool,
    /// CLUSTER's choice.
    pub clustered: bool,
    /// `None` is the database's own.
    pub tablespace: Option<String>,
    /// Storage parameters, sorted.
    pub options: Vec<String>,
    /// The partitioned index that it belongs to.
    pub parent: Option<Name>,
    /// The whole statement, as the server prints it.
    pub definition: String,
    /// `None` when sizes were not asked for.
    pub bytes: Option<i64>,
}

/// One thing that an index is built over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IndexKey {
    /// The column or the expression, as the server prints it.
    pub expression: String,
    /// The column, when it is one.
    pub column: Option<String>,
    /// The operator class.
    pub opclass: Name,
    /// The operator class's parameters.
    pub opclass_options: Vec<String>,
    /// Where the type has collations.
    pub collation: Option<Name>,
    /// DESC.
    pub descending: bool,
    /// NULLS FIRST.
    pub nulls_first: bool,
}

impl fmt::Display for IndexKey {
    /// As it stands in CREATE INDEX, with nothing left to a default.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.expression)?;
        if let Some(collation) = &self.collation {
            write!(f, " COLLATE {collation}")?;
        }
        write!(f, " {}", self.opclass)?;
        if !self.opclass_options.is_empty() {
            write!(f, " ({})", self.opclass_options.join(", "))?;
        }
        let direction = if self.descending { "DESC" } else { "ASC" };
        let nulls = if self.nulls_first { "FIRST" } else { "LAST" };
        write!(f, " {direction} NULLS {nulls}")
    }
}
