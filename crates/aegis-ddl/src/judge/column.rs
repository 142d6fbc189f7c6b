//! A column that is added to a live table.

use super::volatility::{self, Volatility};
use super::world::World;
use super::{Found, types};
use crate::class::Class;
use crate::form::{Column, Generated};
use crate::lock::LockMode;
use crate::name::QualifiedName;
use crate::report::Level;

pub(super) fn add(
    world: &World<'_>,
    table: &QualifiedName,
    column: &Column,
    if_not_exists: bool,
    found: &mut Found,
) {
    let name = &column.name;
    found.push(
        "add-column",
        Class::D,
        Level::Notice,
        format!("programs that read {table} with SELECT * meet {name}"),
    );
    if if_not_exists {
        found.push(
            "create-table-if-not-exists",
            Class::B,
            Level::Notice,
            format!("a column {name} of another type is taken for done"),
        );
    }
    let rewrite = |found: &mut Found, why: String| {
        let small = world.is_small(table);
        let level = if small { Level::Notice } else { Level::Error };
        found.push("add-column-rewrite", Class::B, level, why);
    };
    if matches!(
        column.data_type.base.name.as_str(),
        "serial" | "bigserial" | "smallserial" | "serial4" | "serial8" | "serial2"
    ) {
        rewrite(
            found,
            format!("{table} is rewritten: each row takes a number of the sequence of {name}"),
        );
    }
    if column.identity {
        rewrite(
            found,
            format!("{table} is rewritten: each row takes a number of the identity {name}"),
        );
    }
    match column.generated {
        Some(Generated::Stored) => rewrite(
            found,
            format!("{table} is rewritten: {name} is stored in each row"),
        ),
        Some(Generated::Virtual) if world.server < 18 => found.push(
            "unknown-statement",
            Class::E,
            Level::Error,
            format!(
                "virtual generated columns begin with 18, and the server is {}",
                world.server
            ),
        ),
        _ => {}
    }
    if let Some(default) = &column.default {
        match volatility::of(world, default) {
            Volatility::Steady => {}
            Volatility::Volatile(call) => rewrite(
                found,
                format!("{table} is rewritten: {call}() gives each row another value"),
            ),
            Volatility::Unknown(call) => found.push_unless(
                "add-column-rewrite",
                Class::B,
                Level::Error,
                format!("{table} is rewritten if {call}() is volatile"),
                format!("{call}() is immutable or stable (--database or --catalog tells)"),
            ),
        }
    }
    domain(world, table, column, found);
    let has_value = column
        .default
        .as_ref()
        .is_some_and(|default| !default.is_null)
        || column.identity
        || column.generated.is_some()
        || column.data_type.base.name.contains("serial");
    if column.not_null && !has_value {
        found.push(
            "add-required-column",
            Class::D,
            Level::Error,
            format!("{name} has no default: it fails when {table} has rows, and INSERTs that do not know it fail"),
        );
    }
    let scan = if world.is_small(table) {
        Level::Notice
    } else {
        Level::Error
    };
    if column.checked {
        found.push(
            "add-column-constraint",
            Class::B,
            scan,
            format!("the CHECK of {name} scans {table} under ACCESS EXCLUSIVE"),
        );
    }
    if column.unique || column.primary {
        found.push(
            "add-column-constraint",
            Class::B,
            scan,
            format!("the index of {name} is built under ACCESS EXCLUSIVE"),
        );
    }
    if let Some(references) = column.references.as_ref().map(|at| &at.table) {
        found.lock(references, LockMode::ShareRowExclusive);
        // Measured: without a default the new, empty column is not validated.
        if column
            .default
            .as_ref()
            .is_some_and(|default| !default.is_null)
        {
            found.push(
                "add-column-constraint",
                Class::B,
                scan,
                format!(
                    "every row of {table} is looked up in {references} while writers of both wait"
                ),
            );
        }
    }
}

/// A domain with a constraint rewrites, even when the column is nullable; one with a volatile default too.
fn domain(world: &World<'_>, table: &QualifiedName, column: &Column, found: &mut Found) {
    if column.data_type.array {
        // An array of a domain is no domain.
        return;
    }
    let of = &column.data_type.base;
    let Some(domain) = world.domains_below(of) else {
        if !types::is_known(of) && !world.is_told_type(of) && world.is_live(table) {
            found.push_unless(
                "add-column-rewrite",
                Class::B,
                Level::Warning,
                format!("{table} is rewritten if {of} is a domain with a constraint"),
                format!("{of} is none (--database or --catalog tells)"),
            );
        }
        return;
    };
    if domain.constrained {
        found.push(
            "add-column-rewrite",
            Class::B,
            if world.is_small(table) {
                Level::Notice
            } else {
                Level::Error
            },
            format!("{table} is rewritten: the domain {of} has a constraint"),
        );
    } else if column.default.is_none()
        && let Some(default) = &domain.default
        && volatility::of(world, default) != Volatility::Steady
    {
        found.push(
            "add-column-rewrite",
            Class::B,
            if world.is_small(table) {
                Level::Notice
            } else {
                Level::Error
            },
            format!("{table} is rewritten: the default of the domain {of} is another in each row"),
        );
    }
}
