//! What the set surely made and took away by no statement since, by name. Making it again is refused by the server.
//!
//! Invariants: only what runs for sure is noted; where something may have been dropped or moved that nobody can name, all is forgotten.

use std::collections::{BTreeMap, BTreeSet};

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
    /// The table with which it goes: whose index, partition or own sequence it is.
    of: Option<Name>,
}

/// All that stands.
#[derive(Debug, Clone, Default)]
pub(in crate::judge) struct Standing {
    things: BTreeMap<Thing, Since>,
    /// Names of what is of the session: a permanent thing may have the same.
    temporary: BTreeSet<Name>,
    /// What the contract of a change takes away, with its deployment: later changes may run before it.
    until_contract: BTreeMap<Thing, usize>,
    in_contract: bool,
}

impl World<'_> {
    /// Whether the set made it. Some(true): in this file, or in a change.
    pub(in crate::judge) fn stands(&self, thing: &Thing) -> Option<bool> {
        let since = self.standing.things.get(thing)?;
        Some(since.deployment == self.deployment)
    }

    /// It is made; `of` is the table with which it goes.
    pub(in crate::judge) fn made_thing(&mut self, thing: Thing, of: Option<Name>) {
        let since = Since {
            deployment: self.deployment,
            of,
        };
        self.standing.until_contract.remove(&thing);
        self.standing.things.insert(thing, since);
    }

    /// It goes with this table from now on, if it stands.
    pub(in crate::judge) fn goes_with(&mut self, thing: &Thing, table: Name) {
        if let Some(since) = self.standing.things.get_mut(thing) {
            since.of = Some(table);
        }
    }

    /// It goes, and of a table what is its part, with the parts of that.
    pub(in crate::judge) fn took(&mut self, thing: &Thing) {
        if !self.standing.in_contract {
            self.standing.until_contract.remove(thing);
        }
        let mut going = vec![thing.clone()];
        while let Some(thing) = going.pop() {
            let since = self.standing.things.remove(&thing);
            let Thing::Relation(name) = &thing else {
                continue;
            };
            if let Some(table) = since.and_then(|since| since.of) {
                // The constraint of an index has its name.
                let constraint = Thing::Constraint(table, name.name.clone());
                self.standing.things.remove(&constraint);
            }
            self.standing.things.retain(|one, since| {
                if since.of.as_ref() == Some(name) {
                    going.push(one.clone());
                }
                one.table() != Some(name)
            });
        }
    }

    /// Constraints and indexes of a table, of which nobody knows which ones went with something else.
    pub(in crate::judge) fn took_what_hangs_on(&mut self, table: &Name) {
        let hangs = |(one, since): (&Thing, &Since)| {
            let is_its = matches!(one, Thing::Constraint(of, _) | Thing::PrimaryKey(of) if of == table)
                || since.of.as_ref() == Some(table);
            is_its.then(|| one.clone())
        };
        let hanging: Vec<Thing> = self.standing.things.iter().filter_map(hangs).collect();
        for thing in &hanging {
            self.took(thing);
        }
    }

    /// Triggers and policies of a table, one of which has another name.
    pub(in crate::judge) fn took_triggers_and_policies(&mut self, table: &Name) {
        self.standing.things.retain(
            |one, _| !matches!(one, Thing::Trigger(of, _) | Thing::Policy(of, _) if of == table),
        );
    }

    /// Of this name there is something of the session.
    pub(in crate::judge) fn made_temporary(&mut self, name: Name) {
        self.standing.temporary.insert(name);
    }

    /// Whether it, or what it is a part of, may be of the session.
    pub(in crate::judge) fn is_temporary(&self, thing: &Thing, of: Option<&Name>) -> bool {
        let relation = match thing {
            Thing::Relation(name) => Some(name),
            other => other.table(),
        };
        let is_of_session = |name: &Name| {
            name.schema.starts_with("pg_temp") || self.standing.temporary.contains(name)
        };
        relation.into_iter().chain(of).any(is_of_session)
    }

    /// A file begins, of a contract or not: later changes may run before a contract.
    pub(in crate::judge) const fn begins_contract(&mut self, is_one: bool) {
        self.standing.in_contract = is_one;
    }

    /// Whether this file is of a contract.
    pub(in crate::judge) const fn is_contract(&self) -> bool {
        self.standing.in_contract
    }

    /// This contract takes it away.
    pub(in crate::judge) fn stays_until_contract(&mut self, thing: Thing) {
        let deployment = self.deployment;
        self.standing.until_contract.insert(thing, deployment);
    }

    /// Whether the contract of an earlier change takes it away, and it is perhaps there until then.
    pub(in crate::judge) fn waits_for_contract(&self, thing: &Thing) -> bool {
        let until = self.standing.until_contract.get(thing);
        until.is_some_and(|of| *of < self.deployment) && self.is_there(thing) != Some(false)
    }

    /// What the catalog says of it.
    fn is_there(&self, thing: &Thing) -> Option<bool> {
        let catalog = self.catalog?;
        match thing {
            Thing::Relation(name) => Some(
                catalog.relation(name).is_some()
                    || catalog.index(name).is_some()
                    || catalog.sequence(name).is_some(),
            ),
            Thing::Column(table, column) => {
                let relation = catalog.relation(table);
                Some(relation.is_some_and(|one| one.column(column).is_some()))
            }
            _ => None,
        }
    }

    /// A table has another name, and its parts with it.
    pub(in crate::judge) fn moved_table(&mut self, from: &Name, to: &Name) {
        let known = self.standing.things.get(&Thing::Relation(from.clone()));
        if let Some(table) = known.and_then(|since| since.of.clone()) {
            // It may be the index of a constraint, which has its name.
            let constraint = Thing::Constraint(table, from.name.clone());
            self.standing.things.remove(&constraint);
        }
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
