//! What runs by itself: functions, triggers, rules.

use serde::{Deserialize, Serialize};

use crate::name::Name;

/// A function, procedure, aggregate or window function.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Function {
    /// Its name.
    pub name: Name,
    /// Types of its arguments: with the name they are its identity.
    pub arguments: String,
    /// `function`, `procedure`, `aggregate` or `window`.
    pub kind: String,
    /// The role that owns it.
    pub owner: String,
    /// Arguments with names, modes and defaults.
    pub signature: String,
    /// What it returns; a procedure returns nothing.
    pub result: Option<String>,
    /// `sql`, `plpgsql`, `c`, …
    pub language: String,
    /// `immutable`, `stable` or `volatile`.
    pub volatility: String,
    /// RETURNS NULL ON NULL INPUT.
    pub strict: bool,
    /// SECURITY DEFINER.
    pub security_definer: bool,
    /// LEAKPROOF.
    pub leakproof: bool,
    /// `unsafe`, `restricted` or `safe`.
    pub parallel: String,
    /// SET clauses, sorted.
    pub config: Vec<String>,
    /// COST.
    pub cost: f64,
    /// ROWS.
    pub rows: f64,
    /// SHA-256 of the body: source text, SQL body, library and symbol, or an aggregate's parts.
    pub body_sha256: String,
    /// Names of relations and columns of this catalog that stand in the body: a weak hint, for text that was not parsed.
    pub mentions: Vec<String>,
}

/// A trigger that somebody made; what the server makes for a foreign key is not told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trigger {
    /// Of which table.
    pub table: Name,
    /// Its name there.
    pub name: String,
    /// When it fires.
    pub enabled: Enabled,
    /// What it calls.
    pub function: Name,
    /// As the server prints it.
    pub definition: String,
    /// It was made by the partitioned table's trigger of the same name.
    pub inherited: bool,
}

/// A rewrite rule, except a view's own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Of which relation.
    pub table: Name,
    /// Its name there.
    pub name: String,
    /// When it counts.
    pub enabled: Enabled,
    /// As the server prints it.
    pub definition: String,
}

/// An event trigger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EventTrigger {
    /// Its name.
    pub name: String,
    /// The role that owns it.
    pub owner: String,
    /// `ddl_command_start`, …
    pub event: String,
    /// The commands it is for, sorted; empty is all.
    pub tags: Vec<String>,
    /// What it calls.
    pub function: Name,
    /// When it fires.
    pub enabled: Enabled,
}

/// In which sessions a trigger fires, by `session_replication_role`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Enabled {
    /// Ordinary sessions.
    Origin,
    /// Never.
    Disabled,
    /// Replicating sessions.
    Replica,
    /// All.
    Always,
}
