//! Where a database stands beside a folder: what is applied, what is missing, what is newer, what was edited. Pure.
//!
//! Invariants: a phase counts as applied only with the hash of its line; a squash counts where every line that it has replaced
//! does; what the folder does not know makes the database newer, never wrong by itself.
//!
//! Never: a guess about a phase of which a step is open.

mod recorded;
mod requires;

use std::collections::BTreeMap;

use serde::Serialize;

use crate::change::{Change, Phase, PhaseOf};
use crate::lock::LockLine;
use crate::set::Set;

pub use recorded::{recorded, recorded_in};
pub use requires::{Missing, command};

/// A phase in the ledger of a database.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Recorded {
    /// Which.
    #[serde(rename = "phase_of")]
    pub at: PhaseOf,
    /// The hash of the line that was applied.
    pub sha256: String,
    /// Whether every step of it is applied or reconciled.
    pub whole: bool,
    /// Steps that are.
    pub steps_done: u32,
    /// The state of the first step that is not, such as `failed`, with its key.
    pub open: Option<String>,
}

/// How one line of the lock stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum State {
    /// Every step is applied, or was found as it should be.
    Applied,
    /// It was applied before, as the changes that a squash has replaced, or by another tool.
    Squashed,
    /// Begun and not ended.
    Partly {
        /// Steps that are done.
        steps_done: u32,
        /// The first that is not, and how it stands.
        open: Option<String>,
    },
    /// Not begun.
    Pending,
    /// Applied with another hash.
    Edited {
        /// The hash in the ledger.
        applied: String,
    },
}

impl State {
    /// Whether nothing is left to do for it.
    pub const fn is_done(&self) -> bool {
        matches!(self, Self::Applied | Self::Squashed)
    }
}

/// A line with how it stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Line {
    /// The line.
    #[serde(flatten)]
    pub line: LockLine,
    /// How it stands.
    #[serde(flatten)]
    pub state: State,
}

/// Where a database stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    /// The lines of the lock, in their order.
    pub lines: Vec<Line>,
    /// What the database has, and the folder does not know.
    pub unknown: Vec<PhaseOf>,
    split: Option<(PhaseOf, PhaseOf)>,
    missing: Vec<Missing>,
}

/// Compares a folder with what a ledger has, in the order of [`recorded`].
pub fn standing(set: &Set, recorded: &[Recorded]) -> Standing {
    let ledger: BTreeMap<&PhaseOf, &Recorded> = recorded.iter().map(|row| (&row.at, row)).collect();
    let lines: Vec<Line> = set
        .lines()
        .map(|(line, change)| Line {
            line: line.clone(),
            state: state(line, change, &ledger),
        })
        .collect();
    let unknown: Vec<PhaseOf> = recorded
        .iter()
        .map(|row| &row.at)
        .filter(|at| set.lock.line(at).is_none() && set.squash_of(at).is_none())
        .cloned()
        .collect();
    let split = split(set, recorded, &unknown);
    let missing = requires::missing(set, &lines);
    Standing {
        lines,
        unknown,
        split,
        missing,
    }
}

/// The first phase that the folder does not know before one that it does. Each phase runs in the order of the lock, but contracts,
/// which run when they are closed.
fn split(set: &Set, recorded: &[Recorded], unknown: &[PhaseOf]) -> Option<(PhaseOf, PhaseOf)> {
    let ordered = unknown.iter().filter(|at| at.phase != Phase::Contract);
    ordered.into_iter().find_map(|other| {
        let later = recorded.iter().skip_while(|row| row.at != *other);
        let mut own = later.filter(|row| row.at.phase == other.phase);
        let own = own.find(|row| set.lock.line(&row.at).is_some())?;
        Some((other.clone(), own.at.clone()))
    })
}

fn state(line: &LockLine, change: &Change, ledger: &BTreeMap<&PhaseOf, &Recorded>) -> State {
    match ledger.get(&line.at) {
        Some(row) if row.sha256 != line.sha256 => State::Edited {
            applied: row.sha256.clone(),
        },
        Some(row) if row.whole => State::Applied,
        Some(row) => State::Partly {
            steps_done: row.steps_done,
            open: row.open.clone(),
        },
        None => {
            let all = change.squashed.as_ref().is_some_and(|lock| {
                lock.lines.iter().all(|old| {
                    ledger
                        .get(&old.at)
                        .is_some_and(|row| row.whole && row.sha256 == old.sha256)
                })
            });
            if all { State::Squashed } else { State::Pending }
        }
    }
}

impl Standing {
    /// The number of lines from the first that are done without a gap: the schema's version.
    pub fn version(&self) -> usize {
        self.lines
            .iter()
            .take_while(|line| line.state.is_done())
            .count()
    }

    /// How a phase stands; `None` where no line names it.
    pub fn of(&self, at: &PhaseOf) -> Option<&State> {
        self.lines
            .iter()
            .find(|line| line.line.at == *at)
            .map(|line| &line.state)
    }

    /// The lines of a phase that are not done, in the order of execution.
    pub fn open(&self, phase: Phase) -> impl Iterator<Item = &Line> {
        self.lines
            .iter()
            .filter(move |line| line.line.at.phase == phase && !line.state.is_done())
    }

    /// What the folder does not know, though it was applied before what follows, which it does: two histories. The folder is not the
    /// database's of before then.
    pub const fn split(&self) -> Option<&(PhaseOf, PhaseOf)> {
        self.split.as_ref()
    }

    /// Whether the database is newer than the folder, and has all of it.
    pub fn is_ahead(&self) -> bool {
        !self.unknown.is_empty()
            && self.split.is_none()
            && self
                .lines
                .iter()
                .all(|line| line.state.is_done() || line.line.at.phase == Phase::Contract)
    }

    /// Lines that were applied with another hash.
    pub fn edited(&self) -> impl Iterator<Item = &Line> {
        self.lines
            .iter()
            .filter(|line| matches!(line.state, State::Edited { .. }))
    }

    /// Lines that are open though a later one of their phase is not: only a database marked dev may have them.
    pub fn out_of_order(&self, phase: Phase) -> Vec<&Line> {
        let of_phase: Vec<&Line> = self
            .lines
            .iter()
            .filter(|line| line.line.at.phase == phase)
            .collect();
        let last = of_phase
            .iter()
            .rposition(|line| !matches!(line.state, State::Pending))
            .unwrap_or(0);
        of_phase[..last]
            .iter()
            .filter(|line| matches!(line.state, State::Pending))
            .copied()
            .collect()
    }

    /// What has to be applied before the open lines of a phase may run, each with the command that does it.
    pub fn missing(&self, phase: Phase) -> impl Iterator<Item = &Missing> {
        self.missing
            .iter()
            .filter(move |missing| missing.for_line.phase == phase)
    }
}
