//! Rollback after a newer checkpoint: workers that write protocol 2 are killed with tasks in hand and replaced by one that
//! reads only 1; then a newer one comes back.
//!
//! Invariant: nobody else serves this queue, so that who went on with a task is known.

use std::time::{Duration, Instant};

use aegis_store::lane_check::Answer;
use aegis_store::{Config, NewTask, Store};
use uuid::Uuid;

use super::stage::{Stage, Stops};
use super::submit::{task, until_accepted};
use crate::error::DrillError;
use crate::history::{self, Event};
use crate::worker::Work;

/// As the report calls it.
pub(super) const NAME: &str = "rollback_after_a_newer_checkpoint";
const QUEUE: &str = "rollback";
/// Two of each class.
const TASKS: u64 = 8;
/// What the older worker is given beside them.
const FRESH: u64 = 4;
/// The protocol of a newer checkpoint. Inputs have 1, so it is the highest that is stored only where such a checkpoint is.
const NEWER: i32 = 2;
const WITHIN: Duration = Duration::from_mins(2);
const LOOK: Duration = Duration::from_millis(50);

/// What came of it.
#[derive(Debug, Default)]
pub(super) struct RolledBack {
    /// Newer tasks that waited, and of which the engine said that nobody reads them.
    pub(super) waited: u64,
    /// Other tasks that the older worker ended meanwhile.
    pub(super) older_ended: u64,
}

/// Plays it.
pub(super) async fn roll_back(stage: &mut Stage) -> Result<RolledBack, DrillError> {
    let config = Config::from_url(&stage.direct_url)?.with_pool_size(2);
    let store = Store::connect(config).await?;
    let mut rolled = RolledBack::default();
    let kept = submit(stage, &store, 0..TASKS).await?;
    let newer = stage.worker(QUEUE, kept.len(), Stops::WithNewer)?;
    let history = newer.history.clone();
    let stood = || -> Result<bool, DrillError> {
        let lines = if history.exists() {
            history::read(&history)?
        } else {
            Vec::new()
        };
        let newer = lines
            .iter()
            .filter(|line| matches!(line.event, Event::NewerSaved { .. }));
        Ok(newer.count() >= kept.len())
    };
    let deadline = Instant::now() + WITHIN;
    while !stood()? && Instant::now() < deadline {
        tokio::time::sleep(LOOK).await;
    }
    newer.kill().await;
    let older = stage.worker(QUEUE, kept.len(), Stops::Never)?;
    let fresh = submit(stage, &store, TASKS..TASKS + FRESH).await?;
    let deadline = Instant::now() + WITHIN;
    while Instant::now() < deadline {
        rolled.waited = rolled.waited.max(waiting(&store, &kept).await);
        rolled.older_ended = ended(&store, &fresh).await;
        if rolled.waited == TASKS && rolled.older_ended == FRESH {
            break;
        }
        tokio::time::sleep(LOOK).await;
    }
    let newer = stage.worker(QUEUE, kept.len(), Stops::NeverNewer)?;
    stage.takers.extend([older, newer]);
    let deadline = Instant::now() + WITHIN;
    while !stage.all_ended().await {
        if Instant::now() > deadline {
            stage.trouble_at("the tasks of the rollback did not end in time".to_owned());
            break;
        }
        stage.replace_ended()?;
        tokio::time::sleep(LOOK).await;
    }
    stage.end_takers().await;
    Ok(rolled)
}

async fn submit(
    stage: &Stage,
    store: &Store,
    numbers: std::ops::Range<u64>,
) -> Result<Vec<Uuid>, DrillError> {
    let batch: Result<Vec<NewTask>, DrillError> = numbers
        .map(|n| task(QUEUE, format!("{QUEUE}-{n}"), Work { n, calm: true }))
        .collect();
    until_accepted(store, &stage.history, &batch?).await
}

/// How many of these wait with a newer checkpoint in a lane of which the engine says that nobody reads it. The lanes are asked for, and
/// not the tasks that the answer tells of them: beside many lanes that a cut has left, those of this one are not among the first.
async fn waiting(store: &Store, tasks: &[Uuid]) -> u64 {
    let Ok(checked) = store.all_read(0).await else {
        return 0;
    };
    let Answer::No(reasons) = checked.answer else {
        return 0;
    };
    let mut waiting = 0;
    for task in tasks {
        let Ok(Some(task)) = store.task(*task).await else {
            continue;
        };
        let is_unread = reasons.lanes.iter().any(|lane| {
            (&lane.queue, &lane.kind, lane.lo, lane.hi)
                == (&task.queue, &task.kind, task.lo, task.hi)
        });
        waiting += u64::from(is_unread && task.hi == NEWER && task.owner.is_none());
    }
    waiting
}

async fn ended(store: &Store, tasks: &[Uuid]) -> u64 {
    let mut ended = 0;
    for task in tasks {
        if let Ok(Some(one)) = store.task(*task).await {
            ended += u64::from(one.finished_at.is_some());
        }
    }
    ended
}
