//! Everything that a run measured, saved as JSON after each item, so that a run can go on where it was interrupted.
//!
//! Invariant: what is in a file was measured with the settings that stand in it; another run's are not mixed in.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, bail};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::arguments::PeersArguments;
use super::catalog::Peer;
use super::lab::{Lab, SETTINGS};
use super::late::Late;
use super::latency::Latency;
use super::limits::Limits;
use super::takeover::Takeover;
use super::throughput::Throughput;

/// What has to be alike for figures to stand in one table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Setting {
    pub(crate) commit: String,
    pub(crate) jobs: u64,
    pub(crate) concurrency: u32,
    pub(crate) rounds: u32,
    pub(crate) cores: usize,
    pub(crate) processor: String,
    pub(crate) memory_mib: u64,
}

/// A run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Results {
    pub(crate) began: Timestamp,
    pub(crate) ended: Option<Timestamp>,
    pub(crate) resumed: bool,
    pub(crate) setting: Setting,
    pub(crate) postgres: String,
    pub(crate) postgres_settings: Vec<String>,
    pub(crate) limits: Vec<Limits>,
    pub(crate) limits_failed: Option<String>,
    pub(crate) engines: Vec<Engine>,
    #[serde(skip)]
    path: PathBuf,
}

/// What one engine did.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Engine {
    pub(crate) name: String,
    pub(crate) package: String,
    pub(crate) skipped: Option<String>,
    pub(crate) throughput: Vec<Throughput>,
    /// At the concurrency that suits it.
    pub(crate) throughput_roomy: Vec<Throughput>,
    pub(crate) latency: Vec<Latency>,
    pub(crate) takeover: Vec<Takeover>,
    pub(crate) late: Vec<Late>,
    pub(crate) failed: Vec<String>,
}

impl Engine {
    /// Its drains at the concurrency that suits it, which for some is the one that all have.
    pub(crate) fn suited(&self) -> &[Throughput] {
        if self.throughput_roomy.is_empty() {
            &self.throughput
        } else {
            &self.throughput_roomy
        }
    }
}

impl Results {
    /// New ones, or those of the run that goes on.
    pub(crate) fn begin(arguments: &PeersArguments, peers: &[&Peer]) -> anyhow::Result<Self> {
        let path = arguments.results()?;
        let setting = Setting {
            commit: commit(),
            jobs: arguments.jobs,
            concurrency: arguments.concurrency,
            rounds: arguments.rounds,
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            processor: from_proc("/proc/cpuinfo", "model name")
                .unwrap_or_else(|| "unknown".to_owned()),
            memory_mib: from_proc("/proc/meminfo", "MemTotal")
                .and_then(|text| text.split(' ').next()?.parse::<u64>().ok())
                .map_or(0, |kib| kib / 1024),
        };
        let mut results = if arguments.resume {
            Self::load(path, &setting)?
        } else {
            Self {
                began: Timestamp::now(),
                ended: None,
                resumed: false,
                setting,
                postgres: String::new(),
                postgres_settings: Vec::new(),
                limits: Vec::new(),
                limits_failed: None,
                engines: Vec::new(),
                path,
            }
        };
        for peer in peers {
            let engine = results.of(peer.name);
            peer.package.clone_into(&mut engine.package);
            engine.skipped = None;
            // What failed is tried again.
            engine.failed.clear();
        }
        Ok(results)
    }

    fn load(path: PathBuf, setting: &Setting) -> anyhow::Result<Self> {
        let text = std::fs::read_to_string(&path).with_context(|| {
            format!("--resume: no results at {}; run without it", path.display())
        })?;
        let mut results: Self = serde_json::from_str(&text).with_context(|| {
            format!(
                "--resume: {} holds no results of this version; run without it",
                path.display()
            )
        })?;
        if results.setting != *setting {
            bail!(
                "--resume: {} was measured with another setting, and figures are not mixed; run without it\n  then: {}\n  now:  {}",
                path.display(),
                serde_json::to_string(&results.setting)?,
                serde_json::to_string(setting)?
            );
        }
        results.path = path;
        results.resumed = true;
        results.ended = None;
        results.limits_failed = None;
        Ok(results)
    }

    /// An engine's, made when they are not there.
    pub(crate) fn of(&mut self, name: &str) -> &mut Engine {
        let at = self
            .engines
            .iter()
            .position(|engine| engine.name == name)
            .unwrap_or_else(|| {
                self.engines.push(Engine {
                    name: name.to_owned(),
                    ..Engine::default()
                });
                self.engines.len() - 1
            });
        &mut self.engines[at]
    }

    /// Notes the server, and that measuring begins now.
    pub(crate) fn describe(&mut self, lab: &Lab) -> anyhow::Result<()> {
        if !self.resumed {
            self.began = Timestamp::now();
        }
        if self.resumed && self.postgres != lab.version() {
            bail!(
                "--resume: then it was {}, now it is {}; run without it",
                self.postgres,
                lab.version()
            );
        }
        lab.version().clone_into(&mut self.postgres);
        self.postgres_settings = SETTINGS
            .iter()
            .map(|(name, value)| format!("{name} = {value}"))
            .collect();
        self.save()
    }

    /// Saves all: beside, then renamed, so that a kill leaves a whole file.
    pub(crate) fn save(&self) -> anyhow::Result<()> {
        let beside = self.path.with_extension("json.new");
        std::fs::write(&beside, serde_json::to_string_pretty(self)?)
            .and_then(|()| std::fs::rename(&beside, &self.path))
            .with_context(|| format!("the results cannot be saved to {}", self.path.display()))
    }

    /// Notes the end.
    pub(crate) fn finish(&mut self) -> anyhow::Result<()> {
        self.ended = Some(Timestamp::now());
        self.save()
    }

    /// What was wanted and could not be measured, a line each.
    pub(crate) fn failed(&self) -> Vec<String> {
        let engines = self.engines.iter().flat_map(|engine| {
            engine.failed.iter().map(|failed| {
                format!(
                    "{}: {}",
                    engine.name,
                    failed.lines().next().unwrap_or_default()
                )
            })
        });
        self.limits_failed
            .iter()
            .map(|failed| format!("limits: {failed}"))
            .chain(engines)
            .collect()
    }
}

/// The commit of the tree, and whether something is changed in it.
fn commit() -> String {
    let git = |arguments: &[&str]| {
        let output = Command::new("git")
            .args(arguments)
            .output()
            .ok()
            .filter(|output| output.status.success())?;
        Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    match git(&["rev-parse", "--short=12", "HEAD"]) {
        Some(head) => match git(&["status", "--porcelain", "--", "crates", "bench"]) {
            Some(changes) if changes.is_empty() => head,
            _ => format!("{head} with changes"),
        },
        None => "unknown".to_owned(),
    }
}

/// The value of the first line of a name.
fn from_proc(file: &str, name: &str) -> Option<String> {
    let text = std::fs::read_to_string(file).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}
