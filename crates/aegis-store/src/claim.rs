//! Acquire: one statement that gives a worker the right to execute tasks, at one epoch each.
//!
//! Invariants: a repeated request id is answered with the first answer; no task that this worker cannot read is ever locked;
//! after the gate has closed no acquisition commits.

use aegis_model::{CancelCause, Held, Lineage, State};
use uuid::Uuid;

use crate::error::StoreError;
use crate::generated::task;
use crate::store::{PooledConn, Store};

/// A claim of one task: what its execution starts from and what its writes are guarded by.
#[derive(Debug, Clone)]
pub struct Claim {
    /// What the guard compares.
    pub held: Held,
    /// Its lane's id; see [`Store::lane`].
    pub lane: i32,
    /// Its tenant's id.
    pub tenant: i32,
    /// Handler errors so far.
    pub failures: i32,
    /// Drains, hand-backs and losses nobody is to blame for.
    pub interruptions: i32,
    /// Losses with a worker.
    pub crashes: i32,
    /// Postponements.
    pub snoozes: i32,
    /// Has an earlier attempt stored a checkpoint, a step or an operation?
    pub has_parts: bool,
    /// A stored outcome: this claim only settles open operations.
    pub pending: Option<State>,
    /// Asked to stop before it started.
    pub cancel: Option<CancelCause>,
    /// The protocol of the input.
    pub protocol: i32,
    /// How the input is encoded: 0 JSON.
    pub content_type: i16,
    /// The input.
    pub input: Vec<u8>,
    /// The submitter's trace context.
    pub trace: Option<String>,
}

/// Where the walk over tenants goes on. Kept by the claimer; a random one at start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cursor {
    /// The lane behind which it goes on.
    pub lane: i32,
    /// The tenant behind which it goes on, in that lane.
    pub tenant: i32,
}

/// How much one (queue, kind) may take now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KindCapacity {
    /// The queue.
    pub queue: String,
    /// The kind.
    pub kind: String,
    /// Free for this kind.
    pub kind_free: i32,
    /// Free for the whole queue.
    pub queue_free: i32,
}

/// One acquire call.
#[derive(Debug, Clone)]
pub struct AcquireRequest {
    /// The worker incarnation.
    pub worker: Uuid,
    /// This call's id; it becomes the claims' `claim_id`. Repeat it to repeat the call.
    pub request: Uuid,
    /// What may be taken.
    pub capacity: Vec<KindCapacity>,
    /// At most so many tasks.
    pub count: usize,
    /// Where the walk goes on.
    pub cursor: Cursor,
}

/// What an acquire call gave.
#[derive(Debug, Clone, Default)]
pub struct Acquired {
    /// The claims, in id order.
    pub claims: Vec<Claim>,
    /// Where the next walk goes on, whether or not it found something; `None` when the gate refused or answered a repeat.
    pub cursor: Option<Cursor>,
}

/// Acquire answers its cursor with each row, and one row without a task when there was nothing to claim.
fn claimed(row: task::AcquireRow) -> Option<task::AcquiredRow> {
    Some(task::AcquiredRow {
        id: row.id?,
        lane: row.lane?,
        tenant: row.tenant?,
        epoch: row.epoch?,
        rev: row.rev?,
        floor: row.floor?,
        timeline: row.timeline?,
        failures: row.failures?,
        interruptions: row.interruptions?,
        crashes: row.crashes?,
        snoozes: row.snoozes?,
        parts: row.parts?,
        pending: row.pending,
        cancel_cause: row.cancel_cause,
        protocol: row.protocol?,
        content_type: row.content_type?,
        input: row.input?,
        trace: row.trace,
    })
}

/// The statements answer the same columns as different generated row types.
macro_rules! claim {
    ($row:expr, $request:expr) => {{
        let row = $row;
        Claim {
            held: Held {
                task: row.id,
                owner: $request.worker,
                claim_id: $request.request,
                epoch: row.epoch,
                rev: row.rev,
                lineage: Lineage {
                    floor: row.floor,
                    timeline: row.timeline,
                },
            },
            lane: row.lane,
            tenant: row.tenant,
            failures: row.failures,
            interruptions: row.interruptions,
            crashes: row.crashes,
            snoozes: row.snoozes,
            has_parts: row.parts,
            pending: row.pending.map(State::from_number),
            cancel: row.cancel_cause.map(CancelCause::from_number),
            protocol: row.protocol,
            content_type: row.content_type,
            input: row.input,
            trace: row.trace,
        }
    }};
}

impl Store {
    /// Claims up to `count` ready tasks. When the answer of an earlier call was lost, call again with the same request:
    /// it gives what that call claimed, or claims now if it had not committed.
    ///
    /// # Errors
    /// [`StoreError::NotAdopted`] while acquisition is closed; after [`StoreError::lost_answer`] repeat the same request.
    pub async fn acquire(&self, request: AcquireRequest) -> Result<Acquired, StoreError> {
        self.detached(async move |store| {
            let conn = store.conn().await?;
            let queues: Vec<&str> = request.capacity.iter().map(|c| c.queue.as_str()).collect();
            let kinds: Vec<&str> = request.capacity.iter().map(|c| c.kind.as_str()).collect();
            let kind_free: Vec<i32> = request.capacity.iter().map(|c| c.kind_free).collect();
            let queue_free: Vec<i32> = request.capacity.iter().map(|c| c.queue_free).collect();
            let count = i32::try_from(request.count).unwrap_or(i32::MAX);
            let hints = store.heads().hints(request.worker, &request.capacity);
            let rows = task::acquire(
                &conn.conn(),
                request.count,
                &task::AcquireParams {
                    worker: request.worker,
                    request: request.request,
                    queues: &queues,
                    kinds: &kinds,
                    kind_free: &kind_free,
                    queue_free: &queue_free,
                    cursor_lane: request.cursor.lane,
                    cursor_tenant: request.cursor.tenant,
                    hint_lanes: &hints.lanes,
                    hint_tenants: &hints.tenants,
                    hint_ords: &hints.ords,
                    n: count,
                },
            )
            .await?;
            store
                .heads()
                .learn(request.worker, &request.capacity, &rows);
            let Some(cursor) = rows.first().map(|row| {
                if row.hinted {
                    request.cursor
                } else {
                    Cursor {
                        lane: row.cursor_lane,
                        tenant: row.cursor_tenant,
                    }
                }
            }) else {
                return Ok(sorted(store.acquired_on(&conn, &request).await?, None));
            };
            if rows.iter().any(|row| !row.adopted) {
                return Err(StoreError::NotAdopted);
            }
            let claims = rows
                .into_iter()
                .filter_map(claimed)
                .map(|row| claim!(row, request))
                .collect();
            Ok(sorted(claims, Some(cursor)))
        })
        .await
    }

    /// Claims one suspect, alone. Gives nothing while the worker holds anything.
    ///
    /// # Errors
    /// As [`Store::acquire`].
    pub async fn acquire_suspect(&self, request: AcquireRequest) -> Result<Acquired, StoreError> {
        self.detached(async move |store| {
            let conn = store.conn().await?;
            let queues: Vec<&str> = request.capacity.iter().map(|c| c.queue.as_str()).collect();
            let kinds: Vec<&str> = request.capacity.iter().map(|c| c.kind.as_str()).collect();
            let row = task::acquire_suspect(
                &conn.conn(),
                request.worker,
                request.request,
                &queues,
                &kinds,
            )
            .await?;
            let claims = match row {
                Some(row) => vec![claim!(row, request)],
                None => store.acquired_on(&conn, &request).await?,
            };
            Ok(sorted(claims, None))
        })
        .await
    }

    /// What the worker holds under a request: the first answer of a repeated call.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn acquired(&self, worker: Uuid, request: Uuid) -> Result<Acquired, StoreError> {
        let request = AcquireRequest {
            worker,
            request,
            capacity: Vec::new(),
            count: 0,
            cursor: Cursor::default(),
        };
        self.bounded(async move |store| {
            let conn = store.conn().await?;
            Ok(sorted(store.acquired_on(&conn, &request).await?, None))
        })
        .await
    }

    /// The gate refused. Perhaps because this very request was answered before: by a second statement, which sees what the
    /// first one committed.
    async fn acquired_on(
        &self,
        conn: &PooledConn,
        request: &AcquireRequest,
    ) -> Result<Vec<Claim>, StoreError> {
        let rows = task::acquired(&conn.conn(), request.worker, request.request).await?;
        Ok(rows.into_iter().map(|row| claim!(row, request)).collect())
    }
}

fn sorted(mut claims: Vec<Claim>, cursor: Option<Cursor>) -> Acquired {
    claims.sort_unstable_by_key(|claim| claim.held.task);
    Acquired { claims, cursor }
}
