//! The effect cuts: many tasks stand at one cut of their operation when one kill comes, for each cut and class.
//!
//! Invariant: the killed worker is the only one of its queue, so that nobody finishes what should stand at the cut.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use aegis_store::{Config, NewTask, Store};

use super::stage::{Stage, Stops};
use super::submit::{task, until_accepted};
use crate::error::DrillError;
use crate::history::{self, Event};
use crate::worker::Work;

const QUEUE: &str = "cut";
/// Before the dispatch commit, after it, after the effect, after the result.
const CUTS: [&str; 4] = ["before", "dispatched", "ran", "stored"];
/// One worker holds so many of each class.
const AT_ONCE: usize = 50;
const CLASSES: usize = 4;
const STAND_WITHIN: Duration = Duration::from_mins(3);
/// From the kill until everything has ended.
const END_WITHIN: Duration = Duration::from_mins(5);

/// Holds and kills; the takeovers are of ordinary workers, which stay.
pub(super) async fn hold_and_kill(stage: &mut Stage, each: usize) -> Result<(), DrillError> {
    if each == 0 {
        return Ok(());
    }
    let config = Config::from_url(&stage.direct_url)?.with_pool_size(2);
    let store = Store::connect(config).await?;
    let mut n = 0;
    for cut in CUTS {
        let mut left = each;
        while left > 0 {
            stage.tell(&format!(
                "a process is killed at the cut {cut}, {left} tasks of each class to go"
            ));
            let now = left.min(AT_ONCE);
            left -= now;
            let all = now * CLASSES;
            let worker = stage.worker(&format!("{QUEUE}-{cut}-{left}"), all, Stops::At(cut))?;
            let queue = format!("{QUEUE}-{cut}-{left}");
            let batch: Result<Vec<NewTask>, DrillError> = (n..n + all as u64)
                .map(|n| task(&queue, format!("{cut}-{n}"), Work { n, calm: true }))
                .collect();
            n += all as u64;
            until_accepted(&store, &stage.history, &batch?).await?;
            let deadline = Instant::now() + STAND_WITHIN;
            while standing(&worker.history)? < all {
                if Instant::now() > deadline {
                    stage.trouble_at(format!("not all tasks stood at the cut {cut} in time"));
                    break;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            worker.kill().await;
            for _ in 0..2 {
                let taker = stage.worker(&queue, all, Stops::Never)?;
                stage.takers.push(taker);
            }
            // A round at a time: the next worker must find the machine free.
            let deadline = Instant::now() + END_WITHIN;
            while !stage.all_ended().await {
                if Instant::now() > deadline {
                    let what = format!("not all tasks of the cut {cut} ended in time");
                    stage.trouble_at(what);
                    break;
                }
                stage.replace_ended()?;
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            stage.end_takers().await;
        }
    }
    Ok(())
}

fn standing(history: &std::path::Path) -> Result<usize, DrillError> {
    if !history.exists() {
        return Ok(0);
    }
    let tasks: HashSet<_> = history::read(history)?
        .into_iter()
        .filter_map(|line| match line.event {
            Event::Held { task, .. } => Some(task),
            _ => None,
        })
        .collect();
    Ok(tasks.len())
}
