//! Where a statement may run. Found from its syntax tree, the server and the catalog; never from what its author says.

use serde::{Deserialize, Serialize};

/// The class of a statement; a later one is worse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Class {
    /// Short, metadata only; both versions of the program keep reading and writing.
    A,
    /// Does two things that must not stand together; `--fix` splits it.
    B,
    /// Long, or outside of a transaction: `run --phase migrate`, never inside a sync.
    C,
    /// Breaks the version before: contract, separately approved.
    D,
    /// Refused.
    E,
}

impl Class {
    /// What it means, in one line.
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::A => "short; both versions keep working",
            Self::B => "must be split",
            Self::C => "long, or outside of a transaction: phase migrate",
            Self::D => "breaks the version before: contract",
            Self::E => "refused",
        }
    }
}

impl std::fmt::Display for Class {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{self:?}")
    }
}

/// Which part of a change a file is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Before the new version starts (PreSync).
    Expand,
    /// While both versions run.
    Migrate,
    /// After the old version is gone: constraints that it would not meet.
    Tighten,
    /// After the old version is gone: what it needed goes.
    Contract,
}

impl Phase {
    /// Whether a statement of this class may stand in a file of this phase.
    pub const fn takes(self, class: Class) -> bool {
        match self {
            Self::Expand => matches!(class, Class::A),
            Self::Migrate => matches!(class, Class::A | Class::C),
            Self::Tighten | Self::Contract => matches!(class, Class::A | Class::C | Class::D),
        }
    }
}
