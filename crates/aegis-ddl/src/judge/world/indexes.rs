//! Indexes and constraints, by the set and by the catalog: what is surely not there, and what the server refuses.
//!
//! Invariants: where the set may have made or moved something of a name that is not known here, nothing is said to be missing.

use std::collections::{BTreeMap, BTreeSet};

use aegis_catalog::{Index, Name};

use super::World;
use crate::form::{Action, CreateIndex, Form};
use crate::name::QualifiedName;
use crate::statement::Statement;

/// An index that the set made.
#[derive(Debug, Clone)]
pub(in crate::judge) struct Told {
    table: Name,
    unique: bool,
    /// Why it can be no constraint's.
    unfit: Option<&'static str>,
}

/// Which names the set made and moved.
#[derive(Debug, Clone, Default)]
pub(in crate::judge) struct Names {
    /// Every index that the set made by a name.
    told_indexes: BTreeMap<Name, Told>,
    /// Whether the set may have made or moved indexes, tables or constraints of names that are not known here.
    renames: bool,
    /// Tables that the set altered otherwise than by a drop.
    altered: BTreeSet<Name>,
    /// Tables that got a key by a statement of its own.
    keyed: BTreeSet<Name>,
    /// Whether tables were renamed or moved, or something of the set could not be read.
    moved: bool,
    /// Whether something of the set could not be read.
    unread: bool,
}

impl Names {
    /// A table got a key.
    pub(super) fn changed(&mut self, table: &Name) {
        self.keyed.insert(table.clone());
    }

    /// Whether the catalog may no longer say what the table is like.
    pub(super) fn has_changed(&self, table: &Name) -> bool {
        self.moved || self.altered.contains(table) || self.keyed.contains(table)
    }

    /// Whether something of the set could not be read.
    pub(super) const fn unread(&self) -> bool {
        self.unread
    }
}

impl World<'_> {
    /// CREATE INDEX.
    pub(in crate::judge) fn told_index(&mut self, index: &CreateIndex) {
        let table = self.name(&index.table);
        let Some(name) = &index.index else {
            self.names.renames = true;
            return;
        };
        let unfit = if !index.unique {
            Some("is not a unique index")
        } else if index.partial {
            Some("is a partial index")
        } else if index.columns.len() != index.keys {
            Some("is over an expression")
        } else {
            None
        };
        let told = Told {
            table: table.clone(),
            unique: index.unique,
            unfit,
        };
        self.names
            .told_indexes
            .insert(Name::new(table.schema, &*name.name), told);
    }

    /// A statement ran: whether names may be other ones since.
    pub(in crate::judge) fn passed_names(&mut self, statement: &Statement, unread: bool) {
        let mut moved = unread;
        self.names.unread |= unread;
        match &statement.form {
            Form::Rename { .. } | Form::SetSchema { .. } | Form::Do { .. } | Form::Call { .. } => {
                moved = true;
            }
            Form::CreateTable(_) | Form::CreateTableAs { .. } => self.names.renames = true,
            Form::DropIndex { indexes, .. } => {
                for index in indexes {
                    let name = self.name(index);
                    self.names.told_indexes.remove(&name);
                }
            }
            Form::AlterTable { table, actions } => {
                let keeps = |action: &Action| {
                    matches!(
                        action,
                        Action::DropConstraint { .. } | Action::ValidateConstraint { .. }
                    )
                };
                moved |= actions.iter().any(|action| {
                    matches!(
                        action,
                        Action::RenameTable { .. }
                            | Action::SetSchema
                            | Action::AttachPartition { .. }
                    )
                });
                if !actions.iter().all(keeps) {
                    let name = self.name(table);
                    self.names.altered.insert(name);
                }
            }
            _ => {}
        }
        if moved {
            self.names.renames = true;
            self.names.moved = true;
            // Which name is whose now?
            self.names.told_indexes.clear();
        }
    }

    /// Whether the catalog was read, and neither it nor the set has such an index.
    pub(in crate::judge) fn has_no_index(&self, index: &QualifiedName) -> bool {
        !self.names.renames
            && self.is_absent(index)
            && !self.names.told_indexes.contains_key(&self.name(index))
    }

    /// Whether the catalog knows the table, and neither it nor the set has such a constraint.
    pub(in crate::judge) fn has_no_constraint(
        &self,
        table: &QualifiedName,
        constraint: &str,
    ) -> bool {
        let name = self.name(table);
        let (Some(catalog), Some(relation)) = (self.catalog, self.relation(table)) else {
            return false;
        };
        !self.names.renames
            && !self.names.altered.contains(&name)
            && !catalog
                .constraints_of(&name)
                .any(|one| one.name == constraint)
            && !relation
                .columns
                .iter()
                .any(|column| column.not_null_constraint.as_deref() == Some(constraint))
    }

    /// Whether the column surely may be NULL.
    pub(in crate::judge) fn may_be_null(&self, table: &QualifiedName, column: &str) -> bool {
        let name = self.name(table);
        !self.names.renames
            && !self.names.altered.contains(&name)
            && self.column(table, column).is_some_and(|one| !one.not_null)
    }

    /// Whether the column surely has a default.
    pub(in crate::judge) fn has_default(&self, table: &QualifiedName, column: &str) -> bool {
        let name = self.name(table);
        !self.names.renames
            && !self.names.altered.contains(&name)
            && self
                .column(table, column)
                .is_some_and(|one| one.default.is_some())
    }

    /// An index of the catalog, unless the set may have made it another one.
    fn listed(&self, name: &Name) -> Option<&Index> {
        let index = self.catalog?.index(name)?;
        let moved = self.names.renames || self.gone.contains(&index.table);
        (!moved && !self.names.told_indexes.contains_key(name)).then_some(index)
    }

    /// Why the server does not take this index for a constraint of the table. None: it does, or nobody knows.
    pub(in crate::judge) fn unfit(&self, table: &QualifiedName, index: &str) -> Option<String> {
        let table = self.name(table);
        let name = Name::new(table.schema.clone(), index);
        if let Some(told) = self.names.told_indexes.get(&name) {
            if told.table != table && !self.names.renames {
                return Some(format!("is an index of {}", told.table));
            }
            return told.unfit.map(str::to_owned);
        }
        let index = self.listed(&name)?;
        let why = if index.table != table {
            return Some(format!("is an index of {}", index.table));
        } else if !index.unique {
            "is not a unique index"
        } else if index.predicate.is_some() {
            "is a partial index"
        } else if index.keys.iter().any(|key| key.column.is_none()) {
            "is over an expression"
        } else {
            return None;
        };
        Some(why.to_owned())
    }

    /// The constraint that an index belongs to: then DROP INDEX is refused.
    pub(in crate::judge) fn constraint_of(&self, index: &QualifiedName) -> Option<String> {
        let index = self.listed(&self.name(index))?;
        let constraint = index.constraint.clone()?;
        let key = (index.table.clone(), constraint);
        (!self.dropped.contains(&key)).then_some(key.1)
    }

    /// Whether a materialized view surely has no unique index over all its rows: then CONCURRENTLY is refused.
    pub(in crate::judge) fn has_no_row_key(&self, view: &QualifiedName) -> bool {
        let name = self.name(view);
        let (Some(catalog), Some(_)) = (self.catalog, self.relation(view)) else {
            return false;
        };
        !self.names.renames
            && !self.gone.contains(&name)
            && !self
                .names
                .told_indexes
                .values()
                .any(|told| told.table == name && told.unique)
            && !catalog.indexes_of(&name).any(|index| {
                index.unique
                    && index.predicate.is_none()
                    && index.keys.iter().all(|key| key.column.is_some())
            })
    }
}
