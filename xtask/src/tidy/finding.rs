//! What a check found: where, what, why it matters, what to do.

use std::fmt;

/// One finding. Ordered by place.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Finding {
    pub(super) file: String,
    /// From 1; 0 for the file as a whole.
    pub(super) line: usize,
    pub(super) what: String,
    pub(super) why: &'static str,
    pub(super) fix: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            file,
            line,
            what,
            why,
            fix,
        } = self;
        match line {
            0 => write!(f, "{file}: {what}")?,
            line => write!(f, "{file}:{line}: {what}")?,
        }
        write!(f, "\n  why: {why}\n  do:  {fix}")
    }
}

/// `file:line what` of each, for tests.
#[cfg(test)]
pub(super) fn lines(findings: &[Finding]) -> Vec<String> {
    let line = |found: &Finding| format!("{}:{} {}", found.file, found.line, found.what);
    findings.iter().map(line).collect()
}
