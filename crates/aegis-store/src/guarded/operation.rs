//! The ledger's guarded writes: the dispatch commit and the result.
//!
//! Invariants: only the Applied answer of [`Store::dispatch`] lets a call leave; `open_ops` moves in the same statement as
//! the operation's row.

use aegis_model::{Class, Held, OperationState, Outcome, Resolution};
use uuid::Uuid;

use crate::error::StoreError;
use crate::generated::task;
use crate::guarded::fail::storable;
use crate::guarded::{Saved, or_unknown};
use crate::store::Store;

/// What is about to leave.
#[derive(Debug, Clone)]
pub struct Dispatch {
    /// The claim.
    pub held: Held,
    /// The task's lane now.
    pub lane: i32,
    /// The operation's id: stable across attempts, epochs, workers, releases.
    pub operation: String,
    /// Its name.
    pub name: String,
    /// Its key.
    pub key: String,
    /// How it can be recovered.
    pub class: Class,
    /// The protocol its result will be written in.
    pub protocol: i32,
    /// The call's own timeout, in milliseconds.
    pub timeout_ms: i64,
    /// Quiet after a lost answer, in milliseconds.
    pub quiet_ms: i64,
    /// How long the downstream remembers the key, in milliseconds, minus a margin. `None`: for ever.
    pub key_valid_ms: Option<i64>,
    /// What the request is recognised by.
    pub fingerprint: Vec<u8>,
    /// The request itself, for people and for repeats.
    pub request: Option<Vec<u8>>,
    /// The release that sends it.
    pub release: String,
    /// A probe of this attempt found that a queryable operation did not happen.
    pub probed: bool,
}

/// What the dispatch commit said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dispatched {
    /// The call may leave.
    Go {
        /// Where the write left the task.
        saved: Saved,
        /// How many times it was dispatched by now.
        dispatches: i32,
    },
    /// The ledger refuses: other fingerprint, settled, unknown, or its key is no longer valid. Load the ledger to see which.
    Refused,
}

/// The answer of a call.
#[derive(Debug, Clone)]
pub struct OperationResult {
    /// The claim.
    pub held: Held,
    /// The task's lane now.
    pub lane: i32,
    /// The operation's id.
    pub operation: String,
    /// Succeeded or failed.
    pub succeeded: bool,
    /// The protocol of the result.
    pub protocol: i32,
    /// The result, JSON.
    pub result: Option<Vec<u8>>,
    /// How it was found out, for people.
    pub note: Option<String>,
}

/// An operation as a handler finds it in the ledger.
#[derive(Debug, Clone)]
pub struct LedgerEntry {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its key.
    pub key: String,
    /// How it can be recovered.
    pub class: Class,
    /// Where it stands.
    pub state: OperationState,
    /// How many times it was dispatched.
    pub dispatches: i32,
    /// The protocol of its result.
    pub protocol: i32,
    /// What its request is recognised by.
    pub fingerprint: Vec<u8>,
    /// Its result.
    pub result: Option<Vec<u8>>,
    /// What is known.
    pub note: Option<String>,
    /// What a person decided.
    pub resolution: Option<Resolution>,
    /// Milliseconds until a late request can no longer arrive.
    pub quiet_left_ms: Option<i64>,
    /// Milliseconds until the downstream forgets the key.
    pub key_left_ms: Option<i64>,
}

impl Store {
    /// The dispatch commit.
    ///
    /// # Errors
    /// A database error.
    pub async fn dispatch(&self, dispatch: Dispatch) -> Result<Outcome<Dispatched>, StoreError> {
        let answer = self.detached(async move |store| {
            let lane = store.lane_after(dispatch.lane, dispatch.protocol).await?;
            let held = dispatch.held;
            let conn = store.conn().await?;
            let conn = conn.conn();
            let row = task::dispatch(
                &conn,
                &task::DispatchParams {
                    ids: &[held.task],
                    claim_ids: &[held.claim_id],
                    epochs: &[held.epoch],
                    revs: &[held.rev],
                    worker: held.owner,
                    operation: &dispatch.operation,
                    name: &dispatch.name,
                    key: &dispatch.key,
                    class: dispatch.class.number(),
                    protocol: dispatch.protocol,
                    timeout_ms: dispatch.timeout_ms,
                    quiet_ms: dispatch.quiet_ms,
                    release: &dispatch.release,
                    key_valid_ms: dispatch.key_valid_ms,
                    fingerprint: &dispatch.fingerprint,
                    request: dispatch.request.as_deref(),
                    probed: dispatch.probed,
                    lane,
                },
            )
            .await?;
            Ok(match row {
                Some(row) => Outcome::Applied(match (row.dispatches, row.rev) {
                    (Some(dispatches), Some(rev)) => Dispatched::Go {
                        saved: Saved { rev, lane },
                        dispatches,
                    },
                    _ => Dispatched::Refused,
                }),
                None => Outcome::Fenced(store.fenced(&conn, &held, "dispatch").await?),
            })
        });
        or_unknown(answer.await)
    }

    /// Stores the answer of a dispatched operation.
    ///
    /// # Errors
    /// A database error.
    pub async fn settle(&self, result: OperationResult) -> Result<Outcome<Saved>, StoreError> {
        let answer = self.detached(async move |store| {
            let lane = store.lane_after(result.lane, result.protocol).await?;
            let held = result.held;
            let state = if result.succeeded {
                OperationState::Succeeded
            } else {
                OperationState::Failed
            };
            let conn = store.conn().await?;
            let conn = conn.conn();
            let row = task::settle(
                &conn,
                &task::SettleParams {
                    ids: &[held.task],
                    claim_ids: &[held.claim_id],
                    epochs: &[held.epoch],
                    revs: &[held.rev],
                    worker: held.owner,
                    state: state.number(),
                    result: result.result.as_deref(),
                    protocol: result.protocol,
                    content_type: 0,
                    note: result.note.as_deref().map(storable).as_deref(),
                    operation: &result.operation,
                    lane,
                },
            )
            .await?;
            Ok(match row {
                Some(row) => Outcome::Applied(Saved { rev: row.rev, lane }),
                None => Outcome::Fenced(store.fenced(&conn, &held, "settle").await?),
            })
        });
        or_unknown(answer.await)
    }

    /// Takes a dispatch back: the downstream said for sure that nothing was applied and that it may be tried again. The
    /// operation is intended, and no longer open.
    ///
    /// # Errors
    /// A database error.
    pub async fn withdraw(
        &self,
        held: Held,
        lane: i32,
        operation: String,
        note: String,
    ) -> Result<Outcome<Saved>, StoreError> {
        let answer = self.detached(async move |store| {
            let conn = store.conn().await?;
            let conn = conn.conn();
            let row = task::settle(
                &conn,
                &task::SettleParams {
                    ids: &[held.task],
                    claim_ids: &[held.claim_id],
                    epochs: &[held.epoch],
                    revs: &[held.rev],
                    worker: held.owner,
                    state: OperationState::Intended.number(),
                    result: None,
                    protocol: 1,
                    content_type: 0,
                    note: Some(&storable(&note)),
                    operation: &operation,
                    lane,
                },
            )
            .await?;
            Ok(match row {
                Some(row) => Outcome::Applied(Saved { rev: row.rev, lane }),
                None => Outcome::Fenced(store.fenced(&conn, &held, "withdraw").await?),
            })
        });
        or_unknown(answer.await)
    }

    /// The ledger of a task.
    ///
    /// # Errors
    /// A database error.
    pub async fn ledger(&self, task: Uuid) -> Result<Vec<LedgerEntry>, StoreError> {
        let rows = self
            .bounded(async move |store| {
                let conn = store.conn().await?;
                Ok(task::load_operations(&conn.conn(), task).await?)
            })
            .await?;
        Ok(rows
            .into_iter()
            .map(|row| LedgerEntry {
                id: row.id,
                name: row.name,
                key: row.key,
                // A class or state of a newer schema cannot be acted on: blind and unknown are the safe readings.
                class: Class::from_number(row.class).unwrap_or(Class::Blind),
                state: OperationState::from_number(row.state).unwrap_or(OperationState::Unknown),
                dispatches: row.dispatches,
                protocol: row.protocol,
                fingerprint: row.fingerprint,
                result: row.result,
                note: row.note,
                resolution: row.resolution.and_then(Resolution::from_number),
                quiet_left_ms: row.quiet_ms_left,
                key_left_ms: row.key_ms_left,
            })
            .collect())
    }
}
