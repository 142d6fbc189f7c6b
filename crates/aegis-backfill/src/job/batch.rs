//! One batch: a key range found, changed and committed with the cursor that says so.
//!
//! Invariants: the row values are computed by the server from the rows as they are when they are locked; the commit holds the fence
//! (epoch and state of the job, and the cursor that the batch began at); a batch that is not committed has changed nothing.

use std::time::{Duration, Instant};

use aegis_catalog::quote;
use tokio_postgres::{Client, Transaction};

use super::error::{Fault, fault};
use super::{JobError, Spec, Write};
use crate::key::{Key, KeyValue};
use crate::sync::{Carry, SILENT_SETTING};

/// How long a batch waits for one lock: less than deadlock_timeout, so that a deadlock ends with the batch and not with a program.
const LOCK_TIMEOUT: Duration = Duration::from_millis(300);

/// What a batch does to its rows.
#[derive(Debug, Clone)]
pub(crate) enum Change {
    /// Sets the new side where neither direction holds, one UPDATE after the other; afterwards the rows agree.
    Set { carries: Vec<Carry>, agrees: String },
    /// The author's statement: `$1` is the lower end, `$2` the upper one, and below the first row stands this.
    Statement { sql: String, smallest: KeyValue },
}

impl Change {
    /// Each leaf by itself, or the table as one: a statement of the author names the table.
    pub(crate) fn only(&self) -> &'static str {
        match self {
            Self::Set { .. } => "ONLY ",
            Self::Statement { .. } => "",
        }
    }
}

/// What every batch of a session is made of.
#[derive(Debug)]
pub(crate) struct Walk<'a> {
    pub(crate) spec: &'a Spec,
    pub(crate) key: Key,
    pub(crate) change: Change,
    pub(crate) epoch: i64,
}

/// A leaf with its ends, as the job has them.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) leaf: String,
    pub(crate) upper: KeyValue,
    pub(crate) cursor: Option<KeyValue>,
}

/// What a batch came to.
#[derive(Debug)]
pub(crate) enum Batch {
    /// Committed.
    Done {
        rows: u32,
        cursor: Option<KeyValue>,
        is_last: bool,
        took_ms: u64,
    },
    /// The server refused the range up to `last`.
    Refused {
        rows: u32,
        last: KeyValue,
        fault: Fault,
        sqlstate: String,
        said: String,
    },
    /// The table itself is locked: no size helps.
    TableLocked { said: String },
    /// The fence did not hold; nothing was written.
    Fenced,
}

/// What keeps a batch short and its words unmistakable. A rollback takes settings back, so each transaction has them.
pub(crate) fn settings(spec: &Spec) -> String {
    let statement_ms = (spec.batch.target_ms * 20).max(5_000);
    // Two sides are computed as their trigger computes them: names are resolved already.
    let path = match &spec.write {
        Write::Forward(_) => "pg_catalog, pg_temp".to_owned(),
        Write::Statement { .. } => format!("{}, pg_catalog", quote(&spec.schema)),
    };
    let mut sql = format!(
        "SET LOCAL lock_timeout = {}; SET LOCAL statement_timeout = {statement_ms}; SET LOCAL search_path = {path}; \
         SET LOCAL row_security = off; SET LOCAL jit = off; SET LOCAL plan_cache_mode = force_custom_plan; \
         SET LOCAL {SILENT_SETTING} = '{}';",
        LOCK_TIMEOUT.as_millis(),
        spec.change.replace('\'', "''")
    );
    if let Some(role) = &spec.run_as {
        sql.push_str(" SET LOCAL ROLE ");
        sql.push_str(&quote(role));
        sql.push(';');
    }
    sql
}

/// In the order of the key, through its index: locks are taken in that order too.
const BY_INDEX: &str = "SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off; SET LOCAL enable_sort = off;";
const ANY_WAY: &str = "SET LOCAL enable_seqscan = DEFAULT; SET LOCAL enable_bitmapscan = DEFAULT; SET LOCAL enable_sort = DEFAULT;";

impl Walk<'_> {
    /// Moves at most `rows` rows after the cursor. `next` is the size that is kept when it is committed after a time.
    pub(crate) async fn batch(
        &self,
        client: &mut Client,
        place: &Place,
        rows: u32,
        kept: u32,
    ) -> Result<Batch, JobError> {
        let started = Instant::now();
        let transaction = client.transaction().await?;
        transaction.batch_execute(&settings(self.spec)).await?;
        transaction.batch_execute(BY_INDEX).await?;
        let found = match self.find(&transaction, place, rows).await {
            Ok(found) => found,
            Err(error) => return locked_or(transaction, error).await,
        };
        let Some((rows_found, last)) = found else {
            transaction.batch_execute("RESET ROLE").await?;
            let took_ms = elapsed_ms(started);
            let cursor = place.cursor.clone();
            return self
                .commit(transaction, place, cursor, true, 0, 0, took_ms, kept)
                .await;
        };
        let changed = match self.write(&transaction, place, &last).await {
            Ok(changed) => changed,
            Err(error) => {
                transaction.rollback().await?;
                return refused(rows_found, last, error);
            }
        };
        transaction.batch_execute("RESET ROLE").await?;
        let is_last = rows_found < rows;
        let took_ms = elapsed_ms(started);
        self.commit(
            transaction,
            place,
            Some(last),
            is_last,
            rows_found,
            changed,
            took_ms,
            kept,
        )
        .await
    }

    /// How many of the next rows there are, and the key of the last one.
    pub(crate) async fn find(
        &self,
        transaction: &Transaction<'_>,
        place: &Place,
        rows: u32,
    ) -> Result<Option<(u32, KeyValue)>, tokio_postgres::Error> {
        let (list, leaf, only) = (self.key.list(), &place.leaf, self.change.only());
        let range = self.key.range(place.cursor.as_ref().map(|_| 2), 1);
        let sql = format!(
            "WITH b AS MATERIALIZED (SELECT {list} FROM {only}{leaf} WHERE {range} ORDER BY {list} LIMIT {rows})
             SELECT (SELECT count(*) FROM b), (SELECT {} FROM b ORDER BY {} LIMIT 1)",
            self.key.texts(),
            self.key.descending()
        );
        let row = match &place.cursor {
            None => transaction.query_one(&sql, &[&place.upper]).await?,
            Some(cursor) => transaction.query_one(&sql, &[&place.upper, cursor]).await?,
        };
        let (count, last): (i64, Option<KeyValue>) = (row.try_get(0)?, row.try_get(1)?);
        Ok(last.map(|last| (u32::try_from(count).unwrap_or(u32::MAX), last)))
    }

    /// Changes the rows after the cursor up to `last`.
    pub(crate) async fn write(
        &self,
        transaction: &Transaction<'_>,
        place: &Place,
        last: &KeyValue,
    ) -> Result<u64, tokio_postgres::Error> {
        match &self.change {
            Change::Set { carries, .. } => {
                let mut changed = 0;
                for Carry { set, unless } in carries {
                    let sql = format!(
                        "UPDATE ONLY {} AS aegis_row SET {set} WHERE {} AND NOT {unless}",
                        place.leaf,
                        self.key.range(place.cursor.as_ref().map(|_| 2), 1)
                    );
                    changed += match &place.cursor {
                        None => transaction.execute(&sql, &[last]).await?,
                        Some(cursor) => transaction.execute(&sql, &[last, cursor]).await?,
                    };
                }
                Ok(changed)
            }
            Change::Statement { sql, smallest } => {
                transaction.batch_execute(ANY_WAY).await?;
                let from = place.cursor.as_ref().unwrap_or(smallest);
                transaction.execute(sql, &[from, last]).await
            }
        }
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "what is committed together, named once"
    )]
    async fn commit(
        &self,
        transaction: Transaction<'_>,
        place: &Place,
        cursor: Option<KeyValue>,
        is_last: bool,
        rows: u32,
        changed: u64,
        took_ms: u64,
        kept: u32,
    ) -> Result<Batch, JobError> {
        let counts = Counts {
            rows: i64::from(rows),
            changed: i64::try_from(changed).unwrap_or(i64::MAX),
            took_ms: i64::try_from(took_ms).unwrap_or(i64::MAX),
        };
        if !self
            .fence(&transaction, place, cursor.as_ref(), is_last, &counts, kept)
            .await?
        {
            transaction.rollback().await?;
            return Ok(Batch::Fenced);
        }
        match transaction.commit().await {
            Ok(()) => Ok(Batch::Done {
                rows,
                cursor,
                is_last,
                took_ms,
            }),
            // A deferred constraint, for example. Without the server's word it is not known; the cursor of the next session tells.
            Err(error) => match cursor {
                Some(last) => refused(rows.max(1), last, error),
                None => Err(error.into()),
            },
        }
    }

    /// Moves the cursor in the caller's transaction. False: the fence does not hold.
    async fn fence(
        &self,
        transaction: &Transaction<'_>,
        place: &Place,
        cursor: Option<&KeyValue>,
        is_last: bool,
        counts: &Counts,
        kept: u32,
    ) -> Result<bool, JobError> {
        let moved = transaction
            .execute(
                include_str!("../../sql/job/fence.sql"),
                &[
                    &self.spec.change,
                    &self.epoch,
                    &place.leaf,
                    &place.cursor,
                    &cursor,
                    &is_last,
                    &counts.rows,
                    &counts.changed,
                    &counts.took_ms,
                    &i32::try_from(kept).unwrap_or(i32::MAX),
                ],
            )
            .await?;
        Ok(moved == 1)
    }

    /// Keeps a row that cannot be moved, and goes past it. False: the fence does not hold.
    pub(crate) async fn skip(
        &self,
        client: &mut Client,
        place: &Place,
        key: &KeyValue,
        sqlstate: &str,
        said: &str,
        kept: u32,
    ) -> Result<bool, JobError> {
        let transaction = client.transaction().await?;
        let counts = Counts {
            rows: 1,
            changed: 0,
            took_ms: 0,
        };
        if !self
            .fence(&transaction, place, Some(key), false, &counts, kept)
            .await?
        {
            transaction.rollback().await?;
            return Ok(false);
        }
        transaction
            .execute(
                include_str!("../../sql/job/failure.sql"),
                &[
                    &self.spec.change,
                    &place.leaf,
                    &place.cursor,
                    key,
                    &sqlstate,
                    &said,
                ],
            )
            .await?;
        transaction.commit().await?;
        Ok(true)
    }

    /// Tries a row again that could not be moved; it alone lies between the two keys.
    pub(crate) async fn again(
        &self,
        client: &mut Client,
        place: &Place,
        key: &KeyValue,
    ) -> Result<Batch, JobError> {
        let started = Instant::now();
        let transaction = client.transaction().await?;
        transaction.batch_execute(&settings(self.spec)).await?;
        transaction.batch_execute(BY_INDEX).await?;
        let changed = match self.write(&transaction, place, key).await {
            Ok(changed) => changed,
            Err(error) => {
                transaction.rollback().await?;
                return refused(1, key.clone(), error);
            }
        };
        transaction.batch_execute("RESET ROLE").await?;
        let changed_rows = i64::try_from(changed).unwrap_or(i64::MAX);
        let moved = transaction
            .execute(
                include_str!("../../sql/job/mended.sql"),
                &[
                    &self.spec.change,
                    &self.epoch,
                    &place.leaf,
                    key,
                    &changed_rows,
                ],
            )
            .await?;
        if moved != 1 {
            transaction.rollback().await?;
            return Ok(Batch::Fenced);
        }
        match transaction.commit().await {
            Ok(()) => Ok(Batch::Done {
                rows: 1,
                cursor: Some(key.clone()),
                is_last: false,
                took_ms: elapsed_ms(started),
            }),
            Err(error) => refused(1, key.clone(), error),
        }
    }
}

struct Counts {
    rows: i64,
    changed: i64,
    took_ms: i64,
}

/// A lock on the whole table is waited for; anything else is the caller's.
async fn locked_or(
    transaction: Transaction<'_>,
    error: tokio_postgres::Error,
) -> Result<Batch, JobError> {
    let said = match (fault(&error), error.as_db_error()) {
        (Fault::Lock | Fault::Time | Fault::Resources, Some(db)) => db.message().to_owned(),
        _ => return Err(error.into()),
    };
    transaction.rollback().await?;
    Ok(Batch::TableLocked { said })
}

/// What a refused range is: the batch's, unless it is the session's.
fn refused(rows: u32, last: KeyValue, error: tokio_postgres::Error) -> Result<Batch, JobError> {
    let fault = fault(&error);
    let Some(db) = error.as_db_error().filter(|_| fault != Fault::Lost) else {
        return Err(error.into());
    };
    Ok(Batch::Refused {
        rows,
        last,
        fault,
        sqlstate: db.code().code().to_owned(),
        said: db.message().to_owned(),
    })
}

fn elapsed_ms(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}
