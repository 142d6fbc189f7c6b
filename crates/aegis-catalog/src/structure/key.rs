//! Which element of a structure is meant.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::name::{Name, shown};

/// An element's name among all elements.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Key {
    /// What it is.
    pub kind: Kind,
    /// Its schema; empty for what has none.
    pub schema: String,
    /// Its name, or its table's.
    pub name: String,
    /// Its name within its table; a function's argument types; whom a grant is for. Empty where `name` says it all.
    pub part: String,
}

/// What an element is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A schema.
    Schema,
    /// A table, view or the like.
    Relation,
    /// A column.
    Column,
    /// An index.
    Index,
    /// A constraint of a table.
    Constraint,
    /// A trigger.
    Trigger,
    /// A rule.
    Rule,
    /// A policy.
    Policy,
    /// A function.
    Function,
    /// A type.
    Type,
    /// A sequence.
    Sequence,
    /// What a role may do with an object.
    Grant,
    /// An extension.
    Extension,
    /// A publication.
    Publication,
    /// An event trigger.
    EventTrigger,
    /// Extended statistics.
    Statistics,
    /// Only known to exist.
    Other,
}

impl Kind {
    /// The word that stands in the ledger.
    pub fn word(self) -> &'static str {
        match self {
            Self::Schema => "schema",
            Self::Relation => "relation",
            Self::Column => "column",
            Self::Index => "index",
            Self::Constraint => "constraint",
            Self::Trigger => "trigger",
            Self::Rule => "rule",
            Self::Policy => "policy",
            Self::Function => "function",
            Self::Type => "type",
            Self::Sequence => "sequence",
            Self::Grant => "grant",
            Self::Extension => "extension",
            Self::Publication => "publication",
            Self::EventTrigger => "event_trigger",
            Self::Statistics => "statistics",
            Self::Other => "other",
        }
    }

    /// The kind of a word.
    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.word() == word)
    }

    /// Every kind.
    pub const ALL: [Self; 17] = [
        Self::Schema,
        Self::Relation,
        Self::Column,
        Self::Index,
        Self::Constraint,
        Self::Trigger,
        Self::Rule,
        Self::Policy,
        Self::Function,
        Self::Type,
        Self::Sequence,
        Self::Grant,
        Self::Extension,
        Self::Publication,
        Self::EventTrigger,
        Self::Statistics,
        Self::Other,
    ];
}

impl Key {
    /// An element that its name says.
    pub fn new(kind: Kind, name: &Name) -> Self {
        Self::part(kind, name, "")
    }

    /// An element within another.
    pub fn part(kind: Kind, name: &Name, part: &str) -> Self {
        Self {
            kind,
            schema: name.schema.clone(),
            name: name.name.clone(),
            part: part.to_owned(),
        }
    }

    /// The name in its schema: its own, or its table's.
    pub fn holder(&self) -> Name {
        Name::new(&*self.schema, &*self.name)
    }

    /// Whether it lives and dies with a relation.
    pub(crate) fn relation(&self) -> Option<Self> {
        match self.kind {
            Kind::Column | Kind::Constraint | Kind::Trigger | Kind::Rule | Kind::Policy => {
                Some(Self::new(Kind::Relation, &self.holder()))
            }
            _ => None,
        }
    }
}

impl fmt::Display for Key {
    /// For people: `column email of app.users`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let holder = self.holder();
        let part = &self.part;
        match self.kind {
            Kind::Schema => write!(f, "schema {}", shown(&self.name)),
            Kind::Extension | Kind::Publication => {
                write!(f, "{} {}", self.kind.word(), shown(&self.name))
            }
            Kind::EventTrigger => write!(f, "event trigger {}", shown(&self.name)),
            Kind::Column | Kind::Constraint | Kind::Trigger | Kind::Rule | Kind::Policy => {
                write!(f, "{} {} of {holder}", self.kind.word(), shown(part))
            }
            Kind::Function => write!(f, "function {holder}({part})"),
            Kind::Grant => write!(f, "grant on {holder}: {part}"),
            Kind::Other => write!(f, "{part} {}", self.name),
            Kind::Relation | Kind::Index | Kind::Type | Kind::Sequence | Kind::Statistics => {
                write!(f, "{} {holder}", self.kind.word())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Kind;

    #[test]
    fn every_kind_has_a_word_of_its_own() {
        for kind in Kind::ALL {
            assert_eq!(Kind::of_word(kind.word()), Some(kind));
        }
    }
}
