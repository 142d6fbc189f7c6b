//! Both directions of two sides, in one reading of the table.

use std::time::{Duration, Instant};

use aegis_catalog::{Name, quote};
use serde_json::json;
use tokio_postgres::Transaction;

use super::{Asked, Count, Kind, PassError, SAMPLES_MAX, Sample};
use crate::job::Told;
use crate::job::leaf::leaves;
use crate::sync::Sides;

/// Pages that are read at once: 64 MiB.
const PIECE: i64 = 8192;
const TELL_EVERY: Duration = Duration::from_secs(1);

/// Locks a table and what is below it, so that none is rewritten before the caller's transaction ends. A command, not a query: it
/// fixes no state.
pub(crate) async fn lock(transaction: &Transaction<'_>, table: &Name) -> Result<(), PassError> {
    let lock = format!("LOCK TABLE {} IN ACCESS SHARE MODE", table.sql());
    Ok(transaction.batch_execute(&lock).await?)
}

pub(crate) async fn count(
    transaction: &Transaction<'_>,
    asked: &Asked,
    sides: &Sides,
    told: Told<'_>,
) -> Result<Vec<Count>, PassError> {
    let (forward, agrees) = (sides.forward_holds(), sides.agrees());
    let (mut of_forward, mut of_agrees) = (Count::of(Kind::Forward), Count::of(Kind::Agrees));
    let mut rows = 0;
    let mut told_at = Instant::now();
    for leaf in leaves(transaction, sides.table()).await? {
        let name = leaf.name.sql();
        let pages: i64 = transaction
            .query_one(include_str!("../../sql/pass/pages.sql"), &[&leaf.oid])
            .await?
            .try_get(0)?;
        let mut from = 0;
        loop {
            // The last piece has no end: rows that came behind it are another state's, and cost nothing.
            let is_last = !leaf.is_heap || from + PIECE >= pages;
            let place = match (from, is_last) {
                (0, true) => "true".to_owned(),
                (from, true) => format!("ctid >= '({from},0)'"),
                (from, false) => format!("ctid >= '({from},0)' AND ctid < '({},0)'", from + PIECE),
            };
            let sql = format!(
                "SELECT count(*), count(*) FILTER (WHERE NOT {forward}), count(*) FILTER (WHERE NOT {agrees}) FROM ONLY {name} AS aegis_row WHERE {place}"
            );
            let row = transaction.query_one(&sql, &[]).await?;
            rows += row.try_get::<_, i64>(0)?;
            for (count, wrong, holds) in [
                (&mut of_forward, row.try_get::<_, i64>(1)?, &forward),
                (&mut of_agrees, row.try_get::<_, i64>(2)?, &agrees),
            ] {
                count.mismatch += wrong;
                if wrong > 0 && count.samples.len() < SAMPLES_MAX {
                    let condition = format!("{place} AND NOT {holds}");
                    sample(transaction, asked, &name, &condition, count).await?;
                }
            }
            if told_at.elapsed() >= TELL_EVERY {
                told_at = Instant::now();
                told(
                    &json!({ "event": "reconcile", "change": asked.change, "leaf": name, "pages_read": (from + PIECE).min(pages), "pages": pages, "rows": rows, "wrong": of_agrees.mismatch }),
                );
            }
            if is_last {
                break;
            }
            from += PIECE;
        }
    }
    (of_forward.rows, of_agrees.rows) = (Some(rows), Some(rows));
    Ok(vec![of_forward, of_agrees])
}

/// Keys of rows that are wrong, from the same state.
async fn sample(
    transaction: &Transaction<'_>,
    asked: &Asked,
    leaf: &str,
    condition: &str,
    count: &mut Count,
) -> Result<(), PassError> {
    let key = if asked.key.is_empty() {
        "ctid::text".to_owned()
    } else {
        let columns: Vec<String> = asked
            .key
            .iter()
            .map(|name| format!("{}::text", quote(name)))
            .collect();
        format!("concat_ws(', ', {})", columns.join(", "))
    };
    let left = SAMPLES_MAX - count.samples.len();
    let sql = format!("SELECT {key} FROM ONLY {leaf} AS aegis_row WHERE {condition} LIMIT {left}");
    for row in transaction.query(&sql, &[]).await? {
        count.samples.push(Sample {
            key: row.try_get(0)?,
            what: "mismatch",
        });
    }
    Ok(())
}
