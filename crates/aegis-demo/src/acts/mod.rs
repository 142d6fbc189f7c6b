//! The acts of the demo: what is started, killed, frozen, replaced and rolled back, in which order, and what is told of it.
//!
//! Everything is shown with processes of this same program: workers, the payment service, the operator's command line and the
//! verifier. Nothing here judges: the verifier does, from the record and the database.
//!
//! Invariants: however the demo ends, its processes end with it ([`crate::hold`]); each wait is bounded, and an act that could
//! not be shown is said to be so. Must never count an effect itself.

mod closing;
mod frozen;
mod killed;
mod look;
mod opening;
mod operator;
mod process;
mod rollback;
mod rollout;
mod stage;

use std::io;
use std::path::PathBuf;

use aegis_store::StoreError;
use serde_json::Value;

use crate::orders::OrdersFile;
use crate::story::{Actor, Story};

/// What the demo is started with.
#[derive(Debug, Clone)]
#[non_exhaustive]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a switch of the command line"
)]
pub struct DemoOptions {
    /// This program: it is what runs as worker, payment service, operator and verifier.
    pub program: PathBuf,
    /// The orders.
    pub orders: OrdersFile,
    /// Decides whose calls go wrong.
    pub seed: u64,
    /// Leave it running at the end.
    pub keep: bool,
    /// The payment service breaks its promise.
    pub doubles: bool,
    /// Fetch PostgreSQL when the machine has none.
    pub fetch_postgres: bool,
    /// Use this database instead of a private one.
    pub database_url: Option<String>,
    /// Ask the verifier for JSON instead of a table.
    pub json: bool,
}

impl DemoOptions {
    /// A demo of these orders, with seed 1.
    pub fn new(program: PathBuf, orders: OrdersFile) -> Self {
        Self {
            program,
            orders,
            seed: 1,
            keep: false,
            doubles: false,
            fetch_postgres: false,
            database_url: None,
            json: false,
        }
    }
}

/// How the demo ended.
#[derive(Debug, Clone, PartialEq)]
pub struct DemoEnd {
    /// Every promise was kept, and that could be seen.
    pub kept: bool,
    /// The verifier's object, when JSON was asked for.
    pub verdict: Option<Value>,
}

/// Why the demo could not be played to its end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DemoError {
    /// No PostgreSQL of its own.
    #[error("the demo's own PostgreSQL does not start")]
    Postgres(#[source] Box<aegis_devpg::Error>),
    /// The database refused something.
    #[error("the database of the demo refused something")]
    Store(#[from] StoreError),
    /// The schema could not be installed.
    #[error("the schema of the demo could not be installed")]
    Schema(#[from] Box<aegis_schema::SchemaError>),
    /// A process could not be started or spoken to.
    #[error("the process {name} of the demo could not be started or told something")]
    Process {
        /// Which.
        name: String,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// A process did not come up.
    #[error("the process {name} of the demo did not start: {why}; what it logged last: {said}")]
    Start {
        /// Which.
        name: String,
        /// What was missing.
        why: String,
        /// What it logged last.
        said: String,
    },
    /// A command of the public command line failed.
    #[error("`aegis {command}` failed: {why}")]
    Command {
        /// Its words.
        command: String,
        /// What it said.
        why: String,
    },
    /// The folder of the run cannot be made or read.
    #[error("the demo's folder cannot be used; look at the temporary folder of this machine")]
    Folder(#[source] io::Error),
    /// Signals cannot be listened for.
    #[error("the demo cannot listen for Ctrl-C; look at what the system says")]
    Signals(#[source] io::Error),
    /// A task of the runtime ended by itself.
    #[error("a part of the demo ended unexpectedly")]
    Broken,
    /// Somebody ended it.
    #[error("the demo was ended before its end; nothing was shown")]
    Interrupted,
}

/// Plays the demo. Ends all that it started before it returns; when it is to be kept, it returns when somebody ends it.
///
/// # Errors
/// [`DemoError`]; what was started has ended then, too.
pub async fn play(options: &DemoOptions, story: &Story) -> Result<DemoEnd, DemoError> {
    let interrupted = closing::asked_to_end().map_err(DemoError::Signals)?;
    // Dropped half-way, the stage ends what stands on it.
    let (stage, end) = tokio::select! {
        played = through(options, story) => played?,
        () = interrupted => return Err(DemoError::Interrupted),
    };
    closing::leave(stage, &end).await?;
    Ok(end)
}

async fn through<'a>(
    options: &'a DemoOptions,
    story: &'a Story,
) -> Result<(stage::Stage<'a>, DemoEnd), DemoError> {
    let mut stage = opening::open(options, story).await?;
    let judged = match acts(&mut stage).await {
        Ok(()) => closing::judge(&mut stage).await,
        Err(error) => Err(error),
    };
    match judged {
        Ok(end) => Ok((stage, end)),
        Err(error) => {
            stage.keep_logs();
            Err(error)
        }
    }
}

async fn acts(stage: &mut stage::Stage<'_>) -> Result<(), DemoError> {
    opening::submit(stage).await?;
    killed::act(stage).await?;
    frozen::act(stage).await?;
    if stage.look.progress().await?.is_idle() {
        stage.tell(&DEMO, "every order is through already: the release, the rollback and the return are left out. More orders show more");
    } else {
        rollout::act(stage).await?;
        rollback::act(stage).await?;
    }
    operator::act(stage).await
}

/// An order or several, as a sentence names them.
fn few(items: &[String], most: usize) -> String {
    let shown = items
        .iter()
        .take(most)
        .cloned()
        .collect::<Vec<_>>()
        .join(", ");
    match items.len().saturating_sub(most) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// The singular or the plural.
fn count(n: i64, one: &str, many: &str) -> String {
    if n == 1 {
        format!("1 {one}")
    } else {
        format!("{n} {many}")
    }
}

const DEMO: Actor = Actor::Demo;
const ENGINE: Actor = Actor::Engine;
