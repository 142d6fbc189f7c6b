//! CREATE TABLE.

use super::Found;
use super::world::World;
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
    for references in table.references.iter().filter(|one| world.is_live(one)) {
        if *references != table.table {
            found.lock(references, LockMode::ShareRowExclusive);
        }
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
    // With IF NOT EXISTS over a table that is there, or may be, nothing is made.
    if table.if_not_exists && world.may_exist(&table.table) {
        // Of a table that nobody looked at, this is what there is to know.
        if !world.is_told(&table.table) {
            world.said_table(table);
            world.perhaps_made(&table.table);
        }
        return;
    }
    world.made(&table.table);
    world.said_table(table);
}
