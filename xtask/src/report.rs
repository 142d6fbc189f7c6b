//! What a check or a generator has to say: all of it, not only the first.

/// The outcome of a command. Clean without findings.
#[derive(Debug, Default)]
pub struct Report {
    /// Each begins with `file:line` where there is one.
    pub findings: Vec<String>,
    /// One line about what was done.
    pub summary: String,
}

impl Report {
    /// Whether there is nothing to complain about.
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty()
    }
}
