//! What the database says, read at the end of a run, and what the drill's own triggers saw meanwhile.
//!
//! Must never be read from a database that the drill did not make.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio_postgres::{Client, NoTls};
use uuid::Uuid;

use crate::error::DrillError;

const OBSERVE: &str = include_str!("../sql/observe.sql");
const MOVES: &str = include_str!("../sql/moves.sql");
const TASKS: &str = include_str!("../sql/tasks.sql");
const OPERATIONS: &str = include_str!("../sql/operations.sql");
const DRAINS: &str = include_str!("../sql/drains.sql");
const LOSSES: &str = include_str!("../sql/losses.sql");
const BUSY: &str = include_str!("../sql/busy.sql");
const STILL_HELD: &str = include_str!("../sql/still_held.sql");
const CLOCK: &str = include_str!("../sql/clock.sql");
const STANDBY_CUT: &str = include_str!("../sql/standby_cut.sql");
const STANDBY_RELOAD: &str = include_str!("../sql/standby_reload.sql");
const STANDBY_FOLLOWS: &str = include_str!("../sql/standby_follows.sql");
const STANDBY_PROMOTE: &str = include_str!("../sql/standby_promote.sql");
const MOVED: &str = include_str!("../sql/moved.sql");
const FILL_LOG: &str = include_str!("../sql/fill_log.sql");
const TAKEN_BACK: &str = include_str!("../sql/taken_back.sql");
const GATE_CLOSED: &str = include_str!("../sql/gate_closed.sql");
const WAITING: &str = include_str!("../sql/waiting.sql");

/// A move of a task's row; without the new values it left the table.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Move {
    /// Which task.
    pub task: Uuid,
    /// Its epoch before.
    pub old_epoch: i64,
    /// And after.
    pub new_epoch: Option<i64>,
    /// Its rev before.
    pub old_rev: i64,
    /// And after.
    pub new_rev: Option<i64>,
    /// Its owner before.
    pub old_owner: Option<Uuid>,
    /// And after.
    pub new_owner: Option<Uuid>,
    /// Its claim before.
    pub old_claim: Option<Uuid>,
    /// And after.
    pub new_claim: Option<Uuid>,
    /// By how much its crashes grew.
    pub crashes: i32,
    /// The state of the new owner's gate.
    pub worker_state: Option<i16>,
    /// How long the old owner's lease was over; negative while it held.
    pub late_ms: Option<i64>,
    /// The same when the statement arrived: no guard in it can have judged earlier.
    pub arrived_late_ms: Option<i64>,
    /// By a statement that takes back what nobody executes, and has no guard for that.
    pub housekeeping: bool,
    /// The reaper took it from a worker that was not lost.
    #[serde(default)]
    pub living: bool,
    /// What the client calls itself.
    #[serde(default)]
    pub client: String,
}

/// A task where it stands at the end.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Task {
    /// Which.
    pub task: Uuid,
    /// As in `aegis-model`, state.rs.
    pub state: i16,
    /// Handler errors.
    pub failures: i32,
    /// Losses with a worker.
    pub crashes: i32,
    /// How many rows its own SQL left.
    pub own: u64,
}

/// An operation of the ledger.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Operation {
    /// Its task.
    pub task: Uuid,
    /// Its id.
    pub id: String,
    /// 0 idempotent, 1 fenced, 2 queryable, 3 blind.
    pub class: i16,
    /// 0 intended, 1 dispatched, 2 succeeded, 3 failed, 4 unknown, 5 resolved.
    pub state: i16,
    /// Times it was dispatched.
    pub dispatches: i32,
}

/// A gate that closed.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Drain {
    /// Whose.
    pub worker: Uuid,
    /// How many tasks it held at that moment.
    pub held: u64,
}

/// A worker that housekeeping declared lost.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Loss {
    /// Which.
    pub worker: Uuid,
    /// How much of its lease was left; below 0: over for so long.
    pub left_ms: i64,
}

/// All of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts {
    /// In order.
    pub moves: Vec<Move>,
    /// Every task.
    pub tasks: Vec<Task>,
    /// Every operation.
    pub operations: Vec<Operation>,
    /// Every gate that closed.
    pub drains: Vec<Drain>,
    /// Every worker that was declared lost.
    pub losses: Vec<Loss>,
}

/// Connects as the superuser of the drill's own server.
///
/// # Errors
/// It cannot be reached.
pub async fn connect(url: &str) -> Result<Client, DrillError> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "a connection of the drill ended");
        }
    });
    Ok(client)
}

/// Puts the drill's triggers and tables there.
///
/// # Errors
/// The database refuses.
pub async fn observe(client: &Client) -> Result<(), DrillError> {
    Ok(client.batch_execute(OBSERVE).await?)
}

/// How many tasks are neither ended nor waiting for a person.
///
/// # Errors
/// The database cannot be read.
pub async fn waiting(client: &Client) -> Result<i64, DrillError> {
    Ok(client.query_one(WAITING, &[]).await?.get(0))
}

/// The number of the last move that took a task back from its owner; 0: none.
///
/// # Errors
/// The database cannot be read.
pub async fn last_taken_back(client: &Client) -> Result<i64, DrillError> {
    Ok(client.query_one(TAKEN_BACK, &[]).await?.get(0))
}

/// Is the gate of this process closed, and does a task wait that it could have claimed?
///
/// # Errors
/// The database cannot be read.
pub async fn claim_would_be_wrong(client: &Client, pid: i32) -> Result<bool, DrillError> {
    Ok(client.query_one(GATE_CLOSED, &[&pid]).await?.get(0))
}

/// Process ids of workers that hold tasks, the busiest first.
///
/// # Errors
/// The database cannot be read.
pub async fn busy(client: &Client) -> Result<Vec<i32>, DrillError> {
    let rows = client.query(BUSY, &[]).await?;
    Ok(rows.into_iter().map(|row| row.get(0)).collect())
}

/// Does the claim at this epoch still hold the task?
///
/// # Errors
/// The database cannot be read.
pub async fn still_held(client: &Client, task: Uuid, epoch: i64) -> Result<bool, DrillError> {
    let row = client.query_one(STILL_HELD, &[&task, &epoch]).await?;
    Ok(row.get(0))
}

/// The database's clock, in milliseconds since 1970.
///
/// # Errors
/// The database cannot be read.
pub async fn clock_ms(client: &Client) -> Result<i64, DrillError> {
    Ok(client.query_one(CLOCK, &[]).await?.get(0))
}

/// How many moves of tasks there are.
///
/// # Errors
/// The database cannot be read.
pub async fn moved(client: &Client) -> Result<i64, DrillError> {
    Ok(client.query_one(MOVED, &[]).await?.get(0))
}

/// Tells a standby to follow nobody.
///
/// # Errors
/// It cannot be reached.
pub async fn cut_standby(client: &Client) -> Result<(), DrillError> {
    client.batch_execute(STANDBY_CUT).await?;
    Ok(client.batch_execute(STANDBY_RELOAD).await?)
}

/// Does a standby still receive?
///
/// # Errors
/// It cannot be reached.
pub async fn follows(client: &Client) -> Result<bool, DrillError> {
    Ok(client.query_one(STANDBY_FOLLOWS, &[]).await?.get(0))
}

/// Makes a standby the primary; false when that took too long.
///
/// # Errors
/// It cannot be reached.
pub async fn promote(client: &Client) -> Result<bool, DrillError> {
    Ok(client.query_one(STANDBY_PROMOTE, &[]).await?.get(0))
}

/// Fills a segment of the write-ahead log.
///
/// # Errors
/// There is no room for it, or the server cannot be reached.
pub async fn fill_log(client: &Client) -> Result<(), DrillError> {
    Ok(client.batch_execute(FILL_LOG).await?)
}

/// Reads everything.
///
/// # Errors
/// The database cannot be read.
pub async fn read(client: &Client) -> Result<Facts, DrillError> {
    Ok(Facts {
        moves: rows(client, MOVES).await?,
        tasks: rows(client, TASKS).await?,
        operations: rows(client, OPERATIONS).await?,
        drains: rows(client, DRAINS).await?,
        losses: rows(client, LOSSES).await?,
    })
}

async fn rows<T: DeserializeOwned>(client: &Client, sql: &str) -> Result<Vec<T>, DrillError> {
    let rows = client.query(sql, &[]).await?;
    rows.into_iter()
        .map(|row| serde_json::from_value(row.get(0)).map_err(DrillError::reading("a row")))
        .collect()
}
