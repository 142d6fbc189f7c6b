//! Questions about readers that the database answers exactly: may it retire, may we roll back, what is stranded.
//!
//! Invariants: one statement and one snapshot a question; a lane's (lowest, highest) stored protocol decides, over live and
//! parked tasks; a lane is named whenever a task stands in it, counts are bounded ("at least"); yes means that nothing stored
//! speaks against it at that moment.
//!
//! Never: answer yes when acquisition is closed, when nothing is known of what was asked about, or while somebody may still
//! write what nobody would read.

mod answer;

use jiff::Timestamp;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use uuid::Uuid;

use crate::error::StoreError;
use crate::generated::lane;
use crate::store::Store;

pub use answer::{Answer, Checked, FormerReader, LaneReason, Reasons, TaskReason};

/// How many tasks are told one by one unless said otherwise.
pub const TASKS_TOLD: i64 = 20;

/// Who would go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Leaver {
    /// All workers of a release.
    Release(String),
    /// All workers of a build.
    Build(String),
    /// One incarnation.
    Worker(Uuid),
}

impl std::fmt::Display for Leaver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Release(id) => write!(f, "release {id}"),
            Self::Build(id) => write!(f, "build {id}"),
            Self::Worker(id) => write!(f, "worker {id}"),
        }
    }
}

/// What a worker reads of one (queue, kind).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reads {
    /// The queue.
    pub queue: String,
    /// The kind.
    pub kind: String,
    /// Lowest protocol.
    pub min: i32,
    /// Highest protocol.
    pub max: i32,
}

/// To where one would roll back.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RollBack {
    /// A release that the database remembers; incarnations are forgotten a month after their end.
    pub to: Option<String>,
    /// What it reads, where the database does not know, or beside it.
    pub reads: Vec<Reads>,
    /// The release that is replaced; without one every other that serves what the target serves.
    pub from: Option<String>,
}

/// A lane in which a worker may still write what nobody would read.
#[derive(Deserialize)]
struct Risky {
    queue: String,
    kind: String,
    lo: i32,
    hi: i32,
    /// Of a paused lane: what pauses it.
    why: Option<String>,
}

impl Risky {
    fn name(&self) -> String {
        format!("{}/{} {}..{}", self.queue, self.kind, self.lo, self.hi)
    }
}

impl Store {
    /// May these workers go: would a stored task lose its last reader?
    ///
    /// # Errors
    /// A database error.
    pub async fn may_retire(&self, who: &Leaver, tasks: i64) -> Result<Checked, StoreError> {
        let (worker, release, build) = match who {
            Leaver::Worker(id) => (Some(*id), None, None),
            Leaver::Release(id) => (None, Some(id.as_str()), None),
            Leaver::Build(id) => (None, None, Some(id.as_str())),
        };
        let row = self
            .bounded(async move |store| {
                let conn = store.conn().await?;
                Ok(lane::may_retire(&conn.conn(), worker, release, build, tasks).await?)
            })
            .await?;
        let mut doubts = closed(row.open);
        if row.known == 0 {
            doubts.push(format!(
                "no worker of {who} is known, so nobody can tell what it reads"
            ));
        }
        for lane in read::<Vec<Risky>>(row.risky)?.unwrap_or_default() {
            doubts.push(format!(
                "workers of {who} may still write a newer protocol into lane {} than anybody who remains reads; drain them or pause their release, then ask again",
                lane.name()
            ));
        }
        let remarks = vec![format!(
            "{} of {} known workers of {who} are alive",
            row.living, row.known
        )];
        let reasons = reasons(row.at, row.lanes, row.tasks, row.busy_lanes, row.found)?;
        Ok(Checked::judge(row.at, reasons, doubts, remarks))
    }

    /// May we go back: is there a stored task that the older release could not read?
    ///
    /// # Errors
    /// A database error.
    pub async fn may_roll_back(&self, to: &RollBack, tasks: i64) -> Result<Checked, StoreError> {
        let queues: Vec<&str> = to.reads.iter().map(|one| one.queue.as_str()).collect();
        let kinds: Vec<&str> = to.reads.iter().map(|one| one.kind.as_str()).collect();
        let reads_min: Vec<i32> = to.reads.iter().map(|one| one.min).collect();
        let reads_max: Vec<i32> = to.reads.iter().map(|one| one.max).collect();
        let row = self
            .bounded(async |store| {
                let conn = store.conn().await?;
                Ok(lane::may_roll_back(
                    &conn.conn(),
                    &lane::MayRollBackParams {
                        queues: &queues,
                        kinds: &kinds,
                        reads_min: &reads_min,
                        reads_max: &reads_max,
                        to: to.to.as_deref(),
                        from: to.from.as_deref(),
                        tasks,
                    },
                )
                .await?)
            })
            .await?;
        let mut doubts = closed(row.open);
        if row.known == 0 {
            doubts.push(match &to.to {
                Some(release) => format!("no worker of release {release} is known, so nobody can tell what it reads; say it with --reads"),
                None => "nothing is known of the target".to_owned(),
            });
        }
        for lane in read::<Vec<Risky>>(row.risky)?.unwrap_or_default() {
            doubts.push(format!(
                "workers that would be replaced may still write a newer protocol into lane {} than the target reads; drain them or pause their release, then ask again",
                lane.name()
            ));
        }
        let remarks = vec![format!("{} living workers would be replaced", row.living)];
        if row.known == 0 {
            // What is stored may well be what it reads.
            return Ok(Checked {
                at: row.at,
                answer: Answer::Unknown(doubts),
                remarks,
            });
        }
        let reasons = reasons(row.at, row.lanes, row.tasks, row.busy_lanes, row.found)?;
        Ok(Checked::judge(row.at, reasons, doubts, remarks))
    }

    /// Has every stored task a reader? No: these are stranded. Paused lanes that somebody reads are remarks.
    ///
    /// # Errors
    /// A database error.
    pub async fn all_read(&self, tasks: i64) -> Result<Checked, StoreError> {
        let row = self
            .bounded(async move |store| {
                let conn = store.conn().await?;
                Ok(lane::stranded(&conn.conn(), tasks).await?)
            })
            .await?;
        all_read(row)
    }
}

/// What the statement says, judged; also for the doctor.
pub(crate) fn all_read(row: lane::StrandedRow) -> Result<Checked, StoreError> {
    let doubts = closed(row.open);
    let mut remarks = vec![format!("{} workers accept tasks", row.known)];
    for lane in read::<Vec<Risky>>(row.paused)?.unwrap_or_default() {
        remarks.push(format!(
            "lane {} is read and paused: {}",
            lane.name(),
            lane.why.clone().unwrap_or_default()
        ));
    }
    let reasons = reasons(row.at, row.lanes, row.tasks, row.busy_lanes, row.found)?;
    Ok(Checked::judge(row.at, reasons, doubts, remarks))
}

fn closed(open: bool) -> Vec<String> {
    if open {
        Vec::new()
    } else {
        vec!["acquisition is closed: nobody reads anything until `aegis db adopt`".to_owned()]
    }
}

fn reasons(
    at: Timestamp,
    lanes: Option<Value>,
    tasks: Option<Value>,
    lanes_total: i64,
    tasks_counted: i64,
) -> Result<Reasons, StoreError> {
    let lanes: Vec<answer::LaneRow> = read(lanes)?.unwrap_or_default();
    let tasks: Vec<answer::TaskRow> = read(tasks)?.unwrap_or_default();
    let lanes: Vec<LaneReason> = lanes.into_iter().map(|lane| lane.told(at)).collect();
    Ok(Reasons {
        at_least: lanes.iter().any(|lane| lane.at_least)
            || usize::try_from(lanes_total).is_ok_and(|total| total > lanes.len()),
        lanes,
        lanes_total,
        tasks: tasks.into_iter().map(answer::TaskRow::told).collect(),
        tasks_counted,
    })
}

/// A document of our own statement.
fn read<T: DeserializeOwned>(value: Option<Value>) -> Result<Option<T>, StoreError> {
    value
        .map(serde_json::from_value)
        .transpose()
        .map_err(|error| StoreError::Unreadable {
            what: error.to_string(),
        })
}
