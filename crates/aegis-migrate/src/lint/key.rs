//! The key of a backfill beside the live table: a key that may be NULL, or that two rows may share, leaves rows out. And its range,
//! which its statement has to name.
//!
//! Invariants: without the table in a catalog nothing is said, nor where statements that are still to run may make the key; what is
//! judged is what the job walks, and the run looks again and says it in the same words.

use aegis_backfill::KeyFault;
use aegis_backfill::job::Walked;
use aegis_catalog::{Catalog, Name, Relation, RelationKind};

use super::made::Made;
use super::{Judged, of_file, place};
use crate::change::{CHANGE_FILE, Change, ChangeId, Part, Phase};

/// Files that a change runs when its rows are moved: they make nothing for that.
const AFTER_ROWS: [&str; 3] = ["migrate.after_backfill", "contract.tighten", "contract.sql"];

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
    /// What the key has to walk.
    pub walked: Walked,
    /// The file.
    pub file: String,
    /// The line of the key.
    pub line: usize,
    /// The change.
    id: ChangeId,
    /// Of what the change's own statements may make the key.
    made_by_own: Made,
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
            walked: if backfill.statement.is_some() {
                Walked::Whole
            } else {
                Walked::EachLeaf
            },
            file,
            line,
            id: change.id.clone(),
            made_by_own: Made::default(),
        };
        rows.made_by_own = rows.made_by(change, &[Phase::Expand, Phase::Migrate]);
        Some(rows)
    }

    /// What is wrong with the key, where the table is known.
    pub(super) fn judged(&self, catalog: &Catalog) -> Option<Judged> {
        let fault = self.fault(catalog)?;
        if self.made_by_own.is_of(&self.tree(catalog)) {
            return None;
        }
        let said = format!("backfill.key: {fault}");
        Some(of_file(&self.file, self.line, "backfill-key", &said, SAFE))
    }

    /// Why the columns are no key of what a catalog has, as far as the job would walk it.
    pub fn fault(&self, catalog: &Catalog) -> Option<KeyFault> {
        let mut walked = self.walked_in(catalog);
        walked.sort_by(|a, b| a.name.cmp(&b.name));
        walked.iter().find_map(|one| self.fault_of(one, catalog))
    }

    fn fault_of(&self, relation: &Relation, catalog: &Catalog) -> Option<KeyFault> {
        let table = relation.name.to_string();
        for name in &self.key {
            let Some(column) = relation.column(name) else {
                let column = name.clone();
                return Some(KeyFault::NoColumn { table, column });
            };
            if !column.not_null {
                let column = name.clone();
                return Some(KeyFault::Nullable { table, column });
            }
        }
        let is_unique = catalog.indexes_of(&relation.name).any(|index| {
            let keys = index.keys.iter().map(|key| key.column.as_deref());
            index.unique
                && index.valid
                && index.method == "btree"
                && index.predicate.is_none()
                && keys.eq(self.key.iter().map(|name| Some(name.as_str())))
        });
        let key = self.key.join(", ");
        (!is_unique).then_some(KeyFault::NotUnique { table, key })
    }

    /// What the job would walk of a catalog; nothing where it has no table, or one that the job refuses for itself.
    fn walked_in<'a>(&self, catalog: &'a Catalog) -> Vec<&'a Relation> {
        let tree = below(&self.table, catalog);
        let leaves: Vec<_> = tree
            .iter()
            .copied()
            .filter(|one| one.kind != RelationKind::Partitioned)
            .collect();
        if leaves.iter().any(|one| one.kind != RelationKind::Table) {
            return Vec::new();
        }
        match self.walked {
            Walked::EachLeaf => leaves,
            // Without a leaf there is nothing to walk.
            Walked::Whole if leaves.is_empty() => leaves,
            Walked::Whole => tree.into_iter().take(1).collect(),
        }
    }

    /// The table with all that is below it in a catalog.
    pub fn tree(&self, catalog: &Catalog) -> Vec<Name> {
        let below = below(&self.table, catalog).into_iter();
        below.map(|one| one.name.clone()).collect()
    }

    /// Whether statements of these phases, which are still to run, may make the key of the table or of something below it, or nobody can
    /// read what they do.
    pub fn may_be_made_by(&self, change: &Change, phases: &[Phase], tree: &[Name]) -> bool {
        self.made_by(change, phases).is_of(tree)
    }

    fn made_by(&self, change: &Change, phases: &[Phase]) -> Made {
        let mut made = Made::default();
        for phase in phases {
            for part in change.parts(*phase) {
                if let Part::Sql { key, file } = part
                    && !(change.id == self.id && AFTER_ROWS.contains(&key))
                {
                    made.add(&file.text, &change.schema, self);
                }
            }
        }
        made
    }
}

/// A table, first, and all that is below it: partitions of partitions and heirs too.
fn below<'a>(table: &Name, catalog: &'a Catalog) -> Vec<&'a Relation> {
    let mut found: Vec<&Relation> = catalog.relation(table).into_iter().collect();
    let mut at = 0;
    while let Some(parent) = found.get(at).map(|one| &one.name) {
        at += 1;
        let children = catalog.relations.iter().filter(|one| {
            let place = one.partition_of.as_ref();
            one.inherits.contains(parent)
                || place.is_some_and(|place| place.parent == *parent && !place.detach_pending)
        });
        for child in children {
            if !found.iter().any(|one| one.name == child.name) {
                found.push(child);
            }
        }
    }
    found
}
