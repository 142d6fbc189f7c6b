//! What a handler in any language and a worker say to each other: one JSON object a line.
//!
//! The document is `protocol/exec/README.md`; schemas and golden vectors stand beside it, and this crate's tests replay
//! them.
//!
//! Invariants: a message of ours is one line of compact JSON whose first fields are `type`, then `id`, then `answer`, in
//! this order, so that a shell can tell messages apart by their beginning. Within a version we may add fields and a handler
//! ignores those that it does not know; a handler sends what the version names and nothing else.
//!
//! Never: I/O, clocks, rules of the engine.

mod error;
mod from_handler;
pub mod limits;
mod to_handler;
mod version;

pub use error::{BadLine, NoCommonVersion};
pub use from_handler::{
    Checkpoint, Failed, Found, FromHandler, HandlerHello, Level, Log, OperationRequest, Outcome,
    Probed, Progress, SaveStep, Settle, Snooze, StepRequest, Succeeded,
};
pub use to_handler::{
    Answer, Cancel, Cause, Hello, KnownOperation, KnownStep, Reply, Start, Stored, ToHandler,
};
pub use version::{VERSIONS, agreed};
