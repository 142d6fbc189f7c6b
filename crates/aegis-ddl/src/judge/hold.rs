//! What a statement locks: what its text names, and what the catalog hangs on that. Compared with a real server, form by form.

use aegis_catalog::{Catalog, DependentKind, Name};

use super::Found;
use super::world::World;
use crate::form::{Action, ConstraintKind, DomainChange, Form};
use crate::lock::LockMode;
use crate::name::QualifiedName;
use crate::statement::Statement;

/// Partitions below partitions, and views over views.
const DEPTH_MAX: usize = 16;

pub(super) fn judge(world: &World<'_>, statement: &Statement, found: &mut Found) {
    if matches!(statement.form, Form::Do { .. }) {
        // Of a block, statement by statement.
        return;
    }
    for lock in statement.locks() {
        let index = world
            .catalog
            .and_then(|catalog| catalog.index(&world.name(&lock.relation)));
        if let Some(index) = index {
            of_index(statement, index, lock.mode, found);
        } else if world.is_live(&lock.relation)
            && !world.is_absent(&lock.relation)
            && !is_index(statement)
        {
            found.lock(&lock.relation, lock.mode);
        }
    }
    let Some(catalog) = world.catalog else { return };
    match &statement.form {
        Form::AlterTable { table, actions } if world.is_live(table) => {
            for action in actions {
                of_action(world, catalog, table, action, found);
            }
        }
        Form::CreateIndex(index) if world.is_live(&index.table) && !index.only => {
            below(catalog, &world.name(&index.table), 0, &mut |name| {
                hold(found, name, LockMode::Share);
            });
        }
        Form::CreateTable(table) => {
            if let Some(parent) = &table.partition_of
                && let Some(default) = world
                    .relation(parent)
                    .and_then(|relation| relation.default_partition.as_ref())
            {
                hold(found, default, LockMode::AccessExclusive);
            }
        }
        Form::Drop { names, cascade, .. } => {
            for name in names.iter().filter(|name| world.is_live(name)) {
                let name = world.name(name);
                of_tree(catalog, &name, found);
                if *cascade {
                    of_cascade(catalog, &name, None, found);
                }
            }
        }
        Form::Truncate {
            tables,
            cascade: true,
        } => {
            for table in tables {
                for child in pointing_at(catalog, &world.name(table), None) {
                    hold(found, &child, LockMode::AccessExclusive);
                }
            }
        }
        Form::AlterDomain {
            name,
            change:
                DomainChange::AddConstraint { not_valid: false }
                | DomainChange::SetNotNull
                | DomainChange::ValidateConstraint,
        } => {
            for table in tables_of(world, name) {
                hold(found, &table, LockMode::Share);
            }
        }
        _ => {}
    }
}

/// Tables with a column of a type.
pub(super) fn tables_of(world: &World<'_>, of: &QualifiedName) -> Vec<Name> {
    let of = world.name(of);
    world
        .catalog
        .into_iter()
        .flat_map(|catalog| &catalog.relations)
        .filter(|relation| relation.columns.iter().any(|column| column.type_name == of))
        .map(|relation| relation.name.clone())
        .collect()
}

fn hold(found: &mut Found, name: &Name, mode: LockMode) {
    found.lock(
        &QualifiedName {
            schema: Some(name.schema.clone()),
            name: name.name.clone(),
        },
        mode,
    );
}

/// Whether its names are those of indexes, which are told by their tables.
const fn is_index(statement: &Statement) -> bool {
    matches!(
        statement.form,
        Form::DropIndex { .. }
            | Form::Reindex {
                of: crate::form::ReindexOf::Index,
                ..
            }
            | Form::Rename {
                kind: crate::form::ObjectKind::Index,
                ..
            }
    )
}

fn of_index(
    statement: &Statement,
    index: &aegis_catalog::Index,
    mode: LockMode,
    found: &mut Found,
) {
    match &statement.form {
        Form::DropIndex { .. } => hold(found, &index.table, mode),
        Form::Reindex { concurrently, .. } => hold(
            found,
            &index.table,
            if *concurrently {
                LockMode::ShareUpdateExclusive
            } else {
                LockMode::Share
            },
        ),
        _ => {}
    }
}

/// What goes with a table that is dropped or detached: its partitions, and of a partition the parent and the default one beside it.
fn of_tree(catalog: &Catalog, name: &Name, found: &mut Found) {
    below(catalog, name, 0, &mut |name| {
        hold(found, name, LockMode::AccessExclusive);
    });
    let parent = catalog
        .relation(name)
        .and_then(|relation| relation.partition_of.as_ref())
        .and_then(|place| catalog.relation(&place.parent));
    if let Some(parent) = parent {
        hold(found, &parent.name, LockMode::AccessExclusive);
        if let Some(default) = parent.default_partition.as_ref().filter(|one| *one != name) {
            hold(found, default, LockMode::AccessExclusive);
        }
    }
}

/// Partitions and heirs.
fn below(catalog: &Catalog, of: &Name, depth: usize, each: &mut impl FnMut(&Name)) {
    if depth > DEPTH_MAX {
        return;
    }
    for relation in &catalog.relations {
        let is_below = relation.inherits.contains(of)
            || relation
                .partition_of
                .as_ref()
                .is_some_and(|place| place.parent == *of);
        if is_below {
            each(&relation.name);
            below(catalog, &relation.name, depth + 1, each);
        }
    }
}

fn of_action(
    world: &World<'_>,
    catalog: &Catalog,
    table: &QualifiedName,
    action: &Action,
    found: &mut Found,
) {
    let name = world.name(table);
    let partitioned = world
        .relation(table)
        .is_some_and(|relation| relation.partition_key.is_some());
    let goes_down = match action {
        Action::AddColumn { .. }
        | Action::DropColumn { .. }
        | Action::RenameColumn { .. }
        | Action::SetType { .. }
        | Action::SetDefault { .. }
        | Action::DropDefault { .. }
        | Action::SetNotNull { .. }
        | Action::DropNotNull { .. }
        | Action::ValidateConstraint { .. }
        | Action::DropConstraint { .. } => true,
        Action::AddConstraint { constraint } => {
            partitioned
                || matches!(
                    constraint.kind,
                    ConstraintKind::Check { .. } | ConstraintKind::NotNull { .. }
                )
        }
        _ => false,
    };
    if goes_down {
        let mode = crate::touch::of_action(action);
        below(catalog, &name, 0, &mut |name| hold(found, name, mode));
    }
    match action {
        Action::DetachPartition {
            partition,
            concurrently: false,
            finalize: false,
        } => of_tree(catalog, &world.name(partition), found),
        Action::SetType { column, .. } => {
            for other in pointed_at(catalog, &name, column)
                .into_iter()
                .chain(pointing_at(catalog, &name, Some(column)))
            {
                hold(found, &other, LockMode::AccessExclusive);
            }
        }
        Action::DropColumn { column, cascade } => {
            for other in pointed_at(catalog, &name, column) {
                hold(found, &other, LockMode::AccessExclusive);
            }
            if *cascade {
                of_cascade(catalog, &name, Some(column), found);
            }
        }
        _ => {}
    }
}

/// Views and foreign keys that go with what is dropped.
fn of_cascade(catalog: &Catalog, name: &Name, column: Option<&str>, found: &mut Found) {
    for dependent in catalog.dependents(name, column) {
        if matches!(
            dependent.kind,
            DependentKind::View | DependentKind::ForeignKey
        ) && dependent.dependent != *name
        {
            hold(found, &dependent.dependent, LockMode::AccessExclusive);
        }
    }
    for child in pointing_at(catalog, name, column) {
        hold(found, &child, LockMode::AccessExclusive);
    }
}

/// Tables that foreign keys with this column point at.
fn pointed_at(catalog: &Catalog, table: &Name, column: &str) -> Vec<Name> {
    catalog
        .constraints_of(table)
        .filter(|one| one.columns.iter().any(|of| of == column))
        .filter_map(|one| one.references.clone())
        .filter(|other| other != table)
        .collect()
}

/// Tables with foreign keys that point at this one.
fn pointing_at(catalog: &Catalog, table: &Name, column: Option<&str>) -> Vec<Name> {
    catalog
        .constraints
        .iter()
        .filter(|one| one.references.as_ref() == Some(table) && one.table != *table)
        .filter(|one| {
            column.is_none_or(|column| one.referenced_columns.iter().any(|of| of == column))
        })
        .map(|one| one.table.clone())
        .collect()
}
