//! What is true for every row: valid CHECKs, NOT NULL, and what was added NOT VALID and validated since.

use std::collections::BTreeMap;

use aegis_catalog::Name;

use super::{Known, NotValid, World};
use crate::form::Term;
use crate::name::QualifiedName;

impl World<'_> {
    pub(in crate::judge) fn will_drop(&mut self, drops: BTreeMap<Name, Vec<String>>) {
        self.drops_to_come = drops;
        self.hints.clear();
    }

    /// A constraint that this file drops later and whose name says that it proves NOT NULL of the column: the last step of the safe
    /// way, whose CHECK an earlier deployment made. Only where nobody knows what it says.
    pub(in crate::judge) fn seems_proven_by(
        &self,
        table: &QualifiedName,
        column: &str,
    ) -> Option<&str> {
        let name = self.name(table);
        let says = |one: &&String| {
            let lower = one.to_ascii_lowercase();
            let is_told = self.not_valid.contains_key(&(name.clone(), (*one).clone()));
            !is_told
                && (lower.contains("null") || lower.contains("present"))
                && lower.contains(&column.to_ascii_lowercase())
        };
        let drops = self.drops_to_come.get(&name)?;
        let found = drops.iter().find(says)?;
        self.catalog.is_none().then_some(found.as_str())
    }

    /// SET NOT NULL of it was seen.
    pub(in crate::judge) fn hinted(&mut self, table: &QualifiedName, column: &str) {
        if let Some(constraint) = self.seems_proven_by(table, column).map(str::to_owned) {
            self.hints.insert((self.name(table), constraint));
        }
    }

    pub(in crate::judge) fn is_hint(&self, table: &QualifiedName, constraint: &str) -> bool {
        self.hints
            .contains(&(self.name(table), constraint.to_owned()))
    }

    /// DROP CONSTRAINT: what it said of every row need no longer hold.
    pub(in crate::judge) fn dropped_constraint(&mut self, table: &QualifiedName, constraint: &str) {
        let name = self.name(table);
        let is_named = self
            .not_valid
            .contains_key(&(name.clone(), constraint.to_owned()))
            || self.catalog.is_some_and(|catalog| {
                catalog
                    .constraints_of(&name)
                    .any(|one| one.name == constraint)
            });
        // Of a CHECK without a name nobody knows here how the server calls it.
        let goes = |by: Option<&str>| by.map_or(!is_named, |by| by == constraint);
        self.proven
            .retain(|(of, _, by)| *of != name || !goes(by.as_deref()));
        if let Some(known) = self.tables.get_mut(&name) {
            known.terms.retain(|(by, _)| !goes(by.as_deref()));
        }
        let columns = self.relation(table).into_iter().flat_map(|of| &of.columns);
        for column in columns.filter(|one| one.not_null_constraint.as_deref() == Some(constraint)) {
            self.nullable.insert((name.clone(), column.name.clone()));
        }
        if let Some(drops) = self.drops_to_come.get_mut(&name) {
            drops.retain(|one| one != constraint);
        }
        self.dropped.insert((name, constraint.to_owned()));
    }

    /// DROP COLUMN: a new one of its name is another.
    pub(in crate::judge) fn dropped_column(&mut self, table: &QualifiedName, column: &str) {
        let name = self.name(table);
        self.proven
            .retain(|(of, one, _)| *of != name || one != column);
        if let Some(known) = self.tables.get_mut(&name) {
            known.terms.retain(|(_, term)| term.column != column);
            known.dropped_column(column);
        }
        self.nullable.insert((name, column.to_owned()));
    }

    /// What is true for every row.
    fn holds(&mut self, table: &Name, constraint: Option<&str>, terms: Vec<Term>) {
        let by = constraint.map(str::to_owned);
        for term in terms.iter().filter(|term| term.operator == "is not null") {
            self.proven
                .insert((table.clone(), term.column.clone(), by.clone()));
        }
        self.tables
            .entry(table.clone())
            .or_insert_with(|| Known {
                hung: true,
                ..Known::default()
            })
            .terms
            .extend(terms.into_iter().map(|term| (by.clone(), term)));
    }

    /// What a CHECK that is valid from the beginning says.
    pub(in crate::judge) fn said_check(
        &mut self,
        table: &QualifiedName,
        constraint: Option<&str>,
        terms: &[Term],
    ) {
        let name = self.name(table);
        self.holds(&name, constraint, terms.to_vec());
    }

    /// What valid CHECKs say of every row: those of the set, and those of the catalog.
    pub(in crate::judge) fn terms_of(&self, table: &QualifiedName) -> Vec<Term> {
        let name = self.name(table);
        let mut terms: Vec<Term> = self
            .tables
            .get(&name)
            .into_iter()
            .flat_map(|known| known.terms.iter().map(|(_, term)| term.clone()))
            .collect();
        for one in self
            .catalog
            .into_iter()
            .flat_map(|catalog| catalog.constraints_of(&name))
            .filter(|one| {
                one.validated
                    && one.enforced
                    && one.kind == aegis_catalog::ConstraintKind::Check
                    && !self.dropped.contains(&(name.clone(), one.name.clone()))
            })
        {
            terms.extend(crate::judge::partition::terms_of(&one.definition));
        }
        terms
    }

    pub(in crate::judge) fn added_not_valid(
        &mut self,
        table: &QualifiedName,
        constraint: &crate::form::Constraint,
        transaction: usize,
    ) {
        use crate::form::ConstraintKind;
        let proves = match &constraint.kind {
            ConstraintKind::Check { not_null_of } => not_null_of.clone(),
            ConstraintKind::NotNull { column } => Some(column.clone()),
            _ => None,
        };
        let table = self.name(table);
        let constraint_name = constraint.name.clone().unwrap_or_default();
        let added = NotValid {
            proves,
            terms: constraint.terms.clone(),
            transaction,
            deployment: self.deployment,
        };
        self.not_valid.insert((table, constraint_name), added);
    }

    /// The transaction in which the set added it NOT VALID.
    pub(in crate::judge) fn not_valid_since(
        &self,
        table: &QualifiedName,
        constraint: &str,
    ) -> Option<usize> {
        self.not_valid
            .get(&(self.name(table), constraint.to_owned()))
            .map(|added| added.transaction)
    }

    /// Whether nobody relies on it: it proves NOT NULL only, or this deployment added it.
    pub(in crate::judge) fn is_scaffold(&self, table: &QualifiedName, constraint: &str) -> bool {
        self.not_valid
            .get(&(self.name(table), constraint.to_owned()))
            .is_some_and(|added| added.proves.is_some() || added.deployment == self.deployment)
    }

    pub(in crate::judge) fn validated(&mut self, table: &QualifiedName, constraint: &str) {
        let table = self.name(table);
        if let Some(added) = self
            .not_valid
            .get(&(table.clone(), constraint.to_owned()))
            .cloned()
        {
            self.holds(&table, Some(constraint), added.terms);
            if let Some(column) = added.proves {
                self.proven
                    .insert((table, column, Some(constraint.to_owned())));
            }
            return;
        }
        if self
            .dropped
            .contains(&(table.clone(), constraint.to_owned()))
        {
            return;
        }
        let definition = self.catalog.and_then(|catalog| {
            catalog
                .constraints
                .iter()
                .find(|one| one.table == table && one.name == constraint)
        });
        if let Some(column) = definition.and_then(|one| not_null_of(&one.definition)) {
            self.proven
                .insert((table, column, Some(constraint.to_owned())));
        }
    }

    /// Whether no row can hold NULL there.
    pub(in crate::judge) fn is_proven(&self, table: &QualifiedName, column: &str) -> bool {
        let name = self.name(table);
        if self
            .proven
            .iter()
            .any(|(of, one, _)| *of == name && one == column)
        {
            return true;
        }
        self.terms_of(table)
            .iter()
            .any(|term| term.column == column && term.operator == "is not null")
    }

    /// A CHECK that may prove it, when nothing is known of the database.
    pub(in crate::judge) fn may_be_proven(&self) -> bool {
        self.catalog.is_none()
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
