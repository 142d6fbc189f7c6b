//! The schema of the application that a worker's program knows, and the floor that a closed contract has raised in its database.
//!
//! Invariants: it is the same question that `aegis migrate run` and `check` ask ([`floor::too_old`]); a program that is too old does not
//! start, and one that becomes too old while it runs claims nothing more and ends when what it executes has ended; a database that
//! cannot be asked stops nobody who runs, and is told.

use std::path::PathBuf;
use std::time::Duration;

use aegis_migrate::contract::floor;
use aegis_migrate::run::RunError;
use aegis_migrate::set::Set;
use aegis_store::{Config, StoreError, install};
use aegis_worker::WorkerHandle;
use clap::Args;
use tokio::time::{MissedTickBehavior, interval};
use tokio_postgres::Client;

use crate::database::DatabaseArguments;
use crate::exit::Exit;
use crate::failure::{Failure, chain};
use crate::output::note;

/// How often the floor is looked at.
const EVERY: Duration = Duration::from_secs(2);

const SCHEMA: &str = "The schema of its application";

/// The code of a program that is older than its database admits, as `aegis migrate` has it.
const TOO_OLD: u8 = 19;

#[derive(Debug, Args)]
pub(super) struct FloorArguments {
    /// The folder of changes that this program knows, as its image has it. When a contract is closed that it does not know, it does not
    /// start (code 19); when one is closed while it runs, it drains.
    #[arg(help_heading = SCHEMA, long, env = "AEGIS_WORKER_MIGRATIONS", value_name = "FOLDER")]
    migrations: Option<PathBuf>,
    /// The database of the application; without it the engine's own.
    #[arg(help_heading = SCHEMA, long, env = "AEGIS_MIGRATIONS_DATABASE_URL", hide_env_values = true, value_name = "URL", requires = "migrations")]
    migrations_database_url: Option<String>,
}

/// What is known, and where the floor stands.
pub(super) struct Floor {
    set: Set,
    config: Config,
    client: Option<Client>,
}

/// The floor of this program's application; none when it tells no folder. A program that is too old ends here.
pub(super) async fn admitted(
    arguments: &FloorArguments,
    database: &DatabaseArguments,
) -> Result<Option<Floor>, Failure> {
    let Some(folder) = &arguments.migrations else {
        return Ok(None);
    };
    let set = Set::read(folder)?;
    let url = match &arguments.migrations_database_url {
        Some(url) => url,
        None => database.direct()?,
    };
    let config = Config::from_url(url)?.with_application_name("aegis worker schema");
    let mut floor = Floor {
        set,
        config,
        client: None,
    };
    match floor.too_old().await? {
        None => Ok(Some(floor)),
        Some(change) => Err(Failure::new(
            Exit::Worker(TOO_OLD),
            RunError::TooOld(change).to_string(),
        )),
    }
}

impl Floor {
    /// A closed change that this program does not know.
    async fn too_old(&mut self) -> Result<Option<String>, StoreError> {
        let client = match self.client.take().filter(|client| !client.is_closed()) {
            Some(client) => client,
            None => install::connect_direct(&self.config).await?,
        };
        let found = floor::too_old(&client, &self.set).await?;
        self.client = Some(client);
        Ok(found)
    }

    /// Looks until this program is too old, and asks it to drain. With the change that is closed.
    async fn sinks_below(&mut self) -> String {
        let mut ticks = interval(EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut silent = false;
        loop {
            ticks.tick().await;
            match self.too_old().await {
                Ok(Some(change)) => return change,
                Ok(None) => silent = false,
                Err(error) if !silent => {
                    silent = true;
                    note(&format!(
                        "the floor of the application's schema cannot be read ({}); the worker goes on, and it is asked again",
                        chain(&error)
                    ));
                }
                Err(_) => {}
            }
        }
    }
}

/// Runs a worker's life beside the floor: its exit, and the change that has ended it.
pub(super) async fn beside<T>(
    floor: Option<Floor>,
    handle: &WorkerHandle,
    mut life: impl Future<Output = T> + Unpin,
) -> (T, Option<String>) {
    let Some(mut floor) = floor else {
        return (life.await, None);
    };
    let change = tokio::select! {
        ended = &mut life => return (ended, None),
        change = floor.sinks_below() => change,
    };
    note(&format!("{}; it drains", RunError::TooOld(change.clone())));
    handle.drain();
    (life.await, Some(change))
}

/// The code of a worker that the floor has ended: its own, when that is not "drained".
pub(super) const fn code(own: u8, ended_by_floor: bool) -> u8 {
    if ended_by_floor && own == 0 {
        TOO_OLD
    } else {
        own
    }
}
