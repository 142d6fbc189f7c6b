//! What is wrong in a folder of changes, as a person needs it: file, line, key, why, and what to do.
//!
//! Invariants: every problem names a file; all problems of a folder are told at once, in the order of the files.
//!
//! Never: a problem without a way out.

use std::fmt;

/// What kind of mistake it is; decides the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The folder, a file or a key makes no sense.
    Format,
    /// History was edited: the lock and the files disagree.
    Checksum,
    /// Something that must come before is not there.
    Requires,
    /// The database is not what was applied: 12.
    Structure,
    /// What a phase may not do, or a reason that nothing in it needs.
    Class,
}

impl Kind {
    /// The exit code of `aegis migrate`.
    pub const fn exit_code(self) -> u8 {
        match self {
            Self::Format => 2,
            Self::Checksum => 11,
            Self::Requires => 21,
            Self::Structure => 12,
            Self::Class => 13,
        }
    }
}

/// One mistake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// What kind of mistake it is.
    pub kind: Kind,
    /// The file, as the user named its folder.
    pub file: String,
    /// Its line, from 1.
    pub line: Option<usize>,
    /// The key in it, such as `backfill.batch.max`.
    pub key: Option<String>,
    /// What is wrong, with what stands there.
    pub what: String,
    /// What to do.
    pub help: String,
}

impl Problem {
    /// A problem of a whole file.
    pub fn of_file(
        file: impl Into<String>,
        what: impl Into<String>,
        help: impl Into<String>,
    ) -> Self {
        Self {
            kind: Kind::Format,
            file: file.into(),
            line: None,
            key: None,
            what: what.into(),
            help: help.into(),
        }
    }

    /// At a line.
    #[must_use]
    pub fn at(mut self, line: usize) -> Self {
        self.line = Some(line);
        self
    }

    /// Of another kind.
    #[must_use]
    pub fn kind(mut self, kind: Kind) -> Self {
        self.kind = kind;
        self
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        if let Some(key) = &self.key {
            write!(f, ": `{key}`")?;
        }
        write!(f, ": {}; {}", self.what, self.help)
    }
}

/// Everything that is wrong; at least one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problems(Vec<Problem>);

impl Problems {
    /// All of these, or `Ok` where there is none.
    pub fn none_of(problems: Vec<Problem>) -> Result<(), Self> {
        if problems.is_empty() {
            Ok(())
        } else {
            Err(Self(problems))
        }
    }

    /// Each of them.
    pub fn all(&self) -> &[Problem] {
        &self.0
    }

    /// The kind of the first.
    pub fn kind(&self) -> Kind {
        self.0.first().map_or(Kind::Format, |problem| problem.kind)
    }

    /// The exit code of the first.
    pub fn exit_code(&self) -> u8 {
        self.kind().exit_code()
    }
}

impl From<Problem> for Problems {
    fn from(problem: Problem) -> Self {
        Self(vec![problem])
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, problem) in self.0.iter().enumerate() {
            if number > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Problems {}
