//! ATTACH PARTITION: what is scanned, and whether a valid CHECK proves the bound so that nothing is.

use super::Found;
use super::world::World;
use crate::class::Class;
use crate::form::{Action, Bound, Form, Term};
use crate::lock::LockMode;
use crate::name::QualifiedName;
use crate::report::Level;

pub(super) fn attach(
    world: &World<'_>,
    table: &QualifiedName,
    partition: &QualifiedName,
    bound: Option<&Bound>,
    found: &mut Found,
) {
    if let Some(other) = world
        .relation(table)
        .and_then(|relation| relation.default_partition.clone())
    {
        let other = QualifiedName {
            schema: Some(other.schema),
            name: other.name,
        };
        found.lock(&other, LockMode::AccessExclusive);
        if !world.is_small(&other) && !excludes(world, table, &other, bound) {
            found.push_unless(
                "attach-partition-scan",
                Class::B,
                Level::Error,
                format!(
                    "{other}, the default partition of {table}, is scanned under ACCESS EXCLUSIVE"
                ),
                "a valid CHECK on it excludes the new bound",
            );
        }
    }
    if !world.is_live(partition) {
        return;
    }
    found.lock(partition, LockMode::AccessExclusive);
    if world.is_small(partition) {
        return;
    }
    let indexes = missing_indexes(world, table, partition);
    if !indexes.is_empty() {
        found.push(
            "attach-partition-scan",
            Class::B,
            Level::Error,
            format!(
                "{partition} has no index like {}, which is built under ACCESS EXCLUSIVE: build it concurrently first",
                indexes.join(", ")
            ),
        );
    }
    let key = world.partition_by(table);
    let missing = match bound {
        Some(Bound::Range { from, to }) => missing_of_range(world, partition, &key, from, to),
        Some(Bound::List { values }) => missing_of_list(world, partition, &key, values),
        Some(Bound::Hash) => Some("no CHECK proves a hash bound".to_owned()),
        Some(Bound::Default) | None => Some("no CHECK is compared with this bound".to_owned()),
    };
    let message = format!("{partition} is scanned under ACCESS EXCLUSIVE");
    match missing {
        Some(missing) => found.push(
            "attach-partition-scan",
            Class::B,
            Level::Error,
            format!("{message}: {missing}"),
        ),
        // The default partition, where nobody looked at the catalog.
        None if world.relation(table).is_none() => found.push_unless(
            "attach-partition-scan",
            Class::B,
            Level::Notice,
            format!("a default partition of {table} is scanned, and {partition} when its key may be NULL"),
            "there is no default partition, and the key is NOT NULL (--database or --catalog tells)",
        ),
        None => {}
    }
}

/// Whether a valid CHECK of the default partition says that no row of it is within the bound.
fn excludes(
    world: &World<'_>,
    table: &QualifiedName,
    default: &QualifiedName,
    bound: Option<&Bound>,
) -> bool {
    let Some(Bound::Range { from, to }) = bound else {
        return false;
    };
    let key = world.partition_by(table);
    let ([column], [lower], [upper]) = (key.as_slice(), from.as_slice(), to.as_slice()) else {
        return false;
    };
    world.terms_of(default).iter().any(|term| {
        term.column == *column
            && match (term.operator.as_str(), term.values.as_slice()) {
                ("outside", [a, b]) => not_less(lower, a) && not_less(b, upper),
                (">=" | ">", [value]) => not_less(value, upper),
                ("<", [value]) => not_less(lower, value),
                ("<=", [value]) => less(value, lower),
                _ => false,
            }
    })
}

/// Indexes of the parent that the partition has none like: they are built under the lock.
fn missing_indexes(
    world: &World<'_>,
    table: &QualifiedName,
    partition: &QualifiedName,
) -> Vec<String> {
    let Some(catalog) = world.catalog else {
        return Vec::new();
    };
    let (parent, own) = (world.name(table), world.name(partition));
    let like = |one: &aegis_catalog::Index, other: &aegis_catalog::Index| {
        one.method == other.method
            && one.unique == other.unique
            && one.nulls_not_distinct == other.nulls_not_distinct
            && one.keys == other.keys
            && one.include == other.include
            && one.predicate == other.predicate
            && other.valid
    };
    catalog
        .indexes_of(&parent)
        .filter(|one| !catalog.indexes_of(&own).any(|other| like(one, other)))
        .map(|one| one.name.name.clone())
        .collect()
}

fn missing_of_range(
    world: &World<'_>,
    partition: &QualifiedName,
    key: &[String],
    from: &[String],
    to: &[String],
) -> Option<String> {
    let terms = world.terms_of(partition);
    let candidates: Vec<String> = if key.is_empty() {
        terms.iter().map(|term| term.column.clone()).collect()
    } else {
        key.iter().take(1).cloned().collect()
    };
    let ([lower, ..], [upper, ..]) = (from, to) else {
        return Some("its bound could not be read".to_owned());
    };
    if from.len() > 1 {
        return Some("a bound of several columns is not compared with a CHECK".to_owned());
    }
    let proves = |column: &String| {
        let of = || terms.iter().filter(|term| term.column == *column);
        let from_below = lower == "minvalue"
            || of().any(
                |term| match (term.operator.as_str(), term.values.as_slice()) {
                    (">=" | ">" | "=", [value]) => not_less(value, lower),
                    ("in", values) => values.iter().all(|value| not_less(value, lower)),
                    _ => false,
                },
            );
        let to_above = upper == "maxvalue"
            || of().any(
                |term| match (term.operator.as_str(), term.values.as_slice()) {
                    ("<", [value]) => not_less(upper, value),
                    ("<=" | "=", [value]) => less(value, upper),
                    ("in", values) => values.iter().all(|value| less(value, upper)),
                    _ => false,
                },
            );
        from_below && to_above && !may_be_null(world, partition, column, &terms)
    };
    (!candidates.iter().any(proves)).then(|| no_proof(world, partition, &candidates))
}

fn missing_of_list(
    world: &World<'_>,
    partition: &QualifiedName,
    key: &[String],
    values: &[String],
) -> Option<String> {
    let terms = world.terms_of(partition);
    let candidates: Vec<String> = if key.is_empty() {
        terms.iter().map(|term| term.column.clone()).collect()
    } else {
        key.to_vec()
    };
    let proves = |column: &String| {
        terms
            .iter()
            .filter(|term| term.column == *column)
            .any(|term| {
                matches!(term.operator.as_str(), "=" | "in")
                    && term
                        .values
                        .iter()
                        .all(|value| values.iter().any(|one| same(one, value)))
            })
            && (values.iter().any(|one| one == "null")
                || !may_be_null(world, partition, column, &terms))
    };
    (!candidates.iter().any(proves)).then(|| no_proof(world, partition, &candidates))
}

fn no_proof(world: &World<'_>, partition: &QualifiedName, columns: &[String]) -> String {
    let terms = world.terms_of(partition);
    let nullable = columns
        .iter()
        .find(|column| may_be_null(world, partition, column, &terms));
    match nullable {
        Some(column) => {
            format!("no valid CHECK proves its bound and that {column} is not NULL")
        }
        None => "no valid CHECK proves its bound".to_owned(),
    }
}

/// Whether it is known that the column may be NULL: then a comparison alone proves nothing.
fn may_be_null(world: &World<'_>, table: &QualifiedName, column: &str, terms: &[Term]) -> bool {
    let says = terms
        .iter()
        .any(|term| term.column == column && term.operator == "is not null");
    !says && !world.is_proven(table, column) && world.is_not_null(table, column) == Some(false)
}

/// A date with midnight is the date; UTC is UTC.
fn plain(value: &str) -> &str {
    value.trim_end_matches("+00").trim_end_matches(" 00:00:00")
}

fn same(a: &str, b: &str) -> bool {
    plain(a) == plain(b)
}

/// Numbers as numbers, times of one form as text; what cannot be compared is not less.
fn order(a: &str, b: &str) -> Option<std::cmp::Ordering> {
    if let (Ok(a), Ok(b)) = (a.parse::<i128>(), b.parse::<i128>()) {
        return Some(a.cmp(&b));
    }
    if same(a, b) {
        return Some(std::cmp::Ordering::Equal);
    }
    let (a, b) = (plain(a), plain(b));
    let is_time = |text: &str| {
        text.len() >= 10
            && text
                .bytes()
                .all(|one| one.is_ascii_digit() || b"-: .".contains(&one))
            && text.as_bytes()[4] == b'-'
            && text.as_bytes()[7] == b'-'
    };
    (is_time(a) && is_time(b)).then(|| a.cmp(b))
}

fn less(a: &str, b: &str) -> bool {
    order(a, b).is_some_and(std::cmp::Ordering::is_lt)
}

fn not_less(a: &str, b: &str) -> bool {
    order(a, b).is_some_and(std::cmp::Ordering::is_ge)
}

/// What a CHECK says, from its definition as the server prints it.
pub(super) fn terms_of(definition: &str) -> Vec<Term> {
    let Ok(script) = crate::read(&format!("ALTER TABLE t ADD {definition}")) else {
        return Vec::new();
    };
    match script.statements.first().map(|one| &one.form) {
        Some(Form::AlterTable { actions, .. }) => match actions.first() {
            Some(Action::AddConstraint { constraint }) => constraint.terms.clone(),
            _ => Vec::new(),
        },
        _ => Vec::new(),
    }
}

/// The columns of `RANGE (at)`; empty when an expression is among them.
pub(super) fn key_columns(printed: &str) -> Vec<String> {
    let Ok(script) = crate::read(&format!("CREATE TABLE t (a int) PARTITION BY {printed}")) else {
        return Vec::new();
    };
    match script.statements.first().map(|one| &one.form) {
        Some(Form::CreateTable(table)) => table.partition_by.clone(),
        _ => Vec::new(),
    }
}
