//! Types and sequences.

use serde::{Deserialize, Serialize};

use crate::name::Name;

/// A type that somebody made. A table's own row type, arrays and multiranges come with what they belong to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TypeDef {
    /// Its name.
    pub name: Name,
    /// What it is.
    pub kind: TypeKind,
    /// The role that owns it.
    pub owner: String,
    /// An enum's labels, in order.
    pub labels: Vec<String>,
    /// A composite's attributes, in order.
    pub attributes: Vec<Attribute>,
    /// What a domain is over, or a range's subtype.
    pub base: Option<String>,
    /// A domain's base type by its name: another domain may stand there.
    pub base_name: Option<Name>,
    /// A domain's NOT NULL.
    pub not_null: bool,
    /// A domain's default.
    pub default: Option<String>,
    /// A domain's collation, when it differs from its base's.
    pub collation: Option<Name>,
    /// A domain's checks, by name.
    pub constraints: Vec<DomainConstraint>,
}

/// A type's kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TypeKind {
    /// An enum.
    Enum,
    /// A composite type.
    Composite,
    /// A domain.
    Domain,
    /// A range.
    Range,
    /// A base type.
    Base,
}

/// An attribute of a composite type.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Attribute {
    /// Its name.
    pub name: String,
    /// As a column's.
    pub data_type: String,
    /// When it differs from the type's own.
    pub collation: Option<Name>,
}

/// A check of a domain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DomainConstraint {
    /// Its name.
    pub name: String,
    /// As the server prints it, without NOT VALID.
    pub definition: String,
    /// All rows were looked at.
    pub validated: bool,
}

/// A sequence. Its value is data and not read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sequence {
    /// Its name.
    pub name: Name,
    /// The role that owns it.
    pub owner: String,
    /// `bigint`, …
    pub data_type: String,
    /// START.
    pub start: i64,
    /// MINVALUE.
    pub min: i64,
    /// MAXVALUE.
    pub max: i64,
    /// INCREMENT.
    pub increment: i64,
    /// CACHE.
    pub cache: i64,
    /// CYCLE.
    pub cycle: bool,
    /// The column that it goes with: its table and name.
    pub owned_by: Option<(Name, String)>,
    /// It is an identity column's.
    pub identity: bool,
    /// UNLOGGED (PostgreSQL 15).
    pub unlogged: bool,
}
