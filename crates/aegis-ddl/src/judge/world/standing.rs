//! What the set surely made and took away by no statement since, by name. Making it again is refused by the server.
//!
//! Invariants: only what runs for sure is noted; where something may have been dropped or moved that nobody can name, all is forgotten.

use std::collections::BTreeMap;

use aegis_catalog::Name;

use super::World;

/// Something with a name that there can be once.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::judge) enum Thing {
    /// A table, a view, an index, a sequence: they share their names.
    Relation(Name),
    /// A type or a domain.
    Type(Name),
    /// A schema.
    Schema(String),
    /// A column of a table.
    Column(Name, String),
    /// A constraint of a table.
    Constraint(Name, String),
    /// The primary key of a table.
    PrimaryKey(Name),
    /// A trigger of a table.
    Trigger(Name, String),
    /// A policy of a table.
    Policy(Name, String),
}

impl Thing {
    /// The table whose part it is.
    fn table(&self) -> Option<&Name> {
        match self {
            Self::Column(table, _)
            | Self::Constraint(table, _)
            | Self::PrimaryKey(table)
            | Self::Trigger(table, _)
            | Self::Policy(table, _) => Some(table),
            Self::Relation(_) | Self::Type(_) | Self::Schema(_) => None,
        }
    }

    /// For people, with what the server says.
    pub(in crate::judge) fn told(&self) -> (String, &'static str) {
        match self {
            Self::Relation(name) => (format!("{name}"), "42P07"),
            Self::Type(name) => (format!("the type {name}"), "42710"),
            Self::Schema(name) => (format!("the schema {name}"), "42P06"),
            Self::Column(table, name) => (format!("the column {table}.{name}"), "42701"),
            Self::Constraint(table, name) => (format!("the constraint {name} of {table}"), "42710"),
            Self::PrimaryKey(table) => (format!("a primary key of {table}"), "42P16"),
            Self::Trigger(table, name) => (format!("the trigger {name} of {table}"), "42710"),
            Self::Policy(table, name) => (format!("the policy {name} of {table}"), "42710"),
        }
    }
}

/// Since when something stands.
#[derive(Debug, Clone)]
struct Since {
    deployment: usize,
    /// The table whose index it is.
    of: Option<Name>,
}

/// All that stands.
#[derive(Debug, Clone, Default)]
pub(in crate::judge) struct Standing {
    things: BTreeMap<Thing, Since>,
}

impl World<'_> {
    /// Whether the set made it. Some(true): in this file, or in a change.
    pub(in crate::judge) fn stands(&self, thing: &Thing) -> Option<bool> {
        let since = self.standing.things.get(thing)?;
        Some(since.deployment == self.deployment)
    }

    /// It is made; `of` is the table whose index it is.
    pub(in crate::judge) fn made_thing(&mut self, thing: Thing, of: Option<Name>) {
        let since = Since {
            deployment: self.deployment,
            of,
        };
        self.standing.things.insert(thing, since);
    }

    /// It goes, and of a table what is its part.
    pub(in crate::judge) fn took(&mut self, thing: &Thing) {
        self.standing.things.remove(thing);
        if let Thing::Relation(table) = thing {
            self.standing.things.retain(|one, since| {
                one.table() != Some(table) && since.of.as_ref() != Some(table)
            });
        }
    }

    /// Constraints and indexes of a table, of which nobody knows which ones went with something else.
    pub(in crate::judge) fn took_what_hangs_on(&mut self, table: &Name) {
        self.standing.things.retain(|one, since| {
            let hangs =
                matches!(one, Thing::Constraint(of, _) | Thing::PrimaryKey(of) if of == table);
            !hangs && since.of.as_ref() != Some(table)
        });
    }

    /// A table has another name, and its parts with it.
    pub(in crate::judge) fn moved_table(&mut self, from: &Name, to: &Name) {
        let things = std::mem::take(&mut self.standing.things);
        let renamed = |name: Name| if name == *from { to.clone() } else { name };
        self.standing.things = things
            .into_iter()
            .map(|(thing, since)| {
                let thing = match thing {
                    Thing::Relation(name) => Thing::Relation(renamed(name)),
                    Thing::Column(table, name) => Thing::Column(renamed(table), name),
                    Thing::Constraint(table, name) => Thing::Constraint(renamed(table), name),
                    Thing::PrimaryKey(table) => Thing::PrimaryKey(renamed(table)),
                    Thing::Trigger(table, name) => Thing::Trigger(renamed(table), name),
                    Thing::Policy(table, name) => Thing::Policy(renamed(table), name),
                    other @ (Thing::Type(_) | Thing::Schema(_)) => other,
                };
                let of = since.of.map(renamed);
                (thing, Since { of, ..since })
            })
            .collect();
    }

    /// Nobody knows any more what stands.
    pub(in crate::judge) fn forgets_what_stands(&mut self) {
        self.standing.things.clear();
    }

    /// Whether a statement ran a function of the set.
    pub(in crate::judge) fn ran_a_body(&self) -> bool {
        !self.entered.is_empty()
    }
}
