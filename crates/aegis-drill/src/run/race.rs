//! A claim that races a drain: the proxy holds a worker's claim, the worker is asked to end, and the claim arrives when the gate
//! is closed in the database and something waits to be claimed.
//!
//! Invariant: a claim that went on before the gate was closed is not counted. Whether it got anything is the checker's to say.

use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use super::breaking::Drill;
use super::stage::Stage;
use crate::error::DrillError;
use crate::facts;
use crate::proxy::Holds;

const LOOK: Duration = Duration::from_millis(10);
const FOUND_WITHIN: Duration = Duration::from_secs(20);
/// Below the deadline after which a worker gives its connection up.
const CLOSED_WITHIN: Duration = Duration::from_secs(4);

impl Drill {
    /// False when no awake worker asked for tasks in time.
    pub(super) async fn race_a_drain(&mut self, stage: &mut Stage) -> Result<bool, DrillError> {
        let deadline = Instant::now() + FOUND_WITHIN;
        while Instant::now() < deadline {
            let mut told = stage.proxy.hold(Holds::Claim, None);
            let held = loop {
                match told.try_recv() {
                    Ok(held) => break held,
                    Err(_) if Instant::now() > deadline => return Ok(false),
                    Err(_) => self.go_on_for(stage, LOOK).await?,
                }
            };
            let found = stage.workers.iter().position(|one| {
                one.name == held.name && self.is_awake(one) && !stage.is_pooled(&one.name)
            });
            // Of the reaper, of a pooled one, of one that has ended: the claim goes on.
            let Some(n) = found else { continue };
            let worker = stage.workers.swap_remove(n);
            worker.signal(Signal::SIGTERM);
            let pid = worker.pid();
            stage.leaving.push(worker);
            let until = Instant::now() + CLOSED_WITHIN;
            while let Some(pid) = pid
                && Instant::now() < until
            {
                if stage.claim_would_be_wrong(pid).await {
                    if held.go_on.send(()).is_ok() {
                        self.drains_raced += 1;
                    }
                    break;
                }
                self.go_on_for(stage, LOOK).await?;
            }
            return Ok(true);
        }
        Ok(false)
    }
}

impl Stage {
    /// A database that cannot say so has not closed the gate.
    async fn claim_would_be_wrong(&self, pid: i32) -> bool {
        match facts::connect(&self.admin_url).await {
            Ok(admin) => facts::claim_would_be_wrong(&admin, pid)
                .await
                .unwrap_or(false),
            Err(_) => false,
        }
    }
}
