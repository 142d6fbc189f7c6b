//! ATTACH PARTITION of a live table: a CHECK that proves the bound, validated while others work, so that the ATTACH scans nothing.
//!
//! Invariants: only a range over one plain column, whose name the catalog tells, is sure; the CHECK is gone in the end.

use super::{Fix, Names, Piece, Place, default_name};
use crate::judge::Context;
use crate::name::{QualifiedName, identifier};
use crate::read::pieces;
use crate::statement::Statement;

/// The proof, the statement, and the end of the proof.
pub(super) fn proven(
    statement: &Statement,
    table: &QualifiedName,
    partition: &QualifiedName,
    context: &Context<'_>,
    names: Names<'_>,
) -> Fix {
    let key = context
        .catalog
        .and_then(|catalog| catalog.relation(&table.resolve(context.schema)))
        .and_then(|relation| relation.partition_key.as_deref())
        .and_then(column_of);
    let Some(column) = key else {
        return Fix::Told(
            "add a CHECK of the bound and of IS NOT NULL to the partition NOT VALID, VALIDATE it, ATTACH, drop it; with a catalog --fix writes that for a range over one column".to_owned(),
        );
    };
    let Some((from, to)) = pieces::range_bound(&statement.text) else {
        return Fix::Told(
            "add a CHECK that proves the bound to the partition NOT VALID, VALIDATE it, then ATTACH and drop it; no CHECK proves a hash bound".to_owned(),
        );
    };
    let Some(name) = default_name(names, partition, &[], "bound") else {
        return Fix::Told("its CHECK would have a name that is cut: write it by hand".to_owned());
    };
    let shown = aegis_catalog::shown(&column);
    let mut terms = vec![format!("{shown} IS NOT NULL")];
    if !from.eq_ignore_ascii_case("minvalue") {
        terms.push(format!("{shown} >= {from}"));
    }
    if !to.eq_ignore_ascii_case("maxvalue") {
        terms.push(format!("{shown} < {to}"));
    }
    let texts = [
        format!(
            "ALTER TABLE {partition} ADD CONSTRAINT {name} CHECK ({}) NOT VALID",
            terms.join(" AND ")
        ),
        format!("ALTER TABLE {partition} VALIDATE CONSTRAINT {name}"),
        statement.text.clone(),
        format!("ALTER TABLE {partition} DROP CONSTRAINT {name}"),
    ];
    Fix::Pieces(
        texts
            .into_iter()
            .map(|text| Piece {
                text,
                place: Place::Late,
            })
            .collect(),
    )
}

/// The column of `RANGE (column)`, as the server prints it.
fn column_of(key: &str) -> Option<String> {
    let inside = key.strip_prefix("RANGE (")?.strip_suffix(')')?;
    let plain = inside.starts_with('"') && inside.ends_with('"') && inside.len() > 2
        || inside
            .chars()
            .all(|one| one.is_alphanumeric() || one == '_');
    plain.then(|| identifier(inside))
}
