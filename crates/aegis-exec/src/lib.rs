//! Handlers that are programs: a child per attempt, spoken to in lines of JSON, watched over by a supervisor.
//!
//! What they say is `aegis-protocol`; what is allowed is decided by `aegis-worker` and the database. This crate moves the
//! words between them, and sees to it that a program ends with its attempt:
//!
//! ```text
//! worker ── orders, alive ──▶ supervisor ── stdin ──▶ handler
//!        ◀── reports ──────              ◀─ stdout, stderr ─
//! ```
//!
//! Invariants: an attempt is over only when everything that its program started has ended; a program outlives neither a
//! killed worker nor, by more than the rest of its lease, a frozen one; what a program does wrong is charged to its task
//! as a failure with its reason, and touches no other execution.
//!
//! Never: SQL; a decision about eligibility; the worker's secrets in a program's environment.
//!
//! Linux only: child subreapers, the signal at a parent's death, `/proc`.

mod cgroup;
mod check;
mod clock;
mod end;
mod error;
mod fault;
mod frame;
mod handler;
mod lines;
mod link;
mod options;
mod processes;
mod program;
mod session;
mod supervisor;

pub use error::ExecError;
pub use handler::ExecHandler;
pub use options::ExecOptions;
pub use program::Program;
pub use supervisor::{WORD as SUPERVISE, supervise_if_asked};
