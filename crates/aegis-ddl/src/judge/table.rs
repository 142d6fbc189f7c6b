//! CREATE TABLE.

use super::world::World;
use super::{Found, foreign_key};
use crate::class::Class;
use crate::form::CreateTable;
use crate::lock::LockMode;
use crate::name::QualifiedName;
use crate::report::Level;

pub(super) fn create(world: &mut World<'_>, table: &CreateTable, found: &mut Found) {
    if table.if_not_exists && !world.fresh {
        found.push(
            "create-table-if-not-exists",
            Class::B,
            Level::Notice,
            format!("a table {} of another shape is taken for done", table.table),
        );
    }
    let others = table.references.iter().map(|at| &at.table);
    for other in others.filter(|one| **one != table.table && world.is_live(one)) {
        found.lock(other, LockMode::ShareRowExclusive);
    }
    if let Some(parent) = &table.partition_of
        && world.is_live(parent)
    {
        found.lock(parent, LockMode::AccessExclusive);
        let default = world
            .relation(parent)
            .map(|relation| relation.default_partition.is_some());
        let small = world
            .relation(parent)
            .and_then(|relation| relation.default_partition.as_ref())
            .is_some_and(|name| {
                world.is_small(&QualifiedName {
                    schema: Some(name.schema.clone()),
                    name: name.name.clone(),
                })
            });
        if default == Some(true) && !small {
            found.push(
                "attach-partition-scan",
                Class::B,
                Level::Error,
                format!("the default partition of {parent} is scanned under ACCESS EXCLUSIVE"),
            );
        } else if default.is_none() && !world.fresh {
            found.push_unless(
                "attach-partition-scan",
                Class::B,
                Level::Notice,
                format!("{parent} is locked for a moment, and its default partition is scanned"),
                "it has no default partition",
            );
        }
    }
    let may_be_there = table.if_not_exists && world.may_exist(&table.table);
    // With IF NOT EXISTS over a table that is there, or may be, nothing is made.
    if may_be_there {
        // Of a table that nobody looked at, this is what there is to know.
        if !world.is_told(&table.table) {
            world.said_table(table);
            world.perhaps_made(&table.table);
        }
        return;
    }
    world.made(&table.table);
    world.said_table(table);
    foreign_key::of_table(world, table, found);
}
