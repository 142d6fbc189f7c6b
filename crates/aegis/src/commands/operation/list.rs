//! `aegis operation list`.

use std::time::Duration;

use aegis_store::Store;
use aegis_store::survey::{OperationFilter, OperationFound};
use clap::Args;
use serde_json::{Value, json};

use super::words::{ClassWord, StateWord, class_word, resolution_word, state_word};
use crate::commands::find;
use crate::database::DatabaseArguments;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{Output, at, maybe_at};

/// By what operations are picked.
#[derive(Debug, Clone, Args)]
pub(super) struct FilterArguments {
    /// Of this task (an id, or its beginning).
    #[arg(long)]
    pub(super) task: Option<String>,
    /// Of this tenant.
    #[arg(long)]
    pub(super) tenant: Option<String>,
    /// With this name.
    #[arg(long)]
    pub(super) name: Option<String>,
    /// Of this class.
    #[arg(long, value_enum)]
    pub(super) class: Option<ClassWord>,
    /// Dispatched at least so long ago: 90, 15m, 2h.
    #[arg(long, value_name = "AGE", value_parser = find::seconds)]
    pub(super) older_than: Option<Duration>,
}

impl FilterArguments {
    /// As the store takes it.
    pub(super) async fn filter(
        self,
        store: &Store,
        states: Vec<i16>,
        limit: i64,
    ) -> Result<OperationFilter, Failure> {
        let task = match self.task {
            Some(prefix) => Some(find::task(store, &prefix).await?),
            None => None,
        };
        Ok(OperationFilter {
            states,
            task,
            tenant: self.tenant,
            name: self.name,
            class: self.class.map(ClassWord::number),
            older_than_s: self.older_than.map(|age| age.as_secs_f64()),
            limit,
        })
    }

    /// Whether it picks at all.
    pub(super) fn is_given(&self) -> bool {
        self.task.is_some()
            || self.tenant.is_some()
            || self.name.is_some()
            || self.class.is_some()
            || self.older_than.is_some()
    }
}

#[derive(Debug, Args)]
pub(super) struct ListArguments {
    /// Of these states.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [StateWord::Unknown])]
    state: Vec<StateWord>,
    #[command(flatten)]
    filter: FilterArguments,
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
    let store = database.connect().await?;
    let states = arguments.state.into_iter().map(StateWord::number).collect();
    let filter = arguments
        .filter
        .filter(&store, states, arguments.limit)
        .await?;
    print(&store.operations_by(&filter).await?, output);
    Ok(Exit::Done)
}

/// Prints these.
pub(super) fn print(found: &[OperationFound], output: Output) {
    output.list(
        &[
            "id",
            "class",
            "state",
            "dispatched",
            "times",
            "epoch",
            "taken by",
            "note",
        ],
        found.iter().map(row).collect(),
        found.iter().map(summary).collect(),
    );
}

fn row(o: &OperationFound) -> Vec<String> {
    vec![
        o.id.clone(),
        class_word(o.class).to_owned(),
        state_word(o.state).to_owned(),
        maybe_at(o.dispatched_at),
        o.dispatches.to_string(),
        o.epoch.to_string(),
        o.taken_by.clone().unwrap_or_default(),
        o.evidence
            .clone()
            .or_else(|| o.note.clone())
            .unwrap_or_default(),
    ]
}

fn summary(o: &OperationFound) -> Value {
    json!({
        "id": o.id, "task": o.task, "tenant": o.tenant, "name": o.name, "key": o.key, "class": class_word(o.class), "state": state_word(o.state),
        "dispatches": o.dispatches, "epoch": o.epoch, "release": o.release, "dispatched_at": o.dispatched_at.map(at),
        "quiet_until": o.quiet_until.map(at), "note": o.note,
        "taken_by": o.taken_by, "resolution": resolution_word(o.resolution), "resolved_by": o.resolved_by, "evidence": o.evidence,
    })
}
