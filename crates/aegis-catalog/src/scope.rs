//! How much of a database is read.
//!
//! Never part of any scope: the server's own schemas, temporary ones, the tool's own ledgers (`aegis_migrate`, `aegis_ledger`), and
//! what an extension owns.

use crate::name::Name;

/// What to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scope {
    pub(crate) schemas: Option<Vec<String>>,
    pub(crate) names: Option<Vec<Name>>,
    pub(crate) measured: bool,
}

impl Scope {
    /// Every schema of the database.
    pub fn everything() -> Self {
        Self {
            schemas: None,
            names: None,
            measured: true,
        }
    }

    /// These schemas, and what has no schema (extensions, publications, event triggers).
    pub fn schemas<S: Into<String>>(schemas: impl IntoIterator<Item = S>) -> Self {
        Self {
            schemas: Some(schemas.into_iter().map(Into::into).collect()),
            names: None,
            measured: true,
        }
    }

    /// Tables, indexes, views, sequences, functions and types of these names, whole: an index comes with its table, a partition
    /// with its tree, a table with what is built on it (views, foreign keys of other tables, sequences).
    pub fn objects(names: impl IntoIterator<Item = Name>) -> Self {
        Self {
            schemas: None,
            names: Some(names.into_iter().collect()),
            measured: true,
        }
    }

    /// Without sizes and rates: what a structure needs, and no file of a table is looked at.
    #[must_use]
    pub fn structure_only(mut self) -> Self {
        self.measured = false;
        self
    }
}
