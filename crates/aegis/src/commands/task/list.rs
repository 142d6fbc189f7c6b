//! `aegis task list`.

use aegis_model::State;
use aegis_store::Store;
use aegis_store::view::TaskSummary;
use clap::Args;
use serde_json::{Value, json};
use uuid::Uuid;

use super::filter::FilterArguments;
use super::rows::Rows;
use crate::failure::Failure;
use crate::output::{Output, at, maybe_at, note, unread};

/// How many rows a page has.
const PAGE: i64 = 1000;

#[derive(Debug, Args)]
pub(super) struct ListArguments {
    #[command(flatten)]
    filter: FilterArguments,
    /// Older than this task: the next page.
    #[arg(long, value_name = "ID")]
    before: Option<Uuid>,
    /// At most so many; 0: all.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(i64).range(0..))]
    limit: i64,
}

const COLUMNS: &[&str] = &[
    "id",
    "state",
    "queue/kind",
    "tenant",
    "protocol",
    "epoch",
    "failures",
    "interruptions",
    "crashes",
    "snoozes",
    "submitted",
    "runs at",
    "ended",
];

pub(super) async fn run(
    arguments: ListArguments,
    store: &Store,
    output: Output,
) -> Result<(), Failure> {
    let mut filter = arguments.filter.filter();
    filter.before = arguments.before;
    let mut walk = store.walk(&filter).await?;
    let mut left = if arguments.limit == 0 {
        i64::MAX
    } else {
        arguments.limit
    };
    let mut rows = Rows::new(output, COLUMNS);
    let mut last = None;
    while left > 0 && !walk.is_done() && !unread() {
        let page = walk.page(store, left.min(PAGE)).await?;
        left -= i64::try_from(page.len()).unwrap_or(left);
        last = page.last().map(|task| task.id).or(last);
        for task in &page {
            rows.push(|| row(task), || summary(task));
        }
    }
    rows.finish();
    if let Some(id) = last.filter(|_| left == 0 && output == Output::Table) {
        note(&format!("there may be more: --before {id}, or --limit 0"));
    }
    Ok(())
}

/// `failed` says too little: is somebody going to decide, or has somebody?
pub(super) fn standing(state: State, parked: bool) -> String {
    match (state.is_parked(), parked) {
        (true, true) => format!("{state} (parked)"),
        (true, false) => format!("{state} (discarded)"),
        _ => state.to_string(),
    }
}

pub(super) fn protocols(lo: i32, hi: i32) -> String {
    if lo == hi {
        lo.to_string()
    } else {
        format!("{lo}..{hi}")
    }
}

fn row(t: &TaskSummary) -> Vec<String> {
    vec![
        t.id.to_string(),
        standing(State::from_number(t.state), t.parked),
        format!("{}/{}", t.queue, t.kind),
        t.tenant.clone(),
        protocols(t.lo, t.hi),
        t.epoch.to_string(),
        t.failures.to_string(),
        t.interruptions.to_string(),
        t.crashes.to_string(),
        t.snoozes.to_string(),
        at(t.submitted_at),
        maybe_at(t.run_at),
        maybe_at(t.finished_at),
    ]
}

fn summary(t: &TaskSummary) -> Value {
    json!({
        "id": t.id, "state": State::from_number(t.state).word(), "parked": t.parked, "queue": t.queue, "kind": t.kind,
        "protocol_lo": t.lo, "protocol_hi": t.hi, "tenant": t.tenant, "priority": t.priority, "epoch": t.epoch,
        "failures": t.failures, "interruptions": t.interruptions, "crashes": t.crashes, "snoozes": t.snoozes,
        "owner": t.owner, "run_at": t.run_at.map(|x| x.to_string()), "submitted_at": t.submitted_at.to_string(),
        "finished_at": t.finished_at.map(|x| x.to_string()), "error": t.error,
    })
}
