//! A process that is frozen while its statement of housekeeping is on its way: others take its tasks over; then both go on.
//!
//! Invariant: process and statement go on only when the database says that the process holds nothing any more, or the bound is
//! over, and then it is not counted.

use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use tokio::sync::oneshot;

use super::breaking::Drill;
use super::stage::Stage;
use crate::error::DrillError;
use crate::facts;
use crate::worker::LEASE;

const LOOK: Duration = Duration::from_millis(20);
const FOUND_WITHIN: Duration = Duration::from_secs(20);
const TAKEN_WITHIN: Duration = Duration::from_secs(40);

/// One that is frozen.
#[derive(Debug)]
pub(super) struct Housekeeper {
    pub(super) name: String,
    go_on: oneshot::Sender<()>,
    since: Instant,
}

impl Drill {
    /// False when nobody who holds tasks did housekeeping in time.
    pub(super) async fn freeze_housekeeper(
        &mut self,
        stage: &mut Stage,
    ) -> Result<bool, DrillError> {
        let deadline = Instant::now() + FOUND_WITHIN;
        while Instant::now() < deadline {
            let mut told = stage.proxy.hold_housekeeping();
            let held = loop {
                match told.try_recv() {
                    Ok(held) => break held,
                    Err(_) if Instant::now() > deadline => return Ok(false),
                    Err(_) => self.go_on_for(stage, LOOK).await?,
                }
            };
            let workers = stage.workers.iter();
            let sender = workers
                .filter(|one| one.name == held.name && self.is_awake(one))
                .find(|one| !stage.is_pooled(&one.name));
            let Some(worker) = sender else { continue };
            let busy = stage.busy().await;
            if worker.pid().is_some_and(|pid| busy.contains(&pid)) && worker.signal(Signal::SIGSTOP)
            {
                self.housekeepers.push(Housekeeper {
                    name: held.name,
                    go_on: held.go_on,
                    since: Instant::now(),
                });
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Lets those go on whose tasks others have.
    pub(super) async fn wake_housekeepers(&mut self, stage: &mut Stage) -> Result<(), DrillError> {
        for one in std::mem::take(&mut self.housekeepers) {
            if one.since.elapsed() < LEASE * 5 / 2 {
                self.housekeepers.push(one);
                continue;
            }
            let Some(worker) = stage.workers.iter().find(|w| w.name == one.name) else {
                continue;
            };
            let taken = match worker.pid() {
                Some(pid) => stage.holds(pid).await == Some(false),
                None => false,
            };
            if !taken && one.since.elapsed() < TAKEN_WITHIN {
                self.housekeepers.push(one);
                continue;
            }
            if taken && one.go_on.send(()).is_ok() {
                self.housekeepers_taken += 1;
            }
            worker.signal(Signal::SIGCONT);
        }
        Ok(())
    }
}

impl Stage {
    /// Does this process hold tasks? `None`: the database is away.
    async fn holds(&self, pid: i32) -> Option<bool> {
        let admin = facts::connect(&self.admin_url).await.ok()?;
        let busy = facts::busy(&admin).await.ok()?;
        Some(busy.contains(&pid))
    }
}
