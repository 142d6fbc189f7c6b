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

impl Exit {
    /// As the shell sees it.
    pub(crate) const fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Broken => 1,
            Self::Usage => 2,
            Self::NotFound => 3,
            Self::Refused => 4,
            Self::Database => 5,
            Self::TimedOut => 6,
            Self::TaskFailed => 7,
            Self::Partly => 8,
            Self::Warning => 20,
            Self::Critical => 21,
            Self::Unknown => 22,
            Self::Worker(code) | Self::Migrate(code) => code,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}
