//! `aegis migrate run` and `unlock`: the runner, and the way out when its mutex is held by somebody who must go.
//!
//! Invariants: a line of JSON an event and a summary last with `--output json`; a signal cancels what is under way and gives the
//! mutex back; the first error is what is told.

use std::time::Duration;

use aegis_migrate::change::Phase;
use aegis_migrate::mutex::{self, Held, RunName};
use aegis_migrate::run::{self as runner, Ladder, Outcome, RunError};
use aegis_migrate::session::Direct;
use aegis_migrate::set::Set;
use aegis_model::ErrorCode;
use aegis_store::{Config, install};
use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use tokio::signal::unix::{SignalKind, signal};
use tokio_postgres::Client;

use super::Place;
use crate::exit::Exit;
use crate::failure::{Failure, chain};
use crate::output::{Output, Progress, line, note};

/// Below its help.
pub(crate) const AFTER: &str = "One statement, one transaction: all locks first, each waited for at most --lock-timeout-ms, and the whole transaction \
    again when they are not had. Concurrent builds run by themselves; one that was killed is judged by what is there when it is run \
    again. [sync], [backfill], [reconcile] and [contract] are not run by this release: a run that meets one stops there and says so.";

/// How long a run that was asked to end may take to say so in the ledger.
const LAST_WORDS: Duration = Duration::from_secs(5);

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
        default_value = "unnamed",
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
}

#[derive(Debug, Args)]
pub(crate) struct UnlockArguments {
    /// Ends the session of whoever holds the mutex. What it was doing is rolled back, or judged by what is there at the next run.
    #[arg(long, required = true)]
    terminate_holder: bool,
}

pub(crate) async fn run(arguments: &RunArguments, place: &Place<'_>) -> Result<Exit, Failure> {
    let set = Set::read(&place.dir)?;
    let name = RunName {
        run: uuid::Uuid::now_v7().simple().to_string()[20..].to_owned(),
        by: arguments.by.clone(),
        release: arguments.release.clone(),
    };
    let phase = match arguments.phase {
        PhaseArgument::Expand => Phase::Expand,
        PhaseArgument::Migrate => Phase::Migrate,
    };
    let ladder = Ladder {
        lock_timeout: Duration::from_millis(arguments.lock_timeout_ms),
        tries: arguments.tries,
        ..Ladder::default()
    };
    let session = session(place, &name.application_name()).await?;
    let cancel = session.cancel.clone();
    let mut held = Held::take(session, &name, Duration::from_secs(arguments.wait_s))
        .await
        .map_err(|error| failure(&error.into()))?;
    held.watch = watcher(place).await;
    let is_json = place.output == Output::Json;
    let progress = Progress::new("steps", None);
    let mut failed = None;
    let mut told = |event: &Value| {
        // The summary says it, last.
        if event.get("event").and_then(Value::as_str) == Some("ended") {
            failed = event.get("summary").cloned();
            return;
        }
        if is_json {
            line(&event.to_string());
        } else if event.get("event").and_then(Value::as_str) == Some("build") {
            note(&build_words(event));
        } else if let Some(step) = event.get("step").and_then(Value::as_str) {
            let state = event
                .get("state")
                .and_then(Value::as_str)
                .unwrap_or_default();
            progress.more(1);
            note(&format!("{step} {state}"));
        }
    };
    let config = config(place)?;
    let (_, tls) = install::direct_parts(&config);
    let ended = tokio::select! {
        ended = runner::run(&mut held, &set, phase, &ladder, &mut told) => ended,
        signal = signalled() => {
            signal?;
            // What the server is doing is cancelled; the transaction is rolled back with the session.
            cancel.cancel_query(tls).await.ok();
            Err(RunError::Interrupted)
        }
    };
    drop(progress);
    match ended {
        Ok(summary) => {
            held.release().await;
            let outcome = match summary.outcome {
                Outcome::Applied => "applied",
                Outcome::Nothing => "nothing",
                Outcome::Ahead => "ahead",
            };
            place.output.one(
                &[
                    ("outcome", outcome.to_owned()),
                    ("applied", summary.applied.to_string()),
                    ("reconciled", summary.reconciled.to_string()),
                    ("version", summary.version.to_string()),
                ],
                &json!(summary),
            );
            Ok(Exit::Done)
        }
        Err(error) => {
            if matches!(error, RunError::Interrupted) {
                // What was cancelled ends soon; a session that does not answer is left to its end.
                let marked =
                    tokio::time::timeout(LAST_WORDS, runner::interrupted(&mut held)).await;
                if matches!(marked, Ok(Ok(()))) {
                    held.release().await;
                }
                failed = Some(json!({ "outcome": "interrupted", "exit_code": error.exit_code() }));
            } else {
                held.release().await;
            }
            if is_json && let Some(summary) = failed {
                line(&summary.to_string());
            }
            Err(failure(&error))
        }
    }
}

pub(crate) async fn unlock(
    arguments: &UnlockArguments,
    place: &Place<'_>,
) -> Result<Exit, Failure> {
    debug_assert!(arguments.terminate_holder, "clap requires it");
    let session = session(place, "aegis migrate unlock").await?;
    let holder = mutex::holder(&session)
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

fn config(place: &Place<'_>) -> Result<Config, Failure> {
    Config::from_url(place.database.direct()?)
        .map_err(|error| Failure::new(Exit::Migrate(17), chain(&error)))
}

async fn session(place: &Place<'_>, application_name: &str) -> Result<Direct, Failure> {
    let config = config(place)?;
    let (postgres, tls) = install::direct_parts(&config);
    Direct::connect(postgres, tls, application_name)
        .await
        .map_err(|error| failure(&error.into()))
}

/// The second connection, from which builds are watched. Without it they run unwatched.
async fn watcher(place: &Place<'_>) -> Option<Client> {
    let config = config(place).ok()?.with_application_name("aegis migrate watch");
    match install::connect_direct(&config).await {
        Ok(client) => Some(client),
        Err(error) => {
            tracing::warn!(error = %chain(&error), "there is no second connection: builds are not watched");
            None
        }
    }
}

/// What was seen of a build, in words.
fn build_words(event: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut words = vec![text(&event["step"])];
    if let Some(phase) = event["phase"].as_str() {
        words.push(phase.to_owned());
    }
    for unit in ["blocks", "tuples", "lockers"] {
        if let (Some(done), Some(total)) = (
            event[unit]["done"].as_i64(),
            event[unit]["total"].as_i64(),
        ) {
            words.push(format!("{done} of {total} {unit}"));
        }
    }
    let blocker = &event["waits_for"];
    if let Some(pid) = blocker["pid"].as_i64() {
        words.push(format!(
            "waits for process {pid} ({}, {}, in a transaction for {} s)",
            text(&blocker["program"]),
            text(&blocker["state"]),
            blocker["transaction_age_s"]
        ));
    }
    words.join(", ")
}

/// Returns when somebody asks this process to end.
pub(super) async fn signalled() -> Result<(), Failure> {
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
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    Ok(())
}

/// A runner's error with its exit code, and its page where it has one.
fn failure(error: &RunError) -> Failure {
    let failure = Failure::new(Exit::Migrate(error.exit_code()), chain(error));
    match error {
        RunError::Edited(_) => failure.with_code(ErrorCode::HISTORY_EDITED),
        RunError::Requires(_) => failure.with_code(ErrorCode::REQUIRED_FIRST),
        RunError::Shape { .. } => failure.with_code(ErrorCode::STRUCTURE),
        _ => failure,
    }
}
