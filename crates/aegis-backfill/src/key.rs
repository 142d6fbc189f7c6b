//! Keys: which rows come after which, as SQL over the columns of a unique index.
//!
//! Invariants: a key travels as an array of text and is compared in its own types; a range is (after, up to], by row comparison, so
//! that gaps between keys do not matter.

use aegis_catalog::quote;

/// A value of a key: its columns as text, in order.
pub(crate) type KeyValue = Vec<String>;

/// A column of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeyColumn {
    /// As the catalog has it.
    pub(crate) name: String,
    /// As SQL writes it, without a length: `character varying`.
    pub(crate) type_sql: String,
}

/// Why columns are no key that walks a table; told alike by a run, a plan and `lint`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyFault {
    /// A column is not there.
    #[error("{table} has no column {column}, which [backfill] key names")]
    NoColumn {
        /// The table or the partition.
        table: String,
        /// The column.
        column: String,
    },
    /// A column has no place for NULL.
    #[error(
        "{table}.{column} may be NULL, and NULL is neither before nor after anything; name a NOT NULL key"
    )]
    Nullable {
        /// The table or the partition.
        table: String,
        /// The column.
        column: String,
    },
    /// Two rows may share it, or nothing walks it.
    #[error(
        "{table} has no valid unique index on exactly ({key}), in that order; make one in [migrate] sql, or name the key that has one"
    )]
    NotUnique {
        /// The table or the partition.
        table: String,
        /// The columns.
        key: String,
    },
}

/// A unique, NOT NULL key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) columns: Vec<KeyColumn>,
}

impl Key {
    /// The columns, quoted: `"a", "b"`.
    pub(crate) fn list(&self) -> String {
        self.each(|column| quote(&column.name))
    }

    /// For ORDER BY from the greatest.
    pub(crate) fn descending(&self) -> String {
        self.each(|column| format!("{} DESC", quote(&column.name)))
    }

    /// A key of a row as an array of text.
    pub(crate) fn texts(&self) -> String {
        format!(
            "ARRAY[{}]",
            self.each(|column| format!("{}::text", quote(&column.name)))
        )
    }

    /// What parameter `$n`, an array of text, is as a row of the key's types.
    pub(crate) fn value(&self, n: usize) -> String {
        let values: Vec<String> = self
            .columns
            .iter()
            .zip(1..)
            .map(|(column, at)| format!("(${n}::text[])[{at}]::{}", column.type_sql))
            .collect();
        format!("({})", values.join(", "))
    }

    /// The rows in (`$after`, `$up_to`]; without a lower end where `after` is none.
    pub(crate) fn range(&self, after: Option<usize>, up_to: usize) -> String {
        let row = format!("({})", self.list());
        let end = format!("{row} <= {}", self.value(up_to));
        match after {
            None => end,
            Some(after) => format!("{row} > {} AND {end}", self.value(after)),
        }
    }

    fn each(&self, of: impl Fn(&KeyColumn) -> String) -> String {
        self.columns.iter().map(of).collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::{Key, KeyColumn};

    fn key(columns: &[(&str, &str)]) -> Key {
        let columns = columns.iter().map(|(name, type_sql)| KeyColumn {
            name: (*name).to_owned(),
            type_sql: (*type_sql).to_owned(),
        });
        Key {
            columns: columns.collect(),
        }
    }

    #[test]
    fn a_range_compares_rows_in_the_types_of_the_key() {
        assert_eq!(
            key(&[("tenant", "uuid"), ("Id", "bigint")]).range(Some(1), 2),
            "(\"tenant\", \"Id\") > (($1::text[])[1]::uuid, ($1::text[])[2]::bigint) \
             AND (\"tenant\", \"Id\") <= (($2::text[])[1]::uuid, ($2::text[])[2]::bigint)"
        );
        assert_eq!(
            key(&[("id", "bigint")]).range(None, 1),
            "(\"id\") <= (($1::text[])[1]::bigint)"
        );
    }
}
