//! Checkpoints, steps, and the fence inside a handler's own transaction.
//!
//! Invariant: checkpoint, lane and rev move in one statement; what is written in a newer protocol moves the task to its lane.

use aegis_model::limits::CHECKPOINT_BYTES_MAX;
use aegis_model::{Held, Outcome};

use crate::error::StoreError;
use crate::generated::task;
use crate::guarded::or_unknown;
use crate::lanes::Lane;
use crate::session::Session;
use crate::store::Store;

/// Where a write leaves its task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Saved {
    /// The rev for the next guarded write.
    pub rev: i64,
    /// The lane for the next guarded write.
    pub lane: i32,
}

/// What is written, in which protocol, to a task of which lane.
#[derive(Debug, Clone)]
pub struct SaveTo {
    /// The claim.
    pub held: Held,
    /// Its lane's id now.
    pub lane: i32,
    /// The protocol of the bytes.
    pub protocol: i32,
    /// The bytes, JSON; at most 1 MiB.
    pub data: Vec<u8>,
}

/// A step's value.
#[derive(Debug, Clone)]
pub struct StepValue {
    /// The step's name.
    pub name: String,
    /// Its key.
    pub key: String,
    /// Where and what.
    pub to: SaveTo,
}

impl Store {
    /// The lane that a task is in after something was written in `protocol`.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn lane_after(&self, lane: i32, protocol: i32) -> Result<i32, StoreError> {
        let Lane {
            queue, kind, range, ..
        } = self.lane(lane).await?;
        let wider = range.widened(protocol);
        if wider == range {
            return Ok(lane);
        }
        self.lane_id(&queue, &kind, wider).await
    }

    /// Saves a checkpoint.
    ///
    /// # Errors
    /// [`StoreError::TooLarge`] before anything is sent; a database error.
    pub async fn checkpoint(&self, to: SaveTo) -> Result<Outcome<Saved>, StoreError> {
        check_size("the checkpoint", &to)?;
        let answer = self.detached(async move |store| {
            let lane = store.lane_after(to.lane, to.protocol).await?;
            let conn = store.conn().await?;
            let conn = conn.conn();
            match fence_in(&conn, &to, lane).await? {
                Some(saved) => Ok(Outcome::Applied(saved)),
                None => Ok(Outcome::Fenced(
                    store.fenced(&conn, &to.held, "checkpoint").await?,
                )),
            }
        });
        or_unknown(answer.await)
    }

    /// Memoises a step's value.
    ///
    /// # Errors
    /// [`StoreError::TooLarge`] before anything is sent; a database error.
    pub async fn step(&self, step: StepValue) -> Result<Outcome<Saved>, StoreError> {
        check_size("the step value", &step.to)?;
        let answer = self.detached(async move |store| {
            let StepValue { name, key, to } = step;
            let lane = store.lane_after(to.lane, to.protocol).await?;
            let conn = store.conn().await?;
            let conn = conn.conn();
            let row = task::step(
                &conn,
                &task::StepParams {
                    ids: &[to.held.task],
                    claim_ids: &[to.held.claim_id],
                    epochs: &[to.held.epoch],
                    revs: &[to.held.rev],
                    worker: to.held.owner,
                    name: &name,
                    key: &key,
                    protocol: to.protocol,
                    content_type: 0,
                    value: &to.data,
                    lane,
                },
            )
            .await?;
            match row {
                Some(row) => Ok(Outcome::Applied(Saved { rev: row.rev, lane })),
                None => Ok(Outcome::Fenced(
                    store.fenced(&conn, &to.held, "step").await?,
                )),
            }
        });
        or_unknown(answer.await)
    }
}

/// The checkpoint inside a handler's own transaction: its statements first, the fence last. `lane` is
/// [`Store::lane_after`]'s. `None`: fenced, roll back.
///
/// # Errors
/// A database error.
pub async fn fence_in(
    session: &(impl Session + ?Sized),
    to: &SaveTo,
    lane: i32,
) -> Result<Option<Saved>, StoreError> {
    let row = task::checkpoint(
        session,
        &task::CheckpointParams {
            ids: &[to.held.task],
            claim_ids: &[to.held.claim_id],
            epochs: &[to.held.epoch],
            revs: &[to.held.rev],
            worker: to.held.owner,
            protocol: to.protocol,
            content_type: 0,
            data: &to.data,
            lane,
        },
    )
    .await?;
    Ok(row.map(|row| Saved { rev: row.rev, lane }))
}

fn check_size(what: &str, to: &SaveTo) -> Result<(), StoreError> {
    if to.data.len() > CHECKPOINT_BYTES_MAX {
        return Err(StoreError::TooLarge {
            what: format!("{what} of task {}", to.held.task),
            bytes: to.data.len(),
            limit: CHECKPOINT_BYTES_MAX,
        });
    }
    Ok(())
}
