//! Waiting for the end of tasks, and what is said of it.

use std::time::{Duration, Instant};

use aegis_model::State;
use aegis_store::Store;
use aegis_store::view::TaskDetail;
use clap::Args;
use serde_json::{Value, json};
use uuid::Uuid;

use super::list::standing;
use super::rows::Rows;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{Output, payload};

/// `--wait --timeout` of a change.
#[derive(Debug, Clone, Copy, Default, Args)]
pub(super) struct WaitArguments {
    /// Waits until the changed tasks have ended; exit code 7 when one did not end as it should, 6 when --timeout has passed.
    #[arg(long)]
    pub(super) wait: bool,
    /// How long --wait waits, in seconds or with a unit.
    #[arg(long, default_value = "60s", value_parser = super::filter::duration_ms, value_name = "DURATION")]
    timeout: i64,
}

impl WaitArguments {
    /// How long.
    pub(super) fn timeout(self) -> Duration {
        Duration::from_millis(u64::try_from(self.timeout).unwrap_or_default())
    }
}

/// Waits for one task and prints its end.
pub(super) async fn one(
    store: &Store,
    id: Uuid,
    timeout: Duration,
    wanted: State,
    output: Output,
) -> Result<Exit, Failure> {
    match store.wait(id, timeout).await? {
        Some(task) => {
            told(&task, output);
            Ok(verdict(State::from_number(task.state) == wanted))
        }
        None => Err(too_long(id, timeout)),
    }
}

/// Waits for all of them, whatever their order, and prints their ends.
pub(super) async fn all(
    store: &Store,
    ids: &[Uuid],
    timeout: Duration,
    wanted: State,
    output: Output,
) -> Result<Exit, Failure> {
    if let [id] = ids {
        return one(store, *id, timeout, wanted, output).await;
    }
    let until = Instant::now() + timeout;
    let mut rows = Rows::new(output, &["id", "state", "error"]);
    let mut good = true;
    let mut late = Vec::new();
    for id in ids {
        let left = until.saturating_duration_since(Instant::now());
        let ended = if left.is_zero() {
            // The time is up for all; some have ended meanwhile.
            let now = store.task(*id).await?;
            now.filter(|task| State::from_number(task.state).is_terminal())
        } else {
            store.wait(*id, left).await?
        };
        match ended {
            Some(task) => {
                let state = State::from_number(task.state);
                good &= state == wanted;
                let error = task
                    .error
                    .as_ref()
                    .map(Value::to_string)
                    .unwrap_or_default();
                rows.push(
                    || vec![id.to_string(), standing(state, task.parked), error],
                    || document(&task),
                );
            }
            None => late.push(*id),
        }
    }
    rows.finish();
    match late.first() {
        None => Ok(verdict(good)),
        Some(first) if late.len() == 1 => Err(too_long(*first, timeout)),
        Some(first) => Err(Failure::new(
            Exit::TimedOut,
            format!(
                "{} tasks have not ended within {} s, {first} among them; they go on",
                late.len(),
                timeout.as_secs_f64()
            ),
        )),
    }
}

fn verdict(good: bool) -> Exit {
    if good { Exit::Done } else { Exit::TaskFailed }
}

fn too_long(id: Uuid, timeout: Duration) -> Failure {
    Failure::new(
        Exit::TimedOut,
        format!(
            "task {id} has not ended within {} s; it goes on; see `aegis task watch {id}`",
            timeout.as_secs_f64()
        ),
    )
}

fn document(task: &TaskDetail) -> Value {
    json!({
        "id": task.id, "state": State::from_number(task.state).word(),
        "result": task.result.as_deref().map(payload), "error": task.error,
    })
}

/// The end of one task.
pub(super) fn told(task: &TaskDetail, output: Output) {
    let result = task.result.as_deref().map(payload);
    let text = |value: Option<&Value>| value.map(Value::to_string).unwrap_or_default();
    output.one(
        &[
            ("task", task.id.to_string()),
            (
                "state",
                standing(State::from_number(task.state), task.parked),
            ),
            ("result", text(result.as_ref())),
            ("error", text(task.error.as_ref())),
        ],
        &document(task),
    );
}
