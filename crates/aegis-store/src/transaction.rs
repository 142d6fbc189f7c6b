//! Transactions that tell the truth about their end.
//!
//! A COMMIT of an aborted transaction answers ROLLBACK, and the driver returns `Ok(())` for it (rust-postgres #1334). The
//! driver does not show the tag, so [`commit_checked`] proves first that the transaction is not aborted: any statement in an
//! aborted one fails with 25P02, and nothing runs between that proof and the COMMIT.

use deadpool_postgres::Transaction;

use crate::error::StoreError;

/// Commits, or says that it did not. A lost answer is [`StoreError::lost_answer`]: the caller reads back.
///
/// # Errors
/// What the database said: a deferred constraint, an aborted transaction, a lost connection.
pub async fn commit_checked(transaction: Transaction<'_>) -> Result<(), StoreError> {
    transaction.batch_execute("SELECT").await?;
    transaction.commit().await?;
    Ok(())
}
