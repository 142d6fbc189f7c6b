//! Who may do what.

use serde::{Deserialize, Serialize};

use crate::name::Name;

/// A row security policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Policy {
    /// Of which table.
    pub table: Name,
    /// Its name there.
    pub name: String,
    /// PERMISSIVE; false: RESTRICTIVE.
    pub permissive: bool,
    /// `all`, `select`, `insert`, `update` or `delete`.
    pub command: String,
    /// For whom, sorted; `PUBLIC` is everybody.
    pub roles: Vec<String>,
    /// USING.
    pub using: Option<String>,
    /// WITH CHECK.
    pub check: Option<String>,
}

/// What one role may do with one object. What an owner may do by being the owner is not told, what was taken from it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Grant {
    /// `table`, `column`, `sequence`, `function`, `type`, `schema`, `default` (ALTER DEFAULT PRIVILEGES).
    pub kind: String,
    /// The object; a function's name has its argument types, a schema's stands in both places.
    pub object: Name,
    /// The column, when it is one's.
    pub column: Option<String>,
    /// The role, or `PUBLIC`.
    pub grantee: String,
    /// Sorted, as `SELECT` or `SELECT WITH GRANT OPTION`.
    pub privileges: Vec<String>,
}
