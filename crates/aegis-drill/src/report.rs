//! What a run found: `report.json`.
//!
//! Invariants: a fault that was not made is there by name; a run is void unless each of its "sometimes" happened; the command
//! that replays it is there whatever the outcome.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::check::Found;
use crate::error::DrillError;
use crate::fault::NOT_RUN;

/// A whole report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The format's version.
    pub v: u32,
    /// The seed.
    pub seed: u64,
    /// How long faults were made.
    pub minutes: f64,
    /// The commit of the program; `unknown` outside of a clone.
    pub commit: String,
    /// PostgreSQL.
    pub postgres: String,
    /// Worker processes at once.
    pub workers: usize,
    /// Faults that were made, by kind.
    pub faults: BTreeMap<String, u64>,
    /// Faults of the design that were not made, by name.
    pub not_run: Vec<String>,
    /// What the checker counted.
    #[serde(flatten)]
    pub found: Found,
    /// What has to happen in a run like this, with how often it did.
    pub sometimes: BTreeMap<String, u64>,
    /// The run tells nothing.
    pub void: bool,
    /// Why.
    pub void_because: Vec<String>,
    /// The same again.
    pub replay: String,
}

/// What a run was like, beside what was found.
#[derive(Debug, Clone)]
pub struct Run {
    /// The seed.
    pub seed: u64,
    /// How long faults were made.
    pub minutes: f64,
    /// The commit.
    pub commit: String,
    /// PostgreSQL.
    pub postgres: String,
    /// Worker processes at once.
    pub workers: usize,
    /// Tasks of each class at each cut of an operation.
    pub cut_tasks: usize,
    /// Faults that were made.
    pub faults: BTreeMap<String, u64>,
    /// What has to happen, and how often it did.
    pub sometimes: BTreeMap<String, u64>,
    /// Other reasons why it tells nothing.
    pub void_because: Vec<String>,
}

impl Report {
    /// Puts it together.
    pub fn new(run: Run, found: Found) -> Self {
        let mut void_because = run.void_because;
        for (name, count) in &run.sometimes {
            if *count == 0 {
                void_because.push(format!("never happened: {name}"));
            }
        }
        if found.tasks == 0 {
            void_because.push("no task was accepted".to_owned());
        }
        Self {
            v: 1,
            seed: run.seed,
            minutes: run.minutes,
            replay: format!(
                "aegis drill chaos --seed {} --minutes {} --workers {} --cut-tasks {} --report DIR",
                run.seed, run.minutes, run.workers, run.cut_tasks
            ),
            commit: run.commit,
            postgres: run.postgres,
            workers: run.workers,
            faults: run.faults,
            not_run: NOT_RUN.map(str::to_owned).to_vec(),
            found,
            sometimes: run.sometimes,
            void: !void_because.is_empty(),
            void_because,
        }
    }

    /// Nothing was broken, and the run tells something.
    pub fn passed(&self) -> bool {
        !self.void && self.found.broken() == 0
    }

    /// Writes `report.json`.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, folder: &Path) -> Result<(), DrillError> {
        let path = folder.join("report.json");
        let mut text =
            serde_json::to_vec_pretty(self).map_err(DrillError::reading("the report"))?;
        text.push(b'\n');
        std::fs::write(&path, text).map_err(DrillError::file("write", &path))
    }

    /// Reads one.
    ///
    /// # Errors
    /// It cannot be read, or is no report.
    pub fn read(path: &Path) -> Result<Self, DrillError> {
        let bytes = std::fs::read(path).map_err(DrillError::file("read", path))?;
        serde_json::from_slice(&bytes).map_err(DrillError::reading("a report"))
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let found = &self.found;
        let faults: u64 = self.faults.values().sum();
        let verdict = if self.void {
            "void: the run tells nothing"
        } else if found.broken() > 0 {
            "BROKEN"
        } else {
            "held"
        };
        writeln!(
            f,
            "{verdict}: {} tasks, {faults} faults of {} kinds, {} takeovers",
            found.tasks,
            self.faults.len(),
            found.takeovers
        )?;
        writeln!(
            f,
            "lost {}, doubled {}, blind repeated {}, stale accepted {}, late accepted {}, phantom {}, claims after drain {}, stranded {}",
            found.lost,
            found.doubled(),
            found.blind_repeated,
            found.stale_accepted,
            found.late_accepted,
            found.phantom,
            found.claims_after_drain,
            found.stranded
        )?;
        writeln!(
            f,
            "stale reports refused {}, unknown commits resolved {}, waiting for a person {}",
            found.stale_refused, found.unknown_commits_resolved, found.unknown_in_queue
        )?;
        for why in &self.void_because {
            writeln!(f, "void because: {why}")?;
        }
        for example in &found.examples {
            writeln!(f, "  {example}")?;
        }
        writeln!(f, "not run: {}", self.not_run.join(", "))?;
        write!(f, "replay: {}", self.replay)
    }
}
