//! The supervisor of a drill: starts everything, makes the faults of the schedule, waits for the end, reads the evidence.
//!
//! Invariants: it signals only its own children, by their handles; faults end before the judgement; the evidence is read from
//! files and database after the last worker has ended. Must never judge: [`check`](crate::check) does.

mod breaking;
mod clock;
mod cuts;
mod disk;
mod hands;
mod housekeeper;
mod late;
mod pooler;
mod promotion;
mod race;
mod reaper;
mod rollback;
mod sometimes;
mod stage;
mod submit;
mod versions;
mod window;

use std::path::PathBuf;
use std::time::Duration;

use tokio::sync::watch;

use crate::check::{Evidence, check};
use crate::child::fresh_folder;
use crate::error::DrillError;
use crate::facts;
use crate::fault::{Fault, schedule};
use crate::history;
use crate::oracle::record;
use crate::report::{Report, Run};
use breaking::Drill;
use stage::Stage;

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
    /// The program of the version before; every second worker is of it.
    pub version_before: Option<PathBuf>,
    /// Fetch PostgreSQL when the machine has none.
    pub fetch_postgres: bool,
    /// For the report.
    pub commit: String,
    /// Hears what is under way: a line for people at each fault and each part of the run.
    pub tell: fn(&str),
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
    stage.tell("the workers are started; faults from now on");
    let (enough, watched) = watch::channel(false);
    let submitting = submit::start(&stage, options.seed, watched)?;
    let mut drill = Drill::new(options);
    drill.break_things(&mut stage, options).await?;
    enough.send_replace(true);
    submitting.await.ok();
    // What waits is nobody's cut.
    stage.tell("the last fault is made; what was begun ends");
    drill.settle(&mut stage).await?;
    let mut refused = Vec::new();
    cuts::hold_and_kill(&mut stage, options.cut_tasks).await?;
    if options.cut_tasks > 0 {
        stage.tell("processes sleep in the honest window");
        window::freeze_and_wake(&mut stage).await?;
        stage.tell("reports come after the task went to other hands");
        refused = hands::report_into_other_hands(&mut stage).await?;
    }
    let rolled = if options.break_with.is_some() {
        None
    } else {
        stage.tell("the newer worker goes, the older one finds its checkpoint");
        Some(rollback::roll_back(&mut stage).await?)
    };
    stage.tell("everything ends; then the evidence is read");
    let settled = drill.settle(&mut stage).await?;
    stage.end_workers(DRAIN).await;
    let evidence = stage.evidence().await?;
    let found = check(&evidence);
    let mut void_because = stage.trouble();
    if !settled {
        void_because.push("the last tasks had not ended when the wait was over".to_owned());
    }
    let mut sometimes = drill.happened(&stage, &evidence);
    for (report, times) in refused {
        sometimes.insert(format!("late_{report}_refused_in_other_hands"), times);
    }
    let mut not_run = Vec::new();
    if let Some(started) = stage.pooled_started()? {
        sometimes.insert("started_through_pgbouncer".to_owned(), started);
        drill.faults.insert(pooler::NAME.to_owned(), 1);
    } else {
        not_run.push(pooler::NAME.to_owned());
    }
    if let Some(shared) = stage.shared_by_versions()? {
        drill.faults.insert(versions::NAME.to_owned(), 1);
        sometimes.insert("started_by_the_version_before".to_owned(), shared.begun);
        sometimes.insert("passed_between_versions".to_owned(), shared.passed);
    } else {
        not_run.push(versions::NAME.to_owned());
    }
    if let Some(rolled) = rolled {
        drill.faults.insert(rollback::NAME.to_owned(), 1);
        sometimes.insert("newer_checkpoint_waited".to_owned(), rolled.waited);
        sometimes.insert("older_worker_went_on".to_owned(), rolled.older_ended);
    } else {
        not_run.push(rollback::NAME.to_owned());
    }
    let length = Duration::from_secs_f64(options.minutes * 60.0);
    let planned = schedule(options.seed, length);
    for fault in Fault::all() {
        if drill.faults.contains_key(fault.name()) {
            continue;
        }
        not_run.push(fault.name().to_owned());
        if planned.iter().any(|one| one.fault == fault) && stage.can_make(fault) {
            void_because.push(format!("never made: {}", fault.name()));
        }
    }
    if options.cut_tasks > 0 {
        for (class, one) in &found.window {
            sometimes.insert(format!("woken_in_the_window_{class}"), one.requests);
        }
    }
    let run = Run {
        seed: options.seed,
        minutes: options.minutes,
        commit: options.commit.clone(),
        postgres: stage.postgres(),
        workers: options.workers,
        cut_tasks: options.cut_tasks,
        version_before: options.version_before.is_some(),
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

impl Stage {
    pub(super) async fn evidence(&self) -> Result<Evidence, DrillError> {
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
            tails: self.tails.clone(),
        })
    }
}
