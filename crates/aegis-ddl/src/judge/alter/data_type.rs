//! A column of another type: what the server does, and what hangs on the column.

use crate::class::Class;
use crate::judge::Found;
use crate::judge::types::{self, Effect};
use crate::judge::world::World;
use crate::name::QualifiedName;
use crate::report::Level;

/// ALTER COLUMN … TYPE.
pub(super) fn set_type(
    world: &World<'_>,
    table: &QualifiedName,
    column: &str,
    to: &crate::form::TypeName,
    (using, collated): (bool, bool),
    found: &mut Found,
) {
    let Some(known) = world.type_of(table, column) else {
        found.push_unless(
            "change-type-rewrite",
            Class::B,
            Level::Error,
            format!("{table} is rewritten, or its indexes are rebuilt, for the new type of {column}"),
            format!("{column} is of a type that {} only widens, and nothing hangs on it (--database or --catalog tells)", to.text),
        );
        return;
    };
    // From a domain to what it is over nothing is checked, whatever the domain says (measured).
    let known = types::read(&known)
        .filter(|from| !from.array && from.base != to.base)
        .and_then(|from| world.domains_below(&from.base))
        .map_or(known, |domain| types::printed(&domain.base));
    let resolved = world.plain_type(to);
    let to = resolved.as_ref().unwrap_or(to);
    let effect = match types::change(&known, to) {
        _ if using => Effect::Rewrite,
        // Other values are alike, or come in another order.
        Effect::Free if collated => Effect::Indexes,
        effect => effect,
    };
    let small = world.is_small(table);
    let level = if small { Level::Notice } else { Level::Error };
    in_the_way(world, table, column, found);
    if effect != Effect::Free && !small {
        foreign_keys(world, table, column, found);
    }
    match effect {
        Effect::Free if world.catalog.is_none() => {
            if world.may_be_hung(table) {
                found.push_unless(
                    "change-type-index",
                    Class::B,
                    Level::Warning,
                    format!("a CHECK, or an index on an expression, of {table}.{column} is checked or built again"),
                    "none hangs on it (--database or --catalog tells)",
                );
            }
        }
        Effect::Free => {
            hangs_on(world, table, column, found);
            // The indexes of partitions are built anew even then (measured).
            let partitioned = world
                .relation(table)
                .is_some_and(|relation| relation.partition_key.is_some());
            if partitioned && !is_unindexed(world, table, column) && !small {
                found.push(
                    "change-type-index",
                    Class::B,
                    Level::Error,
                    format!("the indexes of the partitions of {table} on {column} are rebuilt"),
                );
            }
        }
        Effect::Indexes if is_unindexed(world, table, column) => {
            hangs_on(world, table, column, found);
        }
        Effect::Indexes => found.push(
            "change-type-index",
            Class::B,
            level,
            format!("the indexes on {table}.{column} are rebuilt"),
        ),
        Effect::Rewrite => found.push(
            "change-type-rewrite",
            Class::B,
            level,
            format!("{table} is rewritten: {known} to {}", to.text),
        ),
    }
    if types::narrower(&known, to) {
        found.push(
            "change-type-narrower",
            Class::D,
            Level::Error,
            format!("programs may write {known} that is no {}", to.text),
        );
    }
}

/// Whether the catalog says that no index names the column.
fn is_unindexed(world: &World<'_>, table: &QualifiedName, column: &str) -> bool {
    let name = world.name(table);
    world.catalog.is_some_and(|catalog| {
        !catalog.indexes_of(&name).any(|index| {
            index
                .keys
                .iter()
                .any(|key| key.column.as_deref() == Some(column) || key.expression.contains(column))
                || index.include.iter().any(|one| one == column)
        })
    })
}

/// Views, rules, policies and the like for which the server refuses a change of the column's type; foreign keys that point at it.
fn in_the_way(world: &World<'_>, table: &QualifiedName, column: &str, found: &mut Found) {
    use aegis_catalog::DependentKind;
    let Some(catalog) = world.catalog else { return };
    let name = world.name(table);
    let dependents = catalog.dependents(&name, Some(column));
    let refusing: Vec<String> = dependents
        .iter()
        .filter(|one| {
            matches!(
                one.kind,
                DependentKind::View
                    | DependentKind::Rule
                    | DependentKind::Policy
                    | DependentKind::Trigger
            )
        })
        .chain(dependents.iter().filter(|one| {
            // A generated column that names it.
            one.kind == DependentKind::Expression
                && one.part.as_deref().is_some_and(|part| {
                    part != column
                        && world
                            .column(table, part)
                            .is_some_and(|other| other.generated != aegis_catalog::Generated::No)
                })
        }))
        .map(|one| match &one.part {
            Some(part) => format!("{part} of {}", one.dependent),
            None => one.dependent.to_string(),
        })
        .collect();
    if !refusing.is_empty() {
        found.push(
            "dependent-in-the-way",
            Class::E,
            Level::Error,
            format!(
                "the server refuses it (0A000) while {} names {table}.{column}",
                refusing.join(", ")
            ),
        );
    }
}

/// Foreign keys on the column, of this table and of others: they are checked again when the values are compared in another way.
fn foreign_keys(world: &World<'_>, table: &QualifiedName, column: &str, found: &mut Found) {
    let Some(catalog) = world.catalog else { return };
    let name = world.name(table);
    for one in catalog.constraints.iter().filter(|one| {
        let of_this = one.table == name
            && one.references.is_some()
            && one.columns.iter().any(|one| one == column);
        let at_this = one.references.as_ref() == Some(&name)
            && one.referenced_columns.iter().any(|one| one == column);
        of_this || at_this
    }) {
        found.push(
            "change-type-index",
            Class::B,
            Level::Error,
            format!("{} of {} is checked again", one.name, one.table),
        );
    }
}

/// What hangs on a column makes even a free change of its type a scan, a rebuild or an error.
fn hangs_on(world: &World<'_>, table: &QualifiedName, column: &str, found: &mut Found) {
    let Some(catalog) = world.catalog else { return };
    let name = world.name(table);
    let checks = catalog
        .constraints
        .iter()
        .filter(|one| one.table == name && one.definition.starts_with("CHECK"))
        .filter(|one| one.columns.iter().any(|other| other == column));
    let expressions = catalog.indexes.iter().filter(|one| {
        one.table == name
            && (one
                .keys
                .iter()
                .any(|key| key.column.is_none() && key.expression.contains(column))
                || one
                    .predicate
                    .as_ref()
                    .is_some_and(|predicate| predicate.contains(column)))
    });
    let parts: Vec<String> = checks
        .map(|one| format!("CHECK {}", one.name))
        .chain(expressions.map(|one| format!("index {}", one.name.name)))
        .collect();
    if !parts.is_empty() && !world.is_small(table) {
        found.push(
            "change-type-index",
            Class::B,
            Level::Error,
            format!(
                "{} hang on {table}.{column} and are checked or built again",
                parts.join(", ")
            ),
        );
    }
}
