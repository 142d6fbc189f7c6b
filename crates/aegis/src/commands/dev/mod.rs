//! `aegis dev`: a PostgreSQL that keeps its data, and a worker with example handlers; one command.
//!
//! Invariants: what it starts ends with it, however it ends; a second one on the same folder is refused; data are removed
//! only by `--reset`, after a yes, and only when nobody uses them.
//!
//! Never: a database that somebody else runs.

mod child;
mod letters;

use std::path::PathBuf;
use std::time::Duration;

use aegis_devpg::{Data, Options, Server, default_dev_folder, remove_data};
use aegis_store::Config;
use clap::Args;
use serde_json::json;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::commands::worker::examples;
use crate::confirm::confirm;
use crate::exit::Exit;
use crate::failure::{Failure, chain};
use crate::output::{Output, Progress, note};

use child::{Wanted, Worker};

/// How often it looks whether PostgreSQL still runs.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Partitions are made for so many days at each start; its worker makes more.
const DAYS_AHEAD: i32 = 14;

/// Below `aegis dev --help`.
pub(crate) const EXAMPLES: &str = "It prints the URL of its database and commands to try. Ctrl-C ends all; the data stay. The \
    server and the console join it when they are there.\n\nExamples:\n  aegis dev --fetch-postgres\n  aegis dev --data-dir ./data\n  \
    aegis dev --reset";

#[derive(Debug, Args)]
pub(crate) struct DevArguments {
    /// Where the data are kept; default: aegis/dev/postgres in your state folder.
    #[arg(long, value_name = "FOLDER")]
    data_dir: Option<PathBuf>,
    /// Fetches pinned PostgreSQL binaries when the machine has none.
    #[arg(long)]
    fetch_postgres: bool,
    /// Executions at once.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..=1000))]
    slots: u16,
    /// Removes the kept data first, after asking.
    #[arg(long)]
    reset: bool,
    /// With --reset: without asking.
    #[arg(long, requires = "reset")]
    yes: bool,
}

/// What its worker executes.
fn kinds() -> Vec<&'static str> {
    let own = ["aegis.noop", "aegis.sleep", "aegis.http"];
    own.into_iter().chain(examples::NAMES).collect()
}

/// Runs until it is ended.
pub(crate) async fn run(arguments: DevArguments, output: Output) -> Result<Exit, Failure> {
    // Before anything is started: a signal during the start must end it in order, too.
    let mut ending = Ending::listen()?;
    let folder = folder(arguments.data_dir)?;
    if arguments.reset {
        reset(&folder, arguments.yes).await?;
    }
    let fetch = arguments.fetch_postgres;
    let server = start(folder.clone(), fetch).await?;
    let ended = serve(&server, &folder, arguments.slots, &mut ending, output).await;
    let stopped = tokio::task::spawn_blocking(move || server.stop()).await;
    if stopped.is_ok() && ended.is_ok() {
        note(&format!("ended; the data are kept in {}", folder.display()));
    }
    ended
}

fn folder(given: Option<PathBuf>) -> Result<PathBuf, Failure> {
    if let Some(path) = given {
        return Ok(path);
    }
    let found = default_dev_folder().map_err(|error| postgres(&error))?;
    if let Some(text) = found.note {
        note(&text);
    }
    Ok(found.path)
}

async fn reset(folder: &std::path::Path, yes: bool) -> Result<(), Failure> {
    if !folder.exists() {
        note(&format!(
            "{} is not there; nothing to remove",
            folder.display()
        ));
        return Ok(());
    }
    confirm(
        &format!("removing all data of aegis dev in {}", folder.display()),
        yes,
    )?;
    let path = folder.to_owned();
    blocking(move || remove_data(&path)).await
}

async fn start(folder: PathBuf, fetch: bool) -> Result<Server, Failure> {
    let progress = Progress::new("starting PostgreSQL", None);
    let options = Options {
        data: Data::Kept(folder),
        fetch,
        ..Options::default()
    };
    let server = blocking(move || Server::start(&options)).await;
    drop(progress);
    server
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, aegis_devpg::Error> + Send + 'static,
) -> Result<T, Failure> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done.map_err(|error| postgres(&error)),
        Err(error) => Err(Failure::new(
            Exit::Broken,
            format!("PostgreSQL could not be looked after: {error}"),
        )),
    }
}

fn postgres(error: &aegis_devpg::Error) -> Failure {
    Failure::new(Exit::Database, chain(error))
}

async fn serve(
    server: &Server,
    folder: &std::path::Path,
    slots: u16,
    ending: &mut Ending,
    output: Output,
) -> Result<Exit, Failure> {
    let owner = named(&server.url(server.superuser(), "postgres"));
    let installed = aegis_schema::install(&Config::from_url(&owner)?, DAYS_AHEAD).await?;
    let url = named(&server.url("aegis_engine", "postgres"));
    let letters_url = letters::start().await?;
    let wanted = Wanted {
        database_url: url.clone(),
        letters_url: letters_url.clone(),
        slots: slots.into(),
    };
    let mut worker = Worker::start(wanted).await?;
    let version = server
        .version()
        .1
        .replacen("postgres (PostgreSQL)", "PostgreSQL", 1);
    let as_whom = server
        .run_as()
        .map_or(String::new(), |user| format!(", as user {user}"));
    output.one(
        &[
            ("database", url.clone()),
            ("owner", owner.clone()),
            ("server", format!("{version}{as_whom}")),
            ("schema", format!("{} ({} steps now)", installed.schema, installed.applied.len())),
            ("data", folder.display().to_string()),
            ("worker", format!("process {}", worker.pid)),
            ("kinds", kinds().join(", ")),
            ("letters", letters_url.clone()),
        ],
        &json!({
            "name": "dev", "database_url": url, "owner_url": owner, "server": version, "schema": installed.schema,
            "applied": installed.applied, "data": folder.display().to_string(), "pid": std::process::id(),
            "worker_pid": worker.pid, "kinds": kinds(), "letters_url": letters_url,
        }),
    );
    if output == Output::Table {
        note(&to_try(&url));
    }
    let end = watch(server, &mut worker, ending).await;
    note("draining the worker; a second Ctrl-C kills it");
    tokio::select! {
        () = worker.drain() => {}
        () = ending.asked() => {}
    }
    end
}

/// Until a signal comes, or something ends that should not.
async fn watch(server: &Server, worker: &mut Worker, ending: &mut Ending) -> Result<Exit, Failure> {
    let mut look = tokio::time::interval(LOOK_EVERY);
    loop {
        tokio::select! {
            () = ending.asked() => return Ok(Exit::Done),
            status = worker.ended() => {
                let status = status?;
                note(&format!("the worker ended ({status}); another one starts, and what it held is taken over when its lease has run out"));
                worker.again(status).await?;
                note(&format!("the worker is process {} now", worker.pid));
            }
            _ = look.tick() => server.check().map_err(|error| postgres(&error))?,
        }
    }
}

fn to_try(url: &str) -> String {
    format!(
        "\nTry, in another terminal:\n\n  export AEGIS_DATABASE_URL='{url}'\n  \
         aegis task submit hello --input '{{\"name\": \"Ada\"}}' --wait\n  \
         aegis task submit count --input '{{\"to\": 60}}'   # then kill -9 the worker: it goes on where it was\n  \
         aegis task submit letter --input '{{\"to\": \"Ada\", \"text\": \"Hi\"}}' --wait\n\n\
         Ctrl-C ends all of it; the data stay."
    )
}

fn named(url: &str) -> String {
    let separator = if url.contains('?') { '&' } else { '?' };
    format!("{url}{separator}statements=named")
}

/// The signals that end it.
struct Ending {
    signals: [Signal; 3],
}

impl Ending {
    fn listen() -> Result<Self, Failure> {
        let on = |kind| {
            signal(kind).map_err(|error| {
                Failure::new(
                    Exit::Broken,
                    format!("signals cannot be listened to: {error}"),
                )
            })
        };
        Ok(Self {
            signals: [
                on(SignalKind::interrupt())?,
                on(SignalKind::terminate())?,
                on(SignalKind::hangup())?,
            ],
        })
    }

    async fn asked(&mut self) {
        let [interrupt, terminate, hangup] = &mut self.signals;
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
        }
    }
}
