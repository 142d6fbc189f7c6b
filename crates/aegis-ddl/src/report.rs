//! What the judge says.

use serde::Serialize;

use crate::class::{Class, Phase};
use crate::lock::Lock;

/// How sure and how grave a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// Good to know; never blocks.
    Notice,
    /// Depends on what is not known here, or on the programs: blocks in a change, not in a plain folder.
    Warning,
    /// Blocks.
    Error,
}

/// One thing about a statement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The rule's name.
    pub rule: &'static str,
    /// The class that it gives.
    pub class: Class,
    /// How grave.
    pub level: Level,
    /// What would happen here.
    pub message: String,
    /// What to do instead.
    pub safe: &'static str,
    /// The reason of the override that silenced it; then it does not count.
    pub overridden: Option<String>,
    /// What would make it harmless, when that is not known here.
    pub unless: Option<String>,
    /// The line of `[expand]` that declares it compatible, where one may.
    pub declare: Option<String>,
}

/// What the judge says of one statement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// The file, as it was named.
    pub file: String,
    /// From 1.
    pub line: usize,
    /// The statement, one line of it.
    pub statement: String,
    /// Where it may run.
    pub class: Class,
    /// Whether it may run where it stands.
    pub passes: bool,
    /// The file's phase; none in a plain folder.
    pub phase: Option<Phase>,
    /// The strongest locks that it takes on live relations.
    pub locks: Vec<Lock>,
    /// Everything that was noticed.
    pub findings: Vec<Finding>,
    /// What could not be read.
    pub unread: Vec<String>,
}

/// What the judge says of a set of files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    /// In the order of files and statements.
    pub verdicts: Vec<Verdict>,
    /// Overrides that silenced nothing: an error of the change.
    pub unused_overrides: Vec<UnusedOverride>,
}

/// An override that silenced nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UnusedOverride {
    /// The rule that it names.
    pub rule: String,
    /// In which phase it holds; none: in all.
    pub phase: Option<Phase>,
    /// Why it is none.
    pub said: String,
}

impl Report {
    /// Whether every statement may run where it stands, and every override was needed.
    pub fn passes(&self) -> bool {
        self.unused_overrides.is_empty() && self.verdicts.iter().all(|verdict| verdict.passes)
    }
}
