//! Of which tables statements that are still to run may make a key.
//!
//! Invariants: what nobody can read may make everything, so that nothing is said of a key before its job looks; only what surely makes no
//! key of the columns in question is left out.

use std::collections::BTreeSet;

use aegis_catalog::Name;
use aegis_ddl::QualifiedName;
use aegis_ddl::form::{Action, ConstraintKind, Form, ObjectKind, ReindexOf};

use super::MovedRows;

/// The tables.
#[derive(Debug, Clone, Default)]
pub(super) struct Made {
    /// Of whatever there is.
    of_anything: bool,
    of: BTreeSet<Name>,
}

impl Made {
    /// Whether one of these tables is meant.
    pub(super) fn is_of(&self, tables: &[Name]) -> bool {
        self.of_anything || tables.iter().any(|table| self.of.contains(table))
    }

    /// What a file may make a key of.
    pub(super) fn add(&mut self, text: &str, schema: &str, rows: &MovedRows) {
        let Ok(script) = aegis_ddl::read(text) else {
            self.of_anything = true;
            return;
        };
        for statement in &script.statements {
            self.add_form(&statement.form, schema, rows);
        }
    }

    fn put(&mut self, table: &QualifiedName, schema: &str) {
        self.of.insert(table.resolve(schema));
    }

    fn add_form(&mut self, form: &Form, schema: &str, rows: &MovedRows) {
        match form {
            Form::Do { .. } | Form::Call { .. } | Form::Other { .. } => self.of_anything = true,
            Form::Select { calls, .. } => self.of_anything |= !calls.is_empty(),
            // The names after it may mean another schema.
            Form::Set { name, .. } => self.of_anything |= name.eq_ignore_ascii_case("search_path"),
            // ATTACH PARTITION makes the index of the whole table valid.
            Form::AlterOther { kind, .. } => self.of_anything |= *kind == ObjectKind::Index,
            Form::Reindex { target, of, .. } => match (target, of) {
                (Some(table), ReindexOf::Table) => self.put(table, schema),
                _ => self.of_anything = true,
            },
            // A table may come to the name, from another name or schema.
            Form::Rename { kind, on, .. } => match on {
                Some(table) => self.put(table, schema),
                None => self.of_anything |= *kind == ObjectKind::Table,
            },
            Form::SetSchema { kind, .. } => self.of_anything |= *kind == ObjectKind::Table,
            Form::CreateTable(create) => {
                self.put(&create.table, schema);
                for parent in create.partition_of.iter().chain(&create.inherits) {
                    self.put(parent, schema);
                }
            }
            Form::CreateTableAs { table } => self.put(table, schema),
            Form::CreateIndex(create) if create.unique => self.put(&create.table, schema),
            // Without the partition that has no index the others are a table with a key.
            Form::Drop { kind, names, .. } if *kind == ObjectKind::Table => {
                for name in names {
                    self.put(name, schema);
                }
            }
            Form::AlterTable { table, actions } => {
                for action in actions {
                    self.add_action(table, action, schema, rows);
                }
            }
            _ => {}
        }
    }

    fn add_action(
        &mut self,
        table: &QualifiedName,
        action: &Action,
        schema: &str,
        rows: &MovedRows,
    ) {
        match action {
            Action::AttachPartition { .. } | Action::SetSchema => self.of_anything = true,
            Action::RenameTable { to } => self.of_anything |= *to == rows.table.name,
            Action::Inherit { parent } | Action::NoInherit { parent } => self.put(parent, schema),
            _ if makes_none(action, &rows.key) => {}
            _ => self.put(table, schema),
        }
    }
}

/// Whether an action surely makes no key of these columns.
fn makes_none(action: &Action, key: &[String]) -> bool {
    let is_other = |column: &String| !key.contains(column);
    match action {
        Action::AddColumn { column, .. } => is_other(&column.name),
        Action::SetNotNull { column } => is_other(column),
        Action::RenameColumn { to, .. } => is_other(to),
        Action::AddConstraint { constraint } => matches!(
            constraint.kind,
            ConstraintKind::Check { .. } | ConstraintKind::ForeignKey { .. }
        ),
        Action::DropColumn { .. }
        | Action::SetDefault { .. }
        | Action::DropDefault { .. }
        | Action::DropNotNull { .. }
        | Action::DropConstraint { .. }
        | Action::ValidateConstraint { .. }
        | Action::AlterConstraint { .. }
        | Action::RenameConstraint { .. }
        | Action::SetStatistics
        | Action::SetStorage
        | Action::SetCompression
        | Action::EnableTrigger { .. }
        | Action::DisableTrigger { .. }
        | Action::EnableRowSecurity
        | Action::ForceRowSecurity
        | Action::DisableRowSecurity
        | Action::ReplicaIdentity { .. }
        | Action::ClusterOn
        | Action::Owner
        | Action::Options { .. } => true,
        _ => false,
    }
}
