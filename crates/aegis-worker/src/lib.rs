//! The worker runtime and the SDK for handlers in Rust.
//!
//! A handler is a [`TaskHandler`] (or a closure, [`handler_fn`]); a [`Worker`] claims tasks of its kinds, runs them and
//! reports how they ended:
//!
//! ```no_run
//! use aegis_worker::{Config, Store, TaskContext, Worker, handler_fn};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let store = Store::connect(Config::from_url("postgresql://aegis_engine@localhost/app?statements=named")?).await?;
//! let greet = handler_fn("greet", |_ctx: TaskContext, name: String| async move { Ok(format!("hello {name}")) });
//! let worker = Worker::builder(store).name("greeter").handler(greet).slots(10).build()?;
//! let exit = worker.run_until_signal().await?;
//! std::process::exit(exit.code().into());
//! # }
//! ```
//!
//! What a handler can do stands at [`TaskContext`]: steps, checkpoints, [operations](TaskContext::operation) for what must not
//! happen twice outside, its own SQL in [`commit`](TaskContext::commit) and [`complete_in`](TaskContext::complete_in). How
//! inputs and checkpoints change stands at [`Protocols`]. This crate is all that a handler needs, and `aegis-harness` all that
//! its tests need: it crashes a handler at every point and counts the effects. `docs/guides/first-handler.md` goes from an empty
//! folder to a handler that charges a card.
//!
//! Invariants: nothing is claimed without being registered or handed back (`gate`); every write carries the guard, one in
//! flight per claim (`writer`); the lease is renewed on its own thread, runtime and connection until the last task has ended
//! (`renewal`); an execution without a live lease cannot dispatch an operation (`self_fence`, and the guard in the database).
//!
//! Never: hold a transaction while a handler runs; drop a database call half-way; set a task back to ready in the hope that
//! its execution stops.

mod budgets;
mod builder;
mod cancel;
mod claimer;
mod completer;
mod context;
mod counters;
mod drain;
mod ending;
mod error;
mod execution;
mod executor;
mod exit;
mod gate;
mod handler;
mod health;
mod http;
mod incarnation;
mod kinds;
mod metrics;
mod operation;
mod parts;
pub mod points;
mod poison;
mod protocols;
mod pulse;
mod renewal;
mod self_fence;
mod shared;
mod signals;
mod task_error;
mod traced;
mod tuning;
mod warm;
mod watchdog;
mod worker;
mod writer;

pub use aegis_model::{Class, ProtocolError, ProtocolRange, TraceContext};
/// Where the database is, and what is submitted to it: a handler and its submitter need no other crate of Aegis.
pub use aegis_store::{Config, NewTask, RetryPolicy, Store, StoreError, Submitted};
/// Takes the spans of a worker, see [`WorkerBuilder::tracer`].
pub use aegis_telemetry::Tracer;
/// A moment, as [`TaskError::SleepUntil`] and [`NewTask`] have it.
pub use jiff::Timestamp;
/// The driver whose transactions [`TaskContext::commit`] and [`TaskContext::complete_in`] lend.
pub use tokio_postgres;
/// What [`Cancellation::token`] gives.
pub use tokio_util::sync::CancellationToken;
/// The id of a task.
pub use uuid::Uuid;

pub use budgets::Budgets;
pub use builder::{HandlerOptions, WorkerBuilder};
pub use cancel::{CancelReason, Cancellation};
pub use context::{Known, KnownOperation, KnownStep, KnownValue, TaskContext};
pub use counters::Counts;
pub use error::WorkerError;
pub use exit::Exit;
pub use handler::{FnHandler, TaskHandler, handler_fn};
pub use http::{HttpCall, HttpPolicy};
pub use operation::{
    CallError, FencingToken, OperationBuilder, OperationCall, OperationError, Probe,
    ProbedOperation, operation_id,
};
pub use protocols::{Protocols, Upcaster};
pub use shared::{Snapshot, WorkerHandle, WorkerPhase};
pub use task_error::{EngineStop, TaskError};
pub use tuning::Tuning;
pub use worker::Worker;
