//! The reaper: a worker process of a queue in which nothing ever waits. It claims nothing and does housekeeping as every worker
//! does; and what becomes of it in the middle of a statement of housekeeping.
//!
//! Invariant: what breaks it breaks it while the proxy holds its statement, which arrives afterwards all the same.

use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use super::breaking::Drill;
use super::housekeeper::{Housekeeper, Until};
use super::stage::{Stage, Stops};
use crate::child::Process;
use crate::error::DrillError;
use crate::facts;
use crate::proxy::{HeldStatement, Holds};

/// Nothing is ever submitted there.
pub(super) const QUEUE: &str = "reaper";
/// How its name begins.
pub(super) const NAME: &str = "reaper-";
const LOOK: Duration = Duration::from_millis(20);
const FOUND_WITHIN: Duration = Duration::from_secs(20);

impl Drill {
    /// Kills the reaper while its statement is on its way; false when it sent none in time.
    pub(super) async fn kill_reaper(&mut self, stage: &mut Stage) -> Result<bool, DrillError> {
        let Some(held) = self.reaper_speaks(stage).await? else {
            return Ok(false);
        };
        let Some(reaper) = stage.reaper.take_if(|one| one.name == held.name) else {
            return Ok(false);
        };
        reaper.kill().await;
        if held.go_on.send(()).is_ok() {
            self.reapers_killed += 1;
        }
        Ok(true)
    }

    /// Freezes the reaper while its statement is on its way, until others have taken a lost task back.
    pub(super) async fn freeze_reaper(&mut self, stage: &mut Stage) -> Result<bool, DrillError> {
        let Some(held) = self.reaper_speaks(stage).await? else {
            return Ok(false);
        };
        let is_it = |one: &&Process| one.name == held.name;
        let Some(reaper) = stage.reaper.as_ref().filter(is_it) else {
            return Ok(false);
        };
        if !reaper.signal(Signal::SIGSTOP) {
            return Ok(false);
        }
        let Some(seen) = stage.last_taken_back().await else {
            reaper.signal(Signal::SIGCONT);
            return Ok(false);
        };
        self.housekeepers.push(Housekeeper {
            name: held.name,
            go_on: held.go_on,
            since: Instant::now(),
            until: Until::OthersReaped(seen),
        });
        Ok(true)
    }

    /// The reaper's next statement of housekeeping, held; `None` while it is frozen.
    async fn reaper_speaks(
        &mut self,
        stage: &mut Stage,
    ) -> Result<Option<HeldStatement>, DrillError> {
        let deadline = Instant::now() + FOUND_WITHIN;
        let mut wanted = None;
        while Instant::now() < deadline {
            let name = stage.reaper.as_ref().map(|one| one.name.clone());
            // It may have been replaced meanwhile.
            if let Some(name) =
                name.filter(|name| self.housekeepers.iter().all(|h| h.name != *name))
            {
                if wanted.as_ref().is_none_or(|(of, _)| *of != name) {
                    let told = stage.proxy.hold(Holds::Housekeeping, Some(&name));
                    wanted = Some((name, told));
                }
                if let Some((_, told)) = &mut wanted
                    && let Ok(held) = told.try_recv()
                {
                    return Ok(Some(held));
                }
            }
            self.go_on_for(stage, LOOK).await?;
        }
        Ok(None)
    }
}

impl Stage {
    /// There is always one, while workers are wanted.
    pub(super) fn replace_reaper(&mut self) -> Result<(), DrillError> {
        if self.reaper.as_mut().is_none_or(Process::ended) {
            self.reaper = Some(self.worker(QUEUE, 1, Stops::Never)?);
        }
        Ok(())
    }

    /// The last move that took a task back; `None`: the database is away.
    pub(super) async fn last_taken_back(&self) -> Option<i64> {
        let admin = facts::connect(&self.admin_url).await.ok()?;
        facts::last_taken_back(&admin).await.ok()
    }
}
