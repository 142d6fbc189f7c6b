//! What a statement names: relations with the lock that it takes on each, and objects that it makes, changes or drops.
//!
//! Only what stands in its text: a view, a partition or a foreign key that hangs on a relation is the catalog's to tell. The runner
//! takes these locks first, in name order, so a mode here must never be weaker than the one that the statement takes.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::form::{Action, Column, ConstraintKind, CreateTable, Form, ObjectKind, ReindexOf};
use crate::lock::{Lock, LockMode};
use crate::name::QualifiedName;
use crate::statement::Statement;

/// An object that a statement makes, changes or drops.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct ObjectRef {
    /// What it is.
    pub kind: ObjectKind,
    /// Its name; of a column, constraint, trigger, policy or rule the name within its table.
    pub name: QualifiedName,
    /// The table that it belongs to, where it belongs to one.
    pub on: Option<QualifiedName>,
}

impl Statement {
    /// Relations that it names, with the strongest lock on each, in name order. What it makes is not among them.
    pub fn locks(&self) -> Vec<Lock> {
        let mut locks = BTreeMap::new();
        collect_locks(&self.form, &mut locks);
        for inner in &self.with {
            collect_locks(&inner.form, &mut locks);
        }
        locks
            .into_iter()
            .map(|(relation, mode)| Lock { relation, mode })
            .collect()
    }

    /// Objects that it makes, changes or drops, in order, each once. Of a DO block: those of its static statements.
    pub fn touches(&self) -> Vec<ObjectRef> {
        let mut objects = BTreeSet::new();
        collect_objects(&self.form, &mut objects);
        objects.into_iter().collect()
    }
}

/// The lock of an action on its own table, by the reference. Nothing compares these with the measured table in `facts/` yet.
pub(crate) fn of_action(action: &Action) -> LockMode {
    match action {
        Action::ValidateConstraint { .. }
        | Action::SetStatistics
        | Action::AttachPartition { .. }
        | Action::ClusterOn
        | Action::Options { only_tuning: true }
        | Action::DetachPartition {
            concurrently: true, ..
        } => LockMode::ShareUpdateExclusive,
        Action::EnableTrigger { .. } | Action::DisableTrigger { .. } => LockMode::ShareRowExclusive,
        Action::AddConstraint { constraint }
            if matches!(constraint.kind, ConstraintKind::ForeignKey { .. }) =>
        {
            LockMode::ShareRowExclusive
        }
        _ => LockMode::AccessExclusive,
    }
}

type Locks = BTreeMap<QualifiedName, LockMode>;

fn lock(locks: &mut Locks, relation: &QualifiedName, mode: LockMode) {
    let held = locks.entry(relation.clone()).or_insert(mode);
    // SHARE and SHARE UPDATE EXCLUSIVE conflict with different things: both together are SHARE ROW EXCLUSIVE.
    let mixed = matches!(
        (*held, mode),
        (LockMode::Share, LockMode::ShareUpdateExclusive)
            | (LockMode::ShareUpdateExclusive, LockMode::Share)
    );
    *held = if mixed {
        LockMode::ShareRowExclusive
    } else {
        (*held).max(mode)
    };
}

fn collect_locks(form: &Form, locks: &mut Locks) {
    use LockMode::ShareUpdateExclusive;
    use LockMode::{AccessExclusive, Exclusive, RowExclusive, Share, ShareRowExclusive};
    match form {
        Form::CreateTable(table) => of_create_table(table, locks),
        Form::AlterTable { table, actions } => of_alter_table(table, actions, locks),
        Form::CreateIndex(index) => {
            let mode = if index.concurrently {
                ShareUpdateExclusive
            } else {
                Share
            };
            lock(locks, &index.table, mode);
        }
        Form::DropIndex {
            indexes,
            concurrently,
        } => {
            let mode = if *concurrently {
                ShareUpdateExclusive
            } else {
                AccessExclusive
            };
            for index in indexes {
                lock(locks, index, mode);
            }
        }
        Form::Reindex {
            target: Some(target),
            of,
            concurrently,
        } => {
            let mode = match (concurrently, of) {
                (true, _) => ShareUpdateExclusive,
                (false, ReindexOf::Index) => AccessExclusive,
                (false, _) => Share,
            };
            lock(locks, target, mode);
        }
        Form::Drop {
            kind, names, on, ..
        } => {
            if let Some(table) = on {
                lock(locks, table, AccessExclusive);
            } else if is_relation(*kind) {
                for name in names {
                    lock(locks, name, AccessExclusive);
                }
            }
        }
        Form::Rename { kind, name, on } => {
            if let Some(table) = on {
                lock(locks, table, AccessExclusive);
            } else if *kind == ObjectKind::Index {
                lock(locks, name, ShareUpdateExclusive);
            } else if is_relation(*kind) {
                lock(locks, name, AccessExclusive);
            }
        }
        Form::SetSchema { kind, name } if is_relation(*kind) => lock(locks, name, AccessExclusive),
        Form::CreateView {
            view,
            replace: true,
            ..
        } => lock(locks, view, AccessExclusive),
        Form::RefreshMaterializedView { view, concurrently } => {
            lock(
                locks,
                view,
                if *concurrently {
                    Exclusive
                } else {
                    AccessExclusive
                },
            );
        }
        Form::CreateTrigger { table, .. } => lock(locks, table, ShareRowExclusive),
        Form::AlterSequence { name } => lock(locks, name, ShareRowExclusive),
        Form::Insert { into, .. } => lock(locks, into, RowExclusive),
        Form::Update { table, .. } | Form::Delete { table, .. } => {
            lock(locks, table, RowExclusive);
        }
        Form::Truncate { tables, .. } => {
            for table in tables {
                lock(locks, table, AccessExclusive);
            }
        }
        Form::LockTable { tables, mode } => {
            for table in tables {
                lock(locks, table, *mode);
            }
        }
        Form::CreateRule { table, .. }
        | Form::CreatePolicy { table, .. }
        | Form::AlterPolicy { table }
        | Form::Cluster { table: Some(table) } => lock(locks, table, AccessExclusive),
        Form::Do { body } => {
            for statement in &body.statements {
                collect_locks(&statement.form, locks);
            }
        }
        // Catalogs only, or queries: ACCESS SHARE and ROW SHARE need no place in the order.
        _ => {}
    }
}

fn of_create_table(table: &CreateTable, locks: &mut Locks) {
    if let Some(parent) = &table.partition_of {
        lock(locks, parent, LockMode::AccessExclusive);
    }
    for parent in &table.inherits {
        lock(locks, parent, LockMode::ShareUpdateExclusive);
    }
    let others = table.references.iter().map(|one| &one.table);
    for other in others.filter(|one| **one != table.table) {
        lock(locks, other, LockMode::ShareRowExclusive);
    }
}

fn of_alter_table(table: &QualifiedName, actions: &[Action], locks: &mut Locks) {
    for action in actions {
        lock(locks, table, of_action(action));
        match action {
            Action::AddColumn { column, .. } => {
                if let Some(other) = &column.references {
                    lock(locks, &other.table, LockMode::ShareRowExclusive);
                    lock(locks, table, LockMode::ShareRowExclusive);
                }
            }
            Action::AddConstraint { constraint } => {
                if let ConstraintKind::ForeignKey { references } = &constraint.kind {
                    lock(locks, &references.table, LockMode::ShareRowExclusive);
                }
            }
            Action::AttachPartition { partition, .. } => {
                lock(locks, partition, LockMode::AccessExclusive);
            }
            Action::DetachPartition {
                partition,
                concurrently,
                ..
            } => {
                let mode = if *concurrently {
                    LockMode::ShareUpdateExclusive
                } else {
                    LockMode::AccessExclusive
                };
                lock(locks, partition, mode);
            }
            Action::Inherit { parent } | Action::NoInherit { parent } => {
                lock(locks, parent, LockMode::ShareUpdateExclusive);
            }
            _ => {}
        }
    }
}

const fn is_relation(kind: ObjectKind) -> bool {
    matches!(
        kind,
        ObjectKind::Table
            | ObjectKind::Index
            | ObjectKind::View
            | ObjectKind::MaterializedView
            | ObjectKind::Sequence
    )
}

type Objects = BTreeSet<ObjectRef>;

fn add(objects: &mut Objects, kind: ObjectKind, name: &QualifiedName) {
    objects.insert(ObjectRef {
        kind,
        name: name.clone(),
        on: None,
    });
}

fn add_on(objects: &mut Objects, kind: ObjectKind, name: &str, on: &QualifiedName) {
    objects.insert(ObjectRef {
        kind,
        name: QualifiedName {
            schema: None,
            name: name.to_owned(),
        },
        on: Some(on.clone()),
    });
}

fn collect_objects(form: &Form, objects: &mut Objects) {
    use ObjectKind as O;
    match form {
        Form::CreateTable(table) => {
            add(objects, O::Table, &table.table);
            for parent in table.partition_of.iter().chain(&table.inherits) {
                add(objects, O::Table, parent);
            }
        }
        Form::CreateTableAs { table } => add(objects, O::Table, table),
        Form::AlterTable { table, actions } => {
            add(objects, O::Table, table);
            for action in actions {
                of_action_objects(table, action, objects);
            }
        }
        Form::CreateIndex(index) => {
            if let Some(name) = &index.index {
                // An index stands in its table's schema.
                add(
                    objects,
                    O::Index,
                    &QualifiedName {
                        schema: index.table.schema.clone(),
                        name: name.name.clone(),
                    },
                );
            } else {
                add(objects, O::Table, &index.table);
            }
        }
        Form::DropIndex { indexes, .. } => {
            for index in indexes {
                add(objects, O::Index, index);
            }
        }
        Form::Reindex {
            target: Some(target),
            of,
            ..
        } => {
            let kind = if *of == ReindexOf::Index {
                O::Index
            } else {
                O::Table
            };
            add(objects, kind, target);
        }
        Form::Drop {
            kind, names, on, ..
        } => {
            for name in names {
                match on {
                    Some(table) => add_on(objects, *kind, &name.name, table),
                    None => add(objects, *kind, name),
                }
            }
        }
        Form::Rename { kind, name, on } => match on {
            Some(table) => add_on(objects, *kind, &name.name, table),
            None => add(objects, *kind, name),
        },
        Form::SetSchema { kind, name } => add(objects, *kind, name),
        Form::CreateView { view, .. } => add(objects, O::View, view),
        Form::CreateMaterializedView { view, .. } | Form::RefreshMaterializedView { view, .. } => {
            add(objects, O::MaterializedView, view);
        }
        Form::CreateType { name, .. } | Form::AlterType { name, .. } => {
            add(objects, O::Type, name);
        }
        Form::CreateDomain { name, .. } | Form::AlterDomain { name, .. } => {
            add(objects, O::Domain, name);
        }
        Form::CreateFunction { name, .. } => add(objects, O::Function, name),
        Form::CreateTrigger { name, table, .. } => add_on(objects, O::Trigger, name, table),
        Form::CreateRule { name, table } => add_on(objects, O::Rule, name, table),
        // The policy's own name is of no use without its table: the table's policies are compared as a whole.
        Form::CreatePolicy { table, .. } | Form::AlterPolicy { table } => {
            add(objects, O::Table, table);
        }
        Form::CreateSchema { name } => add(
            objects,
            O::Schema,
            &QualifiedName {
                schema: None,
                name: name.clone(),
            },
        ),
        Form::CreateExtension { name } => add(
            objects,
            O::Extension,
            &QualifiedName {
                schema: None,
                name: name.clone(),
            },
        ),
        Form::CreateSequence { name } | Form::AlterSequence { name } => {
            add(objects, O::Sequence, name);
        }
        Form::Do { body } => {
            for statement in &body.statements {
                collect_objects(&statement.form, objects);
            }
        }
        _ => {}
    }
}

fn of_action_objects(table: &QualifiedName, action: &Action, objects: &mut Objects) {
    use ObjectKind as O;
    match action {
        Action::AddColumn { column, .. } => {
            let Column { name, .. } = column.as_ref();
            add_on(objects, O::Column, name, table);
        }
        Action::RenameColumn { column, to } => {
            add_on(objects, O::Column, column, table);
            add_on(objects, O::Column, to, table);
        }
        Action::DropColumn { column, .. }
        | Action::SetType { column, .. }
        | Action::SetDefault { column, .. }
        | Action::DropDefault { column }
        | Action::SetNotNull { column }
        | Action::DropNotNull { column }
        | Action::AddIdentity { column, .. }
        | Action::ChangeIdentity { column, .. }
        | Action::DropExpression { column }
        | Action::SetExpression { column } => add_on(objects, O::Column, column, table),
        Action::AddConstraint { constraint } => {
            if let Some(name) = &constraint.name {
                add_on(objects, O::Constraint, name, table);
            }
        }
        Action::DropConstraint { constraint, .. }
        | Action::ValidateConstraint { constraint }
        | Action::AlterConstraint { constraint, .. }
        | Action::RenameConstraint { constraint } => {
            add_on(objects, O::Constraint, constraint, table);
        }
        Action::RenameTable { to } => add(
            objects,
            O::Table,
            &QualifiedName {
                schema: table.schema.clone(),
                name: to.clone(),
            },
        ),
        Action::AttachPartition { partition, .. } | Action::DetachPartition { partition, .. } => {
            add(objects, O::Table, partition);
        }
        Action::Inherit { parent } | Action::NoInherit { parent } => {
            add(objects, O::Table, parent);
        }
        Action::EnableTrigger { name } | Action::DisableTrigger { name } => {
            add_on(objects, O::Trigger, name, table);
        }
        _ => {}
    }
}
