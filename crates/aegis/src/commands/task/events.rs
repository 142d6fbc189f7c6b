//! `aegis task events`: what happened to a task, once or as it happens.
//!
//! Invariant: with `--follow` the stored events are read again and again and compared with what was printed, so that one
//! whose transaction was slow is printed too; nothing is printed twice.

use std::collections::BTreeMap;
use std::time::Duration;

use aegis_model::State;
use aegis_store::Store;
use aegis_store::view::TaskEvent;
use clap::Args;
use serde_json::{Value, json};

use crate::commands::find;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{Output, at, line, unread};

const EVERY: Duration = Duration::from_millis(300);

#[derive(Debug, Args)]
pub(super) struct EventsArguments {
    /// Its id, or the beginning of it.
    id: String,
    /// Goes on until the task has ended. JSON and YAML are then one object a line.
    #[arg(long, short)]
    follow: bool,
    /// With --follow: gives up after so long (exit code 6).
    #[arg(long, default_value = "1h", value_parser = super::filter::duration_ms, value_name = "DURATION")]
    timeout: i64,
}

const COLUMNS: &[&str] = &["at", "epoch", "what", "worker", "actor", "detail"];

pub(super) async fn run(
    arguments: EventsArguments,
    store: &Store,
    output: Output,
) -> Result<Exit, Failure> {
    let id = find::task(store, &arguments.id).await?;
    if !arguments.follow {
        let events = store.events(id).await?;
        output.list(
            COLUMNS,
            events.iter().map(row).collect(),
            events.iter().map(document).collect(),
        );
        return Ok(Exit::Done);
    }
    let mut printed: BTreeMap<String, usize> = BTreeMap::new();
    let following = async {
        loop {
            // The state first: what happened before it ended is then among the events.
            let task = store.task(id).await?;
            let events = store.events(id).await?;
            let mut now: BTreeMap<String, usize> = BTreeMap::new();
            for event in &events {
                let seen = now.entry(document(event).to_string()).or_default();
                *seen += 1;
                let before = printed.entry(document(event).to_string()).or_default();
                if *seen > *before {
                    *before = *seen;
                    print(event, output);
                }
            }
            if unread() || task.is_none_or(|task| State::from_number(task.state).is_terminal()) {
                return Ok(Exit::Done);
            }
            tokio::time::sleep(EVERY).await;
        }
    };
    let timeout = Duration::from_millis(u64::try_from(arguments.timeout).unwrap_or_default());
    match tokio::time::timeout(timeout, following).await {
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

fn print(event: &TaskEvent, output: Output) {
    match output {
        Output::Table => {
            let mut words = row(event);
            words.retain(|word| !word.is_empty());
            let shown: String = words
                .join("  ")
                .chars()
                .map(|c| if c.is_control() { ' ' } else { c })
                .collect();
            line(&shown);
        }
        Output::Json => line(&document(event).to_string()),
        Output::Yaml => line(&format!("- {}", document(event))),
        Output::Name => line(&event.cause),
    }
}

fn row(event: &TaskEvent) -> Vec<String> {
    vec![
        at(event.at),
        event.epoch.to_string(),
        event.cause.clone(),
        event.owner.map(|id| id.to_string()).unwrap_or_default(),
        event.actor.clone().unwrap_or_default(),
        event
            .detail
            .as_ref()
            .map(Value::to_string)
            .unwrap_or_default(),
    ]
}

/// The object of an event.
pub(super) fn document(e: &TaskEvent) -> Value {
    json!({
        "at": e.at.to_string(), "epoch": e.epoch, "name": e.cause, "cause": e.cause, "owner": e.owner,
        "claimed_at": e.claimed_at.map(|x| x.to_string()), "actor": e.actor, "detail": e.detail,
    })
}
