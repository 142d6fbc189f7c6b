//! `aegis worker show`.

use aegis_store::survey::{WorkerDetail, WorkerTask};
use clap::Args;
use serde_json::{Value, json};

use super::state;
use crate::commands::find;
use crate::database::DatabaseArguments;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{Output, at, maybe_at};

/// Claims that are listed; `running` says how many there are.
const CLAIMS_MAX: i64 = 1000;

/// Which one.
#[derive(Debug, Args)]
pub(super) struct ShowArguments {
    /// Its id, the beginning of it (four characters or more), or its name.
    worker: String,
}

/// Prints it.
pub(super) async fn run(
    arguments: &ShowArguments,
    database: &DatabaseArguments,
    output: Output,
) -> Result<Exit, Failure> {
    let store = database.connect().await?;
    let named = find::worker(&store, &arguments.worker, true).await?;
    let worker = store
        .worker(named.id)
        .await?
        .ok_or_else(|| find::no_worker(&arguments.worker))?;
    let tasks = store.worker_tasks(worker.id, CLAIMS_MAX).await?;
    output.one(&fields(&worker, &tasks), &document(&worker, &tasks));
    Ok(Exit::Done)
}

fn fields(w: &WorkerDetail, tasks: &[WorkerTask]) -> Vec<(&'static str, String)> {
    let mut fields = vec![
        ("id", w.id.to_string()),
        ("name", w.name.clone()),
        ("state", state(w.state, w.alive).to_owned()),
        ("release", released(w)),
        ("build", w.build.clone()),
        ("process", format!("{} on {}", w.pid, w.host)),
        ("slots", format!("{}, {} in use", w.slots, w.executing)),
        (
            "lease until",
            format!("{} (of {} ms)", at(w.lease_until), w.ttl_ms),
        ),
        ("last beat", at(w.beat_at)),
        ("registered", at(w.registered_at)),
    ];
    let times = [("draining since", w.draining_at), ("ended", w.ended_at)];
    fields.extend(
        times
            .into_iter()
            .filter(|(_, time)| time.is_some())
            .map(|(name, time)| (name, maybe_at(time))),
    );
    let others = [("predecessor", w.predecessor), ("successor", w.successor)];
    fields.extend(
        others
            .into_iter()
            .filter_map(|(name, other)| Some((name, other?.to_string()))),
    );
    fields.extend(w.capabilities.iter().map(|text| ("can", text.clone())));
    fields.push(("running", w.running.to_string()));
    for task in tasks {
        let asked = if task.is_cancelled {
            ", asked to stop"
        } else {
            ""
        };
        let text = format!(
            "{} {}/{} at epoch {} since {}{asked}",
            task.id,
            task.queue,
            task.kind,
            task.epoch,
            at(task.claimed_at)
        );
        fields.push(("holds", text));
    }
    fields
}

fn released(w: &WorkerDetail) -> String {
    if w.release_paused {
        format!("{} (paused; see aegis lane pauses)", w.release)
    } else {
        w.release.clone()
    }
}

fn document(w: &WorkerDetail, tasks: &[WorkerTask]) -> Value {
    let holds: Vec<Value> = tasks
        .iter()
        .map(|t| {
            json!({ "id": t.id, "queue": t.queue, "kind": t.kind, "epoch": t.epoch, "claimed_at": t.claimed_at.to_string(),
                    "cancelled": t.is_cancelled })
        })
        .collect();
    json!({
        "id": w.id, "name": w.name, "state": state(w.state, w.alive), "alive": w.alive, "release": w.release,
        "release_paused": w.release_paused, "build": w.build, "digest": w.digest, "host": w.host, "pid": w.pid, "slots": w.slots,
        "running": w.running, "executing": w.executing, "lease_ttl_ms": w.ttl_ms, "lease_until": w.lease_until.to_string(),
        "beat_at": w.beat_at.to_string(), "registered_at": w.registered_at.to_string(),
        "draining_at": w.draining_at.map(|t| t.to_string()), "ended_at": w.ended_at.map(|t| t.to_string()),
        "predecessor": w.predecessor, "successor": w.successor, "capabilities": w.capabilities, "tasks": holds,
    })
}
