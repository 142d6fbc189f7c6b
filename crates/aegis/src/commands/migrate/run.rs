//! `aegis migrate run` and `unlock`: the runner, and the way out when its mutex is held by somebody who must go.
//!
//! Invariants: a line of JSON an event and a summary last with `--output json`; a signal cancels what is under way and gives the
//! mutex back; the first error is what is told.

use std::time::Duration;

use aegis_migrate::change::{Files, Phase, Problems};
use aegis_migrate::ledger::LedgerName;
use aegis_migrate::mutex::{self, RunName};
use aegis_migrate::run::{Ladder, Outcome, RunError, Summary};
use aegis_migrate::session::Direct;
use aegis_migrate::set::Set;
use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::on_target::{self, Job, failure};
use super::targets::{self, TargetArguments};
use super::{Place, many};
use crate::commands::find::UNNAMED;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{Output, Progress, line, note};

/// Below its help.
pub(crate) const AFTER: &str = "One statement, one transaction: all locks first, each waited for at most --lock-timeout-ms, and the whole transaction \
    again when they are not had. Concurrent builds run by themselves; one that was killed is judged by what is there when it is run \
    again; while one runs it is said how far it is and whom it waits for. Without a database on the command line, the databases and schemas of targets.toml, so many at once, until its stop rule holds. A contract has its own command.";

#[derive(Debug, Clone, Copy, ValueEnum)]
enum PhaseArgument {
    /// Before the new version starts.
    Expand,
    /// While both versions run.
    Migrate,
}

#[derive(Debug, Args)]
pub(crate) struct RunArguments {
    /// Which phase.
    #[arg(long, value_enum)]
    phase: PhaseArgument,
    /// Who runs it, for the ledger.
    #[arg(
        long,
        env = "AEGIS_MIGRATE_BY",
        hide_env_values = true,
        default_value = UNNAMED,
        value_name = "NAME"
    )]
    by: String,
    /// The release that brings the folder, for the ledger and pg_stat_activity.
    #[arg(
        long,
        env = "AEGIS_RELEASE",
        hide_env_values = true,
        default_value = "none",
        value_name = "RELEASE"
    )]
    release: String,
    /// How long another run is waited for, in seconds.
    #[arg(long, default_value_t = 300, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(0..=86_400))]
    wait_s: u64,
    /// How long one lock is waited for; everybody behind it waits too.
    #[arg(long, default_value_t = 300, value_name = "MILLISECONDS", value_parser = clap::value_parser!(u64).range(1..=60_000))]
    lock_timeout_ms: u64,
    /// How often a transaction is tried whose locks are not had.
    #[arg(long, default_value_t = 30, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=1000))]
    tries: u32,
    #[command(flatten)]
    only: TargetArguments,
}

#[derive(Debug, Args)]
pub(crate) struct UnlockArguments {
    /// Ends the session of whoever holds the mutex. What it was doing is rolled back, or judged by what is there at the next run.
    #[arg(long, required = true)]
    terminate_holder: bool,
    #[command(flatten)]
    only: TargetArguments,
}

pub(crate) async fn run(arguments: &RunArguments, place: &Place<'_>) -> Result<Exit, Failure> {
    let set = Set::read(&place.dir)?;
    super::tell_of_line_ends(&set);
    let job = Job {
        name: RunName {
            run: uuid::Uuid::now_v7().simple().to_string()[20..].to_owned(),
            by: arguments.by.clone(),
            release: arguments.release.clone(),
        },
        phase: match arguments.phase {
            PhaseArgument::Expand => Phase::Expand,
            PhaseArgument::Migrate => Phase::Migrate,
        },
        ladder: Ladder {
            lock_timeout: Duration::from_millis(arguments.lock_timeout_ms),
            tries: arguments.tries,
            ..Ladder::default()
        },
        wait: Duration::from_secs(arguments.wait_s),
        ledger: LedgerName::Application,
    };
    let resolved = targets::resolve(set.files(), place, &arguments.only).await?;
    if resolved.is_many {
        return many::run(job, set, resolved, place.output).await;
    }
    let is_json = place.output == Output::Json;
    let progress = Progress::new("steps", None);
    let mut told = |event: &Value| {
        if is_json {
            line(&event.to_string());
        } else if let Some(words) = words(event) {
            progress.more(1);
            note(&words);
        }
    };
    let (stop, stops) = stop()?;
    let url = place.database.direct()?;
    let ended = on_target::run(url, &job, &set, &mut told, stopped(stops)).await;
    drop((progress, stop));
    match ended {
        Ok(summary) => {
            place.output.one(
                &[
                    ("outcome", outcome(&summary).to_owned()),
                    ("applied", summary.applied.to_string()),
                    ("found done", summary.reconciled.to_string()),
                    ("version", summary.version.to_string()),
                ],
                &json!(summary),
            );
            Ok(Exit::Done)
        }
        Err(ended) => {
            if is_json {
                line(&ended.summary.to_string());
            }
            Err(ended.failure)
        }
    }
}

/// An event in words. None: it is for programs.
pub(super) fn words(event: &Value) -> Option<String> {
    if event["event"] == "build" {
        return Some(on_target::build_words(event));
    }
    if event["event"] == "reconciled" {
        let counts = event["counts"].as_array()?.iter();
        let words: Vec<String> = counts
            .map(|count| {
                format!(
                    "{}: {} missing, {} mismatching, {} orphaned",
                    count["kind"].as_str().unwrap_or_default(),
                    count["missing"],
                    count["mismatch"],
                    count["orphaned"]
                )
            })
            .collect();
        return Some(words.join("; "));
    }
    if event["event"] == "sync_loses" {
        return Some(format!(
            "{}: of {} rows that were tried, {} do not come back from the new side as they were, such as {}; what forward drops of them is lost when a new program writes these columns, and while it leaves them alone nothing is",
            event["table"].as_str().unwrap_or_default(),
            event["rows"],
            event["lost"],
            event["key"].as_str().unwrap_or("one without a key")
        ));
    }
    if event["event"] == "backfill_done" {
        let report = &event["report"];
        return Some(format!(
            "the backfill is done: {} rows seen, {} changed",
            report["rows_seen"], report["rows_changed"]
        ));
    }
    if let Some(words) = super::backfill::words(event) {
        return Some(words);
    }
    let (step, state) = (event["step"].as_str()?, event["state"].as_str()?);
    Some(format!("{step} {state}"))
}

/// How a run ended well, in a word.
pub(super) fn outcome(summary: &Summary) -> &'static str {
    match summary.outcome {
        Outcome::Applied => "applied",
        Outcome::Nothing => "nothing",
        Outcome::Ahead => "ahead",
    }
}

/// Turns true when somebody asks this process to end. The first is kept for as long as the second is looked at.
pub(super) fn stop() -> Result<(JoinSet<()>, watch::Receiver<bool>), Failure> {
    let asked = signalled_once()?;
    let (sender, receiver) = watch::channel(false);
    let mut waits = JoinSet::new();
    waits.spawn(async move {
        asked.await;
        sender.send_replace(true);
        // Until everybody has seen it.
        sender.closed().await;
    });
    Ok((waits, receiver))
}

/// Ends when that has turned true; never when nobody can turn it any more.
pub(super) async fn stopped(mut stops: watch::Receiver<bool>) {
    if stops.wait_for(|stop| *stop).await.is_err() {
        std::future::pending::<()>().await;
    }
}

pub(crate) async fn unlock(
    arguments: &UnlockArguments,
    place: &Place<'_>,
) -> Result<Exit, Failure> {
    debug_assert!(arguments.terminate_holder, "clap requires it");
    // The folder is read only for its targets: whoever must get a holder out of the way may have none at hand.
    let is_named = place.database.given().is_some() && arguments.only.is_empty();
    let files = if is_named {
        Files::default()
    } else {
        Files::read(&place.dir).map_err(Problems::from)?
    };
    let resolved = targets::resolve(&files, place, &arguments.only).await?;
    let target = resolved.one("unlock")?;
    let session = session(&target.url, "aegis migrate unlock").await?;
    let holder = mutex::holder_in(&session, target.ledger())
        .await
        .map_err(|error| failure(&error.into()))?;
    let Some(holder) = holder else {
        note("nobody holds the mutex");
        return Ok(Exit::Done);
    };
    let ended: bool = session
        .client
        .query_one(mutex::TERMINATE, &[&holder.pid])
        .await
        .and_then(|row| row.try_get(0))
        .map_err(|error| failure(&RunError::Database(error)))?;
    if !ended {
        return Err(Failure::new(
            Exit::Migrate(10),
            format!("{holder} did not end in 10 s; look at pg_stat_activity"),
        ));
    }
    place.output.one(
        &[("ended", holder.to_string())],
        &json!({ "ended": holder.to_string() }),
    );
    Ok(Exit::Done)
}

async fn session(url: &str, application_name: &str) -> Result<Direct, Failure> {
    let config = on_target::config(url).map_err(|error| failure(&error))?;
    on_target::session(&config, application_name)
        .await
        .map_err(|error| failure(&error))
}

/// Returns when somebody asks this process to end.
pub(super) async fn signalled() -> Result<(), Failure> {
    signalled_once()?.await;
    Ok(())
}

/// Listens from now on, and ends with the first signal.
fn signalled_once() -> Result<impl Future<Output = ()> + Send + 'static, Failure> {
    let on = |kind| {
        signal(kind).map_err(|error| {
            Failure::new(
                Exit::Broken,
                format!("signals cannot be listened to: {error}"),
            )
        })
    };
    let mut interrupt = on(SignalKind::interrupt())?;
    let mut terminate = on(SignalKind::terminate())?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    })
}
