//! The honest window, shown: a process is frozen between its last look at the lease and the call; its task is taken over and
//! ends; then it wakes, and its request leaves.
//!
//! Invariant: it is woken only when its task has ended or waits for a person. What the outside makes of the second request is
//! the outside's: a remembered key and a fencing token close the window, nothing on our side does.

use std::path::Path;
use std::time::{Duration, Instant};

use aegis_store::{Config, Store};
use nix::sys::signal::Signal;

use super::stage::{Stage, Stops};
use super::submit::{task, until_accepted};
use crate::error::DrillError;
use crate::history::{self, Event};
use crate::oracle::CLASSES;
use crate::worker::Work;

const WITHIN: Duration = Duration::from_mins(3);
const LOOK: Duration = Duration::from_millis(50);

/// One process and one task for each class.
pub(super) async fn freeze_and_wake(stage: &mut Stage) -> Result<(), DrillError> {
    let config = Config::from_url(&stage.direct_url)?.with_pool_size(2);
    let store = Store::connect(config).await?;
    let mut frozen = Vec::new();
    for (n, class) in (0..).zip(CLASSES) {
        let queue = format!("window-{class}");
        let one = task(&queue, queue.clone(), Work { n, calm: true })?;
        until_accepted(&store, &stage.history, &[one]).await?;
        let process = stage.worker(&queue, 1, Stops::InTheWindow)?;
        frozen.push((queue, process));
    }
    for (queue, process) in &frozen {
        let told = || {
            told(&process.history, |event| {
                matches!(event, Event::Window { .. })
            })
        };
        if !wait(told).await? {
            stage.trouble_at(format!("no process froze in the window of {queue} in time"));
        }
    }
    for (queue, _) in &frozen {
        let taker = stage.worker(queue, 1, Stops::Never)?;
        stage.takers.push(taker);
    }
    let deadline = Instant::now() + WITHIN;
    while !stage.all_ended().await {
        if Instant::now() > deadline {
            stage.trouble_at("the tasks of the window were not taken over in time".to_owned());
            break;
        }
        stage.replace_ended()?;
        tokio::time::sleep(LOOK).await;
    }
    for (_, process) in &frozen {
        process.signal(Signal::SIGCONT);
    }
    // Each has heard what became of its request, or that there is no connection: only then is the record whole.
    for (queue, process) in frozen {
        let told = || {
            told(&process.history, |event| {
                matches!(event, Event::Woken { .. })
            })
        };
        if !wait(told).await? {
            stage.trouble_at(format!("no late request of {queue} left in time"));
        }
        process.kill().await;
    }
    stage.end_takers().await;
    Ok(())
}

async fn wait(mut told: impl FnMut() -> Result<bool, DrillError>) -> Result<bool, DrillError> {
    let deadline = Instant::now() + WITHIN;
    while !told()? {
        if Instant::now() > deadline {
            return Ok(false);
        }
        tokio::time::sleep(LOOK).await;
    }
    Ok(true)
}

fn told(path: &Path, is: fn(&Event) -> bool) -> Result<bool, DrillError> {
    Ok(path.exists() && history::read(path)?.iter().any(|line| is(&line.event)))
}
