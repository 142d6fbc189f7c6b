//! The words of the ledger on the command line.

use aegis_model::{Class, OperationState, Resolution};
use clap::ValueEnum;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum StateWord {
    Intended,
    Dispatched,
    Succeeded,
    Failed,
    Unknown,
    Resolved,
}

impl StateWord {
    pub(super) fn number(self) -> i16 {
        match self {
            Self::Intended => OperationState::Intended,
            Self::Dispatched => OperationState::Dispatched,
            Self::Succeeded => OperationState::Succeeded,
            Self::Failed => OperationState::Failed,
            Self::Unknown => OperationState::Unknown,
            Self::Resolved => OperationState::Resolved,
        }
        .number()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum ResolutionWord {
    /// It happened.
    Happened,
    /// It did not: the handler dispatches it again under the same id.
    DidNotHappen,
    /// It happened and was undone.
    Compensated,
    /// Nobody will find out: the task fails.
    GiveUp,
}

/// The classes of operations, as on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum ClassWord {
    Idempotent,
    Fenced,
    Queryable,
    Blind,
}

impl ClassWord {
    pub(super) fn number(self) -> i16 {
        match self {
            Self::Idempotent => Class::Idempotent,
            Self::Fenced => Class::Fenced,
            Self::Queryable => Class::Queryable,
            Self::Blind => Class::Blind,
        }
        .number()
    }
}

impl From<ResolutionWord> for Resolution {
    fn from(word: ResolutionWord) -> Self {
        match word {
            ResolutionWord::Happened => Self::Happened,
            ResolutionWord::DidNotHappen => Self::DidNotHappen,
            ResolutionWord::Compensated => Self::Compensated,
            ResolutionWord::GiveUp => Self::GiveUp,
        }
    }
}

pub(super) fn state_word(number: i16) -> &'static str {
    OperationState::from_number(number).map_or("other", OperationState::word)
}

pub(super) fn class_word(number: i16) -> &'static str {
    Class::from_number(number).map_or("other", Class::word)
}

pub(super) fn resolution_word(number: Option<i16>) -> Option<&'static str> {
    Some(Resolution::from_number(number?).map_or("other", Resolution::word))
}
