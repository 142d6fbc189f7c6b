//! Whether changes can run in each of many schemas: all that they name is found by `search_path`, and nothing of them is one for the
//! whole database.

use crate::change::{Change, Part, Phase, Problem};
use crate::plan::source;

/// Why not, of all of them.
pub(super) fn problems<'a>(changes: impl Iterator<Item = &'a Change>) -> Vec<Problem> {
    changes.flat_map(of_change).collect()
}

fn of_change(change: &Change) -> Vec<Problem> {
    let file = format!("{}/change.toml", change.path);
    let tables = [
        ("[sync]", change.sync.is_some()),
        ("[backfill]", change.backfill.is_some()),
        ("[reconcile]", change.reconcile.is_some()),
        ("[switch]", change.switch.is_some()),
        ("[contract]", change.contract.is_some()),
    ];
    let mut problems: Vec<Problem> = tables
        .iter()
        .filter(|(_, is_there)| *is_there)
        .map(|(table, _)| {
            let what =
                format!("{table} is about the whole database, and targets.toml names schemas");
            Problem::of_file(
                &file,
                what,
                "give such tenants a database each, or split the change",
            )
        })
        .collect();
    for phase in [Phase::Expand, Phase::Migrate] {
        for part in change.parts(phase) {
            if let Part::Sql { key, file } = part {
                match source(change, key, file) {
                    Ok(read) => problems.extend(named(&read)),
                    Err(problem) => problems.push(problem),
                }
            }
        }
    }
    problems
}

/// Statements that say which schema they mean.
fn named(source: &aegis_ddl::SourceFile) -> Vec<Problem> {
    let mut problems = Vec::new();
    for statement in &source.script.statements {
        let objects = statement.touches().into_iter();
        let objects = objects.flat_map(|one| std::iter::once(one.name).chain(one.on));
        let locks = statement.locks().into_iter().map(|lock| lock.relation);
        let qualified = objects.chain(locks).find_map(|name| {
            let schema = name.schema.clone()?;
            (schema != "pg_catalog").then(|| format!("{schema}.{}", name.name))
        });
        let makes_one = matches!(statement.form, aegis_ddl::Form::CreateSchema { .. });
        if makes_one {
            let what = "it makes a schema, and targets.toml names schemas that are there";
            let help = "whoever takes a tenant in makes its schema";
            problems.push(Problem::of_file(&source.path, what, help).at(statement.line));
        } else if let Some(name) = qualified {
            let what =
                format!("it names {name}, and targets.toml names schemas, of which each is meant");
            let help = "write the name without a schema: search_path is the target's";
            problems.push(Problem::of_file(&source.path, what, help).at(statement.line));
        }
    }
    problems
}
