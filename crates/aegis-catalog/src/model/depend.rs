//! What hangs on a table or a column.

use serde::{Deserialize, Serialize};

use crate::name::Name;

/// One object that would be in the way of a change to another.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dependence {
    /// The relation that is depended on.
    pub on: Name,
    /// Its column; `None`: the relation as a whole.
    pub column: Option<String>,
    /// What depends.
    pub kind: DependentKind,
    /// Its name; for a trigger, policy, constraint or default its table's.
    pub dependent: Name,
    /// The name within that table.
    pub part: Option<String>,
}

/// What kind of object depends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DependentKind {
    /// An index.
    Index,
    /// A constraint of the table itself.
    Constraint,
    /// A foreign key, of another table or of the same.
    ForeignKey,
    /// A default's or a generated column's expression.
    Expression,
    /// A view's or materialised view's query.
    View,
    /// A rule.
    Rule,
    /// A trigger.
    Trigger,
    /// A policy.
    Policy,
    /// A function whose body or signature the server tracks.
    Function,
    /// A function in whose body the name stands as text: may be another thing of the same name.
    FunctionText,
    /// A publication.
    Publication,
    /// Extended statistics.
    Statistics,
    /// A sequence that goes with the column.
    Sequence,
    /// A partition or a child by INHERITS.
    Child,
}
