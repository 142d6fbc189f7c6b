//! Indexes: made, dropped and built anew.

use super::Found;
use super::world::World;
use crate::class::Class;
use crate::form::{CreateIndex, ReindexOf};
use crate::lock::LockMode;
use crate::name::QualifiedName;
use crate::report::Level;

pub(super) fn create(world: &mut World<'_>, index: &CreateIndex, found: &mut Found) {
    // A new table too, which holds nobody up.
    if index.concurrently && world.is_partitioned(&index.table) {
        found.push(
            "create-index-not-concurrent",
            Class::B,
            Level::Error,
            format!("{} is partitioned, where CONCURRENTLY is refused: ON ONLY, then each partition concurrently, then ATTACH", index.table),
        );
    }
    if world.is_live(&index.table) {
        found.lock(
            &index.table,
            if index.concurrently {
                LockMode::ShareUpdateExclusive
            } else {
                LockMode::Share
            },
        );
        if index.concurrently {
            if index.if_not_exists {
                found.push(
                    "concurrently-if-not-exists",
                    Class::B,
                    Level::Warning,
                    "an invalid leftover of the same name is taken for done",
                );
            }
        } else {
            built_at_once(world, index, found);
        }
        if index.unique {
            found.push(
                "new-write-restriction",
                Class::D,
                Level::Warning,
                format!(
                    "writes of {} with a duplicate are refused, while it is built already",
                    index.table
                ),
            );
        }
    }
    if index.unique && !index.partial && index.columns.len() == index.keys {
        world.said_key(&index.table, &index.columns);
        if let Some(name) = &index.index {
            let name = QualifiedName {
                schema: index.table.schema.clone(),
                name: name.name.clone(),
            };
            world.said_index(&name, &index.columns);
        }
    }
    world.told_index(index);
    if index.partial || index.columns.len() != index.keys {
        world.said_hung(&index.table);
    }
    if let Some(name) = &index.index {
        let name = QualifiedName {
            schema: index.table.schema.clone(),
            name: name.name.clone(),
        };
        if !world.is_live(&index.table) {
            world.made(&name);
        }
    }
}

/// Without CONCURRENTLY: ON ONLY builds nothing when the table is partitioned, and changes nothing when it is not.
fn built_at_once(world: &World<'_>, index: &CreateIndex, found: &mut Found) {
    let table = &index.table;
    if world.is_small_alone(table) || index.only && world.is_partitioned(table) {
        return;
    }
    let message = format!("writers of {table} wait while it is built");
    if index.only && world.relation(table).is_none() {
        found.push_unless(
            "create-index-not-concurrent",
            Class::B,
            Level::Error,
            message,
            format!("{table} is partitioned: then it is A, and builds nothing (--database or --catalog tells)"),
        );
    } else {
        let of = (table, index.columns.as_slice());
        found.push_of(
            world,
            of,
            ("create-index-not-concurrent", Class::B),
            message,
        );
    }
}

/// What the server refuses of DROP INDEX CONCURRENTLY, whatever is there (0A000).
pub(super) fn dropped_concurrently(indexes: &[QualifiedName], plain: &str, found: &mut Found) {
    let mut refused = |what: &str| {
        let message = format!("the server refuses {what} with CONCURRENTLY (0A000)");
        found.push("drop-index-not-concurrent", Class::E, Level::Error, message);
    };
    if indexes.len() > 1 {
        refused("several indexes");
    }
    let last = plain.split_whitespace().next_back().unwrap_or_default();
    if last.eq_ignore_ascii_case("cascade") {
        refused("CASCADE");
    }
}

pub(super) fn drop(
    world: &World<'_>,
    indexes: &[QualifiedName],
    (concurrently, if_exists): (bool, bool),
    found: &mut Found,
) {
    let mut live: Vec<_> = indexes.iter().filter(|one| world.is_live(one)).collect();
    for index in &live {
        if let Some(constraint) = world.constraint_of(index) {
            found.push(
                "drop-index-not-concurrent",
                Class::E,
                Level::Error,
                format!("{index} is the index of the constraint {constraint}, and the server drops it only with that (2BP01)"),
            );
        }
    }
    if if_exists {
        live.retain(|index| {
            let absent = world.has_no_index(index);
            if absent {
                found.push(
                    "drop-index-not-concurrent",
                    Class::B,
                    Level::Notice,
                    format!("there is no index {index}: nothing is dropped"),
                );
            }
            !absent
        });
    }
    if live.is_empty() || concurrently {
        return;
    }
    for index in live {
        found.push(
            "drop-index-not-concurrent",
            Class::B,
            Level::Error,
            format!("readers and writers of the table of {index} wait"),
        );
    }
}

pub(super) fn reindex(
    world: &World<'_>,
    target: Option<&QualifiedName>,
    of: ReindexOf,
    concurrently: bool,
    found: &mut Found,
) {
    found.long = true;
    if target.is_some_and(|target| !world.is_live(target)) {
        return;
    }
    // Of an index the table counts.
    let small = target.is_some_and(|target| {
        let index = world
            .catalog
            .and_then(|catalog| catalog.index(&world.name(target)));
        let table = index.map_or_else(
            || target.clone(),
            |index| QualifiedName {
                schema: Some(index.table.schema.clone()),
                name: index.table.name.clone(),
            },
        );
        world.is_small_alone(&table)
    });
    if !concurrently && !small {
        let what = match of {
            ReindexOf::Index => "its table",
            ReindexOf::Table => "the table",
            ReindexOf::Schema | ReindexOf::Database => "every table",
        };
        found.push(
            "reindex-not-concurrent",
            Class::B,
            Level::Error,
            format!("writers of {what} wait"),
        );
    }
}
