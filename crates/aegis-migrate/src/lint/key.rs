//! The key of a backfill beside the live table: a key that may be NULL, or that two rows may share, leaves rows out. And its range,
//! which its statement has to name.
//!
//! Invariants: without the table in a catalog nothing is said, nor where statements that are still to run may make the key; the run looks
//! again, and says it in the same words.

use aegis_backfill::KeyFault;
use aegis_catalog::{Catalog, Name};
use aegis_ddl::form::{Action, Form};

use super::{Judged, of_file, place};
use crate::change::{CHANGE_FILE, Change, Part, Phase};

/// What to do about it.
const SAFE: &str =
    "name columns with NOT NULL and a unique index over exactly them; the primary key is one";

/// Where the rows of a change are, and by which key they are moved.
#[derive(Debug, Clone)]
pub struct MovedRows {
    /// The table, as it is resolved.
    pub table: Name,
    /// `backfill.key`.
    pub key: Vec<String>,
    /// The file.
    pub file: String,
    /// The line of the key.
    pub line: usize,
    /// Whether the change's own statements may make the key.
    made_by_own: bool,
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
    pub fn of(change: &Change) -> Option<Self> {
        let backfill = change.backfill.as_ref()?;
        let table = backfill
            .table
            .clone()
            .or_else(|| change.sync.as_ref().map(|sync| sync.table.clone()))?;
        let file = format!("{}/{CHANGE_FILE}", change.path);
        let line = place::of_key(&file, "[backfill]", "key");
        let mut rows = Self {
            table: Name::new(&change.schema, &table),
            key: backfill.key.clone(),
            file,
            line,
            made_by_own: false,
        };
        rows.made_by_own = rows.may_be_made_by(change);
        Some(rows)
    }

    /// What is wrong with the key, where the table is known.
    pub(super) fn judged(&self, catalog: &Catalog) -> Option<Judged> {
        if self.made_by_own {
            return None;
        }
        let said = format!("backfill.key: {}", self.fault(catalog)?);
        Some(of_file(&self.file, self.line, "backfill-key", &said, SAFE))
    }

    /// Why the columns are no key of the table that a catalog has.
    pub fn fault(&self, catalog: &Catalog) -> Option<KeyFault> {
        let relation = catalog.relation(&self.table)?;
        let table = self.table.to_string();
        for name in &self.key {
            let Some(column) = relation.columns.iter().find(|one| one.name == *name) else {
                let column = name.clone();
                return Some(KeyFault::NoColumn { table, column });
            };
            if !column.not_null {
                let column = name.clone();
                return Some(KeyFault::Nullable { table, column });
            }
        }
        let is_unique = catalog.indexes_of(&self.table).any(|index| {
            let keys = index.keys.iter().map(|key| key.column.as_deref());
            index.unique
                && index.valid
                && index.predicate.is_none()
                && keys.eq(self.key.iter().map(|name| Some(name.as_str())))
        });
        let key = self.key.join(", ");
        (!is_unique).then_some(KeyFault::NotUnique { table, key })
    }

    /// Whether statements of a change that are still to run may make the key, or nobody can read what they do.
    pub fn may_be_made_by(&self, change: &Change) -> bool {
        let phases = [Phase::Expand, Phase::Migrate].into_iter();
        let mut parts = phases.flat_map(|phase| change.parts(phase));
        parts.any(|part| match part {
            Part::Sql { file, .. } => aegis_ddl::read(&file.text).is_ok_and(|script| {
                let mut all = script.statements.iter();
                all.any(|one| self.is_made_in(&one.form, &change.schema))
            }),
            _ => false,
        })
    }

    fn is_made_in(&self, form: &Form, schema: &str) -> bool {
        let is_key = |column: &String| self.key.contains(column);
        match form {
            Form::Do { .. } | Form::Other { .. } => true,
            Form::CreateTable(create) => create.table.resolve(schema) == self.table,
            Form::CreateIndex(create) => create.table.resolve(schema) == self.table,
            Form::AlterTable { table, actions } => {
                table.resolve(schema) == self.table
                    && actions.iter().any(|action| match action {
                        Action::AddColumn { column, .. } => is_key(&column.name),
                        Action::SetNotNull { column } => is_key(column),
                        Action::RenameColumn { to, .. } => is_key(to),
                        Action::AddConstraint { .. } | Action::AttachPartition { .. } => true,
                        _ => false,
                    })
            }
            _ => false,
        }
    }
}
