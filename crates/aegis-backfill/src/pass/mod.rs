//! A pass: every row read in one state of the database, and what is not right counted.
//!
//! Invariants: it writes nothing but its own result, after its end; all rows of one state are read, and a policy that would hide some
//! is an error; a trigger that was touched meanwhile, or was made of other expressions, makes no result; a result is never corrected.
//!
//! Read in order of place in the table and not of the key, piece by piece: each piece says how far it is, and nothing is sorted.

mod error;
mod query;
mod sides;

use aegis_catalog::quote;
use serde::Serialize;
use serde_json::Value;
use tokio_postgres::{Client, GenericClient, IsolationLevel, Transaction};

use crate::digest::Digest;
use crate::job::{Told, Who};
use crate::sync::{Pinned, Rule, TriggerState};

pub use error::PassError;

/// Keys that are kept of what is wrong.
pub(crate) const SAMPLES_MAX: usize = 20;

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// The new side is what forward makes of the old one: what new reads and writes need.
    Forward,
    /// One of the directions holds: what a contract needs.
    Agrees,
    /// A query of the change.
    Sql,
}

impl Kind {
    /// As in the table.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Forward => "forward",
            Self::Agrees => "agrees",
            Self::Sql => "sql",
        }
    }
}

/// What a pass asks.
#[derive(Debug, Clone)]
pub struct Asked {
    /// The change's id.
    pub change: String,
    /// The schema of the change: `search_path` is this, then `pg_catalog`.
    pub schema: String,
    /// The role that reads.
    pub run_as: Option<String>,
    /// The columns that name a row in the samples; without any its place does.
    pub key: Vec<String>,
    /// What.
    pub what: What,
}

/// What a pass compares.
#[derive(Debug, Clone)]
pub enum What {
    /// Both directions of two sides, in one reading: it makes a result of `forward` and one of `agrees`.
    Sides(Rule),
    /// A query of rows (key, `missing` | `mismatch` | `orphaned`).
    Query {
        /// The file's name, for messages.
        file: String,
        /// The query.
        sql: String,
        /// The sides that a trigger of the change keeps alike, if it has one.
        trigger: Option<Rule>,
    },
}

impl Asked {
    /// The hash of what is asked: evidence for another question is none.
    pub fn sha256(&self) -> String {
        let mut digest = Digest::new();
        digest.add(&self.schema);
        match &self.what {
            What::Query { sql, .. } => digest.add(sql),
            What::Sides(rule) => {
                digest.add(&rule.table.sql());
                digest.add_pairs(rule.forward.iter().chain(&rule.backward));
            }
        }
        digest.hex()
    }

    /// Whose trigger has to stay as it is.
    fn rule(&self) -> Option<&Rule> {
        match &self.what {
            What::Sides(rule) => Some(rule),
            What::Query { trigger, .. } => trigger.as_ref(),
        }
    }
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Sample {
    /// The row.
    pub key: String,
    /// `missing`, `mismatch`, `orphaned`.
    pub what: &'static str,
}

/// What was counted of one kind.
#[derive(Debug, Clone, Serialize)]
pub struct Count {
    /// Of what.
    pub kind: Kind,
    /// Rows that were read; none where a query tells only what is wrong.
    pub rows: Option<i64>,
    /// Not there.
    pub missing: i64,
    /// There, and not right.
    pub mismatch: i64,
    /// There, and of nothing.
    pub orphaned: i64,
    /// A few of them.
    pub samples: Vec<Sample>,
}

impl Count {
    pub(crate) fn of(kind: Kind) -> Self {
        Self {
            kind,
            rows: None,
            missing: 0,
            mismatch: 0,
            orphaned: 0,
            samples: Vec::new(),
        }
    }

    /// Nothing is wrong.
    pub fn is_zero(&self) -> bool {
        self.missing == 0 && self.mismatch == 0 && self.orphaned == 0
    }

    /// A line for people.
    pub fn words(&self) -> String {
        let rows = self
            .rows
            .map_or_else(String::new, |rows| format!(" of {rows} rows"));
        format!(
            "{}{rows}: {} missing, {} mismatching, {} orphaned",
            self.kind.name(),
            self.missing,
            self.mismatch,
            self.orphaned
        )
    }
}

/// Reads everything once, in a session of its own, and keeps what it counted.
///
/// # Errors
/// See [`PassError`]; no result was kept.
pub async fn run(
    client: &mut Client,
    asked: &Asked,
    who: &Who,
    told: Told<'_>,
) -> Result<Vec<Count>, PassError> {
    let sides = match &asked.what {
        What::Sides(rule) => Some(Pinned::of(client, rule, asked.run_as.as_deref()).await?),
        What::Query { .. } => None,
    };
    let firing = trigger(client, asked).await?;
    if let (Some(state), Some(rule)) = (&firing, asked.rule())
        && !rule.has_made(state)
    {
        return Err(PassError::OtherExpressions {
            change: asked.change.clone(),
        });
    }
    let before = firing.map(|state| state.definition);
    let transaction = client
        .build_transaction()
        .isolation_level(IsolationLevel::RepeatableRead)
        .read_only(true)
        .start()
        .await?;
    let (state, counts) = read(&transaction, asked, sides.as_ref(), told).await?;
    transaction.commit().await?;
    // A new state of the catalog: the one of the transaction would show the trigger as it was.
    if trigger(client, asked).await?.map(|state| state.definition) != before {
        return Err(PassError::Touched {
            change: asked.change.clone(),
        });
    }
    for count in &counts {
        client
            .execute(
                include_str!("../../sql/pass/keep.sql"),
                &[
                    &asked.change,
                    &count.kind.name(),
                    &asked.sha256(),
                    &state.at,
                    &state.lsn,
                    &count.rows,
                    &count.missing,
                    &count.mismatch,
                    &count.orphaned,
                    &serde_json::to_value(&count.samples).unwrap_or(Value::Null),
                    &before,
                    &who.run,
                    &who.by,
                    &who.release,
                ],
            )
            .await?;
    }
    Ok(counts)
}

/// The state that is read.
struct State {
    lsn: String,
    at: String,
}

async fn read(
    transaction: &Transaction<'_>,
    asked: &Asked,
    pinned: Option<&Pinned>,
    told: Told<'_>,
) -> Result<(State, Vec<Count>), PassError> {
    // Two sides are computed as their trigger computes them: names are resolved already.
    let path = match pinned {
        Some(_) => "pg_catalog, pg_temp".to_owned(),
        None => format!("{}, pg_catalog", quote(&asked.schema)),
    };
    let mut settings = format!(
        "SET LOCAL statement_timeout = 0; SET LOCAL row_security = off; SET LOCAL search_path = {path};"
    );
    if let Some(role) = &asked.run_as {
        settings.push_str(" SET LOCAL ROLE ");
        settings.push_str(&quote(role));
    }
    transaction.batch_execute(&settings).await?;
    // Before the state is fixed by the first query: a table that is rewritten between both would look empty.
    if let What::Sides(rule) = &asked.what {
        sides::lock(transaction, &rule.table).await?;
    }
    let row = transaction
        .query_one(include_str!("../../sql/pass/state.sql"), &[])
        .await?;
    let state = State {
        lsn: row.try_get("lsn")?,
        at: row.try_get("at")?,
    };
    let counts = match (&asked.what, pinned) {
        (What::Query { file, sql, .. }, _) => vec![query::count(transaction, file, sql).await?],
        (What::Sides(_), Some(pinned)) => {
            sides::count(transaction, asked, pinned.sides(), told).await?
        }
        // Nothing counted is no count of zero.
        (What::Sides(_), None) => {
            return Err(PassError::Asked("the two sides were not read".to_owned()));
        }
    };
    Ok((state, counts))
}

/// The trigger that fires now; none where there is none, or it is disabled.
async fn trigger(client: &Client, asked: &Asked) -> Result<Option<TriggerState>, PassError> {
    let Some(rule) = asked.rule() else {
        return Ok(None);
    };
    let state = rule.state(client).await?;
    Ok(state.filter(|state| state.enabled))
}

/// A kept result.
#[derive(Debug, Clone, Serialize)]
pub struct Kept {
    /// Nothing was wrong.
    pub is_zero: bool,
    /// The hash of what was asked.
    pub asked_sha256: String,
    /// The trigger that fired before and after it; none without one.
    pub trigger_sha256: Option<String>,
    /// When it began, RFC 3339: what was written later is not in it.
    pub started_at: String,
    /// Seconds since it began, by the database's clock.
    pub age_s: i64,
    /// The place in the WAL that was read.
    pub snapshot_lsn: String,
    /// Rows that were read.
    pub rows: Option<i64>,
    /// How many were wrong, of all kinds.
    pub wrong: i64,
}

/// The newest result of a kind. A database without such a table has none.
pub async fn newest(
    client: &impl GenericClient,
    change: &str,
    kind: Kind,
) -> Result<Option<Kept>, tokio_postgres::Error> {
    let made: bool = client
        .query_one(include_str!("../../sql/pass/exists.sql"), &[])
        .await?
        .try_get(0)?;
    if !made {
        return Ok(None);
    }
    let row = client
        .query_opt(
            include_str!("../../sql/pass/newest.sql"),
            &[&change, &kind.name()],
        )
        .await?;
    row.map(|row| {
        Ok(Kept {
            is_zero: row.try_get("is_zero")?,
            asked_sha256: row.try_get("asked_sha256")?,
            trigger_sha256: row.try_get("trigger_sha256")?,
            started_at: row.try_get("started_at")?,
            age_s: row.try_get("age_s")?,
            snapshot_lsn: row.try_get("snapshot_lsn")?,
            rows: row.try_get("rows")?,
            wrong: row.try_get("wrong")?,
        })
    })
    .transpose()
}
