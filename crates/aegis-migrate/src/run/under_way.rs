//! What is built in a database now, for who only looks.

use serde_json::{Value, json};
use tokio_postgres::GenericClient;

use super::watch;
use crate::change::ChangeId;
use crate::ledger::LedgerName;

/// The builds of these changes that are under way: each with its change, and as the events of a run tell it, with `pid`, `runner` and
/// `since_s`.
///
/// # Errors
/// The server's.
pub async fn builds<C: GenericClient + Sync>(
    client: &C,
    ledger: LedgerName,
    changes: &[&ChangeId],
) -> Result<Vec<(ChangeId, Value)>, tokio_postgres::Error> {
    let names: Vec<String> = changes
        .iter()
        .map(|change| ledger.lock_of(change.as_str()))
        .collect();
    let rows = client
        .query(include_str!("../../sql/run/under_way.sql"), &[&names])
        .await?;
    let mut found = Vec::with_capacity(rows.len());
    for row in rows {
        let number: i64 = row.try_get("nr")?;
        let at = usize::try_from(number - 1).ok();
        let Some(change) = at.and_then(|at| changes.get(at)) else {
            continue;
        };
        let mut event = json!({ "event": "build" });
        watch::into(&row, &mut event)?;
        event["pid"] = row.try_get::<_, i32>("pid")?.into();
        event["runner"] = row.try_get::<_, String>("runner")?.into();
        event["since_s"] = row.try_get::<_, i64>("since_s")?.into();
        found.push(((*change).clone(), event));
    }
    Ok(found)
}
