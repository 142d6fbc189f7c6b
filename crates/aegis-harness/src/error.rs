//! What can keep the kit from judging a handler. A handler's own errors are no error of the kit: they are in the [`Run`].
//!
//! [`Run`]: crate::Run

use std::time::Duration;

/// The kit could not run or judge.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HarnessError {
    /// No private PostgreSQL.
    #[error("a private PostgreSQL cannot be had: {what}")]
    Server {
        /// What the machine said, with its causes.
        what: String,
    },
    /// Its database refused.
    #[error("the private database: {what}: {source}")]
    Database {
        /// What was tried.
        what: &'static str,
        /// What it said.
        #[source]
        source: tokio_postgres::Error,
    },
    /// The engine refused.
    #[error(transparent)]
    Store(#[from] aegis_store::StoreError),
    /// The schema could not be installed.
    #[error(transparent)]
    Schema(#[from] Box<aegis_schema::SchemaError>),
    /// The worker was put together wrongly, or did not start.
    #[error("the worker does not run: {what}")]
    Worker {
        /// Why.
        what: String,
    },
    /// An input cannot be encoded.
    #[error("the input is not JSON: {0}")]
    Input(#[from] serde_json::Error),
    /// Each run is a task of its own.
    #[error(
        "the task has the idempotency key `{key}`: each run is a task of its own, so leave the key out"
    )]
    HasKey {
        /// The key.
        key: String,
    },
    /// A point at which a fault was planned was never reached.
    #[error("`{point}` (time {nth}) was not reached; reached were: {seen}")]
    NotReached {
        /// The point's name.
        point: String,
        /// Which time.
        nth: usize,
        /// What was reached, in order.
        seen: String,
    },
    /// A run did not come to an end.
    #[error(
        "task {task} did not end within {} s of real time: {why}; its handler waits for something that does not come, or sleeps by a clock of its own",
        within.as_secs()
    )]
    Stuck {
        /// The task.
        task: uuid::Uuid,
        /// The bound, see [`Harness::set_patience`](crate::Harness::set_patience).
        within: Duration,
        /// Where it stands.
        why: String,
    },
    /// A task was started so often that it will hardly end.
    #[error(
        "task {task} was started {executions} times and has not ended; a handler that only postpones itself never does"
    )]
    Endless {
        /// The task.
        task: uuid::Uuid,
        /// How often.
        executions: usize,
    },
    /// Without a fault the handler has to succeed, or there is nothing to compare with.
    #[error("the handler does not succeed even when nothing crashes: {outcome}")]
    Baseline {
        /// How it ended.
        outcome: String,
    },
}

/// An error with its causes, in one line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}
