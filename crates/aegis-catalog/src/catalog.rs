//! All that was read of one database at one moment, and the file of `snapshot --out`.
//!
//! Lists are sorted by name, so that lookups need no second index and two snapshots of the same state are the same bytes but for
//! the moment. There is no row data in it, no body of a function and no text of a query.

use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::model::{
    Constraint, Dependence, DependentKind, EventTrigger, Extension, Function, Grant, Index, Other,
    Policy, Publication, Rates, Relation, Rule, Schema, Sequence, Statistics, Trigger, TypeDef,
    Window,
};
use crate::name::Name;

/// The format of the file; another one is refused.
pub const FORMAT: u32 = 1;

/// What a database holds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Catalog {
    /// `FORMAT`.
    pub format: u32,
    /// As the server says it: 150018, 180004.
    pub server_version_num: u32,
    /// The database's name.
    pub database: String,
    /// The role that read it.
    pub reader: String,
    /// The server's time at the reading.
    pub taken_at: String,
    /// The schemas that were asked for; `None`: all.
    pub of_schemas: Option<Vec<String>>,
    /// Schemas.
    pub schemas: Vec<Schema>,
    /// Tables, views and the like.
    pub relations: Vec<Relation>,
    /// Indexes.
    pub indexes: Vec<Index>,
    /// Constraints of tables.
    pub constraints: Vec<Constraint>,
    /// Triggers.
    pub triggers: Vec<Trigger>,
    /// Rules.
    pub rules: Vec<Rule>,
    /// Policies.
    pub policies: Vec<Policy>,
    /// Functions.
    pub functions: Vec<Function>,
    /// Types.
    pub types: Vec<TypeDef>,
    /// Sequences.
    pub sequences: Vec<Sequence>,
    /// Grants.
    pub grants: Vec<Grant>,
    /// Extensions.
    pub extensions: Vec<Extension>,
    /// Publications.
    pub publications: Vec<Publication>,
    /// Event triggers.
    pub event_triggers: Vec<EventTrigger>,
    /// Extended statistics.
    pub statistics: Vec<Statistics>,
    /// Known only to exist.
    pub others: Vec<Other>,
    /// What hangs on what.
    pub dependences: Vec<Dependence>,
    /// How much tables are used; empty when not asked for.
    pub rates: Vec<Rates>,
    /// Over which time `rates` counted; `None`: unknown.
    pub rates_window: Option<Window>,
    /// Over which time `calls` counted; `None`: unknown.
    pub calls_window: Option<Window>,
}

impl Catalog {
    /// The server's major version.
    pub fn server_major(&self) -> u32 {
        self.server_version_num / 10_000
    }

    /// The table, view or the like of this name.
    pub fn relation(&self, name: &Name) -> Option<&Relation> {
        let at = self.relations.binary_search_by(|r| r.name.cmp(name)).ok()?;
        self.relations.get(at)
    }

    /// The index of this name.
    pub fn index(&self, name: &Name) -> Option<&Index> {
        let at = self.indexes.binary_search_by(|i| i.name.cmp(name)).ok()?;
        self.indexes.get(at)
    }

    /// The type of this name; a table's row type is not among them.
    pub fn type_named(&self, name: &Name) -> Option<&TypeDef> {
        let at = self.types.binary_search_by(|t| t.name.cmp(name)).ok()?;
        self.types.get(at)
    }

    /// The sequence of this name.
    pub fn sequence(&self, name: &Name) -> Option<&Sequence> {
        let at = self.sequences.binary_search_by(|s| s.name.cmp(name)).ok()?;
        self.sequences.get(at)
    }

    /// The indexes of a table.
    pub fn indexes_of<'a>(&'a self, table: &'a Name) -> impl Iterator<Item = &'a Index> {
        self.indexes
            .iter()
            .filter(move |index| index.table == *table)
    }

    /// The constraints of a table.
    pub fn constraints_of<'a>(
        &'a self,
        table: &Name,
    ) -> impl Iterator<Item = &'a Constraint> + use<'a> {
        let from = self.constraints.partition_point(|c| c.table < *table);
        let table = table.clone();
        self.constraints[from..]
            .iter()
            .take_while(move |c| c.table == table)
    }

    /// The functions of this name, one for each list of arguments.
    pub fn functions_named<'a>(
        &'a self,
        name: &Name,
    ) -> impl Iterator<Item = &'a Function> + use<'a> {
        let from = self.functions.partition_point(|f| f.name < *name);
        let name = name.clone();
        self.functions[from..]
            .iter()
            .take_while(move |f| f.name == name)
    }

    /// The counters of a table.
    pub fn rates_of(&self, table: &Name) -> Option<&Rates> {
        let at = self.rates.binary_search_by(|r| r.table.cmp(table)).ok()?;
        self.rates.get(at)
    }

    /// The partitions of a table, direct ones.
    pub fn partitions_of<'a>(&'a self, parent: &'a Name) -> impl Iterator<Item = &'a Relation> {
        self.relations.iter().filter(move |relation| {
            relation
                .partition_of
                .as_ref()
                .is_some_and(|place| place.parent == *parent)
        })
    }

    /// What hangs on a relation, or on one of its columns: what the server tracks, and functions in whose text the names stand
    /// (`FunctionText`: they may mean another thing). With a column, what hangs on the relation as a whole is not among them.
    pub fn dependents(&self, relation: &Name, column: Option<&str>) -> Vec<Dependence> {
        let from = self.dependences.partition_point(|d| d.on < *relation);
        let mut found: Vec<Dependence> = self.dependences[from..]
            .iter()
            .take_while(|d| d.on == *relation)
            .filter(|d| column.is_none() || d.column.as_deref() == column)
            .cloned()
            .collect();
        let mentions = |function: &&Function, name: &str| {
            function
                .mentions
                .binary_search_by(|m| m.as_str().cmp(&name.to_lowercase()))
                .is_ok()
        };
        for function in self
            .functions
            .iter()
            .filter(|f| mentions(f, &relation.name) && column.is_none_or(|c| mentions(f, c)))
        {
            found.push(Dependence {
                on: relation.clone(),
                column: column.map(str::to_owned),
                kind: DependentKind::FunctionText,
                dependent: function.name.clone(),
                part: Some(function.arguments.clone()),
            });
        }
        found
    }

    /// The snapshot file.
    ///
    /// # Errors
    /// When a value has no JSON form, which none of the model has.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        let mut text = serde_json::to_string_pretty(self)?;
        text.push('\n');
        Ok(text)
    }

    /// Reads a snapshot file.
    ///
    /// # Errors
    /// [`Error::File`] when it is none, [`Error::Format`] when its format is another.
    pub fn from_json(text: &str) -> Result<Self, Error> {
        #[derive(Deserialize)]
        struct Head {
            format: u32,
        }
        let file = |source| Error::File {
            format: FORMAT,
            source,
        };
        let head: Head = serde_json::from_str(text).map_err(file)?;
        if head.format != FORMAT {
            return Err(Error::Format {
                found: head.format,
                format: FORMAT,
            });
        }
        let mut catalog: Self = serde_json::from_str(text).map_err(file)?;
        catalog.sort();
        Ok(catalog)
    }

    /// Puts every list into the order of its names.
    pub(crate) fn sort(&mut self) {
        self.schemas.sort_by(|a, b| a.name.cmp(&b.name));
        self.relations.sort_by(|a, b| a.name.cmp(&b.name));
        self.indexes.sort_by(|a, b| a.name.cmp(&b.name));
        self.constraints
            .sort_by(|a, b| (&a.table, &a.name).cmp(&(&b.table, &b.name)));
        self.triggers
            .sort_by(|a, b| (&a.table, &a.name).cmp(&(&b.table, &b.name)));
        self.rules
            .sort_by(|a, b| (&a.table, &a.name).cmp(&(&b.table, &b.name)));
        self.policies
            .sort_by(|a, b| (&a.table, &a.name).cmp(&(&b.table, &b.name)));
        self.functions
            .sort_by(|a, b| (&a.name, &a.arguments).cmp(&(&b.name, &b.arguments)));
        self.types.sort_by(|a, b| a.name.cmp(&b.name));
        self.sequences.sort_by(|a, b| a.name.cmp(&b.name));
        self.grants.sort_by(|a, b| {
            (&a.kind, &a.object, &a.column, &a.grantee)
                .cmp(&(&b.kind, &b.object, &b.column, &b.grantee))
        });
        self.extensions.sort_by(|a, b| a.name.cmp(&b.name));
        self.publications.sort_by(|a, b| a.name.cmp(&b.name));
        self.event_triggers.sort_by(|a, b| a.name.cmp(&b.name));
        self.statistics.sort_by(|a, b| a.name.cmp(&b.name));
        self.others
            .sort_by(|a, b| (&a.kind, &a.identity).cmp(&(&b.kind, &b.identity)));
        self.dependences.sort();
        self.dependences.dedup();
        self.rates.sort_by(|a, b| a.table.cmp(&b.table));
    }
}
