//! What is known while a set of files is read: what the catalog says, and what the set itself has made so far. A table that the set
//! makes is not live: nobody reads or writes it yet.

use std::collections::{BTreeMap, BTreeSet};

use aegis_catalog::{Catalog, Column, Name, Relation};

use crate::name::QualifiedName;

/// Sizes up to this are small: a scan of them is short (16 MiB).
pub const SMALL_BYTES: i64 = 16 * 1024 * 1024;

#[derive(Debug)]
pub(super) struct World<'a> {
    pub(super) catalog: Option<&'a Catalog>,
    pub(super) server: u32,
    pub(super) schema: &'a str,
    pub(super) fresh: bool,
    new: BTreeSet<Name>,
    /// Constraints that the set added NOT VALID: (table, name) → (column that it proves not null, transaction).
    not_valid: BTreeMap<(Name, String), (Option<String>, usize)>,
    /// Columns whose NOT NULL the set has proven by a validated CHECK.
    proven: BTreeSet<(Name, String)>,
    /// Enum values that the set added, with their transaction.
    values: Vec<(Name, String, usize)>,
    new_types: BTreeSet<Name>,
    new_functions: BTreeSet<Name>,
}

impl<'a> World<'a> {
    pub(super) fn new(
        catalog: Option<&'a Catalog>,
        server: u32,
        schema: &'a str,
        fresh: bool,
    ) -> Self {
        Self {
            catalog,
            server,
            schema,
            fresh,
            new: BTreeSet::new(),
            not_valid: BTreeMap::new(),
            proven: BTreeSet::new(),
            values: Vec::new(),
            new_types: BTreeSet::new(),
            new_functions: BTreeSet::new(),
        }
    }

    pub(super) fn name(&self, name: &QualifiedName) -> Name {
        name.resolve(self.schema)
    }

    /// Whether programs may be using it.
    pub(super) fn is_live(&self, name: &QualifiedName) -> bool {
        !self.fresh && !self.new.contains(&self.name(name))
    }

    /// Whether a scan of it is short. Unknown size is not.
    pub(super) fn is_small(&self, name: &QualifiedName) -> bool {
        self.bytes(name).is_some_and(|bytes| bytes <= SMALL_BYTES)
    }

    pub(super) fn bytes(&self, name: &QualifiedName) -> Option<i64> {
        Some(self.relation(name)?.size.as_ref()?.total_bytes)
    }

    pub(super) fn relation(&self, name: &QualifiedName) -> Option<&'a Relation> {
        let name = self.name(name);
        self.catalog?.relation(&name)
    }

    pub(super) fn column(&self, table: &QualifiedName, column: &str) -> Option<&'a Column> {
        self.relation(table)?.column(column)
    }

    pub(super) fn made(&mut self, name: &QualifiedName) {
        let name = self.name(name);
        self.new.insert(name);
    }

    pub(super) fn renamed(&mut self, from: &QualifiedName, to: &str) {
        let from = self.name(from);
        if self.new.contains(&from) {
            self.new.insert(Name::new(from.schema, to));
        }
    }

    pub(super) fn made_type(&mut self, name: &QualifiedName) {
        let name = self.name(name);
        self.new_types.insert(name);
    }

    pub(super) fn is_new_type(&self, name: &QualifiedName) -> bool {
        self.fresh || self.new_types.contains(&self.name(name))
    }

    pub(super) fn made_function(&mut self, name: &QualifiedName) {
        let name = self.name(name);
        self.new_functions.insert(name);
    }

    pub(super) fn is_new_function(&self, name: &QualifiedName) -> bool {
        self.fresh || self.new_functions.contains(&self.name(name))
    }

    /// Whether the function exists before the set. None: not known here.
    pub(super) fn has_function(&self, name: &QualifiedName) -> Option<bool> {
        let name = self.name(name);
        Some(
            self.catalog?
                .functions
                .iter()
                .any(|function| function.name == name),
        )
    }

    pub(super) fn added_not_valid(
        &mut self,
        table: &QualifiedName,
        constraint: &str,
        proves: Option<String>,
        transaction: usize,
    ) {
        let table = self.name(table);
        self.not_valid
            .insert((table, constraint.to_owned()), (proves, transaction));
    }

    /// The transaction in which the set added it NOT VALID.
    pub(super) fn not_valid_since(&self, table: &QualifiedName, constraint: &str) -> Option<usize> {
        self.not_valid
            .get(&(self.name(table), constraint.to_owned()))
            .map(|(_, transaction)| *transaction)
    }

    pub(super) fn validated(&mut self, table: &QualifiedName, constraint: &str) {
        let table = self.name(table);
        if let Some((Some(column), _)) = self
            .not_valid
            .get(&(table.clone(), constraint.to_owned()))
            .cloned()
        {
            self.proven.insert((table, column));
            return;
        }
        let definition = self.catalog.and_then(|catalog| {
            catalog
                .constraints
                .iter()
                .find(|one| one.table == table && one.name == constraint)
        });
        if let Some(column) = definition.and_then(|one| not_null_of(&one.definition)) {
            self.proven.insert((table, column));
        }
    }

    /// Whether no row can hold NULL there.
    pub(super) fn is_proven(&self, table: &QualifiedName, column: &str) -> bool {
        let name = self.name(table);
        if self.proven.contains(&(name.clone(), column.to_owned())) {
            return true;
        }
        self.catalog.is_some_and(|catalog| {
            catalog.constraints.iter().any(|one| {
                one.table == name
                    && one.validated
                    && one.enforced
                    && not_null_of(&one.definition).as_deref() == Some(column)
            })
        })
    }

    /// A CHECK that may prove it, when nothing is known of the database.
    pub(super) fn may_be_proven(&self) -> bool {
        self.catalog.is_none()
    }

    pub(super) fn added_value(&mut self, of: &QualifiedName, value: &str, transaction: usize) {
        let of = self.name(of);
        self.values.push((of, value.to_owned(), transaction));
    }

    /// Values added in this transaction.
    pub(super) fn values_in(&self, transaction: usize) -> Vec<String> {
        self.values
            .iter()
            .filter(|(of, _, added)| *added == transaction && !self.new_types.contains(of))
            .map(|(_, value, _)| value.clone())
            .collect()
    }
}

/// The column of `CHECK ((column IS NOT NULL))`, as the server prints it.
fn not_null_of(definition: &str) -> Option<String> {
    let inside = definition.strip_prefix("CHECK (")?;
    let inside = inside.rsplit_once(')')?.0.trim();
    let inside = inside.trim_start_matches('(').trim_end_matches(')');
    let column = inside.strip_suffix(" IS NOT NULL")?;
    let quoted = column.starts_with('"') && column.ends_with('"');
    (quoted
        || column
            .chars()
            .all(|one| one.is_alphanumeric() || one == '_'))
    .then(|| crate::name::identifier(column))
}
