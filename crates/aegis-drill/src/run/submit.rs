//! Submits tasks while things break, through the proxy: again with the same key until the answer is heard.
//!
//! Invariant: a task is accepted when its id was answered, and that is written down before the next one is sent.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use aegis_store::{Config, NewTask, RetryPolicy, Store};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use uuid::Uuid;

use super::stage::Stage;
use crate::error::DrillError;
use crate::history::{Event, History};
use crate::worker::{KIND, Work};

const BATCH: u64 = 5;
const EVERY: Duration = Duration::from_millis(125);
/// A machine that is slower than that is given no more: what waits at the end has to end in time.
const BACKLOG_MAX: i64 = 600;

/// A task of the drill; `key` makes it the same one when it is sent again.
pub(super) fn task(queue: &str, key: String, work: Work) -> Result<NewTask, DrillError> {
    let input = serde_json::to_vec(&work).map_err(DrillError::reading("an input"))?;
    let mut task = NewTask::new(KIND, input);
    queue.clone_into(&mut task.queue);
    task.key = Some(key);
    task.policy = RetryPolicy {
        max_failures: 1000,
        max_crashes: 100,
        backoff_initial_ms: 100,
        backoff_cap_ms: 1000,
        ..RetryPolicy::default()
    };
    Ok(task)
}

/// Sends a batch until it is answered; gives the tasks' ids.
pub(super) async fn until_accepted(
    store: &Store,
    history: &History,
    batch: &[NewTask],
) -> Result<Vec<Uuid>, DrillError> {
    loop {
        match store.submit_batch(batch.to_vec()).await {
            Ok(answers) => {
                let tasks: Vec<Uuid> = answers.into_iter().map(|answer| answer.task).collect();
                for task in &tasks {
                    history.tell(Event::Accepted { task: *task })?;
                }
                return Ok(tasks);
            }
            Err(error) => {
                tracing::debug!(%error, "a batch is sent again");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

/// Starts submitting; ends when it is told that it is enough.
pub(super) fn start(
    stage: &Stage,
    seed: u64,
    enough: watch::Receiver<bool>,
) -> Result<JoinHandle<Result<(), DrillError>>, DrillError> {
    let config = Config::from_url(&stage.proxy.url("aegis_engine", "postgres"))?;
    let store = Store::connect_unverified(config.with_pool_size(2))?;
    let history = History::open(&stage.program.history("submitter"))?;
    let backlog = Arc::clone(&stage.backlog);
    Ok(tokio::spawn(async move {
        let mut n = 0;
        let mut beat = tokio::time::interval(EVERY);
        while !*enough.borrow() {
            beat.tick().await;
            if backlog.load(Ordering::Relaxed) > BACKLOG_MAX {
                continue;
            }
            let batch: Result<Vec<NewTask>, DrillError> = (n..n + BATCH)
                .map(|n| task("default", format!("{seed}-{n}"), Work { n, calm: false }))
                .collect();
            until_accepted(&store, &history, &batch?).await?;
            n += BATCH;
        }
        Ok(())
    }))
}
