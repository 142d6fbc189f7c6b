//! Submit: one task, a batch, inside the caller's transaction, with idempotency keys.
//!
//! Invariants: everything is checked before anything is written; a batch is written whole or not at all; the same key with
//! the same payload gives the same task; a notification is a hint, sent after the commit and outside of it.
//!
//! Rooms: `check` before anything is written, `resolve` from names to ids, `keys`, `write` in one statement, `copy`
//! for large batches, `wake`.

mod check;
mod copy;
mod keys;
mod mint;
mod new_task;
mod resolve;
mod rows;
pub(crate) mod wake;
mod write;

use std::collections::BTreeSet;

use uuid::Uuid;

pub use self::new_task::{NewTask, RetryPolicy};
use crate::error::StoreError;
use crate::session::Conn;
use crate::store::Store;
use crate::transaction::commit_checked;

/// Largest input that stands in the task's own row, in bytes: a claim copies the row, so a large one costs more there than it
/// saves here (docs/adr/0004).
const INLINE_BYTES_MAX: i32 = 256;

/// What a submit gave for one task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Submitted {
    /// The task's id.
    pub task: Uuid,
    /// False: the key was used before, with the same payload.
    pub is_new: bool,
}

impl Store {
    /// Submits one task.
    ///
    /// # Errors
    /// As [`Store::submit_batch`].
    pub async fn submit(&self, task: NewTask) -> Result<Submitted, StoreError> {
        let answers = self.submit_batch(vec![task]).await?;
        answers.into_iter().next().ok_or(StoreError::Panicked)
    }

    /// Submits a batch of at most 10,000, whole or not at all. Answers in the order given.
    ///
    /// # Errors
    /// [`StoreError::BadTask`], [`StoreError::TooLarge`] or [`StoreError::KeyConflict`] with nothing written. After
    /// [`StoreError::lost_answer`] submit again: tasks with keys are not doubled, others may be.
    pub async fn submit_batch(&self, tasks: Vec<NewTask>) -> Result<Vec<Submitted>, StoreError> {
        let resolved = self.resolve_batch(tasks).await?;
        let queues: BTreeSet<&str> = resolved
            .tasks
            .iter()
            .map(|task| task.queue.as_str())
            .collect();
        let queues: Vec<String> = queues.into_iter().map(str::to_owned).collect();
        let submitted = self
            .detached(async move |store| {
                let mut pooled = store.conn().await?;
                if resolved.tasks.iter().all(|task| task.key.is_none()) {
                    return write::write(
                        &pooled.conn(),
                        &resolved,
                        &vec![None; resolved.tasks.len()],
                    )
                    .await;
                }
                let mode = pooled.mode();
                let transaction = pooled.client().transaction().await?;
                let submitted =
                    keys::write_keyed(&Conn::in_transaction(&transaction, mode), &resolved).await?;
                commit_checked(transaction).await?;
                Ok(submitted)
            })
            .await?;
        self.wake(&queues).await;
        Ok(submitted)
    }

    /// Submits inside a transaction of the caller's, in which the task becomes visible. Lanes, tenants and policies that are
    /// new are made in short transactions of their own. Nobody is woken: workers poll within one and a half.
    ///
    /// # Errors
    /// As [`Store::submit_batch`]; the caller then rolls back.
    pub async fn submit_in(
        &self,
        transaction: &tokio_postgres::Transaction<'_>,
        tasks: Vec<NewTask>,
    ) -> Result<Vec<Submitted>, StoreError> {
        let resolved = self.resolve_batch(tasks).await?;
        keys::write_keyed(transaction, &resolved).await
    }
}
