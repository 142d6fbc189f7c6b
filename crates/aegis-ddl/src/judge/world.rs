//! What is known while a set of files is read: what the catalog says, and what the set itself has made so far. A table that the set
//! makes is not live: nobody reads or writes it yet.

use std::collections::{BTreeMap, BTreeSet};

use aegis_catalog::{Catalog, Column, Name, Relation};

use crate::form::{Expression, Term, TypeName};
use crate::name::QualifiedName;

/// Sizes up to this are small: a scan of them is short (16 MiB).
pub const SMALL_BYTES: i64 = 16 * 1024 * 1024;

#[derive(Debug)]
pub(super) struct World<'a> {
    pub(super) catalog: Option<&'a Catalog>,
    pub(super) server: u32,
    /// What search_path names first.
    schema: String,
    /// What the files are judged with.
    schema_at_first: &'a str,
    pub(super) fresh: bool,
    new: BTreeSet<Name>,
    /// Constraints that the set added NOT VALID, by table and name.
    not_valid: BTreeMap<(Name, String), NotValid>,
    /// Columns whose NOT NULL the set has proven by a validated CHECK, with that CHECK's name.
    proven: BTreeSet<(Name, String, Option<String>)>,
    /// Constraints that the set dropped: the catalog still has them.
    dropped: BTreeSet<(Name, String)>,
    /// Columns that the set let be NULL again.
    nullable: BTreeSet<(Name, String)>,
    /// Enum values that the set added, with their transaction.
    values: Vec<(Name, String, usize)>,
    /// Relations that the set dropped.
    gone: BTreeSet<Name>,
    new_types: BTreeSet<Name>,
    new_functions: BTreeSet<Name>,
    /// What the set said of tables, also of those that an earlier file of a plain folder made.
    tables: BTreeMap<Name, Known>,
    /// Domains that the set made.
    domains: BTreeMap<Name, Domain>,
    deployment: usize,
    /// Bodies of functions that the set made: calling one runs it.
    bodies: BTreeMap<Name, crate::form::Body>,
    /// Whether functions of the set are marked STABLE or IMMUTABLE.
    steady: BTreeMap<Name, bool>,
    /// Functions whose bodies are being judged.
    running: Vec<Name>,
    /// Columns that this deployment added.
    added: BTreeSet<(Name, String)>,
    /// What later statements of this file make, and how often.
    again: BTreeMap<super::again::Made, usize>,
    /// Whether this statement and those around it are one transaction, as far as anybody knows.
    pub(super) together: bool,
    /// Whether this statement says ONLY of its table.
    pub(super) only: bool,
}

/// What the set itself said of a table.
#[derive(Debug, Default)]
struct Known {
    /// Types as the server prints them.
    columns: BTreeMap<String, String>,
    not_null: BTreeSet<String>,
    keys: Vec<Vec<String>>,
    /// A CHECK, or an index on an expression or with a condition: something that a change of type may touch.
    hung: bool,
    /// Whether CREATE TABLE was seen: then all its keys are known.
    whole: bool,
    /// Columns of PARTITION BY.
    partition_by: Vec<String>,
    /// What validated CHECKs say of its rows, with the CHECK's name.
    terms: Vec<(Option<String>, Term)>,
}

/// A domain.
#[derive(Debug, Clone)]
pub(super) struct Domain {
    /// Whether it, or the domain below it, has a constraint.
    pub(super) constrained: bool,
    /// What it is over.
    pub(super) base: TypeName,
    /// Its default.
    pub(super) default: Option<Expression>,
}

/// What was added NOT VALID.
#[derive(Debug, Clone)]
struct NotValid {
    proves: Option<String>,
    terms: Vec<Term>,
    transaction: usize,
    deployment: usize,
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
            schema: schema.to_owned(),
            schema_at_first: schema,
            fresh,
            new: BTreeSet::new(),
            not_valid: BTreeMap::new(),
            proven: BTreeSet::new(),
            dropped: BTreeSet::new(),
            nullable: BTreeSet::new(),
            values: Vec::new(),
            gone: BTreeSet::new(),
            new_types: BTreeSet::new(),
            new_functions: BTreeSet::new(),
            tables: BTreeMap::new(),
            domains: BTreeMap::new(),
            deployment: 0,
            bodies: BTreeMap::new(),
            steady: BTreeMap::new(),
            running: Vec::new(),
            added: BTreeSet::new(),
            again: BTreeMap::new(),
            together: true,
            only: false,
        }
    }

    /// A file that is deployed by itself begins: what earlier files made is live now. What they said of it is still known.
    pub(super) fn deploys(&mut self) {
        self.deployment += 1;
        self.new.clear();
        self.new_types.clear();
        self.new_functions.clear();
        self.added.clear();
        self.schema = self.schema_at_first.to_owned();
    }

    /// SET search_path.
    pub(super) fn searches(&mut self, schema: &str) {
        if schema != "$user" {
            schema.clone_into(&mut self.schema);
        }
    }

    /// A file begins: what its statements make.
    pub(super) fn begins(&mut self, made: BTreeMap<super::again::Made, usize>) {
        self.again = made;
    }

    /// One of those was made.
    pub(super) fn passed(&mut self, made: &super::again::Made) {
        if let Some(count) = self.again.get_mut(made) {
            *count = count.saturating_sub(1);
        }
    }

    /// Whether this statement or a later one of the file makes it again.
    pub(super) fn comes_again(&self, made: &super::again::Made) -> bool {
        self.again.get(made).is_some_and(|count| *count > 0)
    }

    /// A function of the set.
    pub(super) fn said_body(
        &mut self,
        name: &QualifiedName,
        steady: bool,
        body: &crate::form::Body,
    ) {
        let name = self.name(name);
        self.steady.insert(name.clone(), steady);
        self.bodies.insert(name, body.clone());
    }

    /// The body of a function that the set made, unless it is the one that is being judged.
    pub(super) fn enter(&mut self, name: &QualifiedName) -> Option<crate::form::Body> {
        let name = self.name(name);
        if self.running.contains(&name) {
            return None;
        }
        let body = self.bodies.get(&name)?.clone();
        self.running.push(name);
        Some(body)
    }

    pub(super) fn leave(&mut self) {
        self.running.pop();
    }

    /// Whether this deployment added the column: programs of the version before do not know it.
    pub(super) fn is_new_column(&self, table: &QualifiedName, column: &str) -> bool {
        self.added.contains(&(self.name(table), column.to_owned()))
    }

    pub(super) fn added_column(&mut self, table: &QualifiedName, column: &str) {
        let name = self.name(table);
        self.added.insert((name, column.to_owned()));
    }

    pub(super) fn name(&self, name: &QualifiedName) -> Name {
        name.resolve(&self.schema)
    }

    /// Whether programs may be using it.
    pub(super) fn is_live(&self, name: &QualifiedName) -> bool {
        !self.fresh && !self.new.contains(&self.name(name))
    }

    /// Whether a scan of it is short. Unknown size is not.
    pub(super) fn is_small(&self, name: &QualifiedName) -> bool {
        self.bytes(name).is_some_and(|bytes| bytes <= SMALL_BYTES)
    }

    /// The same of a table without its heirs by INHERITS: an index or a key of it is not theirs.
    pub(super) fn is_small_alone(&self, name: &QualifiedName) -> bool {
        self.relation(name)
            .and_then(|relation| self.bytes_below(relation, false, 0))
            .is_some_and(|bytes| bytes <= SMALL_BYTES)
    }

    /// With its indexes, partitions and, unless the statement says ONLY, heirs. None: not known.
    pub(super) fn bytes(&self, name: &QualifiedName) -> Option<i64> {
        self.bytes_below(self.relation(name)?, !self.only, 0)
    }

    fn bytes_below(&self, relation: &Relation, heirs: bool, depth: usize) -> Option<i64> {
        const DEPTH_MAX: usize = 16;
        let own = relation.size.as_ref()?.total_bytes;
        if depth > DEPTH_MAX {
            return None;
        }
        let mut sum = own;
        let catalog = self.catalog?;
        for part in catalog.partitions_of(&relation.name) {
            sum += self.bytes_below(part, heirs, depth + 1)?;
        }
        if heirs {
            let inherits = |one: &&Relation| one.inherits.contains(&relation.name);
            for heir in catalog.relations.iter().filter(inherits) {
                sum += self.bytes_below(heir, heirs, depth + 1)?;
            }
        }
        Some(sum)
    }

    pub(super) fn relation(&self, name: &QualifiedName) -> Option<&'a Relation> {
        let name = self.name(name);
        self.catalog?.relation(&name)
    }

    pub(super) fn column(&self, table: &QualifiedName, column: &str) -> Option<&'a Column> {
        self.relation(table)?.column(column)
    }

    /// Whether a function of the set is marked steady. None: the set made none of this name.
    pub(super) fn said_steady(&self, name: &QualifiedName) -> Option<bool> {
        self.steady.get(&self.name(name)).copied()
    }

    /// Whether an earlier file made the table.
    pub(super) fn is_older(&self, table: &QualifiedName) -> bool {
        let name = self.name(table);
        self.tables.get(&name).is_some_and(|known| known.whole) && !self.new.contains(&name)
    }

    /// Whether a table may be there already: nobody looked, or it is.
    pub(super) fn may_exist(&self, table: &QualifiedName) -> bool {
        let name = self.name(table);
        let unseen = self.catalog.is_none() && !self.fresh;
        !self.gone.contains(&name)
            && (unseen || self.relation(table).is_some() || self.is_older(table))
    }

    /// Whether the catalog or the set says what it is.
    pub(super) fn is_told(&self, table: &QualifiedName) -> bool {
        self.relation(table).is_some() || self.tables.contains_key(&self.name(table))
    }

    /// Whether it is known to be partitioned.
    pub(super) fn is_partitioned(&self, table: &QualifiedName) -> bool {
        !self.partition_by(table).is_empty()
            || self
                .relation(table)
                .is_some_and(|relation| relation.partition_key.is_some())
    }

    /// A column's type as the server prints it: what the set said last, else what the catalog says.
    pub(super) fn type_of(&self, table: &QualifiedName, column: &str) -> Option<String> {
        let said = self
            .tables
            .get(&self.name(table))
            .and_then(|known| known.columns.get(column));
        said.cloned()
            .or_else(|| Some(self.column(table, column)?.data_type.clone()))
    }

    /// Whether the set, or the catalog, says that no NULL can be there.
    pub(super) fn is_not_null(&self, table: &QualifiedName, column: &str) -> Option<bool> {
        if let Some(known) = self.tables.get(&self.name(table))
            && known.columns.contains_key(column)
        {
            return Some(known.not_null.contains(column) || self.is_proven(table, column));
        }
        let may_be_null = (self.name(table), column.to_owned());
        if self.nullable.contains(&may_be_null) {
            return Some(false);
        }
        self.column(table, column)
            .map(|known| known.not_null && known.not_null_valid)
    }

    /// Whether these columns hold a whole unique key. None: the table's keys are not known.
    pub(super) fn is_key(&self, table: &QualifiedName, columns: &[String]) -> Option<bool> {
        let name = self.name(table);
        let holds = |key: &[String]| !key.is_empty() && key.iter().all(|one| columns.contains(one));
        let said = self.tables.get(&name);
        if said.is_some_and(|known| known.keys.iter().any(|key| holds(key))) {
            return Some(true);
        }
        let Some(catalog) = self.catalog else {
            return said.filter(|known| known.whole).map(|_| false);
        };
        catalog.relation(&name)?;
        Some(catalog.indexes_of(&name).any(|index| {
            let key: Option<Vec<String>> =
                index.keys.iter().map(|key| key.column.clone()).collect();
            index.unique
                && index.valid
                && index.predicate.is_none()
                && key.is_some_and(|key| holds(&key))
        }))
    }

    /// Whether something that a change of type may touch hangs on the table, by what the set said.
    pub(super) fn may_be_hung(&self, table: &QualifiedName) -> bool {
        self.tables
            .get(&self.name(table))
            .is_none_or(|known| known.hung)
    }

    /// A table as CREATE TABLE says.
    pub(super) fn said_table(&mut self, table: &crate::form::CreateTable) {
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
                super::types::printed(&column.data_type),
            );
            if column.not_null || column.primary {
                known.not_null.insert(column.name.clone());
            }
            known.hung |= column.checked || column.generated.is_some();
        }
        self.tables.insert(name, known);
    }

    /// A column as ADD COLUMN or SET TYPE says.
    pub(super) fn said_column(
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
            .insert(column.to_owned(), super::types::printed(data_type));
    }

    pub(super) fn said_not_null(&mut self, table: &QualifiedName, column: &str, is: bool) {
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

    /// DROP CONSTRAINT: what it said of every row need no longer hold.
    pub(super) fn dropped_constraint(&mut self, table: &QualifiedName, constraint: &str) {
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
        self.dropped.insert((name, constraint.to_owned()));
    }

    /// DROP COLUMN: a new one of its name is another.
    pub(super) fn dropped_column(&mut self, table: &QualifiedName, column: &str) {
        let name = self.name(table);
        self.proven
            .retain(|(of, one, _)| *of != name || one != column);
        if let Some(known) = self.tables.get_mut(&name) {
            known.terms.retain(|(_, term)| term.column != column);
            known.not_null.remove(column);
        }
        self.nullable.insert((name, column.to_owned()));
    }

    pub(super) fn said_key(&mut self, table: &QualifiedName, columns: &[String]) {
        let name = self.name(table);
        if let Some(known) = self.tables.get_mut(&name) {
            known.keys.push(columns.to_vec());
        }
    }

    pub(super) fn said_hung(&mut self, table: &QualifiedName) {
        let name = self.name(table);
        if let Some(known) = self.tables.get_mut(&name) {
            known.hung = true;
        }
    }

    pub(super) fn said_domain(&mut self, name: &QualifiedName, domain: Domain) {
        let name = self.name(name);
        self.domains.insert(name, domain);
    }

    /// A domain by the set, else by the catalog. None: it is none, or not known here.
    pub(super) fn domain(&self, name: &QualifiedName) -> Option<Domain> {
        let name = self.name(name);
        if let Some(said) = self.domains.get(&name) {
            return Some(said.clone());
        }
        let def = self
            .catalog?
            .types
            .iter()
            .find(|one| one.name == name && one.kind == aegis_catalog::TypeKind::Domain)?;
        Some(Domain {
            constrained: !def.constraints.is_empty() || def.not_null,
            base: super::types::read(def.base.as_deref()?)?,
            default: def.default.as_deref().and_then(super::types::read_default),
        })
    }

    /// What a column of this type has of domains: whether a constraint is on one, and the first default. None: it is no domain.
    pub(super) fn domains_below(&self, name: &QualifiedName) -> Option<Domain> {
        const DEPTH_MAX: usize = 16;
        let mut found = self.domain(name)?;
        for _ in 0..DEPTH_MAX {
            let Some(below) = self.domain(&found.base.base) else {
                break;
            };
            found.constrained |= below.constrained;
            found.default = found.default.or(below.default);
            found.base = below.base;
        }
        Some(found)
    }

    /// The type below domains that constrain nothing. None: it is no such domain.
    pub(super) fn plain_type(&self, of: &TypeName) -> Option<TypeName> {
        let domain = self.domains_below(&of.base)?;
        (!domain.constrained && !of.array).then_some(domain.base)
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
    pub(super) fn said_check(
        &mut self,
        table: &QualifiedName,
        constraint: Option<&str>,
        terms: &[Term],
    ) {
        let name = self.name(table);
        self.holds(&name, constraint, terms.to_vec());
    }

    /// What valid CHECKs say of every row: those of the set, and those of the catalog.
    pub(super) fn terms_of(&self, table: &QualifiedName) -> Vec<Term> {
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
            terms.extend(super::partition::terms_of(&one.definition));
        }
        terms
    }

    /// The columns by which a table is partitioned; empty: not known.
    pub(super) fn partition_by(&self, table: &QualifiedName) -> Vec<String> {
        if let Some(known) = self.tables.get(&self.name(table))
            && !known.partition_by.is_empty()
        {
            return known.partition_by.clone();
        }
        self.relation(table)
            .and_then(|relation| relation.partition_key.as_deref())
            .map_or_else(Vec::new, super::partition::key_columns)
    }

    /// Tables that foreign keys of this one point at: dropping it locks them too.
    pub(super) fn referenced_by(&self, table: &QualifiedName) -> Vec<QualifiedName> {
        let name = self.name(table);
        self.catalog
            .into_iter()
            .flat_map(|catalog| catalog.constraints_of(&name))
            .filter_map(|one| one.references.clone())
            .filter(|other| *other != name)
            .map(|other| QualifiedName {
                schema: Some(other.schema),
                name: other.name,
            })
            .collect()
    }

    /// Whether the catalog was read and has no such relation, index or sequence.
    pub(super) fn is_absent(&self, name: &QualifiedName) -> bool {
        let name = self.name(name);
        self.catalog.is_some_and(|catalog| {
            catalog.relation(&name).is_none()
                && catalog.index(&name).is_none()
                && catalog.sequence(&name).is_none()
        })
    }

    pub(super) fn made(&mut self, name: &QualifiedName) {
        let name = self.name(name);
        self.gone.remove(&name);
        self.new.insert(name);
    }

    pub(super) fn gone(&mut self, name: &QualifiedName) {
        let name = self.name(name);
        self.new.remove(&name);
        self.tables.remove(&name);
        self.proven.retain(|(of, _, _)| *of != name);
        self.gone.insert(name);
    }

    pub(super) fn renamed(&mut self, from: &QualifiedName, to: &str) {
        let from = self.name(from);
        let to = Name::new(from.schema.clone(), to);
        if let Some(known) = self.tables.remove(&from) {
            self.tables.insert(to.clone(), known);
        }
        if self.new.remove(&from) {
            self.new.insert(to);
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
    pub(super) fn not_valid_since(&self, table: &QualifiedName, constraint: &str) -> Option<usize> {
        self.not_valid
            .get(&(self.name(table), constraint.to_owned()))
            .map(|added| added.transaction)
    }

    /// Whether nobody relies on it: it proves NOT NULL only, or this deployment added it.
    pub(super) fn is_scaffold(&self, table: &QualifiedName, constraint: &str) -> bool {
        self.not_valid
            .get(&(self.name(table), constraint.to_owned()))
            .is_some_and(|added| added.proves.is_some() || added.deployment == self.deployment)
    }

    pub(super) fn validated(&mut self, table: &QualifiedName, constraint: &str) {
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
    pub(super) fn is_proven(&self, table: &QualifiedName, column: &str) -> bool {
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
            // Of a type that the transaction made too it is fine from 18 on (measured).
            .filter(|(of, _, added)| {
                *added == transaction && (self.server < 18 || !self.new_types.contains(of))
            })
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
