//! A process that is frozen while its statement of housekeeping is on its way: others take its tasks over; then both go on.
//!
//! Invariant: process and statement go on only when the database says that the process holds nothing any more (of
//! the reaper, which never held anything: that others have taken tasks back), or the bound is
//! over, and then it is not counted.

use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use tokio::sync::oneshot;

use super::breaking::Drill;
use super::stage::Stage;
use crate::error::DrillError;
use crate::facts;
use crate::proxy::Holds;
use crate::worker::LEASE;

const LOOK: Duration = Duration::from_millis(20);
const FOUND_WITHIN: Duration = Duration::from_secs(20);
const TAKEN_WITHIN: Duration = Duration::from_secs(40);

/// One that is frozen.
#[derive(Debug)]
pub(super) struct Housekeeper {
    pub(super) name: String,
    pub(super) go_on: oneshot::Sender<()>,
    pub(super) since: Instant,
    pub(super) until: Until,
}

/// What others have to have done before it goes on.
#[derive(Debug, Clone, Copy)]
pub(super) enum Until {
    /// Taken its tasks.
    HoldsNothing,
    /// Taken back somebody's tasks, after this move.
    OthersReaped(i64),
}

impl Drill {
    /// False when nobody who holds tasks did housekeeping in time.
    pub(super) async fn freeze_housekeeper(
        &mut self,
        stage: &mut Stage,
    ) -> Result<bool, DrillError> {
        let deadline = Instant::now() + FOUND_WITHIN;
        while Instant::now() < deadline {
            let mut told = stage.proxy.hold(Holds::Housekeeping, None);
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
                    until: Until::HoldsNothing,
                });
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Lets those go on whose tasks others have.
    pub(super) async fn wake_housekeepers(&mut self, stage: &mut Stage) -> Result<(), DrillError> {
        for one in std::mem::take(&mut self.housekeepers) {
            // The reaper has only to be given up; what it holds is nothing.
            let frozen = match one.until {
                Until::HoldsNothing => LEASE * 5 / 2,
                Until::OthersReaped(_) => LEASE * 3 / 2,
            };
            if one.since.elapsed() < frozen {
                self.housekeepers.push(one);
                continue;
            }
            let mut all = stage.workers.iter().chain(&stage.reaper);
            let Some(worker) = all.find(|w| w.name == one.name) else {
                continue;
            };
            let taken = match (one.until, worker.pid()) {
                (Until::HoldsNothing, Some(pid)) => stage.holds(pid).await == Some(false),
                (Until::OthersReaped(seen), Some(_)) => {
                    stage.last_taken_back().await.is_some_and(|n| n > seen)
                }
                (_, None) => false,
            };
            if !taken && one.since.elapsed() < TAKEN_WITHIN {
                self.housekeepers.push(one);
                continue;
            }
            if taken && one.go_on.send(()).is_ok() {
                match one.until {
                    Until::HoldsNothing => self.housekeepers_taken += 1,
                    Until::OthersReaped(_) => self.reapers_overtaken += 1,
                }
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
