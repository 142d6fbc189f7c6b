//! What a foreign key points at: columns that have a unique index over exactly them, or the server refuses it.

use super::Found;
use super::world::World;
use crate::class::Class;
use crate::form::{Action, ConstraintKind, CreateTable, Reference};
use crate::name::QualifiedName;
use crate::report::Level;

/// Of a table, when its own keys are known: it may point at itself.
pub(super) fn of_table(world: &World<'_>, table: &CreateTable, found: &mut Found) {
    for reference in &table.references {
        target(world, reference, found);
    }
}

/// Of an ALTER TABLE, when all its actions are done: the server makes the indexes first.
pub(super) fn of_actions(world: &World<'_>, actions: &[Action], found: &mut Found) {
    for action in actions {
        let reference = match action {
            Action::AddColumn { column, .. } => column.references.as_ref(),
            Action::AddConstraint { constraint } => match &constraint.kind {
                ConstraintKind::ForeignKey { references } => Some(references),
                _ => None,
            },
            _ => None,
        };
        if let Some(reference) = reference {
            target(world, reference, found);
        }
    }
}

fn target(world: &World<'_>, reference: &Reference, found: &mut Found) {
    if world.has_key_for(reference) != Some(false) {
        return;
    }
    let table: &QualifiedName = &reference.table;
    let message = if reference.columns.is_empty() {
        format!("{table} has no primary key (42704)")
    } else {
        format!(
            "{table} has no unique constraint over exactly ({}) (42830)",
            reference.columns.join(", ")
        )
    };
    found.push("foreign-key-target", Class::E, Level::Error, message);
}
