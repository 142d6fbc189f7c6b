//! Rows: what is short enough for an expand, and what is a backfill.

use super::Found;
use super::world::{ServerWritten, World};
use crate::class::Class;
use crate::form::{RowScope, Source};
use crate::lock::LockMode;
use crate::name::QualifiedName;
use crate::report::Level;

/// Literal or keyed rows up to this are short.
const ROWS_MAX: usize = 1000;

pub(super) fn insert(world: &World<'_>, into: &QualifiedName, source: &Source, found: &mut Found) {
    if !world.is_live(into) {
        // Nobody waits for a new table, but the transaction may be long.
        if matches!(source, Source::Query) && !world.fresh {
            found.long = true;
            found.push(
                "dml-bulk",
                Class::C,
                Level::Notice,
                format!("nobody knows how many rows its query puts into {into}"),
            );
        }
        return;
    }
    found.lock(into, LockMode::RowExclusive);
    match source {
        Source::Defaults => {}
        Source::Rows(rows) if *rows <= ROWS_MAX => {}
        Source::Selected { rows, keys }
            if *rows <= ROWS_MAX
                && keys.iter().all(|(table, columns)| {
                    world.is_small(table) || is_key(world, table, columns)
                }) => {}
        Source::Selected { rows, .. } if *rows > ROWS_MAX => bulk(
            found,
            format!("{rows} rows in one transaction (up to {ROWS_MAX} are short)"),
        ),
        Source::Rows(rows) => bulk(
            found,
            format!("{rows} rows in one transaction (up to {ROWS_MAX} are short)"),
        ),
        Source::Query | Source::Selected { .. } => bulk(
            found,
            format!("nobody knows how many rows its query puts into {into}"),
        ),
    }
}

pub(super) fn change(
    world: &World<'_>,
    table: &QualifiedName,
    scope: &RowScope,
    verb: &str,
    found: &mut Found,
) {
    if !world.is_live(table) {
        return;
    }
    found.lock(table, LockMode::RowExclusive);
    match scope {
        RowScope::Keyed { rows, columns } if *rows <= ROWS_MAX => {
            if world.is_small(table) || is_key(world, table, columns) {
                return;
            }
            found.push_unless(
                "dml-bulk",
                Class::B,
                Level::Error,
                format!(
                    "nobody knows how many rows of {table} have this {}",
                    columns.join(", ")
                ),
                format!(
                    "{} is unique (--database or --catalog tells)",
                    columns.join(", ")
                ),
            );
        }
        RowScope::Keyed { rows, .. } => bulk(
            found,
            format!("{verb} of {rows} rows of {table} in one transaction"),
        ),
        // Small or not: the version before misses them.
        RowScope::All if verb == "DELETE" => found.push(
            "truncate",
            Class::D,
            Level::Error,
            format!("every row of {table} goes"),
        ),
        RowScope::All => {
            let message = format!("{verb} of every row of {table} in one transaction");
            if world.is_small(table) {
                found.push("dml-bulk", Class::C, Level::Notice, message);
            } else {
                bulk(found, message);
            }
        }
        RowScope::Condition => {
            let message = format!("nobody knows how many rows of {table} its condition means");
            if world.is_small(table) {
                found.push("dml-bulk", Class::C, Level::Notice, message);
            } else {
                bulk(found, message);
            }
        }
    }
}

/// A value for a column that takes none.
pub(super) fn gives(
    world: &World<'_>,
    table: &QualifiedName,
    columns: &[String],
    overrides: bool,
    found: &mut Found,
) {
    for column in columns {
        let is = match world.written_by_server(table, column) {
            Some(ServerWritten::Generated) => "a generated column",
            Some(ServerWritten::Identity) if !overrides => "GENERATED ALWAYS AS IDENTITY",
            _ => continue,
        };
        found.push(
            "write-to-generated",
            Class::E,
            Level::Error,
            format!("{table}.{column} is {is}: the server refuses a value for it (428C9)"),
        );
    }
}

/// Whether these columns name single rows: by what is known of the table, else by what columns of that name usually are.
fn is_key(world: &World<'_>, table: &QualifiedName, columns: &[String]) -> bool {
    const USUALLY_UNIQUE: &[&str] = &[
        "id",
        "uuid",
        "guid",
        "key",
        "code",
        "slug",
        "name",
        "email",
        "username",
        "login",
        "version",
        "sku",
        "handle",
        "uid",
        "ulid",
        "isbn",
        "iso_code",
        "version_num",
        "migration_id",
        "MigrationId",
        "schema_version",
    ];
    // The place of a row in its table.
    if columns.iter().any(|column| column == "ctid") {
        return true;
    }
    world.is_key(table, columns).unwrap_or_else(|| {
        columns
            .iter()
            .any(|column| USUALLY_UNIQUE.contains(&column.as_str()))
    })
}

fn bulk(found: &mut Found, message: String) {
    found.push("dml-bulk", Class::B, Level::Error, message);
}
