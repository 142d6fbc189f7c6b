//! The key of a backfill beside the live table: a key that may be NULL, or that two rows may share, leaves rows out. And its range,
//! which its statement has to name.
//!
//! Invariants: without the table in a catalog nothing is said; the run looks again.

use aegis_catalog::Catalog;

use super::{Judged, of_file, place};
use crate::change::{CHANGE_FILE, Change};

/// What to do about it.
const SAFE: &str =
    "name columns with NOT NULL and a unique index over exactly them; the primary key is one";

/// Where the rows of a change are, and by which key they are moved.
#[derive(Debug, Clone)]
pub struct MovedRows {
    /// The table, as it is resolved.
    pub table: aegis_catalog::Name,
    /// `backfill.key`.
    pub key: Vec<String>,
    /// The file.
    pub file: String,
    /// The line of the key.
    pub line: usize,
}

/// A statement of a backfill that does not name both ends of its range, as the run says too, or names one where it bounds nothing.
pub(super) fn without_range(change: &Change) -> Option<Judged> {
    let name = change.backfill.as_ref()?.statement.as_ref()?;
    let file = format!("{}/{name}", change.path);
    let text = &change.file(name)?.text;
    let said = match aegis_backfill::job::names_range(&file, text) {
        Err(said) => said,
        Ok(()) => aegis_backfill::job::outside_of_range(text)?,
    };
    let said = said.strip_prefix(&format!("{file}: ")).unwrap_or(&said);
    let safe = aegis_ddl::rules::find("backfill-range").map_or("", |rule| rule.safe);
    Some(of_file(&file, 1, "backfill-range", said, safe))
}

impl MovedRows {
    /// Of a change with a backfill.
    pub(super) fn of(change: &Change) -> Option<Self> {
        let backfill = change.backfill.as_ref()?;
        let table = backfill
            .table
            .clone()
            .or_else(|| change.sync.as_ref().map(|sync| sync.table.clone()))?;
        let file = format!("{}/{CHANGE_FILE}", change.path);
        let line = place::of_key(&file, "[backfill]", "key");
        Some(Self {
            table: aegis_catalog::Name {
                schema: change.schema.clone(),
                name: table,
            },
            key: backfill.key.clone(),
            file,
            line,
        })
    }

    /// What is wrong with the key, where the table is known.
    pub(super) fn judged(&self, catalog: &Catalog) -> Option<Judged> {
        let relation = catalog.relation(&self.table)?;
        let column = |name: &String| relation.columns.iter().find(|one| one.name == *name);
        let nullable = self
            .key
            .iter()
            .find(|name| column(name).is_some_and(|one| !one.not_null));
        let unique = || {
            catalog.indexes_of(&self.table).any(|index| {
                index.unique
                    && index.valid
                    && index.predicate.is_none()
                    && index.keys.len() == self.key.len()
                    && self.key.iter().all(|name| {
                        index
                            .keys
                            .iter()
                            .any(|key| key.column.as_deref() == Some(name.as_str()))
                    })
            })
        };
        let said = match nullable {
            Some(name) => format!(
                "backfill.key: {}.{name} may be NULL, and NULL is neither before nor after anything",
                self.table.name
            ),
            None if self.key.iter().all(|name| column(name).is_some()) && !unique() => format!(
                "backfill.key: {} has no unique index over ({}), so rows that share a key may be left out",
                self.table.name,
                self.key.join(", ")
            ),
            None => return None,
        };
        Some(of_file(&self.file, self.line, "backfill-key", &said, SAFE))
    }
}
