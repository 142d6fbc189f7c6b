//! What the set itself said of tables and their columns.

use super::{Known, World};
use crate::name::QualifiedName;

impl World<'_> {
    /// Whether something that a change of type may touch hangs on the table, by what the set said.
    pub(in crate::judge) fn may_be_hung(&self, table: &QualifiedName) -> bool {
        self.tables
            .get(&self.name(table))
            .is_none_or(|known| known.hung)
    }

    /// A table as CREATE TABLE says.
    pub(in crate::judge) fn said_table(&mut self, table: &crate::form::CreateTable) {
        let name = self.name(&table.table);
        let mut known = Known {
            keys: table.unique_keys.clone(),
            hung: table.checked,
            whole: true,
            partition_by: table.partition_by.clone(),
            ..Known::default()
        };
        for column in &table.columns {
            known.columns.insert(
                column.name.clone(),
                crate::judge::types::printed(&column.data_type),
            );
            if column.not_null || column.primary {
                known.not_null.insert(column.name.clone());
            }
            known.hung |= column.checked || column.generated.is_some();
        }
        self.tables.insert(name, known);
    }

    /// A column as ADD COLUMN or SET TYPE says.
    pub(in crate::judge) fn said_column(
        &mut self,
        table: &QualifiedName,
        column: &str,
        data_type: &crate::form::TypeName,
    ) {
        let name = self.name(table);
        self.tables
            .entry(name)
            .or_insert_with(|| Known {
                hung: true,
                ..Known::default()
            })
            .columns
            .insert(column.to_owned(), crate::judge::types::printed(data_type));
    }

    pub(in crate::judge) fn said_not_null(
        &mut self,
        table: &QualifiedName,
        column: &str,
        is: bool,
    ) {
        let name = self.name(table);
        let key = (name, column.to_owned());
        if is {
            self.nullable.remove(&key);
        } else {
            self.nullable.insert(key.clone());
            // A CHECK stays, and is among the terms.
            self.proven
                .retain(|(of, one, _)| *of != key.0 || *one != key.1);
        }
        if let Some(known) = self.tables.get_mut(&key.0) {
            if is {
                known.not_null.insert(column.to_owned());
            } else {
                known.not_null.remove(column);
            }
        }
    }

    pub(in crate::judge) fn said_key(&mut self, table: &QualifiedName, columns: &[String]) {
        let name = self.name(table);
        if let Some(known) = self.tables.get_mut(&name) {
            known.keys.push(columns.to_vec());
        }
    }

    pub(in crate::judge) fn said_hung(&mut self, table: &QualifiedName) {
        let name = self.name(table);
        if let Some(known) = self.tables.get_mut(&name) {
            known.hung = true;
        }
    }
}
