//! Types of the database's own: enums, composites, domains.

use super::Found;
use super::world::World;
use crate::class::Class;
use crate::form::{DomainChange, TypeChange};
use crate::name::QualifiedName;
use crate::report::Level;

pub(super) fn alter(
    world: &mut World<'_>,
    name: &QualifiedName,
    change: &TypeChange,
    transaction: usize,
    found: &mut Found,
) {
    if let TypeChange::AddValue { value, .. } = change {
        world.added_value(name, value, transaction);
    }
    if world.is_new_type(name) {
        return;
    }
    match change {
        TypeChange::AddValue { value, .. } => found.push(
            "add-enum-value",
            Class::D,
            Level::Warning,
            format!("programs of the version before may read '{value}'"),
        ),
        TypeChange::RenameValue => found.push(
            "rename",
            Class::D,
            Level::Error,
            format!("programs that name the old value of {name} fail"),
        ),
        TypeChange::Other => {}
        TypeChange::AddAttribute => found.push(
            "alter-type",
            Class::D,
            Level::Warning,
            format!("programs that read {name} meet another shape"),
        ),
        TypeChange::DropAttribute | TypeChange::AlterAttribute => found.push(
            "alter-type",
            Class::D,
            Level::Error,
            format!("programs that read {name} meet another shape, and tables with a column of it may be rewritten"),
        ),
    }
}

pub(super) fn alter_domain(
    world: &World<'_>,
    name: &QualifiedName,
    change: DomainChange,
    found: &mut Found,
) {
    if world.is_new_type(name) {
        return;
    }
    let restricts = |found: &mut Found| {
        found.push(
            "new-write-restriction",
            Class::D,
            Level::Warning,
            format!("writes of columns of {name} that break it are refused from now on"),
        );
    };
    let tables = super::hold::tables_of(world, name);
    let small = world.catalog.is_some()
        && tables.iter().all(|table| {
            world.is_small(&QualifiedName {
                schema: Some(table.schema.clone()),
                name: table.name.clone(),
            })
        });
    match change {
        DomainChange::AddConstraint { not_valid: true } => restricts(found),
        DomainChange::AddConstraint { not_valid: false } | DomainChange::SetNotNull => {
            found.push(
                "add-constraint-scan",
                Class::B,
                if small { Level::Notice } else { Level::Error },
                format!("every table with a column of {name} is scanned while its writers wait"),
            );
            restricts(found);
        }
        // VALIDATE too holds SHARE on them (measured): a domain's constraint has no online form on a large table.
        DomainChange::ValidateConstraint => {
            found.long = true;
            if !small {
                found.push_unless(
                    "add-constraint-scan",
                    Class::B,
                    if world.catalog.is_some() {
                        Level::Error
                    } else {
                        Level::Warning
                    },
                    format!("every table with a column of {name} is scanned while its writers wait, by VALIDATE too"),
                    "those tables are small (--database or --catalog tells)",
                );
            }
        }
        DomainChange::SetDefault => found.push(
            "set-default",
            Class::D,
            Level::Notice,
            format!("INSERTs that leave a column of {name} out write another value"),
        ),
        DomainChange::Loosen | DomainChange::Other => {}
    }
}
