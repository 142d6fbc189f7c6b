//! A late report about a task that is in other hands: a process claims a task and is frozen; another has it by then and stands in its
//! execution; the first wakes up and reports. A late report about a task that has ended finds no row, whatever the guard says: here
//! only the guard stands before it.
//!
//! Invariant: it is woken only when the other has said that it stands.

use std::path::Path;
use std::time::{Duration, Instant};

use aegis_store::{Config, Store};
use nix::sys::signal::Signal;

use super::stage::{Stage, Stops, with_parent};
use super::submit::{task, until_accepted};
use crate::child::Process;
use crate::error::DrillError;
use crate::history::{self, Event};
use crate::worker::Work;

/// What is reported late, as the program of a late process is told.
const REPORTS: [&str; 2] = ["complete", "fail"];
const WITHIN: Duration = Duration::from_mins(2);
const LOOK: Duration = Duration::from_millis(50);

/// How often each report was refused, by its word.
pub(super) async fn report_into_other_hands(
    stage: &mut Stage,
) -> Result<Vec<(&'static str, u64)>, DrillError> {
    let config = Config::from_url(&stage.direct_url)?.with_pool_size(2);
    let store = Store::connect(config).await?;
    let mut refused = Vec::new();
    for (n, report) in (0..).zip(REPORTS) {
        let queue = format!("hands-{report}");
        let one = task(&queue, queue.clone(), Work { n, calm: true })?;
        until_accepted(&store, &stage.history, &[one]).await?;
        let late = late(stage, &queue, report)?;
        let claimed = |event: &Event| matches!(event, Event::Claimed { .. });
        let stands = |event: &Event| matches!(event, Event::InHand { .. });
        let reported =
            |event: &Event| matches!(event, Event::Late { answer, .. } if answer != "unknown");
        if !told(stage, &late.history, claimed).await? {
            stage.trouble_at(format!("nobody claimed the task of {queue} in time"));
        }
        let other = stage.worker(&queue, 1, Stops::InHand)?;
        if !told(stage, &other.history, stands).await? {
            stage.trouble_at(format!(
                "the task of {queue} was not in other hands in time"
            ));
        }
        late.signal(Signal::SIGCONT);
        if !told(stage, &late.history, reported).await? {
            stage.trouble_at(format!("no late report of {queue} in time"));
        }
        let fenced =
            |event: &Event| matches!(event, Event::Late { answer, .. } if answer == "fenced");
        refused.push((report, u64::from(has(&late.history, fenced)?)));
        late.kill().await;
        other.kill().await;
        let taker = stage.worker(&queue, 1, Stops::Never)?;
        stage.takers.push(taker);
    }
    let deadline = Instant::now() + WITHIN;
    while !stage.all_ended().await && Instant::now() < deadline {
        stage.replace_ended()?;
        tokio::time::sleep(LOOK).await;
    }
    stage.end_takers().await;
    Ok(refused)
}

fn late(stage: &Stage, queue: &str, report: &str) -> Result<Process, DrillError> {
    let name = format!("late-{report}-{}", stage.next_late());
    let words = [
        "late".into(),
        "--url".into(),
        (&stage.direct_url).into(),
        "--history".into(),
        stage.program.history(&name).into_os_string(),
        "--queue".into(),
        queue.into(),
        "--report".into(),
        report.into(),
    ];
    stage.program.start(&name, &with_parent(&words))
}

/// Waits until a process has said so.
async fn told(
    stage: &mut Stage,
    path: &Path,
    is: impl Fn(&Event) -> bool,
) -> Result<bool, DrillError> {
    let deadline = Instant::now() + WITHIN;
    while !has(path, &is)? {
        if Instant::now() > deadline {
            return Ok(false);
        }
        stage.replace_ended()?;
        tokio::time::sleep(LOOK).await;
    }
    Ok(true)
}

fn has(path: &Path, is: impl Fn(&Event) -> bool) -> Result<bool, DrillError> {
    Ok(path.exists() && history::read(path)?.iter().any(|line| is(&line.event)))
}
