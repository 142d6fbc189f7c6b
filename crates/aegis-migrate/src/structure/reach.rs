//! How far a statement reaches: what is looked at before and after it.

use aegis_catalog::Name;
use aegis_ddl::form::{Action, Form, ObjectKind};
use aegis_ddl::{QualifiedName, Statement};

/// What a step may touch. Too much only costs time, too little would make drift of the tool's own work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reach {
    /// These objects, with what hangs on them; schemas, extensions, publications and event triggers always.
    Objects(Vec<Name>),
    /// Nobody can say: dynamic SQL, a call, a whole schema.
    Everything,
}

impl Reach {
    /// What both may touch.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Objects(mut names), Self::Objects(more)) => {
                for name in more {
                    if !names.contains(&name) {
                        names.push(name);
                    }
                }
                Self::Objects(names)
            }
            _ => Self::Everything,
        }
    }

    /// The reach of a statement that runs with this schema first in `search_path`. What is not surely known reaches everything.
    pub fn of(statement: &Statement, schema: &str) -> Self {
        let objects = |names: &[&QualifiedName]| {
            Self::Objects(names.iter().map(|name| name.resolve(schema)).collect())
        };
        match &statement.form {
            Form::CreateTable(create) => {
                let mut names = vec![&create.table];
                names.extend(&create.partition_of);
                names.extend(&create.inherits);
                names.extend(create.references.iter().map(|one| &one.table));
                objects(&names)
            }
            Form::AlterTable { table, actions } => of_actions(table, actions, schema),
            Form::CreateIndex(create) => objects(&[&create.table]),
            Form::DropIndex { indexes, .. } => objects(&indexes.iter().collect::<Vec<_>>()),
            Form::Reindex {
                target: Some(target),
                ..
            } => objects(&[target]),
            Form::Drop {
                kind, names, on, ..
            } if known(*kind) => {
                let mut all: Vec<&QualifiedName> = names.iter().collect();
                all.extend(on);
                objects(&all)
            }
            Form::CreateView { view, .. }
            | Form::CreateMaterializedView { view, .. }
            | Form::RefreshMaterializedView { view, .. } => objects(&[view]),
            Form::CreateType { name, .. }
            | Form::AlterType { name, .. }
            | Form::CreateDomain { name, .. }
            | Form::AlterDomain { name, .. }
            | Form::CreateFunction { name, .. }
            | Form::CreateSequence { name }
            | Form::AlterSequence { name } => objects(&[name]),
            Form::CreateTrigger { table, .. }
            | Form::CreateRule { table, .. }
            | Form::CreatePolicy { table, .. }
            | Form::AlterPolicy { table } => objects(&[table]),
            // Schemas, and what has none, are looked at in any case; the rest changes no structure.
            Form::CreateSchema { .. }
            | Form::AlterDefaultPrivileges
            | Form::CommentOn
            | Form::Insert { .. }
            | Form::Update { .. }
            | Form::Delete { .. }
            | Form::Merge
            | Form::Truncate { .. }
            | Form::Copy { .. }
            | Form::Set { .. }
            | Form::LockTable { .. }
            | Form::Analyze => Self::Objects(Vec::new()),
            _ => Self::Everything,
        }
    }
}

fn of_actions(table: &QualifiedName, actions: &[Action], schema: &str) -> Reach {
    let mut names = vec![table.resolve(schema)];
    for action in actions {
        match action {
            Action::AttachPartition { partition, .. }
            | Action::DetachPartition { partition, .. } => {
                names.push(partition.resolve(schema));
            }
            Action::Inherit { parent } | Action::NoInherit { parent } => {
                names.push(parent.resolve(schema));
            }
            Action::RenameTable { to } => {
                let table = table.resolve(schema);
                names.push(Name::new(table.schema, &**to));
            }
            Action::SetSchema | Action::Other { .. } => return Reach::Everything,
            _ => {}
        }
    }
    Reach::Objects(names)
}

/// Whether the names of a DROP are names of relations, functions or types.
fn known(kind: ObjectKind) -> bool {
    matches!(
        kind,
        ObjectKind::Table
            | ObjectKind::Index
            | ObjectKind::View
            | ObjectKind::MaterializedView
            | ObjectKind::Sequence
            | ObjectKind::Type
            | ObjectKind::Domain
            | ObjectKind::Function
            | ObjectKind::Trigger
            | ObjectKind::Policy
            | ObjectKind::Rule
    )
}
