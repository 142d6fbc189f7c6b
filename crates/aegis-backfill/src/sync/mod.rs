//! The two sides of a table, and the generated trigger that keeps them alike while an old and a new program write.
//!
//! Invariants: it fires for the side that changed and computes the other; a batch of the backfill silences it; it costs a writer no
//! right that it had not; it holds up no writer for another one's transaction.
//!
//! Never: a judgement that is NULL. Each side is compared with IS NOT DISTINCT FROM.

mod error;
mod generate;
mod groups;
mod loses;
mod pin;

use std::collections::{BTreeMap, BTreeSet};

use aegis_catalog::{Name, quote};
use tokio_postgres::GenericClient;

use crate::digest::Digest;
use groups::{Group, groups};

pub use error::SyncError;
pub use loses::Loses;
pub use pin::Pinned;

/// Set to the change's id (`SET LOCAL`) by whoever moves rows: its trigger does nothing then.
pub const SILENT_SETTING: &str = "aegis_migrate.silent";

/// The tables and functions that a trigger needs in the target. Idempotent.
pub const SCHEMA: &str = include_str!("../../schema/0002_sync.sql");

/// How many rows an expression is tried on before a trigger is made of it.
const TRIED_ROWS: u32 = 1000;

/// What a change says about two sides, in the names of its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// The change's id.
    pub change: String,
    /// Where the table is.
    pub table: Name,
    /// Columns that the previous version writes.
    pub old: Vec<String>,
    /// Columns that the new version writes.
    pub new: Vec<String>,
    /// A write that changes both sides, and leaves them unlike, is refused; otherwise the new side wins.
    pub reject_both: bool,
    /// New column ← expression over the old ones.
    pub forward: BTreeMap<String, String>,
    /// Old column ← expression over the new ones.
    pub backward: BTreeMap<String, String>,
}

/// A column of a side.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Column {
    name: String,
    /// As SQL writes it.
    type_sql: String,
    /// Whether its type has an equality; others are compared as text.
    compares: bool,
    /// Whether the table refuses NULL in it.
    not_null: bool,
    /// Its default, when two evaluations of it are the same value.
    default: Option<String>,
    /// What computes it from the other side.
    from: Option<String>,
    /// The columns of the table that `from` reads; none: nobody has asked, or nobody knows.
    reads: Option<BTreeSet<String>>,
}

/// One UPDATE of a batch, without its range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Carry {
    /// `"column" = (expression), …`.
    pub set: String,
    /// The rows that it leaves alone: SQL over a row of the table AS `aegis_row`, never NULL.
    pub unless: String,
}

/// Two sides of a table that is there: a rule that was held against the catalog.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sides {
    rule: Rule,
    old: Vec<Column>,
    new: Vec<Column>,
}

/// The trigger as the database has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TriggerState {
    /// It fires: both parts are there and none is disabled, on the table and on each partition, and it has no heir.
    pub enabled: bool,
    /// Tables below that have none: heirs.
    pub uncovered: Vec<String>,
    /// The sha256 of everything that makes it, and of when it or a part of it on a partition was made or touched: the same text, the same
    /// trigger all the time for every row. A partition that is made, detached or dropped changes nothing; one that is attached does.
    pub definition: String,
    /// The body of its function.
    pub body: String,
}

impl Sides {
    /// Holds a rule against the catalog. The columns of both sides have to be there.
    ///
    /// # Errors
    /// See [`SyncError`]; nothing was changed.
    pub async fn read(client: &impl GenericClient, rule: &Rule) -> Result<Self, SyncError> {
        let found = client
            .query(
                include_str!("../../sql/sync/columns.sql"),
                &[&rule.table.schema, &rule.table.name],
            )
            .await?;
        if found.is_empty() {
            return Err(SyncError::NoTable {
                table: rule.table.to_string(),
            });
        }
        let others = client
            .query(
                include_str!("../../sql/sync/others.sql"),
                &[
                    &rule.table.schema,
                    &rule.table.name,
                    &generate::trigger_prefix(rule),
                ],
            )
            .await?;
        for row in &others {
            let column: String = row.try_get("name")?;
            if rule.old.contains(&column) || rule.new.contains(&column) {
                return Err(SyncError::Column {
                    table: rule.table.to_string(),
                    column,
                    why: "the trigger of another change keeps it, and one would not see what the other writes",
                    way_out: "end that change by its contract first",
                });
            }
        }
        let (mut old, mut new) = (Vec::new(), Vec::new());
        let sides = [
            (&rule.old, &rule.backward, &mut old, rule.reject_both),
            (&rule.new, &rule.forward, &mut new, true),
        ];
        for (names, from, side, needs_known_default) in sides {
            for name in names {
                let row = found
                    .iter()
                    .find(|row| row.try_get::<_, &str>("name").is_ok_and(|at| at == name))
                    .ok_or_else(|| SyncError::NoColumn {
                        table: rule.table.to_string(),
                        column: name.clone(),
                    })?;
                side.push(column(rule, row, from.get(name), needs_known_default)?);
            }
        }
        Ok(Self {
            rule: rule.clone(),
            old,
            new,
        })
    }

    /// The trigger of this change as the database has it; `None`: there is none.
    ///
    /// # Errors
    /// The server's.
    pub async fn state(
        &self,
        client: &impl GenericClient,
    ) -> Result<Option<TriggerState>, tokio_postgres::Error> {
        self.rule.state(client).await
    }

    /// Whether the new side is what forward makes of the old one: SQL over a row of the table AS `aegis_row`, never NULL.
    pub fn forward_holds(&self) -> String {
        holds(self.new.iter())
    }

    /// Whether the old side is what backward makes of the new one: SQL over a row of the table AS `aegis_row`, never NULL. Without a backward
    /// direction it never does.
    pub fn backward_holds(&self) -> String {
        holds(self.old.iter())
    }

    /// Whether either direction holds, for each group of columns that hang together: what a backfill leaves alone. A write of one group
    /// leaves the others alone, so one of them may be the old side's while another one is the new side's.
    pub fn agrees(&self) -> String {
        let judged: Vec<String> = groups(self).iter().map(Group::agrees).collect();
        match judged.as_slice() {
            [one] => one.clone(),
            many => format!("({})", many.join(" AND ")),
        }
    }

    /// What UPDATEs of the table AS `aegis_row` carry the old side over, in this order: what each sets, and which rows it leaves alone. A
    /// group that agrees is left alone beside one that does not; the first takes what nobody has carried yet in one write.
    pub fn carries(&self) -> Vec<Carry> {
        let groups = groups(self);
        let one = |group: &Group<'_>| Carry {
            set: group.forward_set(),
            unless: group.agrees(),
        };
        let each: Vec<Carry> = groups.iter().map(one).collect();
        if each.len() == 1 {
            return each;
        }
        let join = |of: fn(&Carry) -> &str, with: &str| {
            let parts: Vec<&str> = each.iter().map(of).collect();
            parts.join(with)
        };
        let all = Carry {
            set: join(|carry| &carry.set, ", "),
            unless: format!("({})", join(|carry| &carry.unless, " OR ")),
        };
        std::iter::once(all).chain(each.clone()).collect()
    }

    /// The table.
    pub fn table(&self) -> &Name {
        &self.rule.table
    }
}

impl Rule {
    /// What it says, as one value: the same text, the same value.
    fn sha256(&self) -> String {
        let mut digest = Digest::new();
        digest.add(&self.table.sql());
        for side in [&self.old, &self.new] {
            digest.add(&side.len().to_string());
            for column in side {
                digest.add(column);
            }
        }
        for direction in [&self.forward, &self.backward] {
            digest.add(&direction.len().to_string());
            digest.add_pairs(direction);
        }
        digest.add(if self.reject_both { "reject" } else { "new" });
        digest.hex()
    }

    /// Whether a trigger was made of this: of the same columns and expressions, as they are written.
    pub fn has_made(&self, trigger: &TriggerState) -> bool {
        let line = generate::made_of(self);
        trigger.body.lines().any(|one| one == line)
    }

    /// Refuses when somebody else may make things in the schema of the table: what is found by its name there could be theirs. `role` is
    /// who computes the sides; none: the current one.
    ///
    /// # Errors
    /// [`SyncError::Untrusted`] with the way out.
    pub async fn trusted(
        &self,
        client: &impl GenericClient,
        role: Option<&str>,
    ) -> Result<(), SyncError> {
        let schema = &self.table.schema;
        // As it is written in SQL: a name is looked up.
        let role = role.map(quote);
        let rows = client
            .query(
                include_str!("../../sql/sync/creators.sql"),
                &[schema, &role],
            )
            .await?;
        let names = rows.iter().map(|row| row.try_get::<_, String>("grantee"));
        let names: Vec<String> = names.collect::<Result<_, _>>()?;
        if names.is_empty() {
            return Ok(());
        }
        let names = names.join(", ");
        Err(SyncError::Untrusted {
            table: self.table.to_string(),
            why: format!("{names} may make things in the schema {schema}"),
            way_out: format!("REVOKE CREATE ON SCHEMA {} FROM {names}", quote(schema)),
        })
    }

    /// Refuses a table from which others inherit: the trigger does not fire for their rows.
    ///
    /// # Errors
    /// [`SyncError::Heirs`] with the way out.
    pub async fn without_heirs(&self, client: &impl GenericClient) -> Result<(), SyncError> {
        let rows = client
            .query(
                include_str!("../../sql/sync/heirs.sql"),
                &[&self.table.schema, &self.table.name],
            )
            .await?;
        let names = rows.iter().map(|row| row.try_get::<_, String>("heir"));
        let names: Vec<String> = names.collect::<Result<_, _>>()?;
        if names.is_empty() {
            return Ok(());
        }
        Err(SyncError::Heirs {
            table: self.table.to_string(),
            heirs: names.join(", "),
        })
    }

    /// How the names of its two triggers begin.
    pub fn trigger_prefix(&self) -> String {
        generate::trigger_prefix(self)
    }

    /// The function that both call.
    pub fn function(&self) -> Name {
        generate::function(self)
    }

    /// What takes the trigger away; for one transaction with the DROP of the old columns, which it would write.
    pub fn drop_statements(&self) -> Vec<String> {
        generate::drop(self)
    }

    /// The trigger of this change as the database has it; `None`: there is none.
    ///
    /// # Errors
    /// The server's.
    pub async fn state(
        &self,
        client: &impl GenericClient,
    ) -> Result<Option<TriggerState>, tokio_postgres::Error> {
        let row = client
            .query_opt(
                include_str!("../../sql/sync/state.sql"),
                &[
                    &self.table.schema,
                    &self.table.name,
                    &generate::trigger_prefix(self),
                ],
            )
            .await?;
        row.map(|row| {
            let uncovered: Vec<String> = row.try_get("uncovered")?;
            Ok(TriggerState {
                enabled: row.try_get::<_, bool>("enabled")? && uncovered.is_empty(),
                uncovered,
                definition: row.try_get("definition")?,
                body: row.try_get("body")?,
            })
        })
        .transpose()
    }
}

/// A column of a side, when a trigger can keep it.
fn column(
    rule: &Rule,
    row: &tokio_postgres::Row,
    from: Option<&String>,
    needs_known_default: bool,
) -> Result<Column, SyncError> {
    let name: String = row.try_get("name")?;
    let refused = |why, way_out| {
        Err(SyncError::Column {
            table: rule.table.to_string(),
            column: name.clone(),
            why,
            way_out,
        })
    };
    if row.try_get("written_by_the_server")? {
        return refused(
            "the server computes it, so nobody else can write it",
            "name a plain column",
        );
    }
    if row.try_get("is_partition_key")? && from.is_some() {
        return refused(
            "it decides in which partition a row is, and a trigger may not move a row",
            "take it out of [sync]",
        );
    }
    let default: Option<String> = row.try_get("default")?;
    let known = default.as_deref().is_none_or(generate::is_steady);
    if !known && needs_known_default {
        return refused(
            "its default is another value each time, so an INSERT that does not name it looks like one that does",
            "drop the default until the contract, and let the program give the value",
        );
    }
    Ok(Column {
        type_sql: row.try_get("type")?,
        compares: row.try_get("compares")?,
        not_null: row.try_get("not_null")?,
        default: default.filter(|_| known),
        // A comment at its end must not swallow what follows.
        from: from.map(|from| {
            if from.contains("--") {
                format!("{from}\n")
            } else {
                from.clone()
            }
        }),
        reads: None,
        name,
    })
}

/// Whether every column that is computed has the value that its expression gives.
fn holds<'a>(side: impl Iterator<Item = &'a Column>) -> String {
    let judged: Vec<String> = side
        .filter_map(|column| {
            let from = column.from.as_ref()?;
            Some(column.same(&quote(&column.name), &format!("({from})")))
        })
        .collect();
    if judged.is_empty() {
        "false".to_owned()
    } else {
        format!("({})", judged.join(" AND "))
    }
}

impl Column {
    /// Whether two values are the same, as SQL: in the column's own type, so that what was stored is what is compared with.
    fn same(&self, one: &str, other: &str) -> String {
        let cast = format!("CAST({other} AS {})", self.type_sql);
        if self.compares {
            format!("{one} IS NOT DISTINCT FROM {cast}")
        } else {
            format!("{one}::text IS NOT DISTINCT FROM {cast}::text")
        }
    }
}
