//! Everything that a database says was applied: executed here, or recorded as a baseline.

use std::collections::BTreeMap;

use tokio_postgres::{GenericClient, Row};

use super::Recorded;
use crate::baseline::{self, BaselineError};
use crate::change::PhaseOf;
use crate::ledger::LedgerName;

/// Reads an application's ledger; nothing where the tool was never here. In the order in which it was applied, what was recorded
/// without being executed first, what is begun last.
pub async fn recorded<C: GenericClient + Sync>(client: &C) -> Result<Vec<Recorded>, BaselineError> {
    recorded_in(client, LedgerName::Application).await
}

/// [`recorded`] of any ledger.
pub async fn recorded_in<C: GenericClient + Sync>(
    client: &C,
    ledger: LedgerName,
) -> Result<Vec<Recorded>, BaselineError> {
    let there = client
        .query_one(
            &*ledger.sql(include_str!("../../sql/standing/exists.sql")),
            &[],
        )
        .await?;
    let mut found: BTreeMap<PhaseOf, (usize, Recorded)> = BTreeMap::new();
    if there.try_get(1)? {
        for row in baseline::read(client, ledger).await? {
            found.insert(row.at.clone(), (found.len(), row));
        }
    }
    let before = found.len();
    if there.try_get(0)? {
        let rows = client
            .query(
                &*ledger.sql(include_str!("../../sql/standing/executed.sql")),
                &[],
            )
            .await?;
        for (nth, row) in rows.iter().enumerate() {
            let row = executed(row)?;
            found.insert(row.at.clone(), (before + nth, row));
        }
    }
    let mut found: Vec<(usize, Recorded)> = found.into_values().collect();
    found.sort_by_key(|(nth, _)| *nth);
    Ok(found.into_iter().map(|(_, row)| row).collect())
}

fn executed(row: &Row) -> Result<Recorded, BaselineError> {
    let text = format!(
        "{}:{}",
        row.try_get::<_, String>(0)?,
        row.try_get::<_, String>(1)?
    );
    let steps: i64 = row.try_get(4)?;
    Ok(Recorded {
        at: text
            .parse()
            .map_err(|_| BaselineError::Unknown { row: text })?,
        sha256: row.try_get(2)?,
        whole: row.try_get(3)?,
        steps_done: u32::try_from(steps).unwrap_or(u32::MAX),
        open: row.try_get(5)?,
    })
}
