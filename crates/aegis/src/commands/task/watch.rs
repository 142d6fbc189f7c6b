//! `aegis task watch`: level-triggered, so that nothing is missed by not having listened.

use std::time::Duration;

use aegis_model::{ErrorCode, State};
use aegis_store::Store;
use clap::Args;
use jiff::Timestamp;

use super::list::standing;
use crate::commands::find;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{Output, at, line, note};

const EVERY: Duration = Duration::from_millis(200);

#[derive(Debug, Args)]
pub(super) struct WatchArguments {
    /// Its id, or the beginning of it.
    id: String,
    /// Gives up after so long (exit code 6); seconds, or with a unit.
    #[arg(long, default_value = "1h", value_parser = super::filter::duration_ms, value_name = "DURATION")]
    timeout: i64,
}

pub(super) fn missing(prefix: &str) -> Failure {
    Failure::new(Exit::NotFound, format!("there is no task `{prefix}`"))
        .with_code(ErrorCode::NOT_FOUND)
}

pub(super) async fn run(
    arguments: WatchArguments,
    store: &Store,
    output: Output,
) -> Result<Exit, Failure> {
    let prefix = arguments.id.as_str();
    let id = find::task(store, prefix).await?;
    let mut seen = None;
    let watching = async {
        loop {
            let task = store.task(id).await?.ok_or_else(|| missing(prefix))?;
            let state = State::from_number(task.state);
            let now = (
                state,
                task.epoch,
                task.failures,
                task.run_at,
                task.cancel_at,
            );
            if seen != Some(now) {
                seen = Some(now);
                let mut text = format!(
                    "{}  {} at epoch {}",
                    at(Timestamp::now()),
                    standing(state, task.parked),
                    task.epoch
                );
                if let Some(run_at) = task.run_at {
                    text = format!("{text}, until {}", at(run_at));
                }
                if task.cancel_at.is_some() {
                    text.push_str(", asked to stop");
                }
                // What a program reads is the end, and nothing before it.
                if output == Output::Table {
                    line(&text);
                } else {
                    note(&text);
                }
            }
            if state.is_terminal() {
                super::wait::told(&task, output);
                return Ok(if state == State::Succeeded {
                    Exit::Done
                } else {
                    Exit::TaskFailed
                });
            }
            tokio::time::sleep(EVERY).await;
        }
    };
    let timeout = Duration::from_millis(u64::try_from(arguments.timeout).unwrap_or_default());
    match tokio::time::timeout(timeout, watching).await {
        Ok(exit) => exit,
        Err(_) => Err(Failure::new(
            Exit::TimedOut,
            format!(
                "task {id} has not ended within {} s; it goes on",
                timeout.as_secs_f64()
            ),
        )),
    }
}
