//! Exit codes: documented in `docs/guides/command-line.md`, stable.

use std::process::ExitCode;

/// How the program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// 0: done.
    Done,
    /// 1: a promise was broken, or could not be shown to be kept.
    Broken,
    /// 2: the arguments make no sense (clap uses the same code).
    Usage,
    /// 3: no such thing.
    NotFound,
    /// 4: refused: bad input, a conflict, a state that does not allow it. Nothing was written.
    Refused,
    /// 5: the database cannot be reached, or is too old, too new, not installed, wrongly set.
    Database,
    /// 6: the wait took longer than its timeout.
    TimedOut,
    /// 7: the task that was waited for did not succeed.
    TaskFailed,
    /// 8: some of it was done; what was not is told, with why.
    Partly,
    /// 20: a check warns.
    Warning,
    /// 21: a check is critical, or the answer is no.
    Critical,
    /// 22: a check could not run, or could not tell. Never taken for fine.
    Unknown,
    /// A worker's own code; see the worker's guide.
    Worker(u8),
    /// A code of `aegis migrate`; see its guide.
    Migrate(u8),
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Done => 0,
            Exit::Broken => 1,
            Exit::Usage => 2,
            Exit::NotFound => 3,
            Exit::Refused => 4,
            Exit::Database => 5,
            Exit::TimedOut => 6,
            Exit::TaskFailed => 7,
            Exit::Partly => 8,
            Exit::Warning => 20,
            Exit::Critical => 21,
            Exit::Unknown => 22,
            Exit::Worker(code) | Exit::Migrate(code) => code,
        })
    }
}
