//! What is known while a set of files is read: what the catalog says, and what the set itself has made so far. A table that the set
//! makes is not live: nobody reads or writes it yet.

mod domains;
mod indexes;
mod keys;
mod path;
mod proofs;
mod said;
mod standing;

use std::collections::{BTreeMap, BTreeSet};

use aegis_catalog::{Catalog, Column, Name, Relation};

use crate::form::{Expression, Term, TypeName};
use crate::name::QualifiedName;
use crate::report::Level;

pub(in crate::judge) use standing::Thing;

/// Sizes up to this are small: a scan of them is short (16 MiB).
pub const SMALL_BYTES: i64 = 16 * 1024 * 1024;

#[derive(Debug, Clone)]
pub(in crate::judge) struct World<'a> {
    pub(in crate::judge) catalog: Option<&'a Catalog>,
    pub(in crate::judge) server: u32,
    /// What search_path names first.
    path: path::SearchPath,
    /// What the files are judged with.
    schema_at_first: &'a str,
    pub(in crate::judge) fresh: bool,
    new: BTreeSet<Name>,
    /// Constraints that the set added NOT VALID, by table and name.
    not_valid: BTreeMap<(Name, String), NotValid>,
    /// Columns whose NOT NULL the set has proven by a validated CHECK, with that CHECK's name.
    proven: BTreeSet<(Name, String, Option<String>)>,
    /// Constraints that the set dropped: the catalog still has them.
    dropped: BTreeSet<(Name, String)>,
    /// Columns that the set let be NULL again.
    nullable: BTreeSet<(Name, String)>,
    /// The last transaction: over all changes, as what they did is known by its transaction.
    pub(in crate::judge) transaction: usize,
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
    /// Functions whose bodies this statement has been judged by already.
    entered: BTreeSet<Name>,
    /// Columns that this deployment added.
    added: BTreeSet<(Name, String)>,
    /// Columns of views that the set made; none: not known.
    views: BTreeMap<Name, Option<Vec<String>>>,
    /// Columns of views that this file makes.
    views_to_come: BTreeMap<Name, Vec<String>>,
    /// Tables of this file's CREATE TABLE IF NOT EXISTS: nobody knows whether they were there.
    perhaps: BTreeSet<Name>,
    /// How what would be is told, if a table that is perhaps new was there: in a change a warning counts, and where it has no catalog
    /// here the runner will have one.
    pub(in crate::judge) perhaps_level: Level,
    /// How the functions that this file makes are called.
    functions_to_come: BTreeMap<Name, Vec<crate::judge::signature::Arity>>,
    /// Constraints that later statements of this file drop.
    drops_to_come: BTreeMap<Name, Vec<String>>,
    /// Constraints that are dropped right after the SET NOT NULL that they seem to prove.
    hints: BTreeSet<(Name, String)>,
    /// Schemas that this file makes.
    new_schemas: BTreeSet<String>,
    /// Unique indexes on columns that the set made, with their columns.
    indexes: BTreeMap<Name, Vec<String>>,
    /// Which names the set made and moved.
    names: indexes::Names,
    /// Types that the set made, in earlier files too.
    told_types: BTreeSet<Name>,
    /// Columns of `added` that no program of the version before fills: nullable, without a default.
    added_empty: BTreeSet<(Name, String)>,
    /// What the set made and that is there by its name.
    standing: standing::Standing,
    /// What later statements of this file make, and how often.
    again: BTreeMap<crate::judge::again::Made, usize>,
    /// Whether this statement and those around it are one transaction, as far as anybody knows.
    pub(in crate::judge) together: bool,
    /// Whether this statement says ONLY of its table.
    pub(in crate::judge) only: bool,
}

/// A function that a statement runs.
pub(in crate::judge) enum Entered {
    /// The set made none of this name, or it is the one that is being judged.
    Unknown,
    /// This statement ran it before.
    Before,
    /// This is to be judged, then left.
    Now(crate::form::Body),
}

/// What the set itself said of a table.
#[derive(Debug, Clone, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a fact about the table by itself"
)]
struct Known {
    /// Types as the server prints them.
    columns: BTreeMap<String, String>,
    not_null: BTreeSet<String>,
    /// Columns that were seen to be made: of others the set may know a type and nothing more.
    made: BTreeSet<String>,
    /// Columns that the server computes, or numbers for every INSERT.
    server_written: BTreeMap<String, ServerWritten>,
    keys: Vec<Vec<String>>,
    primary: bool,
    /// A CHECK, or an index on an expression or with a condition: something that a change of type may touch.
    hung: bool,
    /// Whether CREATE TABLE was seen.
    whole: bool,
    /// Whether it has parts of another table: columns and keys that do not stand there.
    takes_over: bool,
    partitioned: bool,
    /// Columns of PARTITION BY.
    partition_by: Vec<String>,
    /// What validated CHECKs say of its rows, with the CHECK's name.
    terms: Vec<(Option<String>, Term)>,
}

impl Known {
    /// Whether every key that it has is known.
    const fn has_all_keys(&self) -> bool {
        self.whole && !self.takes_over
    }

    fn renamed_column(&mut self, from: &str, to: &str) {
        let names = self.keys.iter_mut().flatten();
        for name in names.chain(&mut self.partition_by) {
            if name == from {
                to.clone_into(name);
            }
        }
        if let Some(data_type) = self.columns.remove(from) {
            self.columns.insert(to.to_owned(), data_type);
        }
        if let Some(written) = self.server_written.remove(from) {
            self.server_written.insert(to.to_owned(), written);
        }
        for names in [&mut self.not_null, &mut self.made] {
            if names.remove(from) {
                names.insert(to.to_owned());
            }
        }
    }

    fn dropped_column(&mut self, column: &str) {
        self.columns.remove(column);
        self.not_null.remove(column);
        self.made.remove(column);
        self.server_written.remove(column);
        self.keys.retain(|key| !key.iter().any(|one| one == column));
    }
}

/// A column whose value the server refuses to be given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::judge) enum ServerWritten {
    /// A generated column.
    Generated,
    /// GENERATED ALWAYS AS IDENTITY: OVERRIDING SYSTEM VALUE gives it one.
    Identity,
}

/// A domain.
#[derive(Debug, Clone)]
pub(in crate::judge) struct Domain {
    /// Whether it, or the domain below it, has a constraint.
    pub(in crate::judge) constrained: bool,
    /// What it is over.
    pub(in crate::judge) base: TypeName,
    /// Its default.
    pub(in crate::judge) default: Option<Expression>,
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
    pub(in crate::judge) fn new(
        catalog: Option<&'a Catalog>,
        server: u32,
        schema: &'a str,
        fresh: bool,
    ) -> Self {
        Self {
            catalog,
            server,
            path: path::SearchPath::new(schema),
            schema_at_first: schema,
            fresh,
            new: BTreeSet::new(),
            not_valid: BTreeMap::new(),
            proven: BTreeSet::new(),
            dropped: BTreeSet::new(),
            nullable: BTreeSet::new(),
            transaction: 0,
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
            entered: BTreeSet::new(),
            added: BTreeSet::new(),
            views: BTreeMap::new(),
            views_to_come: BTreeMap::new(),
            perhaps: BTreeSet::new(),
            perhaps_level: Level::Warning,
            functions_to_come: BTreeMap::new(),
            drops_to_come: BTreeMap::new(),
            hints: BTreeSet::new(),
            new_schemas: BTreeSet::new(),
            indexes: BTreeMap::new(),
            names: indexes::Names::default(),
            told_types: BTreeSet::new(),
            added_empty: BTreeSet::new(),
            standing: standing::Standing::default(),
            again: BTreeMap::new(),
            together: true,
            only: false,
        }
    }

    /// A file that is deployed by itself begins: what earlier files made is live now. What they said of it is still known.
    pub(in crate::judge) fn deploys(&mut self) {
        self.deployment += 1;
        self.new.clear();
        self.new_types.clear();
        self.new_functions.clear();
        self.added.clear();
        self.added_empty.clear();
        self.perhaps.clear();
        self.new_schemas.clear();
        self.path = path::SearchPath::new(self.schema_at_first);
    }

    /// A change is deployed: its unqualified names are of its schema.
    pub(in crate::judge) fn deploys_in(&mut self, schema: &'a str) {
        self.schema_at_first = schema;
        self.deploys();
    }

    /// A file begins: what its statements make.
    pub(in crate::judge) fn begins(
        &mut self,
        made: BTreeMap<crate::judge::again::Made, usize>,
        views: BTreeMap<Name, Vec<String>>,
        functions: BTreeMap<Name, Vec<crate::judge::signature::Arity>>,
    ) {
        self.again = made;
        self.views_to_come = views;
        self.functions_to_come = functions;
    }

    /// One of those was made.
    pub(in crate::judge) fn passed(&mut self, made: &crate::judge::again::Made) {
        if let Some(count) = self.again.get_mut(made) {
            *count = count.saturating_sub(1);
        }
    }

    /// Whether this statement or a later one of the file makes it again.
    pub(in crate::judge) fn comes_again(&self, made: &crate::judge::again::Made) -> bool {
        self.again.get(made).is_some_and(|count| *count > 0)
    }

    /// A function of the set.
    pub(in crate::judge) fn said_body(
        &mut self,
        name: &QualifiedName,
        steady: bool,
        body: &crate::form::Body,
    ) {
        let name = self.name(name);
        self.steady.insert(name.clone(), steady);
        self.bodies.insert(name, body.clone());
    }

    /// A statement begins: it has run no function yet.
    pub(in crate::judge) fn runs_nothing_yet(&mut self) {
        self.entered.clear();
    }

    /// A function that a statement runs. Its body is given once in a statement: what it does there is told then.
    pub(in crate::judge) fn enter(&mut self, name: &QualifiedName) -> Entered {
        /// Functions that run one another, as far as they are followed: the judge goes down as deep.
        const DEPTH_MAX: usize = 100;
        let name = self.name(name);
        if self.running.contains(&name) {
            return Entered::Unknown;
        }
        let Some(body) = self.bodies.get(&name) else {
            return Entered::Unknown;
        };
        if self.entered.contains(&name) {
            return Entered::Before;
        }
        if self.running.len() >= DEPTH_MAX {
            return Entered::Unknown;
        }
        let body = body.clone();
        self.entered.insert(name.clone());
        self.running.push(name);
        Entered::Now(body)
    }

    pub(in crate::judge) fn leave(&mut self) {
        self.running.pop();
    }

    /// Whether this deployment added the column: programs of the version before do not know it.
    pub(in crate::judge) fn is_new_column(&self, table: &QualifiedName, column: &str) -> bool {
        self.added.contains(&(self.name(table), column.to_owned()))
    }

    pub(in crate::judge) fn added_column(
        &mut self,
        table: &QualifiedName,
        column: &str,
        empty: bool,
    ) {
        let key = (self.name(table), column.to_owned());
        if empty {
            self.added_empty.insert(key.clone());
        }
        self.added.insert(key);
    }

    /// Whether this deployment added all of these, and a program that does not know them leaves them NULL.
    pub(in crate::judge) fn are_empty(&self, table: &QualifiedName, columns: &[String]) -> bool {
        let name = self.name(table);
        !columns.is_empty()
            && columns
                .iter()
                .all(|one| self.added_empty.contains(&(name.clone(), one.clone())))
    }

    /// CREATE TABLE IF NOT EXISTS, of which nobody knows whether it makes something.
    pub(in crate::judge) fn perhaps_made(&mut self, table: &QualifiedName) {
        let name = self.name(table);
        self.tables.entry(name.clone()).or_insert_with(|| Known {
            hung: true,
            ..Known::default()
        });
        self.perhaps.insert(name);
    }

    /// Whether the table is made here unless it was there, and these columns are among those that it is made with.
    pub(in crate::judge) fn is_perhaps_new(
        &self,
        table: &QualifiedName,
        columns: &[String],
    ) -> bool {
        let name = self.name(table);
        self.perhaps.contains(&name)
            && self.tables.get(&name).is_some_and(|known| {
                !known.whole || columns.iter().all(|one| known.columns.contains_key(one))
            })
    }

    /// How the functions of this name that this file makes are called.
    pub(in crate::judge) fn functions_to_come(
        &self,
        name: &QualifiedName,
    ) -> &[crate::judge::signature::Arity] {
        self.functions_to_come
            .get(&self.name(name))
            .map_or(&[], Vec::as_slice)
    }

    pub(in crate::judge) fn made_schema(&mut self, name: &str) {
        self.new_schemas.insert(name.to_owned());
    }

    pub(in crate::judge) fn is_new_schema(&self, name: &str) -> bool {
        self.fresh || self.new_schemas.contains(name)
    }

    pub(in crate::judge) fn said_index(&mut self, index: &QualifiedName, columns: &[String]) {
        let name = self.name(index);
        self.indexes.insert(name, columns.to_vec());
    }

    /// The columns of an index that the set made. None: it made none of this name.
    pub(in crate::judge) fn index_columns(&self, index: &Name) -> Option<&[String]> {
        self.indexes.get(index).map(Vec::as_slice)
    }

    /// Whether the set or the catalog says what type this is.
    pub(in crate::judge) fn is_told_type(&self, name: &QualifiedName) -> bool {
        let name = self.name(name);
        self.fresh || self.told_types.contains(&name) || self.catalog.is_some()
    }

    pub(in crate::judge) fn said_view(&mut self, view: &QualifiedName, columns: Option<&[String]>) {
        let name = self.name(view);
        self.views.insert(name, columns.map(<[String]>::to_vec));
    }

    /// A view's columns: by the set, else by the catalog. None: not known, or there is none.
    pub(in crate::judge) fn view_columns(&self, view: &QualifiedName) -> Option<Vec<String>> {
        let name = self.name(view);
        if self.gone.contains(&name) {
            return None;
        }
        match self.views.get(&name) {
            Some(said) => said.clone(),
            None => Some(
                self.relation(view)?
                    .columns
                    .iter()
                    .map(|column| column.name.clone())
                    .collect(),
            ),
        }
    }

    /// Columns of the view of this name that this file makes.
    pub(in crate::judge) fn view_to_come(&self, view: &QualifiedName) -> Option<Vec<String>> {
        self.views_to_come.get(&self.name(view)).cloned()
    }

    pub(in crate::judge) fn name(&self, name: &QualifiedName) -> Name {
        name.resolve(self.path.first())
    }

    /// Whether programs may be using it.
    pub(in crate::judge) fn is_live(&self, name: &QualifiedName) -> bool {
        !self.fresh && !self.new.contains(&self.name(name))
    }

    /// Whether a scan of it is short. Unknown size is not.
    pub(in crate::judge) fn is_small(&self, name: &QualifiedName) -> bool {
        self.bytes(name).is_some_and(|bytes| bytes <= SMALL_BYTES)
    }

    /// The same of a table without its heirs by INHERITS: an index or a key of it is not theirs.
    pub(in crate::judge) fn is_small_alone(&self, name: &QualifiedName) -> bool {
        self.relation(name)
            .and_then(|relation| self.bytes_below(relation, false, 0))
            .is_some_and(|bytes| bytes <= SMALL_BYTES)
    }

    /// With its indexes, partitions and, unless the statement says ONLY, heirs. None: not known.
    pub(in crate::judge) fn bytes(&self, name: &QualifiedName) -> Option<i64> {
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

    pub(in crate::judge) fn relation(&self, name: &QualifiedName) -> Option<&'a Relation> {
        let name = self.name(name);
        self.catalog?.relation(&name)
    }

    pub(in crate::judge) fn column(
        &self,
        table: &QualifiedName,
        column: &str,
    ) -> Option<&'a Column> {
        self.relation(table)?.column(column)
    }

    /// Whether a function of the set is marked steady. None: the set made none of this name.
    pub(in crate::judge) fn said_steady(&self, name: &QualifiedName) -> Option<bool> {
        self.steady.get(&self.name(name)).copied()
    }

    /// Whether an earlier file made the table.
    pub(in crate::judge) fn is_older(&self, table: &QualifiedName) -> bool {
        let name = self.name(table);
        self.tables.get(&name).is_some_and(|known| known.whole) && !self.new.contains(&name)
    }

    /// Whether a table may be there already: nobody looked, or it is.
    pub(in crate::judge) fn may_exist(&self, table: &QualifiedName) -> bool {
        let name = self.name(table);
        let unseen = self.catalog.is_none() && !self.fresh;
        !self.gone.contains(&name)
            && (unseen || self.relation(table).is_some() || self.is_older(table))
    }

    /// Whether the catalog or the set says what it is.
    pub(in crate::judge) fn is_told(&self, table: &QualifiedName) -> bool {
        self.relation(table).is_some() || self.tables.contains_key(&self.name(table))
    }

    /// Whether it is known to be partitioned.
    pub(in crate::judge) fn is_partitioned(&self, table: &QualifiedName) -> bool {
        self.tables
            .get(&self.name(table))
            .is_some_and(|known| known.partitioned)
            || self
                .relation(table)
                .is_some_and(|relation| relation.partition_key.is_some())
    }

    /// A column's type as the server prints it: what the set said last, else what the catalog says.
    pub(in crate::judge) fn type_of(&self, table: &QualifiedName, column: &str) -> Option<String> {
        let said = self
            .tables
            .get(&self.name(table))
            .and_then(|known| known.columns.get(column));
        said.cloned()
            .or_else(|| Some(self.column(table, column)?.data_type.clone()))
    }

    /// Whether the set, or the catalog, says that no NULL can be there.
    pub(in crate::judge) fn is_not_null(
        &self,
        table: &QualifiedName,
        column: &str,
    ) -> Option<bool> {
        if let Some(known) = self.tables.get(&self.name(table)) {
            if known.not_null.contains(column) {
                return Some(true);
            }
            if known.made.contains(column) {
                return Some(self.is_proven(table, column));
            }
        }
        let may_be_null = (self.name(table), column.to_owned());
        if self.nullable.contains(&may_be_null) {
            return Some(false);
        }
        self.column(table, column)
            .map(|known| known.not_null && known.not_null_valid)
    }

    /// The columns by which a table is partitioned; empty: not known.
    pub(in crate::judge) fn partition_by(&self, table: &QualifiedName) -> Vec<String> {
        if let Some(known) = self.tables.get(&self.name(table))
            && !known.partition_by.is_empty()
        {
            return known.partition_by.clone();
        }
        self.relation(table)
            .and_then(|relation| relation.partition_key.as_deref())
            .map_or_else(Vec::new, crate::judge::partition::key_columns)
    }

    /// Tables that foreign keys of this one point at: dropping it locks them too.
    pub(in crate::judge) fn referenced_by(&self, table: &QualifiedName) -> Vec<QualifiedName> {
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
    pub(in crate::judge) fn is_absent(&self, name: &QualifiedName) -> bool {
        let name = self.name(name);
        self.catalog.is_some_and(|catalog| {
            catalog.relation(&name).is_none()
                && catalog.index(&name).is_none()
                && catalog.sequence(&name).is_none()
        })
    }

    pub(in crate::judge) fn made(&mut self, name: &QualifiedName) {
        let name = self.name(name);
        self.gone.remove(&name);
        self.new.insert(name);
    }

    pub(in crate::judge) fn gone(&mut self, name: &QualifiedName) {
        let name = self.name(name);
        self.new.remove(&name);
        self.tables.remove(&name);
        self.proven.retain(|(of, _, _)| *of != name);
        self.gone.insert(name);
    }

    pub(in crate::judge) fn renamed(&mut self, from: &QualifiedName, to: &str) {
        let from = self.name(from);
        let to = Name::new(from.schema.clone(), to);
        if let Some(known) = self.tables.remove(&from) {
            self.tables.insert(to.clone(), known);
        }
        if self.new.remove(&from) {
            self.new.insert(to);
        }
    }

    pub(in crate::judge) fn made_type(&mut self, name: &QualifiedName) {
        let name = self.name(name);
        self.new_types.insert(name.clone());
        self.told_types.insert(name);
    }

    pub(in crate::judge) fn is_new_type(&self, name: &QualifiedName) -> bool {
        self.fresh || self.new_types.contains(&self.name(name))
    }

    pub(in crate::judge) fn made_function(&mut self, name: &QualifiedName) {
        let name = self.name(name);
        self.new_functions.insert(name);
    }

    pub(in crate::judge) fn is_new_function(&self, name: &QualifiedName) -> bool {
        self.fresh || self.new_functions.contains(&self.name(name))
    }

    /// Whether the function exists before the set. None: not known here.
    pub(in crate::judge) fn has_function(&self, name: &QualifiedName) -> Option<bool> {
        let name = self.name(name);
        Some(
            self.catalog?
                .functions
                .iter()
                .any(|function| function.name == name),
        )
    }

    pub(in crate::judge) fn added_value(
        &mut self,
        of: &QualifiedName,
        value: &str,
        transaction: usize,
    ) {
        let of = self.name(of);
        self.values.push((of, value.to_owned(), transaction));
    }

    /// Values added in this transaction.
    pub(in crate::judge) fn values_in(&self, transaction: usize) -> Vec<String> {
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
