//! Keys of tables, as the set and the catalog say: what single rows are named by, and what a foreign key may point at.

use super::World;
use crate::form::Reference;
use crate::name::QualifiedName;

impl World<'_> {
    /// Whether these columns hold a whole unique key. None: the table's keys are not known.
    pub(in crate::judge) fn is_key(
        &self,
        table: &QualifiedName,
        columns: &[String],
    ) -> Option<bool> {
        let name = self.name(table);
        let holds = |key: &[String]| !key.is_empty() && key.iter().all(|one| columns.contains(one));
        let said = self.tables.get(&name);
        if said.is_some_and(|known| known.keys.iter().any(|key| holds(key))) {
            return Some(true);
        }
        let Some(catalog) = self.catalog else {
            return said.filter(|known| known.has_all_keys()).map(|_| false);
        };
        catalog.relation(&name)?;
        Some(self.unique_keys(&name).iter().any(|(key, _)| holds(key)))
    }

    /// Whether a foreign key may point there. None: not known.
    pub(in crate::judge) fn has_key_for(&self, reference: &Reference) -> Option<bool> {
        // The key of PERIOD is another one; and what nobody could read may have made one.
        if reference.period || self.names.unread() {
            return None;
        }
        let name = self.name(&reference.table);
        let same = |key: &[String]| {
            key.len() == reference.columns.len()
                && reference.columns.iter().all(|one| key.contains(one))
        };
        let wants_primary = reference.columns.is_empty();
        let fits = |key: &[String], primary: bool| if wants_primary { primary } else { same(key) };
        if let Some(known) = self.tables.get(&name) {
            if known.keys.iter().any(|key| fits(key, false)) || wants_primary && known.primary {
                return Some(true);
            }
            if known.has_all_keys() {
                return (!self.perhaps.contains(&name)).then_some(false);
            }
        }
        self.catalog?.relation(&name)?;
        if self.names.has_changed(&name) || self.gone.contains(&name) {
            return None;
        }
        Some(
            self.unique_keys(&name)
                .iter()
                .any(|(key, primary)| fits(key, *primary)),
        )
    }

    /// Unique indexes of the catalog over columns of all rows, and whether each is the primary key.
    fn unique_keys(&self, table: &aegis_catalog::Name) -> Vec<(Vec<String>, bool)> {
        let Some(catalog) = self.catalog else {
            return Vec::new();
        };
        catalog
            .indexes_of(table)
            .filter(|index| index.unique && index.valid && index.predicate.is_none())
            .filter_map(|index| {
                let key: Option<Vec<String>> =
                    index.keys.iter().map(|key| key.column.clone()).collect();
                Some((key?, index.primary))
            })
            .collect()
    }

    /// A unique index over columns of all rows.
    pub(in crate::judge) fn said_key(&mut self, table: &QualifiedName, columns: &[String]) {
        let name = self.name(table);
        self.names.changed(&name);
        if let Some(known) = self.tables.get_mut(&name) {
            known.keys.push(columns.to_vec());
        }
    }

    /// PRIMARY KEY.
    pub(in crate::judge) fn said_primary(&mut self, table: &QualifiedName) {
        let name = self.name(table);
        if let Some(known) = self.tables.get_mut(&name) {
            known.primary = true;
        }
    }
}
