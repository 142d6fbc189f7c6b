//! `aegis worker list`.

use aegis_store::survey::{WorkerFilter, WorkerFound};
use clap::Args;
use serde_json::{Value, json};

use super::state;
use crate::database::DatabaseArguments;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{Output, at};

/// Which ones.
#[derive(Debug, Args)]
pub(super) struct ListArguments {
    /// The stopped and the lost ones too.
    #[arg(long)]
    all: bool,
    /// Of this release.
    #[arg(long)]
    release: Option<String>,
    /// That serve this queue.
    #[arg(long)]
    queue: Option<String>,
    /// That can execute this kind.
    #[arg(long)]
    kind: Option<String>,
    /// At most so many.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(i64).range(1..=100_000))]
    limit: i64,
}

/// Prints them.
pub(super) async fn run(
    arguments: ListArguments,
    database: &DatabaseArguments,
    output: Output,
) -> Result<Exit, Failure> {
    let filter = WorkerFilter {
        release: arguments.release,
        queue: arguments.queue,
        kind: arguments.kind,
        all: arguments.all,
        limit: arguments.limit,
    };
    print(
        &database.connect().await?.workers_by(&filter).await?,
        output,
    );
    Ok(Exit::Done)
}

/// Prints these.
pub(super) fn print(found: &[WorkerFound], output: Output) {
    let columns = [
        "id",
        "name",
        "state",
        "release",
        "host/pid",
        "running",
        "lease until",
        "capabilities",
    ];
    output.list(
        &columns,
        found.iter().map(row).collect(),
        found.iter().map(summary).collect(),
    );
}

fn row(w: &WorkerFound) -> Vec<String> {
    vec![
        w.id.to_string(),
        w.name.clone(),
        state(w.state, w.alive).to_owned(),
        w.release.clone(),
        format!("{}/{}", w.host, w.pid),
        w.running.to_string(),
        at(w.lease_until),
        w.capabilities.join(", "),
    ]
}

fn summary(w: &WorkerFound) -> Value {
    json!({
        "id": w.id, "name": w.name, "state": state(w.state, w.alive), "alive": w.alive, "release": w.release, "build": w.build,
        "host": w.host, "pid": w.pid, "slots": w.slots, "running": w.running, "executing": w.executing,
        "registered_at": w.registered_at.to_string(), "ended_at": w.ended_at.map(|t| t.to_string()),
        "lease_until": w.lease_until.to_string(), "beat_at": w.beat_at.to_string(), "predecessor": w.predecessor,
        "capabilities": w.capabilities,
    })
}
