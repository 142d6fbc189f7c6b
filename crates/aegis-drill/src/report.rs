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
    /// Whether every second worker was of the version before.
    pub version_before: bool,
    /// Faults that were made.
    pub faults: BTreeMap<String, u64>,
    /// What has to happen, and how often it did.
    pub sometimes: BTreeMap<String, u64>,
    /// Faults that were not made, by name.
    pub not_run: Vec<String>,
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
                "aegis drill chaos --seed {} --minutes {} --workers {} --cut-tasks {} {}--report DIR",
                run.seed,
                run.minutes,
                run.workers,
                run.cut_tasks,
                if run.version_before {
                    "--version-before PROGRAM "
                } else {
                    ""
                }
            ),
            commit: run.commit,
            postgres: run.postgres,
            workers: run.workers,
            faults: run.faults,
            not_run: run.not_run,
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

    /// In a word: broken before everything else.
    pub fn verdict(&self) -> &'static str {
        match (self.found.broken(), self.void) {
            (1.., _) => "BROKEN",
            (0, true) => "void",
            (0, false) => "held",
        }
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
        Self::parse(&bytes)
    }

    /// Reads its bytes.
    ///
    /// # Errors
    /// They are no report.
    pub fn parse(bytes: &[u8]) -> Result<Self, DrillError> {
        serde_json::from_slice(bytes).map_err(DrillError::reading("a report"))
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let found = &self.found;
        let faults: u64 = self.faults.values().sum();
        let verdict = self.verdict();
        writeln!(
            f,
            "{verdict}: {} tasks, {faults} faults of {} kinds, {} takeovers",
            found.tasks,
            self.faults.len(),
            found.takeovers
        )?;
        writeln!(
            f,
            "lost {}, doubled {}, out of order {}, blind repeated {}, stale accepted {}, late accepted {}, phantom {}, claims after drain {}, taken from the living {}, stranded {}",
            found.lost,
            found.doubled(),
            found.out_of_order.unwrap_or_default(),
            found.blind_repeated,
            found.stale_accepted,
            found.late_accepted,
            found.phantom,
            found.claims_after_drain,
            found.taken_from_the_living.unwrap_or_default(),
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
        let not_run = if self.not_run.is_empty() {
            "nothing".to_owned()
        } else {
            self.not_run.join(", ")
        };
        writeln!(f, "not run: {not_run}")?;
        write!(f, "replay: {}", self.replay)
    }
}

#[cfg(test)]
mod tests {
    //! What makes a run void, and what is told of one.

    use std::collections::BTreeMap;

    use super::{Report, Run};
    use crate::check::Found;
    use crate::page::page;

    fn report(happened: u64, found: Found) -> Report {
        let run = Run {
            seed: 7,
            minutes: 0.5,
            commit: "0123456789abcdef".to_owned(),
            postgres: "PostgreSQL".to_owned(),
            workers: 4,
            cut_tasks: 20,
            version_before: false,
            faults: BTreeMap::from([("worker_killed".to_owned(), 2)]),
            sometimes: BTreeMap::from([("takeover".to_owned(), happened)]),
            not_run: vec!["pgbouncer".to_owned()],
            void_because: Vec::new(),
        };
        Report::new(run, found)
    }

    fn found(lost: u64) -> Found {
        Found {
            tasks: 10,
            lost,
            ..Found::default()
        }
    }

    #[test]
    fn what_never_happened_makes_a_run_void() {
        let held = report(3, found(0));
        assert!(held.passed() && held.verdict() == "held");
        let void = report(0, found(0));
        assert!(void.void && !void.passed() && void.verdict() == "void");
        assert_eq!(void.void_because, ["never happened: takeover"]);
        assert!(report(3, Found::default()).void, "no task at all");
    }

    #[test]
    fn a_broken_run_is_broken_whatever_else_it_is() {
        for happened in [0, 3] {
            let broken = report(happened, found(1));
            assert!(!broken.passed() && broken.verdict() == "BROKEN");
            assert!(
                broken
                    .to_string()
                    .contains("replay: aegis drill chaos --seed 7")
            );
        }
    }

    #[test]
    fn what_was_not_run_is_told_by_name() {
        let counted = Found {
            out_of_order: Some(3),
            ..found(0)
        };
        let one = report(3, counted);
        assert_eq!(one.not_run, ["pgbouncer"]);
        let page = page(&[one, report(0, found(2))]);
        for told in [
            "| 7 | 0123456789ab | 0.5 | 10 | 2 | 0 | 0 | 3 | 0 |",
            "| 7 | 0123456789ab | 0.5 | 10 | 2 | 2 | 0 | not counted | 0 |",
            "| BROKEN |",
            "Not run: pgbouncer.",
            "Void because: never happened: takeover",
        ] {
            assert!(page.contains(told), "{told}: {page}");
        }
    }

    #[test]
    fn a_report_is_read_as_it_was_written() {
        let one = report(3, found(1));
        let text = serde_json::to_string(&one).unwrap();
        assert_eq!(serde_json::from_str::<Report>(&text).unwrap(), one);
    }
}
