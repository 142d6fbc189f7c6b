//! A query of the author that tells what is wrong. Its rows are read in pieces and not kept.

use tokio_postgres::Transaction;

use super::{Count, Kind, PassError, SAMPLES_MAX, Sample};

/// Rows that are fetched at once.
const PIECE: i32 = 1000;

pub(crate) async fn count(
    transaction: &Transaction<'_>,
    file: &str,
    sql: &str,
) -> Result<Count, PassError> {
    let query = sql.trim_end_matches(|c: char| c == ';' || c.is_whitespace());
    let sql = format!("SELECT q.key::text, q.what::text FROM ({query}\n) AS q (key, what)");
    let statement = transaction.prepare(&sql).await?;
    let portal = transaction.bind(&statement, &[]).await?;
    let mut count = Count::of(Kind::Sql);
    loop {
        let rows = transaction.query_portal(&portal, PIECE).await?;
        if rows.is_empty() {
            return Ok(count);
        }
        for row in &rows {
            let (key, what): (Option<String>, Option<String>) = (row.try_get(0)?, row.try_get(1)?);
            let what = what.unwrap_or_else(|| "NULL".to_owned());
            let (counter, what) = match what.as_str() {
                "missing" => (&mut count.missing, "missing"),
                "mismatch" => (&mut count.mismatch, "mismatch"),
                "orphaned" => (&mut count.orphaned, "orphaned"),
                _ => {
                    return Err(PassError::Word {
                        file: file.to_owned(),
                        found: what,
                    });
                }
            };
            *counter += 1;
            if count.samples.len() < SAMPLES_MAX {
                count.samples.push(Sample {
                    key: key.unwrap_or_else(|| "NULL".to_owned()),
                    what,
                });
            }
        }
    }
}
