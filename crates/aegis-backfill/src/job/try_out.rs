//! Before a job begins: its statement on a few rows, twice, and rolled back both times.
//!
//! What is found so: a value that should be each row's own and is one for all (`(SELECT gen_random_uuid())` is computed once a
//! statement), and a forward direction after which the rows still do not agree, so that no pass would ever count zero.

use serde_json::{Map, Value};
use tokio_postgres::{Client, Transaction};

use super::JobError;
use super::batch::{Change, Place, Walk, settings};
use super::error::{Fault, fault};
use crate::key::KeyValue;

/// Rows that are tried.
const ROWS: u32 = 10;
/// How often a locked row is waited for before the check is left out.
const TRIES: u32 = 3;

/// What the rows of a trial were.
#[derive(Debug)]
struct Trial {
    before: Vec<Map<String, Value>>,
    after: Vec<Map<String, Value>>,
    /// Rows that neither direction holds for after it.
    apart: i64,
}

/// Tries the first rows of a leaf. Rows that the server refuses are the job's to find.
pub(crate) async fn try_out(
    client: &mut Client,
    walk: &Walk<'_>,
    place: &Place,
) -> Result<(), JobError> {
    let Some(one) = trial(client, walk, place).await? else {
        return Ok(());
    };
    if one.apart > 0 {
        return Err(JobError::Precondition(format!(
            "{}: after forward has set them, {} of {} rows that were tried still do not agree: the expression gives another value each \
             time, or another trigger changes it, so no reconciliation would count zero; nothing was changed",
            place.leaf,
            one.apart,
            one.after.len()
        )));
    }
    let Some(other) = trial(client, walk, place).await? else {
        return Ok(());
    };
    let times = time_columns(client, place).await?;
    if let Some(column) = collapsed(&one, &other).find(|column| !times.contains(column)) {
        return Err(JobError::Precondition(format!(
            "{}.{column} would get one value for all rows of a batch, and another one in the next: what should be computed for each \
             row is computed once (a volatile function in a subquery is); nothing was changed",
            place.leaf
        )));
    }
    Ok(())
}

async fn trial(
    client: &mut Client,
    walk: &Walk<'_>,
    place: &Place,
) -> Result<Option<Trial>, JobError> {
    for _ in 0..TRIES {
        let transaction = client.transaction().await?;
        let tried = within(&transaction, walk, place).await;
        transaction.rollback().await?;
        match tried {
            Ok(trial) => return Ok(trial),
            Err(error) => match (fault(&error), error.as_db_error()) {
                (Fault::Lost, _) | (_, None) => return Err(error.into()),
                (Fault::Statement, Some(db)) => {
                    return Err(JobError::Precondition(format!(
                        "the first batch of {} was tried and refused: {} ({}); nothing was changed",
                        place.leaf,
                        db.message(),
                        db.code().code()
                    )));
                }
                (Fault::Row | Fault::Time, _) => return Ok(None),
                (Fault::Lock | Fault::Resources, _) => {}
            },
        }
    }
    Ok(None)
}

async fn within(
    transaction: &Transaction<'_>,
    walk: &Walk<'_>,
    place: &Place,
) -> Result<Option<Trial>, tokio_postgres::Error> {
    transaction.batch_execute(&settings(walk.spec)).await?;
    let Some((_, last)) = walk.find(transaction, place, ROWS).await? else {
        return Ok(None);
    };
    let before = rows(transaction, walk, place, &last).await?;
    walk.write(transaction, place, &last).await?;
    let after = rows(transaction, walk, place, &last).await?;
    let mut apart = 0;
    if let Change::Set { agrees, .. } = &walk.change {
        let sql = format!(
            "SELECT count(*) FROM ONLY {} AS aegis_row WHERE {} AND NOT {agrees}",
            place.leaf,
            walk.key.range(None, 1)
        );
        apart = transaction.query_one(&sql, &[&last]).await?.try_get(0)?;
    }
    Ok(Some(Trial {
        before,
        after,
        apart,
    }))
}

/// The rows up to `last`, in order.
async fn rows(
    transaction: &Transaction<'_>,
    walk: &Walk<'_>,
    place: &Place,
    last: &KeyValue,
) -> Result<Vec<Map<String, Value>>, tokio_postgres::Error> {
    let sql = format!(
        "SELECT to_jsonb(aegis_row) FROM {}{} AS aegis_row WHERE {} ORDER BY {}",
        walk.change.only(),
        place.leaf,
        walk.key.range(None, 1),
        walk.key.list()
    );
    let rows = transaction.query(&sql, &[last]).await?;
    rows.iter()
        .map(|row| match row.try_get(0)? {
            Value::Object(row) => Ok(row),
            _ => Ok(Map::new()),
        })
        .collect()
}

/// Columns of a time: one for all rows of a batch is what is meant there.
async fn time_columns(client: &Client, place: &Place) -> Result<Vec<String>, JobError> {
    let rows = client
        .query(
            include_str!("../../sql/job/time_columns.sql"),
            &[&place.leaf],
        )
        .await?;
    rows.iter().map(|row| Ok(row.try_get(0)?)).collect()
}

/// Columns that got one value in all rows of a trial, and another one in the other trial.
fn collapsed<'a>(one: &'a Trial, other: &'a Trial) -> impl Iterator<Item = String> + 'a {
    let columns = one.after.first().into_iter().flat_map(Map::keys);
    columns.filter_map(|column| {
        let (first, second) = (one.single(column)?, other.single(column)?);
        (first != second).then(|| column.clone())
    })
}

impl Trial {
    /// The one value that all rows got that were changed in this column; none where there are several, or fewer than two rows.
    fn single(&self, column: &str) -> Option<&Value> {
        let changed: Vec<&Value> = self
            .before
            .iter()
            .zip(&self.after)
            .filter(|(before, after)| before.get(column) != after.get(column))
            .filter_map(|(_, after)| after.get(column))
            .collect();
        let (first, others) = changed.split_first()?;
        (!others.is_empty() && others.iter().all(|value| value == first)).then_some(*first)
    }
}
