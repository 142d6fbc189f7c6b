//! `aegis lane list`.

use aegis_store::survey::{LaneFilter, LaneSummary};
use clap::Args;
use jiff::{Timestamp, Unit};
use serde_json::{Value, json};

use crate::database::DatabaseArguments;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Output;

const COLUMNS: [&str; 10] = [
    "lane",
    "state",
    "ready",
    "oldest",
    "scheduled",
    "running",
    "waiting",
    "reconciling",
    "parked",
    "readers",
];

/// Which ones.
#[derive(Debug, Args)]
pub(super) struct ListArguments {
    /// Of this queue.
    #[arg(long)]
    queue: Option<String>,
    /// Of this kind.
    #[arg(long)]
    kind: Option<String>,
    /// Those where nothing stands, too.
    #[arg(long)]
    all: bool,
    /// At most so many.
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(i64).range(1..=100_000))]
    limit: i64,
}

/// Prints them.
pub(super) async fn run(
    arguments: ListArguments,
    database: &DatabaseArguments,
    output: Output,
) -> Result<Exit, Failure> {
    let filter = LaneFilter {
        queue: arguments.queue,
        kind: arguments.kind,
        all: arguments.all,
        limit: arguments.limit,
    };
    let found = database.connect().await?.lanes_by(&filter).await?;
    output.list(
        &COLUMNS,
        found.iter().map(row).collect(),
        found.iter().map(summary).collect(),
    );
    Ok(Exit::Done)
}

fn row(lane: &LaneSummary) -> Vec<String> {
    let (word, paused) = state(lane);
    let state = if paused.is_empty() {
        word.to_owned()
    } else {
        format!("{word} ({paused})")
    };
    vec![
        name(lane),
        state,
        lane.ready.to_string(),
        age(lane.oldest_ready_at),
        lane.scheduled.to_string(),
        lane.running.to_string(),
        lane.waiting.to_string(),
        lane.reconciling.to_string(),
        lane.parked.to_string(),
        lane.readers.to_string(),
    ]
}

/// As `aegis task list` writes it: queue/kind, and the protocols of what is stored.
fn name(lane: &LaneSummary) -> String {
    if lane.lo == lane.hi {
        format!("{}/{} {}", lane.queue, lane.kind, lane.lo)
    } else {
        format!("{}/{} {}..{}", lane.queue, lane.kind, lane.lo, lane.hi)
    }
}

/// Paused by somebody, read by nobody, or open.
fn state(lane: &LaneSummary) -> (&'static str, String) {
    let live = lane.ready + lane.scheduled + lane.running + lane.waiting + lane.reconciling;
    if !lane.paused.is_empty() {
        ("paused", lane.paused.join("; "))
    } else if lane.readers == 0 && live > 0 {
        ("stranded", String::new())
    } else if lane.readers == 0 {
        ("unread", String::new())
    } else {
        ("open", String::new())
    }
}

fn age(since: Option<Timestamp>) -> String {
    let Some(since) = since else {
        return String::new();
    };
    let seconds = (Timestamp::now() - since)
        .total(Unit::Second)
        .unwrap_or_default()
        .max(0.0);
    if seconds < 120.0 {
        format!("{seconds:.0} s")
    } else if seconds < 7200.0 {
        format!("{:.0} min", seconds / 60.0)
    } else {
        format!("{:.0} h", seconds / 3600.0)
    }
}

fn summary(lane: &LaneSummary) -> Value {
    json!({
        "name": name(lane), "queue": lane.queue, "kind": lane.kind, "protocol_lo": lane.lo, "protocol_hi": lane.hi,
        "state": state(lane).0, "ready": lane.ready, "oldest_ready_at": lane.oldest_ready_at.map(|t| t.to_string()),
        "scheduled": lane.scheduled, "running": lane.running, "waiting": lane.waiting, "reconciling": lane.reconciling,
        "parked": lane.parked, "readers": lane.readers, "paused": lane.paused,
    })
}
