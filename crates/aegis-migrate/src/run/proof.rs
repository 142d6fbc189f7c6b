//! The proof of opaque SQL: `verify.sql`, after it and before its verdict.
//!
//! Invariants: each query must give one row `true`; it runs as the role of the change, in a read-only part of the transaction that is
//! rolled back, so a proof changes nothing.

use aegis_catalog::quote;
use tokio_postgres::{Row, Transaction};

use super::lost::{answer, is_lost};
use super::{RunError, Work};
use crate::plan::Query;

/// Why the work is not shown to be done; none: it is.
pub(super) async fn doubt(
    transaction: &Transaction<'_>,
    work: &Work<'_>,
) -> Result<Option<String>, RunError> {
    let Some(verify) = work.verify else {
        return Ok(None);
    };
    let mut settings = format!(
        "RESET ROLE; SAVEPOINT proof; SET LOCAL transaction_read_only = on; SET LOCAL search_path = {}, pg_catalog",
        quote(work.schema)
    );
    if let Some(role) = work.run_as {
        settings.push_str("; SET LOCAL ROLE ");
        settings.push_str(&quote(role));
    }
    transaction.batch_execute(&settings).await?;
    for query in &verify.queries {
        if let Some(why) = asked(transaction, query).await? {
            return Ok(Some(format!(
                "{}:{}: not proven: {why}; it must give one row `true`",
                verify.file, query.line
            )));
        }
    }
    transaction
        .batch_execute("ROLLBACK TO SAVEPOINT proof; RELEASE SAVEPOINT proof")
        .await?;
    Ok(None)
}

async fn asked(transaction: &Transaction<'_>, query: &Query) -> Result<Option<String>, RunError> {
    let rows = match transaction.query(&query.text, &[]).await {
        Ok(rows) => rows,
        Err(error) if is_lost(&error) => return Err(error.into()),
        Err(error) => {
            return match answer(&error) {
                Some(db) => Ok(Some(format!("{} ({})", db.message(), db.code().code()))),
                None => Err(error.into()),
            };
        }
    };
    Ok(match rows.as_slice() {
        [row] => of_row(row),
        rows => Some(format!("it gave {} rows", rows.len())),
    })
}

fn of_row(row: &Row) -> Option<String> {
    if row.len() != 1 {
        return Some(format!("it gave {} columns", row.len()));
    }
    match row.try_get::<_, Option<bool>>(0) {
        Ok(Some(true)) => None,
        Ok(Some(false)) => Some("it gave false".to_owned()),
        Ok(None) => Some("it gave NULL".to_owned()),
        Err(_) => Some("what it gave is no boolean".to_owned()),
    }
}

/// What is told of a step that was not proven.
pub(super) fn unproven(work: &Work<'_>, why: String) -> RunError {
    RunError::Shape {
        file: work.step.file.clone(),
        line: work.statement.line,
        why,
    }
}
