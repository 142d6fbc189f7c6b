//! What a worker shows to whoever watches it, beyond itself: the database, and what came before an attempt.
//!
//! Invariants: one statement of bounded cost, a read; what could not be read is an error, never a zero.

use std::time::Duration;

use jiff::Timestamp;
use uuid::Uuid;

use crate::error::StoreError;
use crate::generated::{task, worker};
use crate::store::Store;

/// The database, as one worker sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observed {
    /// For each (queue, kind) that it serves.
    pub kinds: Vec<ObservedKind>,
    /// Operations that wait for a person.
    pub unknown_operations: i64,
    /// Running rows whose owner's lease is over; at most 10,000 rows are looked at.
    pub running_without_lease: i64,
    /// How many days ahead of today there are partitions; negative: today has none.
    pub partition_days_ahead: i32,
}

/// One (queue, kind).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObservedKind {
    /// The queue.
    pub queue: String,
    /// The kind.
    pub kind: String,
    /// Ready tasks that it can read; at most 10,000 of a lane are counted.
    pub ready: i64,
    /// Ready tasks whose protocol it cannot read; at most 10,000 of a lane are counted.
    pub unreadable: i64,
    /// How long the next in line has been ready: of each tenant's next task the one that became ready first. `None`: nothing
    /// is ready.
    pub next_waits: Option<Duration>,
}

impl Store {
    /// Looks at the database for a worker; `None`: it is not registered.
    ///
    /// # Errors
    /// A database error.
    pub async fn observe(&self, worker: Uuid) -> Result<Option<Observed>, StoreError> {
        self.detached(async move |store| {
            let conn = store.conn().await?;
            let rows = worker::observe(&conn.conn(), worker).await?;
            let Some(first) = rows.first() else {
                return Ok(None);
            };
            Ok(Some(Observed {
                unknown_operations: first.unknown_operations,
                running_without_lease: first.running_without_lease,
                partition_days_ahead: first.partition_days_ahead,
                kinds: rows
                    .into_iter()
                    .map(|row| ObservedKind {
                        queue: row.queue,
                        kind: row.kind,
                        ready: row.ready,
                        unreadable: row.unreadable,
                        next_waits: row
                            .next_waits_ms
                            .map(|ms| Duration::from_millis(u64::try_from(ms).unwrap_or(0))),
                    })
                    .collect(),
            }))
        })
        .await
    }
}

/// How an attempt ended that was not its task's last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastAttempt {
    /// Its epoch.
    pub epoch: i64,
    /// Why it ended; a [`Cause`](aegis_model::Cause)'s word.
    pub cause: String,
    /// The worker incarnation that had it.
    pub owner: Option<Uuid>,
    /// When it was claimed.
    pub claimed_at: Option<Timestamp>,
    /// When it ended.
    pub ended_at: Timestamp,
}

impl Store {
    /// The attempt of a task before an epoch; `None`: there was none, or it is forgotten.
    ///
    /// # Errors
    /// A database error.
    pub async fn last_attempt(
        &self,
        task: Uuid,
        epoch: i64,
    ) -> Result<Option<LastAttempt>, StoreError> {
        let conn = self.conn().await?;
        let row = task::last_attempt(&conn.conn(), task, epoch).await?;
        Ok(row.map(|row| LastAttempt {
            epoch: row.epoch,
            cause: row.cause,
            owner: row.owner,
            claimed_at: row.claimed_at,
            ended_at: row.at,
        }))
    }
}
