//! What the drivers of peers in Rust share: the arguments, the events, the three jobs.
//!
//! Invariants: the same jobs for every peer; an event is one JSON line on standard output with its time by
//! `CLOCK_MONOTONIC`, which is one clock for all processes of the machine; nothing else is printed there.
//!
//! Never: look at the peer's tables, which is the orchestrator's part.

mod arguments;
mod events;
mod jobs;

pub use arguments::{Arguments, Command};
pub use events::{emit, now, stdin_line};
pub use jobs::{Effects, Payload, calls, run};
