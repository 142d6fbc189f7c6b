//! ALTER TABLE, action by action.

mod constraint;
mod data_type;

use super::Found;
use super::world::{ServerWritten, World};
use super::{again, column, foreign_key, partition};
use crate::class::Class;
use crate::form::{Action, ConstraintKind, IdentityChange};
use crate::lock::LockMode;
use crate::name::QualifiedName;
use crate::report::Level;
use constraint::{add_constraint, drop_constraint, references, set_not_null};
use data_type::set_type;

/// One ALTER TABLE.
pub(super) fn judge(
    world: &mut World<'_>,
    table: &QualifiedName,
    actions: &[Action],
    transaction: usize,
    found: &mut Found,
) {
    let live = world.is_live(table);
    // The server drops first, wherever in the list it stands.
    for action in actions {
        if let Action::DropConstraint { constraint, .. } = action {
            world.dropped_constraint(table, constraint);
        }
    }
    for action in actions {
        if live {
            one(world, table, action, found);
        } else {
            of_new(world, table, action, found);
        }
        remember(world, table, action, transaction);
    }
    if live {
        identities(world, table, actions, found);
        scan_under_lock(world, table, actions, found);
    }
    foreign_key::of_actions(world, actions, found);
}

/// What an action on a table that nobody uses yet does to one that is in use.
fn of_new(world: &World<'_>, table: &QualifiedName, action: &Action, found: &mut Found) {
    if let Action::AttachPartition { partition, bound } = action {
        partition::attach(world, table, partition, bound.as_ref(), found);
    }
}

/// ADD GENERATED … AS IDENTITY where the server refuses it; the other actions of the statement are done by then.
fn identities(world: &World<'_>, table: &QualifiedName, actions: &[Action], found: &mut Found) {
    for action in actions {
        let Action::AddIdentity { column, .. } = action else {
            continue;
        };
        let drops =
            |one: &Action| matches!(one, Action::DropDefault { column: of } if of == column);
        let sets = |one: &Action| matches!(one, Action::SetNotNull { column: of } if of == column);
        let why = if world.may_be_null(table, column) && !actions.iter().any(sets) {
            "may be NULL"
        } else if world.has_default(table, column) && !actions.iter().any(drops) {
            "has a default"
        } else {
            continue;
        };
        found.push(
            "identity-change",
            Class::E,
            Level::Error,
            format!("the server refuses it (55000): {table}.{column} {why}"),
        );
    }
}

/// VALIDATE beside an action with a stronger lock: all of them hold that lock while it scans.
fn scan_under_lock(
    world: &World<'_>,
    table: &QualifiedName,
    actions: &[Action],
    found: &mut Found,
) {
    let strongest = actions.iter().map(crate::touch::of_action).max();
    let Some(mode) = strongest.filter(|mode| mode.blocks_writes()) else {
        return;
    };
    let level = if world.is_small(table) {
        Level::Notice
    } else {
        Level::Error
    };
    for action in actions {
        if let Action::ValidateConstraint { constraint } = action {
            found.push(
                "validate-in-same-transaction",
                Class::B,
                level,
                format!("{table} is scanned for {constraint} under the {} of another action: split them", mode.sql()),
            );
        }
    }
}

fn remember(world: &mut World<'_>, table: &QualifiedName, action: &Action, transaction: usize) {
    match action {
        Action::AddConstraint { constraint } if constraint.not_valid => {
            world.added_not_valid(table, constraint, transaction);
        }
        Action::ValidateConstraint { constraint } => world.validated(table, constraint),
        Action::AddConstraint { constraint } => match &constraint.kind {
            ConstraintKind::Unique { using_index: None } => {
                world.said_key(table, &constraint.columns);
            }
            ConstraintKind::PrimaryKey { using_index } => {
                if using_index.is_none() {
                    world.said_key(table, &constraint.columns);
                }
                for column in &constraint.columns {
                    world.said_not_null(table, column, true);
                }
                world.said_primary(table);
            }
            ConstraintKind::Check { .. } => {
                world.said_hung(table);
                if !constraint.not_enforced {
                    world.said_check(table, constraint.name.as_deref(), &constraint.terms);
                }
            }
            _ => {}
        },
        Action::AddColumn {
            column,
            if_not_exists,
        } => {
            world.added(table, column, *if_not_exists);
            let empty = !column.not_null
                && !column.identity
                && !column.data_type.base.name.contains("serial")
                && column.generated.is_none()
                && column
                    .default
                    .as_ref()
                    .is_none_or(|default| default.is_null);
            world.added_column(table, &column.name, empty);
        }
        Action::DropColumn { column, .. } => world.dropped_column(table, column),
        Action::RenameColumn { column, to } => {
            world.renamed_column(table, column, to);
            world.dropped_column(table, column);
        }
        Action::DropExpression { column } | Action::ChangeIdentity { column, .. } => {
            world.said_written(table, column, written_after(action));
        }
        Action::AddIdentity {
            column,
            always: true,
        } => world.said_written(table, column, written_after(action)),
        Action::SetType { column, to, .. } => world.said_column(table, column, to),
        Action::SetNotNull { column } => {
            world.hinted(table, column);
            world.said_not_null(table, column, true);
        }
        Action::DropNotNull { column } => world.said_not_null(table, column, false),
        Action::RenameTable { to } => world.renamed(table, to),
        _ => {}
    }
}

/// Whether the server takes a value for the column after this.
const fn written_after(action: &Action) -> Option<ServerWritten> {
    match action {
        Action::AddIdentity { always: true, .. }
        | Action::ChangeIdentity {
            change: IdentityChange::Always,
            ..
        } => Some(ServerWritten::Identity),
        _ => None,
    }
}

fn one(world: &World<'_>, table: &QualifiedName, action: &Action, found: &mut Found) {
    let breaks = |found: &mut Found, rule, message: String| {
        found.push(rule, Class::D, Level::Error, message);
    };
    match action {
        Action::AddColumn {
            column,
            if_not_exists,
        } => column::add(world, table, column, *if_not_exists, found),
        Action::DropColumn { column, .. } => breaks(
            found,
            "drop-column",
            format!("{table}.{column} is gone for programs that name it"),
        ),
        Action::RenameColumn { column, to } => breaks(
            found,
            "rename",
            format!("{table}.{column} is {to} from the next moment on"),
        ),
        Action::RenameTable { .. }
            if world.together && world.comes_again(&again::Made::view(world, table)) =>
        {
            found.push(
                "rename",
                Class::D,
                Level::Warning,
                format!("a view takes the place of {table} below: programs that write through it need one that can be written"),
            );
        }
        Action::RenameTable { to } => breaks(
            found,
            "rename",
            format!("{table} is {to} from the next moment on"),
        ),
        Action::RenameConstraint { .. } => found.push(
            "rename",
            Class::D,
            Level::Notice,
            "programs that name the constraint (ON CONFLICT ON CONSTRAINT, error handling) meet another name",
        ),
        Action::SetSchema => found.push(
            "set-schema",
            Class::D,
            Level::Error,
            format!("{table} is in another schema from the next moment on"),
        ),
        Action::SetType {
            column,
            to,
            using,
            collated,
        } => set_type(world, table, column, to, (*using, *collated), found),
        Action::SetDefault { .. } => found.push(
            "set-default",
            Class::D,
            Level::Notice,
            format!("INSERTs into {table} that leave the column out write another value"),
        ),
        Action::DropDefault { column }
            if world.is_new_column(table, column)
                && world.is_not_null(table, column) == Some(true) =>
        {
            found.push(
                "add-required-column",
                Class::D,
                Level::Error,
                format!("{column} is new, NOT NULL and without a default: INSERTs into {table} that do not know it fail"),
            );
        }
        Action::DropDefault { column }
            if world.comes_again(&again::Made::default(world, table, column)) =>
        {
            found.push(
                "set-default",
                Class::D,
                Level::Notice,
                format!("INSERTs into {table} that leave the column out write another value"),
            );
        }
        Action::DropDefault { column } => found.push(
            "drop-default",
            Class::D,
            Level::Error,
            format!("INSERTs into {table} that leave {column} out write NULL or fail"),
        ),
        Action::SetNotNull { column } => set_not_null(world, table, column, found),
        Action::DropNotNull { .. }
        | Action::SetStatistics
        | Action::SetStorage
        | Action::SetCompression
        | Action::ClusterOn
        | Action::Owner
        | Action::ReplicaIdentity { nothing: false }
        | Action::EnableTrigger { .. }
        | Action::Options { .. } => {}
        Action::ReplicaIdentity { nothing: true } => breaks(
            found,
            "replica-identity",
            format!("UPDATE and DELETE of {table} fail where it is published"),
        ),
        Action::DropExpression { column } => found.push(
            "drop-default",
            Class::D,
            Level::Error,
            format!("{table}.{column} is no longer computed: programs that do not write it leave NULL"),
        ),
        Action::NoInherit { parent } => breaks(
            found,
            "detach-partition",
            format!("queries on {parent} lose the rows of {table}"),
        ),
        Action::ChangeIdentity {
            column,
            change: IdentityChange::Dropped,
        } => breaks(
            found,
            "identity-change",
            format!("INSERTs that leave {table}.{column} out fail"),
        ),
        Action::ChangeIdentity {
            column,
            change: IdentityChange::Always,
        } => breaks(
            found,
            "identity-change",
            format!("INSERTs that give {table}.{column} a value fail (428C9)"),
        ),
        Action::ChangeIdentity {
            column,
            change: IdentityChange::FromTheStart,
        } => breaks(
            found,
            "identity-change",
            format!("{table}.{column} gives numbers again that it gave before"),
        ),
        Action::AddIdentity {
            column,
            always: true,
        } if !world.is_new_column(table, column) => breaks(
            found,
            "identity-change",
            format!("INSERTs that give {table}.{column} a value fail (428C9), and it has no default that they could leave it to"),
        ),
        Action::AddIdentity { column, .. } | Action::ChangeIdentity { column, .. } => found.push(
            "identity-change",
            Class::D,
            Level::Warning,
            format!("INSERTs that give {table}.{column}, or leave it out, may fail"),
        ),
        Action::SetExpression { column } => found.push(
            "add-column-rewrite",
            Class::B,
            if world.is_small(table) {
                Level::Notice
            } else {
                Level::Error
            },
            format!("{table} is rewritten for the new expression of {column}"),
        ),
        Action::AddConstraint { constraint } => add_constraint(world, table, constraint, found),
        Action::DropConstraint { constraint, if_exists, .. } => {
            drop_constraint(world, table, constraint, *if_exists, found);
        }
        Action::ValidateConstraint { constraint } => {
            if let Some(other) = references(world, table, constraint) {
                found.lock(&other, LockMode::RowShare);
            }
            found.long |= !world.is_small(table);
        }
        Action::AlterConstraint {
            constraint,
            enforced,
        } => {
            if *enforced {
                if let Some(other) = references(world, table, constraint) {
                    found.lock(&other, LockMode::ShareRowExclusive);
                }
                found.push(
                    "add-constraint-scan",
                    Class::B,
                    if world.is_small(table) {
                        Level::Notice
                    } else {
                        Level::Error
                    },
                    format!("every row of {table} is checked"),
                );
            }
        }
        Action::AttachPartition { partition, bound } => {
            partition::attach(world, table, partition, bound.as_ref(), found);
        }
        Action::DetachPartition {
            concurrently,
            finalize,
            partition,
        } => {
            let default = world
                .relation(table)
                .and_then(|relation| relation.default_partition.as_ref());
            if *concurrently && let Some(default) = default {
                found.push(
                    "detach-not-concurrent",
                    Class::E,
                    Level::Error,
                    format!("the server refuses it (55000) beside the default partition {default}"),
                );
            }
            if !concurrently && !finalize {
                found.push(
                    "detach-not-concurrent",
                    Class::B,
                    Level::Error,
                    format!("readers and writers of {table} wait"),
                );
            }
            found.push(
                "detach-partition",
                Class::D,
                Level::Warning,
                format!("queries on {table} lose the rows of {partition}"),
            );
        }
        Action::Inherit { parent } => found.push(
            "replace-view",
            Class::D,
            Level::Warning,
            format!("queries on {parent} gain the rows of {table}"),
        ),
        Action::DisableTrigger { name }
            if world.together && world.comes_again(&again::Made::enabled(world, table, name)) =>
        {
            found.push(
                "disable-trigger",
                Class::D,
                Level::Warning,
                format!("{name} is enabled again below: other writers wait until then when the file is one transaction, and miss it when it is not"),
            );
        }
        Action::DisableTrigger { name } => breaks(
            found,
            "disable-trigger",
            format!("what {name} keeps up on {table} is no longer kept up"),
        ),
        Action::EnableRowSecurity | Action::ForceRowSecurity => found.push_of(
            world,
            (table, &[]),
            ("row-security", Class::D),
            format!("roles without a policy see no row of {table}"),
        ),
        Action::DisableRowSecurity => breaks(
            found,
            "row-security",
            format!("every role sees all rows of {table}"),
        ),
        Action::SetLogged { .. } => found.push(
            "set-logged",
            Class::E,
            Level::Error,
            format!("{table} is rewritten"),
        ),
        Action::SetAccessMethod | Action::SetTablespace => found.push(
            "set-storage-place",
            Class::E,
            Level::Error,
            format!("{table} is copied"),
        ),
        Action::Other { what } => found.push(
            "unknown-statement",
            Class::E,
            Level::Error,
            format!("ALTER TABLE … {what} is not known to this release"),
        ),
    }
}
