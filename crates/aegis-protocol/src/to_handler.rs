//! What a worker says to a handler.

use aegis_model::Class;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A message to a handler.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ToHandler {
    /// The first line.
    Hello(Hello),
    /// The second one: the task.
    Start(Box<Start>),
    /// To a request.
    Reply(Reply),
    /// Stop.
    Cancel(Cancel),
}

impl ToHandler {
    /// The line, without its line end.
    ///
    /// # Errors
    /// None that is known: every part is JSON already.
    pub fn to_line(&self) -> Result<Vec<u8>, serde_json::Error> {
        serde_json::to_vec(self)
    }
}

/// Which versions can be spoken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// Choose one of them.
    pub versions: Vec<u32>,
    /// Longest line that is taken, in bytes.
    pub line_bytes_max: usize,
}

/// A value with the protocol that it was written in.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Stored {
    /// The protocol of the data.
    pub protocol: i32,
    /// The data.
    pub value: Value,
}

/// A step that is done.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KnownStep {
    /// Its name.
    pub name: String,
    /// Its key.
    pub key: String,
    /// The protocol of its value.
    pub protocol: i32,
    /// Its value.
    pub value: Value,
}

/// An operation that the ledger knows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownOperation {
    /// Its name.
    pub name: String,
    /// Its key.
    pub key: String,
    /// Its id.
    pub id: String,
    /// How it can be recovered.
    pub class: Class,
    /// Where it stands: intended, dispatched, succeeded, failed, unknown, resolved.
    pub state: String,
    /// How many times it was dispatched.
    pub dispatches: i32,
}

/// A task, and what earlier attempts have left.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Start {
    /// Its id.
    pub task: String,
    /// Its kind.
    pub kind: String,
    /// Its queue.
    pub queue: String,
    /// Its fencing number.
    pub epoch: i64,
    /// What travels to downstreams that can refuse an older execution: `floor.timeline.epoch`.
    pub fencing_token: String,
    /// Earlier attempts that failed.
    pub failures: i32,
    /// Earlier attempts that were interrupted.
    pub interruptions: i32,
    /// Earlier attempts that were lost together with their worker.
    pub crashes: i32,
    /// Times it was postponed.
    pub snoozes: i32,
    /// Its outcome is stored, and only open operations are settled: no new work.
    pub settling: bool,
    /// Lowest and highest protocol of data that this handler was declared to read.
    pub reads: [i32; 2],
    /// The protocol of what it writes.
    pub writes: i32,
    /// The protocol of the input.
    pub input_protocol: i32,
    /// The input.
    pub input: Value,
    /// The latest checkpoint.
    pub checkpoint: Option<Stored>,
    /// Steps that are done.
    pub steps: Vec<KnownStep>,
    /// Are those all? Otherwise a request for one that is missing answers it all the same.
    pub steps_complete: bool,
    /// Operations that the ledger knows.
    pub operations: Vec<KnownOperation>,
    /// The submitter's trace context (W3C `traceparent`).
    pub trace: Option<String>,
    /// How long the worker's eligibility lasts from now if it is not renewed.
    pub valid_for_ms: u64,
}

/// The answer to a request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reply {
    /// The request's.
    pub id: u64,
    /// What to do now.
    #[serde(flatten)]
    pub answer: Answer,
    /// Counted from the moment that the request was sent: start nothing outside later than this.
    pub valid_for_ms: u64,
}

/// What a request is answered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Answer {
    /// To `step`: it is not done; do it and send `save_step`.
    Run,
    /// To `step`: it is done.
    Known {
        /// The protocol of its value.
        protocol: i32,
        /// Its value.
        value: Value,
    },
    /// To `save_step` and `checkpoint`: it is durable.
    Saved,
    /// To `operation` and `settle`: the dispatch is durable; call now, and send `settle`.
    Call {
        /// Its id: the idempotency key.
        operation: String,
        /// Refuse an older one.
        fencing_token: String,
        /// How many times it was dispatched, this one included.
        dispatches: i32,
        /// The answer counts as lost after this.
        timeout_ms: u64,
    },
    /// To `operation`: ask the downstream by the id what became of an earlier call, and send `probed`.
    Probe {
        /// Its id.
        operation: String,
        /// Refuse an older one.
        fencing_token: String,
        /// How many times it was dispatched.
        dispatches: i32,
        /// An answer counts until then.
        timeout_ms: u64,
    },
    /// To `operation`, `settle`, `probed`: it has happened, and its result is durable.
    Done {
        /// The protocol of the result.
        protocol: i32,
        /// Its result.
        result: Value,
    },
    /// The downstream refused it, for good.
    Refused {
        /// Its id.
        operation: String,
        /// What the downstream said.
        message: String,
        /// What was kept.
        detail: Value,
    },
    /// It happened, and a person undid it.
    Compensated {
        /// Its id.
        operation: String,
    },
    /// A person gave it up.
    GivenUp {
        /// Its id.
        operation: String,
    },
    /// The request was not done.
    Error {
        /// A stable word.
        code: String,
        /// What a person reads.
        message: String,
        /// May another attempt mend it?
        retryable: bool,
        /// Is this execution over? Then end now: nothing that is said any more is accepted.
        over: bool,
    },
}

/// Why to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Cause {
    /// The worker drains: save a checkpoint and end; the task is handed back uncharged.
    Drain,
    /// The worker lost its eligibility: nothing can be saved.
    LeaseLost,
    /// Somebody asked for the task's end.
    Requested,
    /// The task's total deadline has passed.
    Deadline,
    /// This attempt took longer than start-to-close.
    StartToClose,
}

/// Stop: SIGTERM comes with it, and SIGKILL after `kill_after_ms`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cancel {
    /// Why.
    pub cause: Cause,
    /// How long until the process and everything it started is killed.
    pub kill_after_ms: u64,
}
