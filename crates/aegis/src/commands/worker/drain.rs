//! `aegis worker drain`: by name, by id, or a whole release.
//!
//! Invariants: nothing is drained when one of the names stands for nothing or for several; `--dry-run` changes nothing.

use std::time::{Duration, Instant};

use aegis_model::ErrorCode;
use aegis_store::Store;
use aegis_store::survey::{WorkerFilter, WorkerId};
use clap::Args;
use serde_json::json;

use crate::commands::find;
use crate::commands::lane::pause::{NO_REASON, reason};
use crate::database::DatabaseArguments;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{Output, Progress};

/// More than one fleet has.
const WORKERS_MAX: i64 = 100_000;
/// How often `--wait` looks.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Which ones.
#[derive(Debug, Args)]
pub(super) struct DrainArguments {
    /// Their ids, the beginnings of them (four characters or more), or their names.
    #[arg(required_unless_present = "release", conflicts_with = "release")]
    workers: Vec<String>,
    /// All that are alive of this release.
    #[arg(long)]
    release: Option<String>,
    /// Why; kept with who, see `aegis db changes`.
    #[arg(long, default_value = NO_REASON)]
    reason: String,
    /// Who; default: the user of the shell.
    #[arg(long)]
    actor: Option<String>,
    /// Says which ones, and changes nothing.
    #[arg(long)]
    dry_run: bool,
    /// Waits until they have ended.
    #[arg(long)]
    wait: bool,
    /// How long --wait waits, in seconds; exit code 6 when that is over.
    #[arg(long, default_value = "600", value_parser = crate::commands::find::seconds)]
    timeout: Duration,
}

/// Drains them.
pub(super) async fn run(
    arguments: DrainArguments,
    database: &DatabaseArguments,
    output: Output,
) -> Result<Exit, Failure> {
    let why = reason(&arguments.reason, "why, for whoever finds it drained")?;
    let actor = find::actor(arguments.actor.clone());
    let store = database.connect().await?;
    let wanted = match &arguments.release {
        Some(release) => of_release(&store, release).await?,
        None => by_name(&store, &arguments.workers).await?,
    };
    let mut rows = Vec::new();
    let mut documents = Vec::new();
    for worker in &wanted {
        let word = if arguments.dry_run {
            "would drain"
        } else if store.drain_by(worker.id, &actor, why).await? {
            "drains"
        } else {
            "drained before"
        };
        rows.push(vec![
            worker.id.to_string(),
            worker.name.clone(),
            word.to_owned(),
        ]);
        documents.push(json!({ "id": worker.id, "name": worker.name, "drain": word }));
    }
    match (documents.as_slice(), rows.as_slice()) {
        // One is an object, as it always was.
        ([document], [row]) if arguments.release.is_none() => {
            output.one(
                &[(row[2].as_str(), format!("{} {}", row[0], row[1]))],
                document,
            );
        }
        _ => output.list(&["id", "name", "drain"], rows, documents),
    }
    if arguments.wait && !arguments.dry_run {
        wait(&store, &wanted, arguments.timeout).await?;
    }
    Ok(Exit::Done)
}

async fn by_name(store: &Store, names: &[String]) -> Result<Vec<WorkerId>, Failure> {
    let mut wanted: Vec<WorkerId> = Vec::new();
    for name in names {
        let worker = find::worker(store, name, false).await?;
        if !wanted.contains(&worker) {
            wanted.push(worker);
        }
    }
    Ok(wanted)
}

async fn of_release(store: &Store, release: &str) -> Result<Vec<WorkerId>, Failure> {
    let filter = WorkerFilter {
        release: Some(release.to_owned()),
        limit: WORKERS_MAX,
        ..WorkerFilter::default()
    };
    let found = store.workers_by(&filter).await?;
    if found.is_empty() {
        return Err(Failure::new(
            Exit::NotFound,
            format!("no worker of release {release} is alive; see `aegis worker list --all`"),
        )
        .with_code(ErrorCode::NOT_FOUND));
    }
    let named = found.into_iter().map(|w| WorkerId {
        id: w.id,
        name: w.name,
    });
    Ok(named.collect())
}

async fn wait(store: &Store, wanted: &[WorkerId], timeout: Duration) -> Result<(), Failure> {
    let began = Instant::now();
    let progress = Progress::new("drained", u64::try_from(wanted.len()).ok());
    for worker in wanted {
        loop {
            // One that is forgotten has ended long ago; one whose lease has run out executes nothing that counts.
            match store.worker(worker.id).await? {
                Some(row) if row.alive => {}
                _ => break,
            }
            if began.elapsed() >= timeout {
                return Err(Failure::new(
                    Exit::TimedOut,
                    format!(
                        "worker {} {} has not ended within {} s; it goes on draining; see `aegis worker show {}`",
                        worker.id,
                        worker.name,
                        timeout.as_secs_f64(),
                        worker.id
                    ),
                ));
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
        progress.more(1);
    }
    Ok(())
}
