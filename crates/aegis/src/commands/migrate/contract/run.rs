//! `contract run`: the old form goes.
//!
//! Invariants: a signal cancels what is under way, which is rolled back; the first error is what is told.

use std::path::{Path, PathBuf};
use std::time::Duration;

use aegis_migrate::change::ChangeId;
use aegis_migrate::contract::envelope::Envelope;
use aegis_migrate::contract::error::ContractError;
use aegis_migrate::run::contract::{self as runner, Brought};
use aegis_migrate::run::{Ladder, Outcome, RunError};
use aegis_migrate::set::Set;
use aegis_store::{Config, install};
use clap::Args;
use serde_json::{Value, json};

use super::{failure, keyring, subject};
use crate::commands::migrate::Place;
use crate::commands::migrate::by::ByArguments;
use crate::commands::migrate::run::signalled;
use crate::exit::Exit;
use crate::failure::{Failure, chain};
use crate::output::{Output, line, note};

/// Below its help.
pub(super) const AFTER: &str = "The statements of tighten run one by one. Then one transaction takes the locks, asserts that the door is shut, that the sync \
    trigger is the one of the last pass and that the approval is unused, drops the trigger, executes contract.sql, and uses the approval \
    up. What cannot run in a transaction stands above or below all that can. A run that was killed goes on where it was.";

#[derive(Debug, Args)]
pub(super) struct RunArguments {
    /// The change.
    #[arg(value_name = "ID")]
    id: ChangeId,
    /// A signed approval; once for each file.
    #[arg(long, value_name = "FILE")]
    approval: Vec<PathBuf>,
    #[command(flatten)]
    by: ByArguments,
    /// How long one lock is waited for; everybody behind it waits too.
    #[arg(long, default_value_t = 300, value_name = "MILLISECONDS", value_parser = clap::value_parser!(u64).range(1..=60_000))]
    lock_timeout_ms: u64,
    /// How often a transaction is tried whose locks are not had.
    #[arg(long, default_value_t = 30, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=1000))]
    tries: u32,
}

pub(super) async fn run(
    arguments: &RunArguments,
    place: &Place<'_>,
    approvers: &Path,
) -> Result<Exit, Failure> {
    let set = Set::read(&place.dir)?;
    subject(&set, &arguments.id)?;
    let keyring = keyring(approvers)?;
    let mut envelopes = Vec::new();
    for file in &arguments.approval {
        let named = file.display().to_string();
        let text = super::read(file, "hand in what `contract approve` has written")?;
        let envelope = Envelope::read(&text, &named).map_err(|error| failure(&error.into()))?;
        envelopes.push((named, envelope));
    }
    let ladder = Ladder {
        lock_timeout: Duration::from_millis(arguments.lock_timeout_ms),
        tries: arguments.tries,
        ..Ladder::default()
    };
    let mut held = arguments.by.held(place).await?;
    let cancel = held.session.cancel.clone();
    let config = Config::from_url(place.database.direct()?)
        .map_err(|error| Failure::new(Exit::Migrate(17), chain(&error)))?;
    let (_, tls) = install::direct_parts(&config);
    let is_json = place.output == Output::Json;
    let mut told = |event: &Value| {
        if is_json {
            line(&event.to_string());
        } else if let Some(step) = event.get("step").and_then(Value::as_str) {
            let state = event.get("state").and_then(Value::as_str);
            note(&format!("{step} {}", state.unwrap_or_default()));
        }
    };
    let brought = Brought {
        change: &arguments.id,
        keyring: &keyring,
        envelopes: &envelopes,
    };
    let ended = tokio::select! {
        ended = runner::run(&mut held, &set, &brought, &ladder, &mut told) => ended,
        signal = signalled() => {
            signal?;
            if let Err(error) = cancel.send(tls).await {
                tracing::warn!(error = %chain(&error), "what is under way could not be cancelled: it ends with the session");
            }
            Err(RunError::Interrupted.into())
        }
    };
    let interrupted = matches!(&ended, Err(ContractError::Run(RunError::Interrupted)));
    if interrupted {
        // The ledger says what was under way; where the session is lost too, the next run finds it by what is there.
        if let Err(error) = aegis_migrate::run::interrupted(&mut held).await {
            tracing::warn!(%error, "the end of this run is not in the ledger");
        }
    }
    held.release().await;
    let summary = ended.map_err(|error| failure(&error))?;
    let outcome = match summary.outcome {
        Outcome::Applied => "applied",
        Outcome::Nothing | Outcome::Ahead => "nothing",
    };
    place.output.one(
        &[
            ("outcome", outcome.to_owned()),
            ("applied", summary.applied.to_string()),
            ("reconciled", summary.reconciled.to_string()),
            ("attempt", summary.attempt.to_string()),
            ("approved by", summary.approved_by.join(", ")),
        ],
        &json!(summary),
    );
    Ok(Exit::Done)
}
