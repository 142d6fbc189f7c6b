//! `aegis operation show`.

use serde_json::{Value, json};

use super::words::{class_word, resolution_word, state_word};
use crate::commands::find;
use crate::database::DatabaseArguments;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{Output, maybe_at, payload};

/// Prints it.
pub(super) async fn run(
    wanted: &str,
    database: &DatabaseArguments,
    output: Output,
) -> Result<Exit, Failure> {
    let store = database.connect().await?;
    let named = find::operation(&store, wanted).await?;
    let found = store
        .operation(named.task, &named.id)
        .await?
        .ok_or_else(|| super::missing(&named.id))?;
    let request = found.request.as_deref().map(payload);
    let result = found.result.as_deref().map(payload);
    let text = |value: &Option<Value>| value.as_ref().map(Value::to_string).unwrap_or_default();
    output.one(
                &[
                    ("id", found.id.clone()),
                    ("task", found.task.to_string()),
                    ("tenant", found.tenant.clone()),
                    ("class", class_word(found.class).to_owned()),
                    ("state", state_word(found.state).to_owned()),
                    ("dispatched", format!("{} times, first {}, last {}", found.dispatches, maybe_at(found.first_dispatched_at), maybe_at(found.dispatched_at))),
                    ("by", format!("epoch {}, worker {}, release {}", found.epoch, found.worker.map(|w| w.to_string()).unwrap_or_default(), found.release.clone().unwrap_or_default())),
                    ("timeout", format!("{} ms, then {} ms quiet", found.timeout_ms, found.quiet_ms)),
                    ("key valid until", maybe_at(found.key_valid_until)),
                    ("quiet until", maybe_at(found.quiet_until)),
                    ("request", text(&request)),
                    ("fingerprint", found.fingerprint.clone()),
                    ("result", text(&result)),
                    ("note", found.note.clone().unwrap_or_default()),
                    ("taken", format!("{} {}", found.taken_by.clone().unwrap_or_default(), maybe_at(found.taken_at))),
                    ("resolved", format!("{} {} {}", resolution_word(found.resolution).unwrap_or_default(), found.resolved_by.clone().unwrap_or_default(), maybe_at(found.resolved_at))),
                    ("evidence", found.evidence.clone().unwrap_or_default()),
                ],
                &json!({
                    "id": found.id, "task": found.task, "tenant": found.tenant, "class": class_word(found.class), "state": state_word(found.state),
                    "dispatches": found.dispatches, "epoch": found.epoch, "worker": found.worker, "release": found.release,
                    "first_dispatched_at": found.first_dispatched_at.map(|t| t.to_string()), "dispatched_at": found.dispatched_at.map(|t| t.to_string()),
                    "key_valid_until": found.key_valid_until.map(|t| t.to_string()), "quiet_until": found.quiet_until.map(|t| t.to_string()),
                    "finished_at": found.finished_at.map(|t| t.to_string()), "fingerprint": found.fingerprint, "request": request, "result": result,
                    "note": found.note, "taken_by": found.taken_by, "resolution": resolution_word(found.resolution), "resolved_by": found.resolved_by,
                    "resolved_at": found.resolved_at.map(|t| t.to_string()), "evidence": found.evidence,
                }),
            );
    Ok(Exit::Done)
}
