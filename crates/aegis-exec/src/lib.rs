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
//! Linux only: child subreapers, the signal at a parent's death, `/proc`. Elsewhere a program is refused at the worker's start.

mod error;
mod handler;
mod options;
mod program;

#[cfg(target_os = "linux")]
mod cgroup;
#[cfg(target_os = "linux")]
mod check;
#[cfg(target_os = "linux")]
mod clock;
#[cfg(not(target_os = "linux"))]
mod elsewhere;
#[cfg(target_os = "linux")]
mod end;
#[cfg(target_os = "linux")]
mod fault;
#[cfg(target_os = "linux")]
mod frame;
#[cfg(target_os = "linux")]
mod lines;
#[cfg(target_os = "linux")]
mod link;
#[cfg(target_os = "linux")]
mod processes;
#[cfg(target_os = "linux")]
mod session;
#[cfg(target_os = "linux")]
mod supervisor;

#[cfg(not(target_os = "linux"))]
pub use elsewhere::supervise_if_asked;
pub use error::ExecError;
pub use handler::ExecHandler;
pub use options::ExecOptions;
pub use program::Program;
#[cfg(target_os = "linux")]
pub use supervisor::supervise_if_asked;
