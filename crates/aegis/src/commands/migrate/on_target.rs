//! One run on one database: what `run` does once, and once for each target.
//!
//! Invariants: a signal cancels what is under way, the ledger says so, and the mutex is given back; the first error is what is told.

use std::time::Duration;

use aegis_migrate::change::{ChangeId, Phase};
use aegis_migrate::ledger::LedgerName;
use aegis_migrate::mutex::{Held, RunName};
use aegis_migrate::run::{self as runner, Ladder, RunError, Summary};
use aegis_migrate::session::Direct;
use aegis_migrate::set::Set;
use aegis_migrate::standing::Standing;
use aegis_model::ErrorCode;
use aegis_store::{Config, install};
use serde_json::{Value, json};
use tokio_postgres::Client;

use crate::exit::Exit;
use crate::failure::{Failure, chain};

/// How long a run that was asked to end may take to say so in the ledger.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// What is to be run.
#[derive(Debug, Clone)]
pub(crate) struct Job {
    /// Who.
    pub(crate) name: RunName,
    /// Which phase.
    pub(crate) phase: Phase,
    /// How patiently.
    pub(crate) ladder: Ladder,
    /// How long another run is waited for.
    pub(crate) wait: Duration,
    /// Whose books.
    pub(crate) ledger: LedgerName,
}

/// A run that did not do all.
#[derive(Debug)]
pub(crate) struct Ended {
    /// Why.
    pub(crate) failure: Failure,
    /// The exit code.
    pub(crate) code: u8,
    /// As a program reads it.
    pub(crate) summary: Value,
}

impl From<RunError> for Ended {
    fn from(error: RunError) -> Self {
        let code = error.exit_code();
        let outcome = match error {
            RunError::Interrupted => "interrupted",
            _ => "failed",
        };
        Self {
            summary: json!({ "outcome": outcome, "exit_code": code, "error": error.whole() }),
            failure: failure(&error),
            code,
        }
    }
}

/// Runs it. `told` hears of each step; `stop` ends when somebody asks this process to end.
pub(crate) async fn run(
    url: &str,
    job: &Job,
    set: &Set,
    told: &mut (dyn FnMut(&Value) + Send),
    stop: impl Future<Output = ()>,
) -> Result<Summary, Ended> {
    tokio::pin!(stop);
    let config = config(url)?;
    let takes = async {
        let session = session(&config, &job.name.application_name()).await?;
        Ok::<Held, RunError>(Held::take_in(session, job.ledger, &job.name, job.wait).await?)
    };
    // Also while another run is waited for.
    let mut held = tokio::select! {
        biased;
        () = &mut stop => return Err(RunError::Interrupted.into()),
        taken = takes => taken?,
    };
    let cancel = held.session.cancel.clone();
    held.watch = watcher(&config).await;
    let mut summary = None;
    let mut hears = |event: &Value| {
        // The summary is told by the caller, last.
        if event["event"] == "ended" {
            summary = event.get("summary").cloned();
        } else {
            told(event);
        }
    };
    let ended = tokio::select! {
        ended = runner::run(&mut held, set, job.phase, &job.ladder, &mut hears) => ended,
        () = &mut stop => {
            // What the server is doing is cancelled; a transaction is rolled back.
            let (_, tls) = install::direct_parts(&config);
            if let Err(error) = cancel.send(tls).await {
                tracing::warn!(error = %chain(&error), "what is under way could not be cancelled: it ends with the session");
            }
            Err(RunError::Interrupted)
        }
    };
    match ended {
        Ok(done) => {
            held.release().await;
            Ok(done)
        }
        Err(RunError::Interrupted) => {
            // What was cancelled ends soon; a session that does not answer is left to its end.
            let marked = tokio::time::timeout(LAST_WORDS, runner::interrupted(&mut held)).await;
            match marked {
                Ok(Ok(())) => held.release().await,
                Ok(Err(error)) => {
                    tracing::warn!(error = %error.whole(), "the ledger could not be told of the end");
                }
                Err(_) => tracing::warn!("the session does not answer; it is left to its end"),
            }
            Err(RunError::Interrupted.into())
        }
        Err(error) => {
            held.release().await;
            let mut ended = Ended::from(error);
            if let Some(summary) = summary {
                ended.summary = summary;
            }
            Err(ended)
        }
    }
}

/// The settings of a connection.
pub(crate) fn config(url: &str) -> Result<Config, RunError> {
    Config::from_url(url).map_err(|error| {
        RunError::Session(aegis_migrate::session::SessionError::Unreachable {
            place: "the database".to_owned(),
            why: chain(&error),
        })
    })
}

/// A session of a runner.
pub(crate) async fn session(config: &Config, application_name: &str) -> Result<Direct, RunError> {
    let (postgres, tls) = install::direct_parts(config);
    Ok(Direct::connect(postgres, tls, application_name).await?)
}

/// The second connection, from which builds are watched. Without it they run unwatched.
async fn watcher(config: &Config) -> Option<Client> {
    let config = config.clone().with_application_name("aegis migrate watch");
    match install::connect_direct(&config).await {
        Ok(client) => Some(client),
        Err(error) => {
            tracing::warn!(error = %chain(&error), "there is no second connection: builds are not watched");
            None
        }
    }
}

/// What was seen of a build, in words.
pub(crate) fn build_words(event: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut words = vec![text(&event["step"])];
    if let Some(phase) = event["phase"].as_str() {
        words.push(phase.to_owned());
    }
    for unit in ["blocks", "tuples", "lockers"] {
        let number = |what: &str| event[unit][what].as_i64();
        if let (Some(done), Some(total)) = (number("done"), number("total")) {
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

/// A runner's error with its exit code, and its page where it has one.
pub(crate) fn failure(error: &RunError) -> Failure {
    let failure = Failure::new(Exit::Migrate(error.exit_code()), error.whole());
    match error {
        RunError::Edited(_) => failure.with_code(ErrorCode::HISTORY_EDITED),
        RunError::Requires(_) => failure.with_code(ErrorCode::REQUIRED_FIRST),
        RunError::Shape { .. } => failure.with_code(ErrorCode::STRUCTURE),
        _ => failure,
    }
}

/// That the expand of a change is applied, where it has one: what counts or moves its rows needs what that makes.
pub(super) fn expanded(stands: &Standing, id: &ChangeId) -> Result<(), Failure> {
    let expand = stands
        .lines
        .iter()
        .find(|line| line.line.at.id == *id && line.line.at.phase == Phase::Expand);
    match expand.filter(|line| !line.state.is_done()) {
        None => Ok(()),
        Some(line) => {
            let first = format!(
                "{} is not applied here; `aegis migrate run --phase expand` applies it",
                line.line.at
            );
            Err(Failure::new(Exit::Migrate(21), first).with_code(ErrorCode::REQUIRED_FIRST))
        }
    }
}
