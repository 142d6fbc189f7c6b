//! The test kit for handlers: runs a task to its end on a private PostgreSQL, lets time pass at once, and ends the worker at any
//! named point. Then it tells which effects doubled, which were lost, and which are doubtful.
//!
//! ```no_run
//! use aegis_harness::{Effects, Explore, Harness, NewTask};
//! use aegis_worker::{Class, TaskContext, TaskError, TaskHandler};
//!
//! /// The handler under test, over a fake of its bank.
//! struct Charge {
//!     bank: Effects,
//! }
//!
//! impl TaskHandler for Charge {
//!     const KIND: &'static str = "charge";
//!     type Input = u64;
//!     type Output = String;
//!     type Checkpoint = ();
//!
//!     async fn run(&self, ctx: TaskContext<()>, order: u64) -> Result<String, TaskError> {
//!         let receipt = ctx
//!             .operation("charge", order)
//!             .class(Class::Idempotent)
//!             .request(&order)
//!             .execute(|call| async move { self.bank.once(&call, || format!("receipt {order}")) })
//!             .await?;
//!         Ok(receipt)
//!     }
//! }
//!
//! # async fn test() -> Result<(), Box<dyn std::error::Error>> {
//! let mut harness =
//!     Harness::start(|worker, effects| worker.handler(Charge { bank: effects.clone() })).await?;
//! let report = harness.explore(NewTask::json("charge", &7)?, &Explore::new()).await?;
//! println!("{report}");
//! report.assert_safe();
//! # Ok(())
//! # }
//! ```
//!
//! **What is real.** The worker is the shipped one: its claim loop, its renewal thread, its own connections. Each incarnation has
//! a runtime of its own; a crash drops that runtime and closes its connections, nothing is drained, handed back or completed,
//! and the task comes back by the expiry of the lease and nothing else. Only what cannot be killed inside of a process goes on:
//! code between two awaits, and the handler's own blocking threads.
//!
//! **How time passes.** The database's clock decides everything in Aegis, and it cannot be set. So time passes by moving what is
//! stored: [`Harness::advance`] makes every moment in the engine's tables older, in one statement, except leases of workers
//! that are alive, and jobs of housekeeping, which fall due. Back-off, snoozes, quiet periods, deadlines, key retentions and
//! leases of the dead pass at once. What does *not* pass: `tokio::time::sleep` in a handler, [timeouts of a
//! call](aegis_worker::OperationBuilder::timeout), and times in tables of your own.
//!
//! **What is compared.** A run with a fault is compared with the undisturbed one: each effect as often, by name; the same result.
//! So names and results must not hold times or random numbers; the task's own id is left out by itself.
//!
//! Never: point it at a database that somebody uses. It has no way to.

mod clock;
mod effects;
mod error;
mod explore;
mod fault;
mod harness;
mod incarnation;
mod report;
mod run;
mod script;
mod server;

pub use aegis_store::{NewTask, RetryPolicy};
pub use aegis_worker::points::{Cut, Point, Subject};

pub use effects::Effects;
pub use error::HarnessError;
pub use explore::Explore;
pub use fault::{Blow, Fault};
pub use harness::Harness;
pub use report::{Case, Report};
pub use run::{Outcome, Run};
