//! `aegis migrate backfill`: how the jobs that move rows stand, and what people tell them.
//!
//! Invariants: a job is told without folder and mutex, since it is told while it runs; what was told holds when the command ends.

use aegis_backfill::job::Who;
use aegis_backfill::job::control::{self, Command, ControlError, FailedRow, Status};
use aegis_migrate::change::ChangeId;
use aegis_migrate::ledger;
use aegis_migrate::run::{RunError, data};
use aegis_migrate::set::Set;
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use tokio_postgres::Client;

use super::by::ByArguments;
use super::contract::no_such;
use super::{Place, connect, connect_to_write, on_target, reason};
use crate::commands::find;
use crate::exit::Exit;
use crate::failure::{Failure, chain};
use crate::output::{Output, line, note};

/// Below its help.
pub(crate) const AFTER: &str = "`aegis migrate run --phase migrate` runs the jobs. One that is paused keeps its runner, which waits; without a runner it is \
    paused still when the next one comes. Nothing that was committed is taken back by any of these.";

/// Failed rows that are shown.
const FAILED_SHOWN: i64 = 20;

#[derive(Debug, Args)]
pub(crate) struct BackfillArguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Shows the jobs of a database, or one with the rows that could not be moved.
    Status(StatusArguments),
    /// Runs the job of one change to its end, also after its phase: for rows that a reconciliation has found.
    Run(RunArguments),
    /// No more batches until it is resumed.
    Pause(TellArguments),
    /// Goes on.
    Resume(TellArguments),
    /// Ends it where it is.
    Cancel(TellArguments),
    /// Lets one that failed or was cancelled run again: first the rows that could not be moved, then from where it was.
    Retry(RetryArguments),
}

#[derive(Debug, Args)]
struct StatusArguments {
    /// The change.
    #[arg(value_name = "ID")]
    id: Option<ChangeId>,
}

#[derive(Debug, Args)]
struct RunArguments {
    /// The change.
    #[arg(value_name = "ID")]
    id: ChangeId,
    #[command(flatten)]
    by: ByArguments,
}

#[derive(Debug, Args)]
struct TellArguments {
    /// The change.
    #[arg(value_name = "ID")]
    id: ChangeId,
    /// Why; kept with who.
    #[arg(long, value_parser = reason::read)]
    reason: String,
    /// Who; default: the user of the shell.
    #[arg(long)]
    actor: Option<String>,
}

#[derive(Debug, Args)]
struct RetryArguments {
    #[command(flatten)]
    tell: TellArguments,
    /// From the first row on, also of a job that is done: for rows that a reconciliation has found. What agrees is left alone; a
    /// statement of your own runs again over every row.
    #[arg(long)]
    restart: bool,
}

pub(crate) async fn run(arguments: &BackfillArguments, place: &Place<'_>) -> Result<Exit, Failure> {
    let (tell, command) = match &arguments.verb {
        Verb::Status(status) => {
            let client = connect(place.database.direct()?).await?;
            return shown(&client, status.id.as_ref(), place).await;
        }
        Verb::Run(job) => return moved(job, place).await,
        Verb::Pause(tell) => (tell, Command::Pause),
        Verb::Resume(tell) => (tell, Command::Resume),
        Verb::Cancel(tell) => (tell, Command::Cancel),
        Verb::Retry(retry) if retry.restart => (&retry.tell, Command::Restart),
        Verb::Retry(retry) => (&retry.tell, Command::Retry),
    };
    let client = connect_to_write(place.database.direct()?).await?;
    let by = find::actor(tell.actor.clone());
    if ledger::find(&client)
        .await
        .map_err(|error| Failure::new(Exit::Migrate(20), chain(&error)))?
        .is_none()
    {
        return Err(failure(&ControlError::NoJob {
            change: tell.id.to_string(),
        }));
    }
    if matches!(command, Command::Restart) {
        data::refuse_old_over_new(&client, tell.id.as_str())
            .await
            .map_err(|error| on_target::failure(&error))?;
    }
    let moved = control::tell(&client, tell.id.as_str(), command, &by, &tell.reason)
        .await
        .map_err(|error| failure(&error))?;
    let outcome = if moved { "applied" } else { "nothing" };
    let state = control::status(&client, Some(tell.id.as_str()))
        .await
        .map_err(|error| failure(&error.into()))?
        .pop()
        .map_or_else(|| "forgotten".to_owned(), |job| job.state);
    place.output.one(
        &[("outcome", outcome.to_owned()), ("state", state.clone())],
        &json!({ "outcome": outcome, "change": tell.id, "state": state }),
    );
    Ok(Exit::Done)
}

/// A job without its phase. The ledger's tables are there after the mutex was had; it is not held meanwhile.
async fn moved(arguments: &RunArguments, place: &Place<'_>) -> Result<Exit, Failure> {
    let set = Set::read(&place.dir)?;
    let change = set
        .changes
        .get(&arguments.id)
        .ok_or_else(|| no_such(&set, &arguments.id))?;
    set.sealed()?;
    let held = arguments.by.held(place).await?;
    let who = Who {
        run: held.who.run.clone(),
        by: held.who.by.clone(),
        release: held.who.release.clone(),
    };
    let stands = data::applied(&held.session.client, &set).await;
    let again = held.session.again();
    held.release().await;
    let stands = stands.map_err(|error| on_target::failure(&error))?;
    on_target::expanded(&stands, &arguments.id)?;
    let session = again(format!("aegis backfill/{}", who.run))
        .await
        .map_err(|error| on_target::failure(&error.into()))?;
    let is_json = place.output == Output::Json;
    let mut told = |event: &Value| {
        if is_json {
            line(&event.to_string());
        } else if let Some(words) = words(event) {
            note(&words);
        }
    };
    let (stop, stops) = super::run::stop()?;
    let wait = arguments.by.wait();
    let ended = tokio::select! {
        ended = data::backfill(&session, change, &who, data::Patience::of_a_command(wait), &mut told) => ended,
        // A batch that is not committed has changed nothing.
        () = super::run::stopped(stops) => Err(RunError::Interrupted),
    };
    drop(stop);
    let report = ended.map_err(|error| on_target::failure(&error))?;
    let outcome = if report.was_done {
        "nothing"
    } else {
        "applied"
    };
    place.output.one(
        &[
            ("outcome", outcome.to_owned()),
            ("rows seen", report.rows_seen.to_string()),
            ("rows changed", report.rows_changed.to_string()),
        ],
        &json!({ "outcome": outcome, "change": arguments.id, "report": report }),
    );
    Ok(Exit::Done)
}

async fn shown(client: &Client, id: Option<&ChangeId>, place: &Place<'_>) -> Result<Exit, Failure> {
    let of = |error: tokio_postgres::Error| failure(&error.into());
    let id = id.map(ChangeId::as_str);
    let jobs = control::status(client, id).await.map_err(of)?;
    let (Some(id), Some(job)) = (id, jobs.first()) else {
        if let Some(id) = id {
            return Err(failure(&ControlError::NoJob {
                change: id.to_owned(),
            }));
        }
        let rows = jobs
            .iter()
            .map(|job| vec![job.change.clone(), stands(job), job.progress.words()]);
        place.output.list(
            &["change", "state", "progress"],
            rows.collect(),
            jobs.iter().map(|job| json!(job)).collect(),
        );
        return Ok(Exit::Done);
    };
    let failed = control::failed_rows(client, id, FAILED_SHOWN)
        .await
        .map_err(of)?;
    let mut fields = vec![
        ("change", job.change.clone()),
        ("state", stands(job)),
        ("progress", job.progress.words()),
        (
            "tables",
            format!("{} of {} done", job.leaves_done, job.leaves),
        ),
        ("next batch", format!("{} rows", job.batch_rows)),
    ];
    let more = [
        ("waiting", job.waiting.clone()),
        ("error", job.error.clone()),
        ("runner", job.runner.clone()),
    ];
    fields.extend(
        more.into_iter()
            .filter_map(|(name, value)| Some((name, value?))),
    );
    place
        .output
        .one(&fields, &json!({ "job": job, "failed_rows": failed }));
    for row in &failed {
        note(&row_words(row));
    }
    Ok(Exit::Done)
}

/// The state, with who moved it and whether anybody is at work.
fn stands(job: &Status) -> String {
    match (job.state.as_str(), &job.runner) {
        ("running", None) => {
            "running, but nobody runs it: `aegis migrate run --phase migrate` goes on".to_owned()
        }
        ("paused" | "cancelled", _) => {
            format!("{} by {} ({})", job.state, job.state_by, job.state_reason)
        }
        (state, _) => state.to_owned(),
    }
}

fn row_words(row: &FailedRow) -> String {
    format!(
        "{} ({}): {} ({}), tried {} times",
        row.leaf,
        row.key.join(", "),
        row.said,
        row.sqlstate,
        row.attempts
    )
}

/// An event of a job or a pass, in words. None: it is another one's, or for programs.
pub(super) fn words(event: &Value) -> Option<String> {
    let text = |name: &str| event[name].as_str().unwrap_or_default();
    let words = match event["event"].as_str()? {
        "backfill" => format!("{}: {}", text("leaf"), text("words")),
        "backfill_waits" => format!("the backfill waits: {}", text("why")),
        "backfill_row_failed" => format!(
            "{} {}: {} ({})",
            text("leaf"),
            event["key"],
            text("said"),
            text("sqlstate")
        ),
        "backfill_leaf" => format!("{} {}", text("leaf"), text("state")),
        "reconcile" => format!(
            "{}: {} of {} pages read, {} rows are wrong",
            text("leaf"),
            event["pages_read"],
            event["pages"],
            event["wrong"]
        ),
        _ => return None,
    };
    Some(words)
}

fn failure(error: &ControlError) -> Failure {
    let code = match error {
        ControlError::NoJob { .. } => 21,
        ControlError::NotNow { .. } => 2,
        _ => 20,
    };
    Failure::new(Exit::Migrate(code), chain(error))
}
