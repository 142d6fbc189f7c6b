//! The words of a verdict: what was counted, which promise was broken and where, and why nothing can be said.
//!
//! A breach is something that must never be; a doubt is a reason not to believe the evidence. Neither passes.

use serde::Serialize;

/// What comes out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Judgement {
    /// Every promise was kept, and the evidence is whole.
    Pass,
    /// A promise was broken.
    Fail,
    /// The evidence does not allow to say that every promise was kept.
    Inconclusive,
}

/// The judgement with all that it rests on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Verdict {
    /// What comes out.
    pub verdict: Judgement,
    /// What was counted.
    #[serde(flatten)]
    pub counts: Counts,
    /// Every broken promise.
    pub breaches: Vec<Breach>,
    /// Every reason not to believe the evidence.
    pub doubts: Vec<Doubt>,
}

impl Verdict {
    /// 0 when every promise was kept and that could be seen; 1 otherwise.
    pub fn exit_code(&self) -> u8 {
        u8::from(self.verdict != Judgement::Pass)
    }
}

/// What was counted. Each count is of the two witnesses, never of what somebody remembers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Counts {
    /// Accepted submissions.
    pub submitted: u64,
    /// Tasks that ended well.
    pub succeeded: u64,
    /// Tasks with a bad order that failed in validation, as they must.
    pub failed_as_expected: u64,
    /// Executions of lost workers that somebody else had to take over.
    pub takeovers: u64,
    /// Executions handed back in a drain.
    pub handed_back: u64,
    /// Writes of executions without a right that the database refused.
    pub stale_writes_refused: u64,
    /// Calls with an old fencing token that the payment service refused.
    pub stale_tokens_refused: u64,
    /// Writes or calls of executions without a right that went through. Must be 0.
    pub stale_accepted: u64,
    /// Receipts that handlers wrote in the transaction of their completion.
    pub receipts: u64,
    /// Effects that took place.
    pub effects_applied: u64,
    /// Effects that the engine answers for and that never took place. Must be 0.
    pub effects_lost: u64,
    /// Effects that took place once too often. Must be 0.
    pub effects_duplicated: u64,
    /// Effects that no operation accounts for. Must be 0.
    pub effects_phantom: u64,
    /// Operations that were unknown at some time.
    pub unknown_opened: u64,
    /// Of these, how many a person resolved.
    pub unknown_resolved: u64,
    /// Of these, how many still wait. Must be 0 at the end.
    pub unknown_left: u64,
    /// Accepted submissions whose task is gone. Must be 0.
    pub tasks_lost: u64,
    /// Tasks that have not ended. Must be 0 at the end.
    pub tasks_unfinished: u64,
    /// Tasks that waited because nobody who accepted work could read them.
    pub waited_for_protocol: u64,
}

/// Which promise was broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum BreachKind {
    /// The engine answers for an effect that never took place.
    EffectLost,
    /// An effect took place more than once.
    EffectDuplicated,
    /// A blind effect was called again, whatever came of it.
    BlindRepeated,
    /// An effect without an operation.
    EffectPhantom,
    /// The ledger says that it did not happen, and it did.
    OutcomeContradicted,
    /// One operation was sent with two requests.
    RequestChanged,
    /// An execution without a right changed something.
    StaleAccepted,
    /// An accepted task is gone.
    TaskLost,
    /// A task has not ended.
    TaskUnfinished,
    /// A task ended otherwise than its order deserves.
    TaskOutcome,
    /// An ended task has an open effect.
    OperationOpen,
    /// An unknown operation went on without a person.
    UnknownBypassed,
    /// What a handler wrote in the transaction of its completion stands without that completion, or is missing beside it.
    ReceiptMismatch,
}

impl BreachKind {
    /// Whether a damaged record alone could make it seem so.
    pub(super) fn rests_on_absence(self) -> bool {
        matches!(self, Self::EffectLost)
    }
}

/// One broken promise.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Breach {
    /// Which promise.
    pub kind: BreachKind,
    /// The task, where it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// The operation, where it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
    /// What happened, to be read alone.
    pub sentence: String,
}

impl Breach {
    pub(super) fn new(
        kind: BreachKind,
        task: Option<&str>,
        operation: Option<&str>,
        sentence: String,
    ) -> Self {
        Self {
            kind,
            task: task.map(str::to_owned),
            operation: operation.map(str::to_owned),
            sentence,
        }
    }
}

/// Why the evidence does not count.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Doubt {
    /// There is no record, or it cannot be read.
    #[error(
        "the record {path} cannot be read ({why}); give the file that the payment service wrote"
    )]
    Unreadable {
        /// The file.
        path: String,
        /// What the system said.
        why: String,
    },
    /// The record is empty.
    #[error("the record is empty; give the file that the payment service wrote")]
    Empty,
    /// The last line is not whole.
    #[error("the record ends in the middle of line {line}; it was cut, or is still being written")]
    HalfLine {
        /// The line, from 1.
        line: u64,
    },
    /// A line is not of the format.
    #[error("line {line} of the record cannot be understood ({why}); was the file edited?")]
    Garbled {
        /// The line, from 1.
        line: u64,
        /// What the parser said.
        why: String,
    },
    /// A line of a newer format.
    #[error(
        "line {line} of the record has version {found} and this program reads {known}; use a newer program"
    )]
    Version {
        /// The line, from 1.
        line: u64,
        /// Its version.
        found: u32,
        /// The version that this program reads.
        known: u32,
    },
    /// Lines are missing, doubled or out of order.
    #[error(
        "after line {after} of the record comes number {found} where {expected} belongs; lines were lost or added"
    )]
    Gap {
        /// The line before, from 1.
        after: u64,
        /// The number that belongs there.
        expected: u64,
        /// The number that stands there.
        found: u64,
    },
    /// The first line does not open the record, or another one does.
    #[error(
        "the record does not begin where a record begins; its head was cut, or two were joined"
    )]
    NotOpened,
    /// The last line does not close the record.
    #[error(
        "the record was not closed; stop the payment service by SIGTERM before verifying, and give the whole file"
    )]
    NotClosed,
    /// The record and the database are of two runs.
    #[error(
        "the record is of run {record} and the database of run {database}; give the two that belong together"
    )]
    OtherRun {
        /// The record's.
        record: String,
        /// The database's.
        database: String,
    },
    /// The database does not say which run it holds.
    #[error("the database does not say which run it holds; was anything submitted?")]
    RunUnknown,
    /// There is nothing to judge.
    #[error("nothing was submitted, so nothing is shown")]
    NothingSubmitted,
    /// A state that this program does not know.
    #[error("task {task} is in a state that this program does not know; use a newer program")]
    StateUnknown {
        /// The task.
        task: String,
    },
}
