//! A worker's own life: register, renew, tick, drain, stop.
//!
//! Invariants: renewal has its own connection and role ([`LeaseConn`]), so that neither a busy pool nor a busy runtime
//! delays it; a lost lease is lost for ever.

use aegis_model::{CancelCause, Held, ProtocolRange, WorkerState};
use tokio_postgres::Client;
use uuid::Uuid;

use crate::config::Config;
use crate::error::StoreError;
use crate::generated::worker;
use crate::install;
use crate::store::Store;

/// What one (queue, kind) of a worker can do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capability {
    /// The queue.
    pub queue: String,
    /// The kind.
    pub kind: String,
    /// What it reads and writes.
    pub protocols: ProtocolRange,
    /// How many of this kind at once.
    pub slots: i32,
}

/// A new incarnation.
#[derive(Debug, Clone)]
pub struct Registration {
    /// Its fresh id.
    pub worker: Uuid,
    /// The incarnation of the same process whose lease was lost.
    pub predecessor: Option<Uuid>,
    /// What people call it.
    pub name: String,
    /// Its machine.
    pub host: String,
    /// Its process.
    pub pid: i32,
    /// Its release id.
    pub release: String,
    /// Its build id.
    pub build: String,
    /// Its image digest, or `none`.
    pub digest: String,
    /// Executions at once.
    pub slots: i32,
    /// Its lease, in milliseconds.
    pub ttl_ms: i64,
    /// What it can do.
    pub capabilities: Vec<Capability>,
}

/// What a tick found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tick {
    /// There is something to claim.
    pub claimable: bool,
    /// There is a suspect to claim, alone.
    pub suspects: bool,
    /// This worker has to become empty and take suspects.
    pub duty: bool,
    /// This worker's state; `None` when it is not registered.
    pub state: Option<WorkerState>,
    /// Tasks that this tick took back from lost workers.
    pub reaped: i32,
    /// When to look again at the latest, in milliseconds, at most a minute: the next task that is due, the next deadline, the
    /// end of another worker's lease.
    pub next_due_ms: i64,
}

impl Store {
    /// Registers an incarnation; answers how many crashes of its predecessor became interruptions.
    ///
    /// # Errors
    /// A database error.
    pub async fn register(&self, registration: Registration) -> Result<i32, StoreError> {
        self.detached(async move |store| {
            let r = &registration;
            let queues: Vec<&str> = r.capabilities.iter().map(|c| c.queue.as_str()).collect();
            let kinds: Vec<&str> = r.capabilities.iter().map(|c| c.kind.as_str()).collect();
            let reads_min: Vec<i32> = r.capabilities.iter().map(|c| c.protocols.min()).collect();
            let reads_max: Vec<i32> = r.capabilities.iter().map(|c| c.protocols.max()).collect();
            let writes: Vec<i32> = r
                .capabilities
                .iter()
                .map(|c| c.protocols.writes())
                .collect();
            let kind_slots: Vec<i32> = r.capabilities.iter().map(|c| c.slots).collect();
            let conn = store.conn().await?;
            let row = worker::register(
                &conn.conn(),
                &worker::RegisterParams {
                    worker: r.worker,
                    slots: r.slots,
                    pid: r.pid,
                    predecessor: r.predecessor,
                    name: &r.name,
                    host: &r.host,
                    release: &r.release,
                    build: &r.build,
                    digest: &r.digest,
                    queues: &queues,
                    kinds: &kinds,
                    reads_min: &reads_min,
                    reads_max: &reads_max,
                    writes: &writes,
                    kind_slots: &kind_slots,
                    ttl_ms: r.ttl_ms,
                    schema: install::SCHEMA,
                },
            )
            .await?;
            Ok(row.forgiven)
        })
        .await
    }

    /// Due housekeeping, and whether there is something to claim. At most once a second for an idle worker.
    ///
    /// # Errors
    /// A database error.
    pub async fn tick(&self, worker: Uuid) -> Result<Tick, StoreError> {
        self.detached(async move |store| {
            let conn = store.conn().await?;
            let row = worker::tick(&conn.conn(), worker).await?;
            Ok(Tick {
                claimable: row.claimable,
                suspects: row.suspects,
                duty: row.duty,
                state: row.worker_state.map(WorkerState::from_number),
                reaped: row.reaped,
                next_due_ms: row.next_due_ms,
            })
        })
        .await
    }

    /// Closes the gate in the database. True when it was open.
    ///
    /// # Errors
    /// A database error.
    pub async fn drain(&self, worker: Uuid) -> Result<bool, StoreError> {
        self.detached(async move |store| {
            let conn = store.conn().await?;
            Ok(worker::drain(&conn.conn(), worker).await? > 0)
        })
        .await
    }

    /// Ends an incarnation that holds nothing. False: it still has running rows, or is lost.
    ///
    /// # Errors
    /// A database error.
    pub async fn stop(&self, worker: Uuid) -> Result<bool, StoreError> {
        self.detached(async move |store| {
            let conn = store.conn().await?;
            Ok(worker::stop(&conn.conn(), worker).await? > 0)
        })
        .await
    }
}

/// One beat.
#[derive(Debug, Clone, Copy)]
pub struct Beat {
    /// Grows with each beat.
    pub number: i64,
    /// Executions now.
    pub executing: i32,
    /// How often the claim loop went round.
    pub claim_ticks: i64,
    /// How often executions moved: began, reported progress, ended.
    pub progress_ticks: i64,
}

/// What the database said to a beat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Renewed {
    /// The lease holds.
    Alive {
        /// The gate stands like this.
        state: WorkerState,
        /// Running rows that the last compare did not name and that are still there.
        absent: i32,
    },
    /// The lease is lost, for ever.
    Lost,
}

/// What a worker has to obey about one task that it holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// It is not this worker's any more.
    Lost,
    /// The row is at an older epoch than the claim under today's lineage: this database lost its newest claims.
    Regressed,
    /// Stop.
    Cancel(CancelCause),
}

/// Renewal's own connection, with its own login role.
pub struct LeaseConn {
    client: Client,
}

impl LeaseConn {
    /// Connects as `aegis_lease` where the configuration names `aegis_engine`, else as configured. The connection's driver
    /// runs on the current runtime.
    ///
    /// # Errors
    /// [`StoreError::Unreachable`].
    pub async fn connect(config: &Config) -> Result<Self, StoreError> {
        let config = if config.role() == "aegis_engine" {
            config.as_role("aegis_lease")
        } else {
            config.clone()
        };
        let (client, connection) = config
            .postgres
            .connect(config.tls.connector())
            .await
            .map_err(|source| StoreError::Unreachable {
                place: config.place(),
                source: Box::new(source),
            })?;
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::warn!(error = %error, "the renewal connection ended");
            }
        });
        Ok(Self { client })
    }

    /// Has the connection ended?
    pub fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    /// Moves the lease, while it still holds.
    ///
    /// # Errors
    /// A database error; the lease may have been moved or not.
    pub async fn renew(&self, worker: Uuid, beat: Beat) -> Result<Renewed, StoreError> {
        let row = worker::renew(
            &self.client,
            worker,
            beat.number,
            beat.executing,
            beat.claim_ticks,
            beat.progress_ticks,
            jiff::Timestamp::now(),
        )
        .await?;
        Ok(row.map_or(Renewed::Lost, |row| Renewed::Alive {
            state: WorkerState::from_number(row.state),
            absent: row.absent,
        }))
    }

    /// Compares what is held with the database; only what has to be obeyed is answered.
    ///
    /// # Errors
    /// A database error.
    pub async fn orders(
        &self,
        worker: Uuid,
        held: &[Held],
    ) -> Result<Vec<(Uuid, i64, Order)>, StoreError> {
        let ids: Vec<Uuid> = held.iter().map(|h| h.task).collect();
        let claim_ids: Vec<Uuid> = held.iter().map(|h| h.claim_id).collect();
        let epochs: Vec<i64> = held.iter().map(|h| h.epoch).collect();
        let floors: Vec<i32> = held.iter().map(|h| h.lineage.floor).collect();
        let timelines: Vec<i32> = held.iter().map(|h| h.lineage.timeline).collect();
        let rows = worker::held(
            &self.client,
            worker,
            &ids,
            &claim_ids,
            &epochs,
            &floors,
            &timelines,
        )
        .await?;
        Ok(rows
            .into_iter()
            .map(|row| {
                let order = match row.verdict.as_str() {
                    "regressed" => Order::Regressed,
                    "cancel" => Order::Cancel(CancelCause::from_number(
                        row.cancel_cause.unwrap_or_default(),
                    )),
                    _ => Order::Lost,
                };
                (row.id, row.held_epoch, order)
            })
            .collect())
    }

    /// Returns running rows of this worker that two beats did not name to their lanes; answers which.
    ///
    /// # Errors
    /// A database error.
    pub async fn return_absent(
        &self,
        worker: Uuid,
        held: &[Uuid],
        start_ttl_ms: i64,
    ) -> Result<Vec<Uuid>, StoreError> {
        let rows = worker::return_absent(&self.client, worker, held, start_ttl_ms).await?;
        Ok(rows.into_iter().map(|row| row.id).collect())
    }
}
