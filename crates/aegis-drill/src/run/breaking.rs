//! Makes the faults of a schedule, and what comes due after them: who is woken up, who reports late.
//!
//! Invariants: a fault waits for what it needs (a worker that holds tasks) within a bound; one that was not made is not counted;
//! what was scheduled is made again until it has happened. Must never signal what the drill has not started.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use uuid::Uuid;

use super::Options;
use super::housekeeper::Housekeeper;
use super::late::Late;
use super::sometimes::{Seen, again, sometimes};
use super::stage::Stage;
use crate::check::{Evidence, check};
use crate::child::Process;
use crate::error::DrillError;
use crate::fault::{Fault, schedule};
use crate::history::Event;
use crate::proxy::{Does, Place};
use crate::worker::LEASE;
use crate::zombie;

const LOOK: Duration = Duration::from_millis(50);
/// After the last fault everything has to end in so long; later is stranded. Far above what it takes: only what is stuck for
/// ever is meant.
const SETTLE: Duration = Duration::from_mins(5);
/// An engine that is broken on purpose may never be done.
const SETTLE_BROKEN: Duration = Duration::from_secs(30);
/// After the database was away it takes a moment until somebody holds a task again.
const BUSY_WITHIN: Duration = Duration::from_secs(20);
/// How long the run goes on until all that was scheduled has happened.
const HAPPENS_WITHIN: Duration = Duration::from_mins(4);
const BACKLOG_EVERY: Duration = Duration::from_secs(1);
const AGAIN_AFTER: Duration = Duration::from_secs(4);

/// What is under way while things break.
pub(super) struct Drill {
    random: StdRng,
    pub(super) faults: BTreeMap<String, u64>,
    thaw: Vec<(Instant, String)>,
    late: Vec<Late>,
    looked_at_backlog: Instant,
    pub(super) housekeepers: Vec<Housekeeper>,
    /// How many of them went on after others had their tasks.
    pub(super) housekeepers_taken: u64,
    /// How many reapers went on after others had done their work.
    pub(super) reapers_overtaken: u64,
    /// How many were killed in a statement that went on.
    pub(super) reapers_killed: u64,
    /// How many claims went on when the gate was closed.
    pub(super) drains_raced: u64,
    settles_within: Duration,
}

impl Drill {
    pub(super) fn new(options: &Options) -> Self {
        let seed = options.seed;
        Self {
            random: StdRng::seed_from_u64(seed ^ 0x5eed),
            faults: BTreeMap::new(),
            thaw: Vec::new(),
            late: Vec::new(),
            looked_at_backlog: Instant::now(),
            housekeepers: Vec::new(),
            housekeepers_taken: 0,
            reapers_overtaken: 0,
            reapers_killed: 0,
            drains_raced: 0,
            settles_within: match options.break_with {
                Some(_) => SETTLE_BROKEN,
                None => SETTLE,
            },
        }
    }

    /// Takes in a late process; gives its place.
    pub(super) fn haunt(&mut self, late: Late) -> usize {
        self.late.push(late);
        self.late.len() - 1
    }

    /// What the late process at this place claimed.
    pub(super) fn claimed(&self, place: usize) -> Option<(Uuid, i64)> {
        self.late.get(place).and_then(Late::claimed)
    }

    /// Lets everything go on for so long.
    pub(super) async fn go_on_for(
        &mut self,
        stage: &mut Stage,
        length: Duration,
    ) -> Result<(), DrillError> {
        let until = Instant::now() + length;
        while Instant::now() < until {
            self.look(stage).await?;
            tokio::time::sleep(LOOK.min(length)).await;
        }
        Ok(())
    }

    pub(super) async fn break_things(
        &mut self,
        stage: &mut Stage,
        options: &Options,
    ) -> Result<(), DrillError> {
        let length = Duration::from_secs_f64(options.minutes * 60.0);
        let began = Instant::now();
        for planned in schedule(options.seed, length) {
            let at = Duration::from_millis(planned.at_ms);
            while began.elapsed() < at {
                self.look(stage).await?;
                tokio::time::sleep(LOOK).await;
            }
            self.make(stage, planned.fault).await?;
        }
        while began.elapsed() < length {
            self.look(stage).await?;
            tokio::time::sleep(LOOK).await;
        }
        // An engine that is broken on purpose may never get there, and has been found out already.
        if options.break_with.is_none() {
            self.until_it_happened(stage, options).await?;
        }
        // Whoever was frozen in a transaction keeps its locks, and what comes next would wait for them.
        while !self.thaw.is_empty() || !self.housekeepers.is_empty() {
            self.look(stage).await?;
            tokio::time::sleep(LOOK).await;
        }
        Ok(())
    }

    /// A busy machine is slow and no reason to be void: what was scheduled and has not happened is made again, while work goes
    /// on, until it has, or the bound is over.
    async fn until_it_happened(
        &mut self,
        stage: &mut Stage,
        options: &Options,
    ) -> Result<(), DrillError> {
        let length = Duration::from_secs_f64(options.minutes * 60.0);
        let deadline = Instant::now() + HAPPENS_WITHIN;
        loop {
            // Who is still frozen has not failed to happen.
            while !self.housekeepers.is_empty() {
                self.look(stage).await?;
                tokio::time::sleep(LOOK).await;
            }
            let mut missing = BTreeSet::new();
            for planned in schedule(options.seed, length) {
                let fault = planned.fault;
                if !self.faults.contains_key(fault.name()) && stage.can_make(fault) {
                    missing.insert(fault);
                }
            }
            // A database that is just away cannot say what has happened.
            let happened = match stage.evidence().await {
                Ok(evidence) => Some(self.happened(stage, &evidence)),
                Err(DrillError::Sql(_)) => None,
                Err(other) => return Err(other),
            };
            let waits = happened.as_ref().is_none_or(|happened| {
                let never = happened.iter().filter(|(_, count)| **count == 0);
                let names: Vec<&String> = never.map(|(name, _)| name).collect();
                missing.extend(names.iter().filter_map(|name| again(name)));
                !names.is_empty()
            });
            if (!waits && missing.is_empty()) || Instant::now() > deadline {
                return Ok(());
            }
            for fault in missing {
                self.make(stage, fault).await?;
            }
            self.go_on_for(stage, AGAIN_AFTER).await?;
        }
    }

    /// What has to happen, with how often it did.
    pub(super) fn happened(&self, stage: &Stage, evidence: &Evidence) -> BTreeMap<String, u64> {
        let found = check(evidence);
        let cuts = stage.proxy.cuts();
        let seen = Seen {
            refused: stage.refused(),
            clocks: stage.clocks,
            disk_refused: stage.disk.refused,
            housekeepers_taken: self.housekeepers_taken,
            reapers_overtaken: self.reapers_overtaken,
            reapers_killed: self.reapers_killed,
            drains_raced: self.drains_raced,
        };
        sometimes(&self.faults, &found, evidence, seen, &cuts)
    }

    /// Has everybody been woken up, and reported?
    pub(super) fn is_over(&self) -> bool {
        self.thaw.is_empty() && self.housekeepers.is_empty() && self.late.iter().all(Late::done)
    }

    async fn make(&mut self, stage: &mut Stage, fault: Fault) -> Result<(), DrillError> {
        let kind = fault.name().to_owned();
        stage.history.tell(Event::Fault { kind: kind.clone() })?;
        stage.tell(&kind.replace('_', " "));
        // False where every worker is frozen already: a fault that was not made is not counted.
        let mut made = true;
        match fault {
            Fault::WorkerKilled => {
                let worker = match self.holder(stage).await? {
                    Some(n) => Some(stage.workers.swap_remove(n)),
                    None => self.pick(stage),
                };
                if let Some(worker) = worker {
                    worker.kill().await;
                } else {
                    made = false;
                }
            }
            Fault::WorkerTerminated => {
                let worker = match self.holder(stage).await? {
                    Some(n) => Some(stage.workers.swap_remove(n)),
                    None => self.pick(stage),
                };
                if let Some(worker) = worker {
                    worker.signal(Signal::SIGTERM);
                    stage.leaving.push(worker);
                } else {
                    made = false;
                }
            }
            Fault::WorkerFrozen => {
                if let Some(n) = self.holder(stage).await? {
                    let worker = &stage.workers[n];
                    made = worker.signal(Signal::SIGSTOP);
                    self.thaw
                        .push((Instant::now() + LEASE * 5 / 2, worker.name.clone()));
                } else {
                    made = false;
                }
            }
            Fault::LateSuccess => self
                .late
                .push(Late::start(stage, zombie::Report::Complete)?),
            Fault::LateFailure => self.late.push(Late::start(stage, zombie::Report::Fail)?),
            Fault::PostgresRestarted => stage.restart().await?,
            Fault::PostgresImmediate => stage.immediate().await?,
            Fault::PostgresKilled => stage.crash().await?,
            Fault::CutBefore | Fault::CutAfter | Fault::CutReplied => {
                if let Some(place) = fault.cut() {
                    stage.proxy.arm(place, Does::Commit);
                    for _ in 0..4 {
                        stage.proxy.arm(place, Does::Write);
                    }
                }
            }
            Fault::HalfOpen => stage.proxy.arm(Place::Silent, Does::Write),
            Fault::HousekeepingLate => stage.proxy.arm(Place::Late, Does::Housekeep),
            Fault::HousekeeperFrozen => made = self.freeze_housekeeper(stage).await?,
            Fault::ReaperKilled => made = self.kill_reaper(stage).await?,
            Fault::ReaperFrozen => made = self.freeze_reaper(stage).await?,
            Fault::DrainRaced => made = self.race_a_drain(stage).await?,
            Fault::Promotion => made = self.promote(stage).await?,
            Fault::DatabaseClock => made = self.move_database_clock(stage).await?,
            Fault::DiskFull => made = self.fill_the_disk(stage).await?,
            Fault::Exhausted => stage.exhaust(),
            Fault::WorkerClocks => {
                let days = self.random.random_range(1..=30);
                let sign = if self.random.random_bool(0.5) { 1 } else { -1 };
                made = stage.set_worker_clocks(sign * days * 86_400)?;
            }
        }
        if made {
            *self.faults.entry(kind).or_default() += 1;
        }
        stage.replace_ended()
    }

    /// Where a worker that is awake and holds tasks stands, waited for within a bound: to kill or drain one that does nothing
    /// shows nothing.
    async fn holder(&mut self, stage: &mut Stage) -> Result<Option<usize>, DrillError> {
        let deadline = Instant::now() + BUSY_WITHIN;
        while Instant::now() < deadline {
            let busy = stage.busy().await;
            let held = |one: &Process| {
                self.is_awake(one) && one.pid().is_some_and(|pid| busy.contains(&pid))
            };
            if let Some(n) = stage.workers.iter().position(held) {
                return Ok(Some(n));
            }
            self.look(stage).await?;
            tokio::time::sleep(LOOK).await;
        }
        Ok(None)
    }

    /// It is not one that was stopped and has still to go on.
    pub(super) fn is_awake(&self, worker: &Process) -> bool {
        let housekeeps = self.housekeepers.iter().any(|one| one.name == worker.name);
        !housekeeps && self.thaw.iter().all(|(_, name)| *name != worker.name)
    }

    /// A worker that is awake, out of the stage's hands.
    fn pick(&mut self, stage: &mut Stage) -> Option<Process> {
        let awake: Vec<usize> = (0..stage.workers.len())
            .filter(|n| self.is_awake(&stage.workers[*n]))
            .collect();
        if awake.is_empty() {
            return None;
        }
        let n = awake[self.random.random_range(0..awake.len())];
        Some(stage.workers.swap_remove(n))
    }

    /// What is due: frozen workers that go on, late reports, workers that have ended.
    pub(super) async fn look(&mut self, stage: &mut Stage) -> Result<(), DrillError> {
        let now = Instant::now();
        self.thaw.retain(|(at, name)| {
            if now < *at {
                return true;
            }
            for worker in stage.workers.iter().filter(|one| one.name == *name) {
                worker.signal(Signal::SIGCONT);
            }
            false
        });
        for late in &mut self.late {
            late.look(stage).await?;
        }
        self.wake_housekeepers(stage).await?;
        if self.looked_at_backlog.elapsed() > BACKLOG_EVERY {
            stage.look_at_backlog().await;
            self.looked_at_backlog = Instant::now();
        }
        stage.replace_ended()
    }

    /// Waits until nothing runs and nothing is late; false when that took too long.
    pub(super) async fn settle(&mut self, stage: &mut Stage) -> Result<bool, DrillError> {
        let deadline = Instant::now() + self.settles_within;
        while Instant::now() < deadline {
            self.look(stage).await?;
            stage.adopt_if_asked().await;
            if self.is_over() && stage.all_ended().await {
                return Ok(true);
            }
            tokio::time::sleep(LOOK * 4).await;
        }
        Ok(false)
    }
}
