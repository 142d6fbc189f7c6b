//! Constraints of tables. NOT NULL is told with its column, a domain's with its type.

use serde::{Deserialize, Serialize};

use crate::name::Name;

/// A constraint of a table.
#[expect(
    clippy::struct_excessive_bools,
    reason = "they are columns of pg_constraint"
)]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Constraint {
    /// Of which table.
    pub table: Name,
    /// Its name in that table.
    pub name: String,
    /// What it is.
    pub kind: ConstraintKind,
    /// As the server prints it, without what the fields beside it tell (validity, deferral, enforcement).
    pub definition: String,
    /// All rows were looked at.
    pub validated: bool,
    /// False: NOT ENFORCED (PostgreSQL 18).
    pub enforced: bool,
    /// DEFERRABLE.
    pub deferrable: bool,
    /// INITIALLY DEFERRED.
    pub deferred: bool,
    /// NO INHERIT.
    pub no_inherit: bool,
    /// The table has it by itself, not only from a parent.
    pub local: bool,
    /// The columns it names, in order; for CHECK those in its expression.
    pub columns: Vec<String>,
    /// A foreign key's other table.
    pub references: Option<Name>,
    /// The columns there.
    pub referenced_columns: Vec<String>,
    /// The index that it rests on.
    pub index: Option<Name>,
    /// The constraint of the partitioned table that it belongs to: its table and name.
    pub parent: Option<(Name, String)>,
}

/// A constraint's kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConstraintKind {
    /// CHECK.
    Check,
    /// FOREIGN KEY.
    Foreign,
    /// PRIMARY KEY.
    Primary,
    /// UNIQUE.
    Unique,
    /// EXCLUDE.
    Exclusion,
    /// CREATE CONSTRAINT TRIGGER.
    Trigger,
}
