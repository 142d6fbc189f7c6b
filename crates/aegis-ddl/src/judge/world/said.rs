//! What the set itself said of tables and their columns.

use super::{Known, ServerWritten, World};
use crate::form::Column;
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
            takes_over: table.takes_over,
            partitioned: table.partitioned,
            primary: table.has_primary_key,
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
            known.made.insert(column.name.clone());
            if let Some(written) = written_by_server(column) {
                known.server_written.insert(column.name.clone(), written);
            }
            known.hung |= column.checked || column.generated.is_some();
        }
        self.tables.insert(name, known);
    }

    /// ADD COLUMN. With IF NOT EXISTS another one may be there.
    pub(in crate::judge) fn added(
        &mut self,
        table: &QualifiedName,
        column: &Column,
        if_not_exists: bool,
    ) {
        self.said_column(table, &column.name, &column.data_type);
        self.said_not_null(table, &column.name, column.not_null);
        let name = self.name(table);
        if let Some(known) = self.tables.get_mut(&name) {
            known.made.insert(column.name.clone());
            if column.not_null || column.primary {
                known.not_null.insert(column.name.clone());
            }
            if let Some(written) = written_by_server(column).filter(|_| !if_not_exists) {
                known.server_written.insert(column.name.clone(), written);
            }
        }
        if column.primary || column.unique {
            self.said_key(table, std::slice::from_ref(&column.name));
        }
        if column.primary {
            self.said_primary(table);
        }
    }

    /// RENAME COLUMN.
    pub(in crate::judge) fn renamed_column(&mut self, table: &QualifiedName, from: &str, to: &str) {
        let name = self.name(table);
        if let Some(known) = self.tables.get_mut(&name) {
            known.renamed_column(from, to);
        }
    }

    /// Which value the server gives a column itself, by the set or by the catalog. None: it takes what it is given, or nobody knows.
    pub(in crate::judge) fn written_by_server(
        &self,
        table: &QualifiedName,
        column: &str,
    ) -> Option<ServerWritten> {
        let name = self.name(table);
        if self.perhaps.contains(&name) {
            return None;
        }
        let said = self
            .tables
            .get(&name)
            .and_then(|known| known.server_written.get(column));
        if said.is_some() || self.names.has_changed(&name) {
            return said.copied();
        }
        let column = self.column(table, column)?;
        if column.identity == aegis_catalog::Identity::Always {
            return Some(ServerWritten::Identity);
        }
        (column.generated != aegis_catalog::Generated::No).then_some(ServerWritten::Generated)
    }

    /// The server takes what it is given for this column from now on, or not.
    pub(in crate::judge) fn said_written(
        &mut self,
        table: &QualifiedName,
        column: &str,
        by: Option<ServerWritten>,
    ) {
        let name = self.name(table);
        if let Some(known) = self.tables.get_mut(&name) {
            match by {
                Some(by) => known.server_written.insert(column.to_owned(), by),
                None => known.server_written.remove(column),
            };
        }
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

    pub(in crate::judge) fn said_hung(&mut self, table: &QualifiedName) {
        let name = self.name(table);
        if let Some(known) = self.tables.get_mut(&name) {
            known.hung = true;
        }
    }
}

const fn written_by_server(column: &Column) -> Option<ServerWritten> {
    if column.generated.is_some() {
        Some(ServerWritten::Generated)
    } else if column.always {
        Some(ServerWritten::Identity)
    } else {
        None
    }
}
