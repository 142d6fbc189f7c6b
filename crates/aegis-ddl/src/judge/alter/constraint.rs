//! Constraints that ALTER TABLE adds, drops or relies on.

use crate::class::Class;
use crate::form::{Constraint, ConstraintKind};
use crate::judge::world::World;
use crate::judge::{Found, again};
use crate::lock::LockMode;
use crate::name::QualifiedName;
use crate::report::Level;

pub(super) fn set_not_null(
    world: &World<'_>,
    table: &QualifiedName,
    column: &str,
    found: &mut Found,
) {
    if !world.is_proven(table, column) && world.is_not_null(table, column) == Some(true) {
        return;
    }
    if world.is_proven(table, column) {
        found.push(
            "set-not-null",
            Class::D,
            Level::Notice,
            format!("a valid CHECK on {table}.{column} says so already"),
        );
        return;
    }
    if let Some(check) = world.seems_proven_by(table, column) {
        let unless = format!(
            "{check}, which is dropped below, is a valid CHECK ({column} IS NOT NULL) (--database or --catalog tells)"
        );
        let message = format!("every row of {table} is checked for {column}");
        found.push_unless(
            "set-not-null-scan",
            Class::B,
            Level::Warning,
            message,
            unless,
        );
        return;
    }
    if !world.is_small(table) {
        let message = format!("every row of {table} is checked for {column}");
        if world.may_be_proven() {
            found.push_unless(
                "set-not-null-scan",
                Class::B,
                Level::Error,
                message,
                format!(
                    "a valid CHECK ({column} IS NOT NULL) is there (--database or --catalog tells)"
                ),
            );
        } else {
            found.push("set-not-null-scan", Class::B, Level::Error, message);
        }
    }
    found.push(
        "set-not-null",
        Class::D,
        Level::Error,
        format!("INSERTs that leave {table}.{column} NULL fail"),
    );
}

pub(super) fn add_constraint(
    world: &World<'_>,
    table: &QualifiedName,
    constraint: &Constraint,
    found: &mut Found,
) {
    let can_break = match constraint.kind {
        // A program that does not know these columns leaves them NULL, and NULL breaks neither.
        ConstraintKind::ForeignKey { .. } | ConstraintKind::Unique { .. } => {
            constraint.nulls_not_distinct || !world.are_empty(table, &constraint.columns)
        }
        _ => true,
    };
    let restricts = |found: &mut Found| {
        if !can_break {
            return;
        }
        found.push(
            "new-write-restriction",
            Class::D,
            Level::Warning,
            format!("writes of {table} that break it are refused from now on"),
        );
    };
    // A foreign key is not inherited.
    let small = match constraint.kind {
        ConstraintKind::ForeignKey { .. } => world.is_small_alone(table),
        _ => world.is_small(table),
    };
    let scan = |found: &mut Found, what: &str| {
        let message = format!("every row of {table} is {what}");
        if small {
            found.push("add-constraint-scan", Class::B, Level::Notice, message);
        } else {
            let of = (table, constraint.columns.as_slice());
            found.push_of(world, of, ("add-constraint-scan", Class::B), message);
        }
    };
    let builds = |found: &mut Found, rule: &'static str| {
        let message = format!("its index is built while readers and writers of {table} wait");
        if world.is_small_alone(table) {
            found.push(rule, Class::B, Level::Notice, message);
        } else {
            let of = (table, constraint.columns.as_slice());
            found.push_of(world, of, (rule, Class::B), message);
        }
    };
    let since = |found: &mut Found, what: &str, major: u32| {
        if world.server < major {
            found.push(
                "unknown-statement",
                Class::E,
                Level::Error,
                format!(
                    "{what} begins with {major}, and the server is {}",
                    world.server
                ),
            );
        }
    };
    if constraint.not_enforced {
        since(found, "NOT ENFORCED", 18);
    }
    if constraint.nulls_not_distinct {
        since(found, "NULLS NOT DISTINCT", 15);
    }
    if let ConstraintKind::Unique {
        using_index: Some(index),
    }
    | ConstraintKind::PrimaryKey {
        using_index: Some(index),
    } = &constraint.kind
        && let Some(why) = world.unfit(table, index).or_else(|| {
            let refused = world.is_partitioned(table);
            refused.then(|| format!("cannot be given to {table}, which is partitioned (0A000)"))
        })
    {
        found.push(
            "add-unique",
            Class::E,
            Level::Error,
            format!("the server refuses it: {index} {why}"),
        );
    }
    match &constraint.kind {
        ConstraintKind::Check { .. } => {
            if !constraint.not_valid && !constraint.not_enforced {
                scan(found, "checked under ACCESS EXCLUSIVE");
            }
            if !constraint.not_enforced {
                restricts(found);
            }
        }
        ConstraintKind::NotNull { column } => {
            if constraint.not_valid && world.server < 18 {
                found.push(
                    "unknown-statement",
                    Class::E,
                    Level::Error,
                    format!("NOT NULL … NOT VALID begins with 18, and the server is {}", world.server),
                );
            } else if constraint.not_valid {
                restricts(found);
            } else {
                set_not_null(world, table, column, found);
            }
        }
        ConstraintKind::ForeignKey { references } => {
            let references = &references.table;
            found.lock(references, LockMode::ShareRowExclusive);
            if !constraint.not_valid && !constraint.not_enforced {
                scan(
                    found,
                    &format!("looked up in {references} while writers of both wait"),
                );
            }
            if constraint.not_valid && world.is_partitioned(table) && world.server < 18 {
                found.push(
                    "unknown-statement",
                    Class::E,
                    Level::Error,
                    format!("{table} is partitioned: a foreign key on it can be NOT VALID from 18 on (42809)"),
                );
            }
            if !constraint.not_enforced {
                restricts(found);
            }
        }
        ConstraintKind::Unique { using_index } => {
            if using_index.is_some() {
                found.push(
                    "new-write-restriction",
                    Class::D,
                    Level::Notice,
                    "its unique index refuses duplicates already",
                );
            } else {
                builds(found, "add-unique");
                restricts(found);
            }
        }
        ConstraintKind::PrimaryKey { using_index } => {
            if let Some(index) = using_index {
                primary_key_using(world, table, index, found);
            } else {
                builds(found, "add-primary-key");
                restricts(found);
            }
        }
        ConstraintKind::Exclude => found.push(
            "add-exclusion",
            Class::E,
            Level::Error,
            format!("its index is built while readers and writers of {table} wait, and there is no online form"),
        ),
        ConstraintKind::Other => found.push(
            "unknown-statement",
            Class::E,
            Level::Error,
            "this kind of constraint is not known to this release",
        ),
    }
}

/// Columns of a primary key become NOT NULL: a scan, unless they are.
fn primary_key_using(world: &World<'_>, table: &QualifiedName, index: &str, found: &mut Found) {
    let name = aegis_catalog::Name::new(world.name(table).schema, index);
    let listed = world.catalog.and_then(|catalog| catalog.index(&name));
    let columns: Vec<&str> = match (listed, world.index_columns(&name)) {
        (Some(known), _) => known
            .keys
            .iter()
            .filter_map(|key| key.column.as_deref())
            .collect(),
        (None, Some(said))
            if said
                .iter()
                .all(|one| world.is_not_null(table, one).is_some()) =>
        {
            said.iter().map(String::as_str).collect()
        }
        _ => {
            found.push_unless(
                "set-not-null-scan",
                Class::B,
                Level::Notice,
                format!("columns that are not NOT NULL yet are checked in every row of {table}"),
                "all columns of the index are NOT NULL",
            );
            return;
        }
    };
    let nullable: Vec<&str> = columns
        .into_iter()
        .filter(|column| {
            world.is_not_null(table, column) != Some(true) && !world.is_proven(table, column)
        })
        .collect();
    if !nullable.is_empty() && !world.is_small(table) {
        found.push(
            "set-not-null-scan",
            Class::B,
            Level::Error,
            format!(
                "{} may be NULL: every row of {table} is checked under ACCESS EXCLUSIVE",
                nullable.join(", ")
            ),
        );
    }
}

pub(super) fn references(
    world: &World<'_>,
    table: &QualifiedName,
    constraint: &str,
) -> Option<QualifiedName> {
    let name = world.name(table);
    let other = world
        .catalog?
        .constraints
        .iter()
        .find(|one| one.table == name && one.name == constraint)?
        .references
        .clone()?;
    Some(QualifiedName {
        schema: Some(other.schema),
        name: other.name,
    })
}

pub(super) fn drop_constraint(
    world: &World<'_>,
    table: &QualifiedName,
    constraint: &str,
    if_exists: bool,
    found: &mut Found,
) {
    if let Some(other) = references(world, table, constraint) {
        found.lock(&other, LockMode::AccessExclusive);
    }
    if if_exists && world.has_no_constraint(table, constraint) {
        found.push(
            "drop-constraint",
            Class::D,
            Level::Notice,
            format!("{table} has no constraint {constraint}: nothing is dropped"),
        );
        return;
    }
    // A CHECK that the set made to prove NOT NULL, or that nobody relied on yet.
    if world.is_scaffold(table, constraint) {
        return;
    }
    if world.is_hint(table, constraint) {
        found.push_unless(
            "drop-constraint",
            Class::D,
            Level::Warning,
            format!("what {constraint} kept true of {table} no longer holds"),
            "it said NOT NULL, which the column says now",
        );
        return;
    }
    let made = again::Made::constraint(world, table, constraint);
    if world.comes_again(&made) {
        found.push(
            "drop-constraint",
            Class::D,
            Level::Warning,
            format!("until it is made again, what {constraint} kept true of {table} does not hold"),
        );
        return;
    }
    let is_check = world.catalog.is_some_and(|catalog| {
        let name = world.name(table);
        catalog.constraints.iter().any(|one| {
            one.table == name && one.name == constraint && one.definition.starts_with("CHECK")
        })
    });
    let level = if is_check {
        Level::Notice
    } else {
        Level::Error
    };
    found.push(
        "drop-constraint",
        Class::D,
        level,
        format!("what {constraint} kept true of {table} no longer holds"),
    );
}
