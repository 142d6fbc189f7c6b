//! `migrations.lock`: what is executed, in which order, with the hash of each phase.
//!
//! Invariants: one line a phase, `ID PHASE SHA256`; lines are appended and keep their places, so version control merges two
//! branches by keeping both; a phase comes after the phases before it of its change. Fresh and shadow databases replay this
//! file, never the folders.
//!
//! Never: a line that is rewritten because a file was.

mod parse;

use std::fmt::Write as _;

use serde::Serialize;

use crate::change::{Phase, PhaseOf};

/// The file in the folder of changes.
pub const LOCK_FILE: &str = "migrations.lock";

/// What stands above the lines of a new file.
pub const LOCK_HEAD: &str = "\
# What is executed, in this order: ID PHASE SHA256. `aegis migrate seal` appends; lines are never edited or moved.
# Two branches that both appended: keep both lines, then run `aegis migrate seal`.
";

/// A line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LockLine {
    /// Which phase of which change.
    #[serde(rename = "phase_of")]
    pub at: PhaseOf,
    /// SHA-256 of the phase, in hex.
    pub sha256: String,
    /// Its line in the file, from 1.
    pub line: usize,
}

/// The whole file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LockFile {
    /// Its lines, in the order of execution.
    pub lines: Vec<LockLine>,
    /// What the file is, line by line, comments too.
    text: String,
}

impl LockFile {
    /// The line of a phase.
    pub fn line(&self, at: &PhaseOf) -> Option<&LockLine> {
        self.lines.iter().find(|line| line.at == *at)
    }

    /// The place of a phase in the order of execution, from 0.
    pub fn position(&self, at: &PhaseOf) -> Option<usize> {
        self.lines.iter().position(|line| line.at == *at)
    }

    /// The last phase of a kind that is locked; its place is the version that a database has when it was run.
    pub fn last(&self, phase: Phase) -> Option<&LockLine> {
        self.lines.iter().rev().find(|line| line.at.phase == phase)
    }

    /// With one line more.
    pub fn append(&mut self, at: PhaseOf, sha256: String) {
        if self.text.is_empty() {
            LOCK_HEAD.clone_into(&mut self.text);
        }
        if !self.text.ends_with('\n') {
            self.text.push('\n');
        }
        let line = self.text.lines().count() + 1;
        // Into a string: cannot fail.
        writeln!(self.text, "{} {} {sha256}", at.id, at.phase).ok();
        self.lines.push(LockLine { at, sha256, line });
    }

    /// With another hash in a line, for a phase that no database but dev ones has applied.
    pub fn replace(&mut self, at: &PhaseOf, sha256: &str) -> bool {
        let Some(found) = self.lines.iter_mut().find(|line| line.at == *at) else {
            return false;
        };
        sha256.clone_into(&mut found.sha256);
        let number = found.line;
        let rewritten = self.text.lines().enumerate().map(|(index, text)| {
            if index + 1 == number {
                format!("{} {} {sha256}\n", at.id, at.phase)
            } else {
                format!("{text}\n")
            }
        });
        self.text = rewritten.collect();
        true
    }

    /// The first lines of it.
    #[must_use]
    pub fn through(&self, lines: usize) -> Self {
        let mut first = Self::default();
        for line in self.lines.iter().take(lines) {
            first.append(line.at.clone(), line.sha256.clone());
        }
        first
    }

    /// The file as it is written.
    pub fn text(&self) -> &str {
        &self.text
    }
}
