//! What a statement meets beside itself: names that others have taken, and drops that it has to follow.
//!
//! Invariants: what follows a drop of the same thing in one change is not torn from it. Pure.

use std::collections::BTreeSet;

use aegis_ddl::Context;
use aegis_ddl::Statement;
use aegis_ddl::fix::Taken;
use aegis_ddl::form::{Action, ConstraintKind, Form, ObjectKind};

use super::Judged;
use crate::change::{self, Files, Part, Phase};
use crate::lint::Known;
use crate::plan;

/// Why a statement is not moved.
pub(super) const BOUND: &str = "it drops, or makes again, what another statement of this change makes or drops: moved away from it, it would fail. Keep both together in one ALTER TABLE in a window, or give the new one a name of its own and drop the old one in [contract]";

/// The names that a database and the changes before one have taken.
pub(super) fn taken_before(files: &Files, folder: &str, known: Known<'_>) -> Taken {
    let mut taken = known.catalog.map(Taken::of).unwrap_or_default();
    let folders: BTreeSet<&str> = files
        .names()
        .filter_map(|name| name.strip_suffix(change::CHANGE_FILE)?.strip_suffix('/'))
        .filter(|other| *other < folder)
        .collect();
    for other in folders {
        // One that cannot be read is told by lint.
        let Ok(change) = change::read(files, other) else {
            continue;
        };
        for phase in Phase::ALL {
            for part in change.parts(phase) {
                if let Part::Sql { key, file } = part
                    && let Ok(source) = plan::source(&change, key, file)
                {
                    for statement in &source.script.statements {
                        taken.ran(statement, &change.schema);
                    }
                }
            }
        }
    }
    taken
}

/// The names that are taken for one statement of a change.
pub(super) fn taken_for(before: &Taken, all: &[Judged], at: (usize, usize), schema: &str) -> Taken {
    let mut taken = before.clone();
    let places = places(all);
    for (_, statement) in places.iter().filter(|(place, _)| *place < at) {
        taken.ran(statement, schema);
    }
    for (_, statement) in places.iter().filter(|(place, _)| *place > at) {
        taken.will_run(statement, schema);
    }
    taken
}

fn places(all: &[Judged]) -> Vec<((usize, usize), &Statement)> {
    let mut places = Vec::new();
    for (number, file) in all.iter().enumerate() {
        let statements = file.source.script.statements.iter().enumerate();
        places.extend(statements.map(|(line, statement)| ((number, line), statement)));
    }
    places
}

/// What is dropped or made: its kind, its table, its name.
type Thing = (ObjectKind, String, String);

/// Whether a statement drops what a later one of the change makes, or makes what an earlier one drops.
pub(super) fn is_bound(all: &[Judged], at: (usize, usize), context: &Context<'_>) -> bool {
    let places = places(all);
    let Some((_, own)) = places.iter().find(|(place, _)| *place == at) else {
        return false;
    };
    let (drops, makes) = (drops(own, context), makes(own));
    if drops.iter().any(|one| makes.contains(one)) {
        return true;
    }
    places.iter().any(|(place, other)| {
        *place > at && self::makes(other).iter().any(|one| drops.contains(one))
            || *place < at
                && self::drops(other, context)
                    .iter()
                    .any(|one| makes.contains(one))
    })
}

/// What stands for the primary key of a table, which has one, whatever its name.
const PRIMARY: &str = "PRIMARY KEY";

fn drops(statement: &Statement, context: &Context<'_>) -> Vec<Thing> {
    let mut dropped = Vec::new();
    match &statement.form {
        Form::AlterTable { table, actions } => {
            for action in actions {
                let (kind, name) = match action {
                    Action::DropConstraint { constraint, .. } => {
                        (ObjectKind::Constraint, constraint)
                    }
                    Action::DropColumn { column, .. } => (ObjectKind::Column, column),
                    _ => continue,
                };
                let of = table.name.clone();
                let is_primary = kind == ObjectKind::Constraint
                    && (*name == format!("{of}_pkey")
                        || context.catalog.is_some_and(|catalog| {
                            catalog
                                .constraints_of(&table.resolve(context.schema))
                                .any(|one| {
                                    one.name == *name
                                        && one.kind == aegis_catalog::ConstraintKind::Primary
                                })
                        }));
                if is_primary {
                    dropped.push((kind, of.clone(), PRIMARY.to_owned()));
                }
                dropped.push((kind, of, name.clone()));
            }
        }
        Form::Drop {
            kind, names, on, ..
        } => {
            let on = on.as_ref().map(|on| on.name.clone()).unwrap_or_default();
            dropped.extend(
                names
                    .iter()
                    .map(|name| (*kind, on.clone(), name.name.clone())),
            );
        }
        _ => {}
    }
    dropped
}

fn makes(statement: &Statement) -> Vec<Thing> {
    let mut made = Vec::new();
    match &statement.form {
        Form::AlterTable { table, actions } => {
            for action in actions {
                let (kind, name) = match action {
                    Action::AddConstraint { constraint } => {
                        if matches!(constraint.kind, ConstraintKind::PrimaryKey { .. }) {
                            made.push((
                                ObjectKind::Constraint,
                                table.name.clone(),
                                PRIMARY.to_owned(),
                            ));
                        }
                        (ObjectKind::Constraint, constraint.name.clone())
                    }
                    Action::AddColumn { column, .. } => {
                        (ObjectKind::Column, Some(column.name.clone()))
                    }
                    _ => continue,
                };
                made.extend(name.map(|name| (kind, table.name.clone(), name)));
            }
        }
        Form::Drop { .. } => {}
        _ => made.extend(statement.touches().into_iter().map(|one| {
            let on = one.on.map(|on| on.name).unwrap_or_default();
            (one.kind, on, one.name.name)
        })),
    }
    made
}
