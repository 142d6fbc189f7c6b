//! The floor of the schema: how many lines of the lock a program must know at least. Only a closed contract raises it.

use tokio_postgres::GenericClient;

use super::attempt::Attempt;
use crate::change::{ChangeId, Phase};
use crate::lock::LockFile;

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
