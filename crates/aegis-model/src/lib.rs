//! Words and rules of the engine.
//!
//! What a task, a claim, an operation and a lane are, which changes of state are legal, and what the guard compares.
//! Everything here is pure: the model checker of later parts explores the same functions that the product runs.
//!
//! Never: I/O, clocks, tokio, a database driver.

pub mod cause;
pub mod error_code;
pub mod guard;
pub mod limits;
pub mod operation;
pub mod outcome;
pub mod protocol;
pub mod state;
pub mod trace;
#[cfg(test)]
mod words_tests;
pub mod worker;

pub use cause::{CancelCause, Cause};
pub use error_code::ErrorCode;
pub use guard::{Held, Lineage};
pub use operation::{Class, OperationState, Resolution};
pub use outcome::{FenceReason, Outcome};
pub use protocol::{LaneRange, ProtocolError, ProtocolRange};
pub use state::{State, TaskChange};
pub use trace::{TraceContext, TraceContextError};
pub use worker::WorkerState;
