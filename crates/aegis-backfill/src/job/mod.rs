//! A job: the rows that a change needs moved, in short batches, from the first key to the greatest one that was there at the start.
//!
//! Invariants: a batch, its cursor and its counts are one commit, under the job's epoch and only while the job is `running`; who takes the job,
//! or moves the switch of its change, gives it another epoch; whoever
//! begins, begins at the committed cursor, so a kill, a lost answer to COMMIT and a second runner are all the same; one bad row costs
//! that row; nothing of a job grows with the table.
//!
//! Never: OFFSET, arithmetic on keys, an end that is "no rows found" while rows come in.

mod batch;
mod begin;
pub mod control;
mod error;
pub(crate) mod leaf;
pub mod progress;
mod session;
mod size;
mod statement;
mod try_out;

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use aegis_catalog::Name;
use serde::Serialize;
use serde_json::Value;
use tokio_postgres::Client;

use crate::Pause;
use crate::digest::Digest;
use crate::sync::Rule;
use crate::throttle::Limits;

pub use error::JobError;
pub use leaf::{Walked, key_fault, tree};
pub use size::BatchSize;
pub use statement::{names_range, outside_of_range};

/// How often a lost session is replaced before somebody has to look. A committed batch begins the count anew.
const LOSSES_MAX: u32 = 10;
const LOSS_PAUSE: Duration = Duration::from_millis(200);
const LOSS_PAUSE_MAX: Duration = Duration::from_secs(10);
/// How long the lock of a session that was lost is waited for: the server notices its end in its own time.
const LOST_LOCK_WAIT: Duration = Duration::from_mins(1);

/// What a job does.
#[derive(Debug, Clone)]
pub struct Spec {
    /// The change's id.
    pub change: String,
    /// The schema of the change: `search_path` is this, then `pg_catalog`.
    pub schema: String,
    /// The table.
    pub table: Name,
    /// A unique, NOT NULL, immutable key.
    pub key: Vec<String>,
    /// What is written.
    pub write: Write,
    /// The role that writes.
    pub run_as: Option<String>,
    /// How many rows a batch has.
    pub batch: BatchSize,
}

/// What a batch writes.
#[derive(Debug, Clone)]
pub enum Write {
    /// The new side, where neither direction holds. Its trigger has to be there.
    Forward(Rule),
    /// A statement over (`:from`, `:to`].
    Statement {
        /// The file's name, for messages.
        file: String,
        /// The statement.
        sql: String,
    },
}

impl Write {
    /// What the key has to walk for it.
    const fn walked(&self) -> Walked {
        match self {
            Self::Forward(_) => Walked::EachLeaf,
            Self::Statement { .. } => Walked::Whole,
        }
    }
}

impl Spec {
    /// What the cursors belong to: the batch's size is not part of it.
    pub fn sha256(&self) -> String {
        let mut digest = Digest::new();
        digest.add(&self.schema);
        digest.add(&self.table.sql());
        for column in &self.key {
            digest.add(column);
        }
        match &self.write {
            Write::Forward(rule) => {
                digest.add_pairs(rule.forward.iter().chain(&rule.backward));
            }
            Write::Statement { sql, .. } => digest.add(sql),
        }
        digest.hex()
    }
}

/// A connection that is being made; the error is for people.
pub type Connecting = Pin<Box<dyn Future<Output = Result<Client, String>> + Send>>;

/// What a job needs from outside.
#[derive(Clone, Copy)]
pub struct Ports<'a> {
    /// A session of the target: direct, writable, in UTC and ISO.
    pub connect: &'a (dyn Fn() -> Connecting + Send + Sync),
    /// The limits as they are now; asked again while it runs. The error is for people, and the limits of before hold.
    pub limits: &'a (dyn Fn() -> Result<Limits, String> + Send + Sync),
    /// How long another runner of the same job is waited for.
    pub wait: Duration,
    /// What a pause is for this runner.
    pub at_pause: AtPause,
}

/// What a runner does while its job is paused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AtPause {
    /// It waits, and goes on when the job is resumed.
    Waits,
    /// It ends with [`JobError::Paused`]: somebody starts it again.
    Ends,
}

/// Who runs it.
#[derive(Debug, Clone)]
pub struct Who {
    /// Names this run.
    pub run: String,
    /// The person or the Job.
    pub by: String,
    /// The release that brings the change.
    pub release: String,
}

/// How a job ended well.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Whether it had been done before.
    pub was_done: bool,
    /// Rows in its ranges, of all its runs.
    pub rows_seen: i64,
    /// Rows that were changed, of all its runs.
    pub rows_changed: i64,
}

/// Hears of a job's progress.
pub type Told<'a> = &'a mut (dyn FnMut(&Value) + Send);

/// Runs a job to its end, from where it is. A lost session is replaced, and what it had committed is read there.
///
/// # Errors
/// See [`JobError`]; what was committed stays.
pub async fn run(
    ports: Ports<'_>,
    spec: &Spec,
    who: &Who,
    told: Told<'_>,
) -> Result<Report, JobError> {
    let fresh = || Pause::growing(LOSS_PAUSE, LOSS_PAUSE_MAX);
    let (mut losses, mut pause, mut ports) = (0, fresh(), ports);
    loop {
        let mut committed = 0;
        match session::run(ports, spec, who, told, &mut committed).await {
            Err(error) if error.is_lost() => {
                if committed > 0 {
                    (losses, pause) = (0, fresh());
                }
                losses += 1;
                if losses > LOSSES_MAX {
                    return Err(error);
                }
                tracing::warn!(%error, losses, change = %spec.change, "the backfill's session is gone; a new one reads the cursor");
                ports.wait = ports.wait.max(LOST_LOCK_WAIT);
                pause.wait().await;
            }
            ended => return ended,
        }
    }
}
