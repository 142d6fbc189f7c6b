//! What the database says, as plain values: the one witness. Filled from SQL, or by a test that plants a breach.
//!
//! Times are milliseconds of Unix time by the database's clock. Must hold nothing that was computed by a worker or
//! by the demo.

use crate::payments::EffectClass;

/// Everything that the judgement needs to know of the engine.
#[derive(Debug, Clone, Default)]
pub struct EngineFacts {
    /// The run that the tasks were submitted in; `None` when the database does not say.
    pub run: Option<String>,
    /// Every accepted submission, from the idempotency keys, which outlive their tasks.
    pub submissions: Vec<Submission>,
    /// Every task that can be found: live, ended or parked.
    pub tasks: Vec<TaskFact>,
    /// Every row of the operation ledger.
    pub operations: Vec<OperationFact>,
    /// The task of every receipt that a handler wrote in the transaction of its completion, repeats included.
    pub receipts: Vec<String>,
    /// Every end of an execution that was not the end of its task.
    pub ends: Vec<ExecutionEnd>,
    /// Every refused write of an execution that had lost its right.
    pub stale_writes: Vec<StaleWrite>,
    /// Every span in which a task was ready and nobody had claimed it.
    pub waits: Vec<TaskWait>,
    /// Every worker incarnation.
    pub workers: Vec<WorkerFact>,
}

/// An accepted submission.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Submission {
    /// The idempotency key: the order's id.
    pub key: String,
    /// The task that it became.
    pub task: String,
}

/// A task as it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskFact {
    /// The task.
    pub id: String,
    /// Its state.
    pub state: TaskState,
    /// Its newest epoch; of an ended task, the epoch that wrote its end.
    pub epoch: u64,
    /// The code of its error, when it failed.
    pub error_code: Option<String>,
    /// Whether the order that it was given can be executed, judged again from the stored input.
    pub order_is_good: bool,
}

/// The states of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskState {
    /// Postponed until a time.
    Scheduled,
    /// Can be claimed.
    Ready,
    /// Is being executed.
    Running,
    /// Waits for an event, a child or a person.
    Waiting,
    /// One of its operations is unknown.
    Reconciling,
    /// Ended well.
    Succeeded,
    /// Given up.
    Failed,
    /// Ended by request.
    Cancelled,
    /// Set aside because it kills workers.
    Quarantined,
    /// A state that a newer version writes.
    Other,
}

/// A row of the operation ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperationFact {
    /// The operation.
    pub id: String,
    /// Its task.
    pub task: String,
    /// Its name: the effect that it asks for.
    pub name: String,
    /// Its class.
    pub class: EffectClass,
    /// Its state.
    pub state: OperationState,
    /// Whether it was unknown at any time.
    pub was_unknown: bool,
    /// How often a person resolved it.
    pub resolutions: u64,
    /// How often a person said that it did not happen, after which it may be called again.
    pub said_not_happened: u64,
}

/// The states of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OperationState {
    /// Held back; no call left.
    Intended,
    /// A call may be on its way.
    Dispatched,
    /// It took place.
    Succeeded,
    /// The remote side refused it; nothing took place.
    Failed,
    /// Nobody knows.
    Unknown,
    /// A person decided.
    Resolved(Resolution),
}

/// What a person decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resolution {
    /// It took place.
    Happened,
    /// It did not take place.
    DidNotHappen,
    /// It took place and was undone, or was made good in another way.
    Compensated,
    /// Nobody will find out; the task is given up.
    GivenUp,
}

/// An execution that ended before its task did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecutionEnd {
    /// The task.
    pub task: String,
    /// The epoch that ended.
    pub epoch: u64,
    /// Why.
    pub cause: EndCause,
}

/// Why an execution ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndCause {
    /// Its worker was lost: killed, frozen past its lease, cut off. Somebody else takes over.
    WorkerLost,
    /// Its worker handed it back, in a drain.
    HandedBack,
    /// The handler ended this attempt itself: an error, a snooze, a wait, an unknown operation.
    Attempt,
    /// Anything else, such as an override by a person.
    Other,
}

/// A write that the database refused because its execution had lost its right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StaleWrite {
    /// The task.
    pub task: String,
    /// The epoch that tried to write.
    pub epoch: u64,
    /// The epoch of the task at that moment.
    pub current_epoch: u64,
}

/// A span in which a task was ready and unclaimed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskWait {
    /// The task.
    pub task: String,
    /// The lowest protocol among what is stored for it.
    pub lo: u32,
    /// The highest.
    pub hi: u32,
    /// When it became ready.
    pub from_ms: i64,
    /// When it was claimed; `None` while it still waits.
    pub until_ms: Option<i64>,
}

/// A worker incarnation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerFact {
    /// The lowest protocol that it reads.
    pub reads_min: u32,
    /// The highest.
    pub reads_max: u32,
    /// When it registered.
    pub from_ms: i64,
    /// When it stopped acquiring; `None` while it goes on.
    pub until_ms: Option<i64>,
}
