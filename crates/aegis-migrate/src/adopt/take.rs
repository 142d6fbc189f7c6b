//! Takes the ledger over: kept, then shut, in one transaction.

use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Transaction};

use super::ledger::{Applied, Ledger, applied};
use super::{AdoptError, differences};
use crate::foreign::ForeignFile;

/// What was taken over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taken {
    /// Lines of the other ledger.
    pub lines: Vec<Applied>,
}

/// Compares, keeps and shuts inside the caller's transaction, which also records the baseline. The schema of this tool has to
/// be there (`aegis_migrate.adopted`).
pub async fn take(
    transaction: &Transaction<'_>,
    ledger: &Ledger,
    files: &[ForeignFile],
) -> Result<Taken, AdoptError> {
    let client = transaction.client();
    let tool = ledger.tool.word();
    not_running(client, ledger).await?;
    transaction
        .batch_execute("SET LOCAL lock_timeout = '2s'")
        .await
        .map_err(AdoptError::Sql)?;
    let lock = ledger.sql("LOCK TABLE {ledger} IN SHARE ROW EXCLUSIVE MODE");
    transaction.batch_execute(&lock).await.map_err(|error| {
        if error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE) {
            AdoptError::LedgerLocked {
                tool,
                ledger: ledger.quoted(),
            }
        } else {
            AdoptError::Sql(error)
        }
    })?;
    let lines = applied(client, ledger).await?;
    if let Some(line) = lines.iter().find(|line| !line.finished) {
        return Err(AdoptError::Unfinished {
            tool,
            version: line.named(),
        });
    }
    let differences = differences(ledger.tool, files, &lines);
    if !differences.is_empty() {
        return Err(AdoptError::Differs { tool, differences });
    }
    let keep = include_str!("../../sql/adopt/keep.sql");
    for line in &lines {
        let version = line.version.as_deref().unwrap_or_default();
        transaction
            .execute(
                keep,
                &[
                    &tool,
                    &ledger.quoted(),
                    &version,
                    &line.description,
                    &line.checksum,
                    &line.at,
                ],
            )
            .await
            .map_err(AdoptError::Sql)?;
    }
    let shut = ledger.sql(include_str!("../../sql/adopt/shut.sql"));
    transaction
        .batch_execute(&shut)
        .await
        .map_err(AdoptError::Sql)?;
    Ok(Taken { lines })
}

/// Opens the other tool's ledger again.
pub async fn undo(client: &Client, ledger: &Ledger) -> Result<(), AdoptError> {
    let open = ledger.sql(include_str!("../../sql/adopt/open.sql"));
    client.batch_execute(&open).await.map_err(AdoptError::Sql)
}

/// A run of the tool that holds its lock has not written its ledger yet.
async fn not_running(client: &Client, ledger: &Ledger) -> Result<(), AdoptError> {
    let row = client
        .query_one("SELECT current_database()::text", &[])
        .await
        .map_err(AdoptError::Sql)?;
    let Some(key) = ledger.tool.lock_key(row.get(0)) else {
        return Ok(());
    };
    let holder = client
        .query_opt(include_str!("../../sql/adopt/lock_holder.sql"), &[&key])
        .await
        .map_err(AdoptError::Sql)?;
    match holder {
        None => Ok(()),
        Some(row) => Err(AdoptError::Running {
            tool: ledger.tool.word(),
            pid: row.get::<_, Option<i32>>(0).unwrap_or_default(),
            application: row.get(1),
            state: row.get(2),
        }),
    }
}
