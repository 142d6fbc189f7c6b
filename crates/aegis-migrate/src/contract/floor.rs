//! The floor of the schema: how many lines of the lock a program must know at least. Only a closed contract raises it.

use tokio_postgres::GenericClient;

use super::attempt::Attempt;
use super::reconciled::is_there;
use crate::change::{ChangeId, Phase};
use crate::lock::LockFile;
use crate::set::Set;

/// What a program must know that does not use the old side of this change: its lines before the contract. Lines, from 1.
pub fn of(lock: &LockFile, change: &ChangeId) -> i32 {
    let last = lock
        .lines
        .iter()
        .rposition(|line| line.at.id == *change && line.at.phase != Phase::Contract);
    last.map_or(0, |index| i32::try_from(index + 1).unwrap_or(i32::MAX))
}

/// Raises it for an attempt, in the transaction that closes. The floor of the ledger then.
pub async fn raise(
    client: &impl GenericClient,
    attempt: &Attempt,
    lines: i32,
) -> Result<i32, tokio_postgres::Error> {
    client
        .execute(
            include_str!("../../sql/contract/floor_raise.sql"),
            &[&attempt.change, &attempt.number, &lines],
        )
        .await?;
    settle(client).await
}

/// What it is without the attempts that were reopened, in the transaction that reopens.
pub async fn settle(client: &impl GenericClient) -> Result<i32, tokio_postgres::Error> {
    client
        .query_one(include_str!("../../sql/contract/floor_set.sql"), &[])
        .await?
        .try_get(0)
}

/// A change whose old side is closed here, and which this folder does not know: its programs are too old for this database. The
/// number of lines says the same, but a squash makes it smaller.
pub async fn too_old(
    client: &impl GenericClient,
    set: &Set,
) -> Result<Option<String>, tokio_postgres::Error> {
    let anybody_may_ask: bool = client
        .query_one(include_str!("../../sql/contract/closed_there.sql"), &[])
        .await?
        .try_get(0)?;
    let ask = if anybody_may_ask {
        include_str!("../../sql/contract/closed_asked.sql")
    } else if is_there(client, "aegis_migrate.contract").await? {
        include_str!("../../sql/contract/closed.sql")
    } else {
        return Ok(None);
    };
    let rows = client.query(ask, &[]).await?;
    for row in &rows {
        let change: String = row.try_get(0)?;
        let is_known = set.changes.values().any(|known| {
            let squashed = known.squashed.iter().flat_map(|lock| &lock.lines);
            known.id.as_str() == change
                || squashed
                    .into_iter()
                    .any(|line| line.at.id.as_str() == change)
        });
        if !is_known {
            return Ok(Some(change));
        }
    }
    Ok(None)
}
