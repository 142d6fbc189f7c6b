//! What a handler says to its worker.
//!
//! Invariant: what this version does not name is refused with its name. A misspelt field would otherwise do something else
//! than its author means.

use aegis_model::Class;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::error::BadLine;

/// A message of a handler.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum FromHandler {
    /// The first line: the version that it chose.
    Hello(HandlerHello),
    /// Is this step done?
    Step(StepRequest),
    /// It is done now.
    SaveStep(SaveStep),
    /// Save this.
    Checkpoint(Checkpoint),
    /// I am about to do this outside.
    Operation(OperationRequest),
    /// What became of a call.
    Settle(Settle),
    /// What a probe found out.
    Probed(Probed),
    /// It moves.
    Progress(Progress),
    /// For people.
    Log(Log),
    /// The end: it succeeded.
    Result(Succeeded),
    /// The end: it did not.
    Error(Failed),
    /// The end of this attempt: come back later, uncharged.
    Snooze(Snooze),
}

impl FromHandler {
    /// Reads a line, without its line end.
    ///
    /// # Errors
    /// [`BadLine`] with the beginning of the line.
    pub fn parse(line: &[u8]) -> Result<Self, BadLine> {
        // serde would also take an array whose first element is the type.
        let object = serde_json::from_slice::<Map<String, Value>>(line);
        let message = object.and_then(|object| serde_json::from_value(Value::Object(object)));
        message.map_err(|error| BadLine::of(&error, line))
    }

    /// The id of a request; `None` for what is not answered.
    pub fn request_id(&self) -> Option<u64> {
        match self {
            Self::Step(request) => Some(request.id),
            Self::SaveStep(request) => Some(request.id),
            Self::Checkpoint(request) => Some(request.id),
            Self::Operation(request) => Some(request.id),
            Self::Settle(request) => Some(request.id),
            Self::Probed(request) => Some(request.id),
            _ => None,
        }
    }

    /// Does it end the conversation?
    pub fn is_end(&self) -> bool {
        matches!(self, Self::Result(_) | Self::Error(_) | Self::Snooze(_))
    }
}

/// The version that a handler chose.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HandlerHello {
    /// One of those that were offered.
    pub version: u32,
}

/// A step is asked for. Answered `known` or `run`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StepRequest {
    /// Above every earlier id of this conversation.
    pub id: u64,
    /// 1 to 200 bytes.
    pub name: String,
    /// At most 500 bytes; explicit, never a counter of calls.
    pub key: String,
}

/// A step's value. Answered `saved`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SaveStep {
    /// Above every earlier id of this conversation.
    pub id: u64,
    /// The step's.
    pub name: String,
    /// The step's.
    pub key: String,
    /// At most 1 MiB as JSON.
    pub value: Value,
}

/// Progress that the next attempt starts from. Answered `saved`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Checkpoint {
    /// Above every earlier id of this conversation.
    pub id: u64,
    /// At most 1 MiB as JSON.
    pub value: Value,
}

/// An external side effect. Answered `call`, `probe`, `done`, `refused`, `compensated` or `given_up`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OperationRequest {
    /// Above every earlier id of this conversation.
    pub id: u64,
    /// Part of its id: 1 to 200 bytes.
    pub name: String,
    /// Part of its id: at most 500 bytes.
    pub key: String,
    /// How it can be recovered after a lost answer. A handler that says `queryable` is ready for `probe`.
    pub class: Class,
    /// What is asked of the downstream: for people, and what the operation is recognised by. The same in each attempt.
    #[serde(default)]
    pub request: Value,
    /// Part of its id; 1 unless said otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u32>,
    /// How long a call may take; 30 s unless said otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// For `queryable`: how long after the timeout a request may still arrive; 30 s unless said otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quiet_ms: Option<u64>,
    /// For `idempotent`: how long the downstream remembers the key; for ever unless said otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_retention_ms: Option<u64>,
    /// How much earlier than that a key counts as forgotten; a minute unless said otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub margin_ms: Option<u64>,
    /// For `idempotent` and `fenced`: repeats within an attempt; 3 unless said otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeats: Option<u32>,
}

/// What became of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Outcome {
    /// It happened: `result`.
    Succeeded,
    /// The downstream refused for sure: `message`, `detail`.
    Failed,
    /// Turned away before anybody looked at it: `message`, `detail`.
    TurnedAway,
    /// Surely not applied, and it may be tried again: `message`.
    NotApplied,
    /// Nobody knows: `message`.
    Doubtful,
}

/// After `call`. Answered `done`, `refused`, or `call` once more where the class allows it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settle {
    /// Above every earlier id of this conversation.
    pub id: u64,
    /// The operation's.
    pub name: String,
    /// The operation's.
    pub key: String,
    /// What became of the call.
    pub outcome: Outcome,
    /// What the downstream answered.
    #[serde(default)]
    pub result: Value,
    /// What a person reads.
    #[serde(default)]
    pub message: String,
    /// What the handler may want to look into later.
    #[serde(default)]
    pub detail: Value,
}

/// What the downstream says about an earlier call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Found {
    /// It happened: `result`.
    Happened,
    /// It did not: it may be called again.
    DidNotHappen,
    /// It cannot tell, and never will: a person decides.
    CannotTell,
}

/// After `probe`. Answered `done` or `call`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Probed {
    /// Above every earlier id of this conversation.
    pub id: u64,
    /// The operation's.
    pub name: String,
    /// The operation's.
    pub key: String,
    /// What it said.
    pub found: Found,
    /// What the call had answered.
    #[serde(default)]
    pub result: Value,
}

/// Something moved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Progress {}

/// How much a log line matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Level {
    /// Details.
    Debug,
    /// What happens.
    Info,
    /// What is odd.
    Warn,
    /// What went wrong.
    Error,
}

/// A line for the worker's log, which adds task and epoch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Log {
    /// How much it matters.
    pub level: Level,
    /// Cut at 8 KiB.
    pub message: String,
}

/// The task's result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Succeeded {
    /// At most 256 KiB as JSON.
    pub value: Value,
}

/// Why the attempt did not succeed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Failed {
    /// A stable word.
    pub code: String,
    /// What a person reads; cut at 8 KiB.
    pub message: String,
    /// Tried again with back-off, or given up at once.
    pub retryable: bool,
    /// Anything that helps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
    /// Instead of the policy's back-off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
}

/// Come back later.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Snooze {
    /// Counted from the database's now.
    pub for_ms: u64,
}
