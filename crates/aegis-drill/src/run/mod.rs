//! The supervisor of a drill: starts everything, makes the faults of the schedule, waits for the end, reads the evidence.
//!
//! Invariants: it signals only its own children, by their handles; faults end before the judgement; the evidence is read from
//! files and database after the last worker has ended. Must never judge: [`check`](crate::check) does.

mod cuts;
mod late;
mod pooler;
mod stage;
mod submit;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use tokio::sync::watch;

use crate::check::{Evidence, Found, check};
use crate::child::{Process, fresh_folder};
use crate::error::DrillError;
use crate::facts;
use crate::fault::{Fault, schedule};
use crate::history::{self, Event};
use crate::oracle::behaviour::Behaviour;
use crate::oracle::record::{self, Entry, What};
use crate::proxy::{Does, Place};
use crate::report::{Report, Run};
use crate::worker::LEASE;
use crate::zombie;
use late::Late;
use stage::Stage;

const LOOK: Duration = Duration::from_millis(50);
/// After the last fault everything has to end in so long; later is stranded.
const SETTLE: Duration = Duration::from_secs(150);
/// After the database was away it takes a moment until somebody holds a task again.
const BUSY_WITHIN: Duration = Duration::from_secs(8);
const DRAIN: Duration = Duration::from_secs(20);

/// How a drill is run.
#[derive(Debug, Clone)]
pub struct Options {
    /// This very program, for its children.
    pub program: PathBuf,
    /// Decides the schedule and the oracle.
    pub seed: u64,
    /// How long faults are made.
    pub minutes: f64,
    /// An empty folder for evidence and report.
    pub folder: PathBuf,
    /// Worker processes at once.
    pub workers: usize,
    /// Tasks of each class at each cut of an operation; 0: none.
    pub cut_tasks: usize,
    /// SQL that breaks the engine in the drill's own database, to see that it is found out.
    pub break_with: Option<PathBuf>,
    /// Fetch PostgreSQL when the machine has none.
    pub fetch_postgres: bool,
    /// For the report.
    pub commit: String,
}

/// Runs a drill to its report, which is written too.
///
/// # Errors
/// It could not be run. What it found is in the report.
pub async fn chaos(options: &Options) -> Result<Report, DrillError> {
    if !(0.25..=1440.0).contains(&options.minutes) {
        return Err(DrillError::Minutes(options.minutes));
    }
    fresh_folder(&options.folder)?;
    let mut stage = Stage::start(options).await?;
    for _ in 0..options.workers {
        stage.start_worker()?;
    }
    let (enough, watched) = watch::channel(false);
    let submitting = submit::start(&stage, options.seed, watched)?;
    let mut drill = Drill {
        random: StdRng::seed_from_u64(options.seed ^ 0x5eed),
        faults: BTreeMap::new(),
        thaw: Vec::new(),
        late: Vec::new(),
        refused: Vec::new(),
    };
    drill.break_things(&mut stage, options).await?;
    enough.send_replace(true);
    submitting.await.ok();
    cuts::hold_and_kill(&mut stage, options.cut_tasks).await?;
    let settled = drill.settle(&mut stage).await?;
    let refused = drill.refused_connections().await;
    let cut = stage.proxy.cuts();
    stage.end_workers(DRAIN).await;
    let evidence = stage.evidence().await?;
    let found = check(&evidence);
    let mut void_because = stage.trouble();
    if !settled {
        void_because.push("the last tasks had not ended when the wait was over".to_owned());
    }
    let mut sometimes = sometimes(&drill.faults, &found, &evidence, refused);
    for ((place, what), count) in cut {
        *sometimes
            .entry(format!("cut_{place:?}_{what}").to_lowercase())
            .or_default() += count;
    }
    let mut not_run = Vec::new();
    if let Some(started) = stage.pooled_started()? {
        sometimes.insert("started_through_pgbouncer".to_owned(), started);
        drill.faults.insert(pooler::NAME.to_owned(), 1);
    } else {
        not_run.push(pooler::NAME.to_owned());
    }
    let run = Run {
        seed: options.seed,
        minutes: options.minutes,
        commit: options.commit.clone(),
        postgres: stage.postgres(),
        workers: options.workers,
        cut_tasks: options.cut_tasks,
        faults: drill.faults,
        sometimes,
        not_run,
        void_because,
    };
    let report = Report::new(run, found);
    report.write(&options.folder)?;
    stage.stop().await;
    Ok(report)
}

/// What is under way while things break.
struct Drill {
    random: StdRng,
    faults: BTreeMap<String, u64>,
    thaw: Vec<(Instant, String)>,
    late: Vec<Late>,
    refused: Vec<tokio::task::JoinHandle<u64>>,
}

impl Drill {
    async fn break_things(
        &mut self,
        stage: &mut Stage,
        options: &Options,
    ) -> Result<(), DrillError> {
        let length = Duration::from_secs_f64(options.minutes * 60.0);
        let began = Instant::now();
        for planned in schedule(options.seed, length) {
            let at = Duration::from_millis(planned.at_ms);
            while began.elapsed() < at {
                self.look(stage)?;
                tokio::time::sleep(LOOK).await;
            }
            self.make(stage, planned.fault).await?;
        }
        while began.elapsed() < length {
            self.look(stage)?;
            tokio::time::sleep(LOOK).await;
        }
        Ok(())
    }

    async fn make(&mut self, stage: &mut Stage, fault: Fault) -> Result<(), DrillError> {
        let kind = fault.name().to_owned();
        stage.history.tell(Event::Fault { kind: kind.clone() })?;
        // False where every worker is frozen already: a fault that was not made is not counted.
        let mut made = true;
        match fault {
            Fault::WorkerKilled => {
                if let Some(worker) = self.pick(stage) {
                    worker.kill().await;
                } else {
                    made = false;
                }
            }
            Fault::WorkerTerminated => {
                // With tasks in its hands, where there is one: a drain of nobody shows nothing.
                let deadline = Instant::now() + BUSY_WITHIN;
                let mut found = None;
                while found.is_none() && Instant::now() < deadline {
                    let busy = stage.busy().await;
                    let held = |one: &Process| {
                        self.is_awake(one) && one.pid().is_some_and(|pid| busy.contains(&pid))
                    };
                    found = stage.workers.iter().position(held);
                    if found.is_none() {
                        self.look(stage)?;
                        tokio::time::sleep(LOOK).await;
                    }
                }
                let worker = match found {
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
                let awake: Vec<usize> = (0..stage.workers.len())
                    .filter(|n| self.is_awake(&stage.workers[*n]))
                    .collect();
                made = !awake.is_empty();
                if made {
                    let worker = &stage.workers[awake[self.random.random_range(0..awake.len())]];
                    worker.signal(Signal::SIGSTOP);
                    self.thaw
                        .push((Instant::now() + LEASE * 5 / 2, worker.name.clone()));
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
            Fault::Exhausted => self.refused.push(stage.exhaust()),
        }
        if made {
            *self.faults.entry(kind).or_default() += 1;
        }
        stage.replace_ended()
    }

    /// It is not one that was stopped and has still to go on.
    fn is_awake(&self, worker: &Process) -> bool {
        self.thaw.iter().all(|(_, name)| *name != worker.name)
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
    fn look(&mut self, stage: &mut Stage) -> Result<(), DrillError> {
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
            late.look(stage)?;
        }
        stage.replace_ended()
    }

    /// Waits until nothing runs and nothing is late; false when that took too long.
    async fn settle(&mut self, stage: &mut Stage) -> Result<bool, DrillError> {
        let deadline = Instant::now() + SETTLE;
        while Instant::now() < deadline {
            self.look(stage)?;
            let quiet = self.thaw.is_empty() && self.late.iter().all(Late::done);
            if quiet && stage.all_ended().await {
                return Ok(true);
            }
            tokio::time::sleep(LOOK * 4).await;
        }
        Ok(false)
    }

    async fn refused_connections(&mut self) -> u64 {
        let mut refused = 0;
        for one in self.refused.drain(..) {
            refused += one.await.unwrap_or_default();
        }
        refused
    }
}

/// What has to happen in a run with these faults, and how often it did.
fn sometimes(
    faults: &BTreeMap<String, u64>,
    found: &Found,
    evidence: &Evidence,
    refused: u64,
) -> BTreeMap<String, u64> {
    let made = |fault: Fault| faults.contains_key(fault.name());
    let behaved = |entry: &&Entry, how: Behaviour| {
        entry.behaviour == Some(how) && matches!(entry.what, What::Applied | What::Lost)
    };
    let oracle = |how| count(evidence.oracle.iter().filter(|entry| behaved(entry, how)));
    let late = |how: &str| {
        count(evidence.history.iter().filter(|line| {
            matches!(&line.event, Event::Late { report, answer, .. } if report == how && answer == "fenced")
        }))
    };
    let mut sometimes = BTreeMap::from([
        (
            "effect_with_a_lost_answer".to_owned(),
            oracle(Behaviour::AnswerLost),
        ),
        ("request_lost".to_owned(), oracle(Behaviour::RequestLost)),
        (
            "effect_after_the_caller_gave_up".to_owned(),
            oracle(Behaviour::Late),
        ),
        (
            "error_after_the_effect".to_owned(),
            oracle(Behaviour::ErrorAfter),
        ),
        (
            "probe_asked".to_owned(),
            count(
                evidence
                    .oracle
                    .iter()
                    .filter(|entry| matches!(entry.what, What::ProbedHappened | What::ProbedNot)),
            ),
        ),
        (
            "first_result_replayed".to_owned(),
            count(
                evidence
                    .oracle
                    .iter()
                    .filter(|entry| entry.what == What::Replayed),
            ),
        ),
        ("blind_in_the_queue".to_owned(), found.unknown_in_queue),
    ]);
    let mut must = |when: bool, name: &str, count: u64| {
        if when {
            sometimes.insert(name.to_owned(), count);
        }
    };
    must(
        made(Fault::WorkerKilled) || made(Fault::WorkerFrozen),
        "takeover",
        found.takeovers,
    );
    must(
        made(Fault::LateSuccess),
        "late_success_refused",
        late("complete"),
    );
    must(
        made(Fault::LateFailure),
        "late_failure_refused",
        late("fail"),
    );
    must(
        made(Fault::CutAfter) || made(Fault::CutReplied),
        "unknown_commit_resolved",
        found.unknown_commits_resolved,
    );
    must(
        made(Fault::Exhausted),
        "connection_refused_at_the_server",
        refused,
    );
    must(
        made(Fault::WorkerTerminated),
        "drain_with_tasks_in_hand",
        found.drains_with_tasks,
    );
    for (fault, place) in [
        (Fault::CutBefore, "before"),
        (Fault::CutAfter, "after"),
        (Fault::CutReplied, "replied"),
    ] {
        must(made(fault), &format!("cut_{place}_commit"), 0);
        must(made(fault), &format!("cut_{place}_statement"), 0);
    }
    must(made(Fault::HalfOpen), "cut_silent_statement", 0);
    must(made(Fault::HousekeepingLate), "cut_late_housekeeping", 0);
    sometimes
}

fn count(all: impl Iterator) -> u64 {
    all.count() as u64
}

impl Stage {
    async fn evidence(&self) -> Result<Evidence, DrillError> {
        let mut lines = Vec::new();
        let folder = &self.program.folder;
        let entries = std::fs::read_dir(folder).map_err(DrillError::file("read", folder))?;
        for entry in entries {
            let path = entry.map_err(DrillError::file("read", folder))?.path();
            if path.extension().is_some_and(|end| end == "jsonl") {
                lines.extend(history::read(&path)?);
            }
        }
        let admin = facts::connect(&self.admin_url).await?;
        Ok(Evidence {
            history: lines,
            oracle: record::read(&self.record)?,
            facts: facts::read(&admin).await?,
        })
    }
}
