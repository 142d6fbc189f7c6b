//! What of a change is hashed, a phase at a time: the line of `migrations.lock`.
//!
//! Invariants: comments, order of keys and line ends of `change.toml` do not count; `[throttle]` does not count; everything
//! that decides what runs in a phase does; another phase's tables do not, so that a contract is added weeks later without
//! moving the hash of what was applied. The golden vector in the tests never changes.
//!
//! Never: a hash over anything that a later version of the tool writes differently.

use serde_json::{Value, json};

use super::id::Phase;
use super::sql_file::sha256;
use super::{Change, SqlFile};

/// Says what is hashed how; another form gets another word.
const FORM: &str = "aegis-migrate phase 1";

/// SHA-256 in hex of a phase; `None` where the change has no such phase.
pub(super) fn of_phase(change: &Change, phase: Phase) -> Option<String> {
    let body = match phase {
        Phase::Expand if change.expand.is_some() || change.sync.is_some() => json!({
            "baseline": change.baseline, "expand": change.expand, "sync": change.sync,
            "squashed": change.squashed.as_ref().map(|lock| sha256(lock.text().as_bytes())),
        }),
        Phase::Migrate
            if change.migrate.is_some()
                || change.backfill.is_some()
                || change.reconcile.is_some()
                || change.switch.is_some() =>
        {
            json!({
                "migrate": change.migrate, "backfill": change.backfill,
                "reconcile": change.reconcile, "switch": change.switch,
            })
        }
        Phase::Contract if change.contract.is_some() => json!({ "contract": change.contract }),
        _ => return None,
    };
    let files: Vec<Value> = change
        .files_of(phase)
        .into_iter()
        .map(|SqlFile { name, sha256, .. }| json!({ "name": name, "sha256": sha256 }))
        .collect();
    let document = json!({
        "form": FORM, "id": change.id, "schema": change.schema, "run_as": change.run_as,
        "requires": if phase == Phase::Expand { json!(change.requires) } else { Value::Null },
        "phase": phase, "body": body, "files": files,
    });
    let mut text = String::new();
    canonical(&document, &mut text);
    Some(sha256(text.as_bytes()))
}

/// JSON without spaces, keys sorted, whatever features serde_json is built with; what is null is left out.
fn canonical(value: &Value, text: &mut String) {
    match value {
        Value::Object(map) => {
            let mut entries: Vec<_> = map.iter().filter(|(_, value)| !value.is_null()).collect();
            entries.sort_by_key(|(key, _)| key.as_str());
            text.push('{');
            for (number, (key, value)) in entries.into_iter().enumerate() {
                if number > 0 {
                    text.push(',');
                }
                text.push_str(&Value::from(key.as_str()).to_string());
                text.push(':');
                canonical(value, text);
            }
            text.push('}');
        }
        Value::Array(values) => {
            text.push('[');
            for (number, value) in values.iter().enumerate() {
                if number > 0 {
                    text.push(',');
                }
                canonical(value, text);
            }
            text.push(']');
        }
        plain => text.push_str(&plain.to_string()),
    }
}
