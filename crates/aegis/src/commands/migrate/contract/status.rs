//! `contract status`: each fact as `contract run` would judge it now. It writes nothing.

use std::path::Path;

use aegis_migrate::change::ChangeId;
use aegis_migrate::contract::attempt::Attempt;
use aegis_migrate::contract::fact::{Fact, Standing};
use aegis_migrate::contract::judge;
use aegis_migrate::ledger;
use aegis_migrate::set::Set;
use aegis_model::ErrorCode;
use clap::Args;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{failure, keyring, of_run, subject};
use crate::commands::migrate::{Place, connect};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::note;

#[derive(Debug, Args)]
pub(super) struct StatusArguments {
    /// The change.
    #[arg(value_name = "ID")]
    id: ChangeId,
}

pub(super) async fn run(
    arguments: &StatusArguments,
    place: &Place<'_>,
    approvers: &Path,
) -> Result<Exit, Failure> {
    let set = Set::read(&place.dir)?;
    let subject = subject(&set, &arguments.id)?;
    let keyring = keyring(approvers)?;
    let client = connect(place.database.direct()?).await?;
    let found = match ledger::find(&client).await.map_err(of_run)? {
        Some(_) => Attempt::find(&client, &subject.id)
            .await
            .map_err(|error| failure(&error.into()))?,
        None => None,
    };
    let Some(attempt) = found else {
        let not = format!(
            "the door of {0} stands open; begin with `aegis migrate contract close {0}`",
            subject.id
        );
        return Err(Failure::new(Exit::Migrate(21), not).with_code(ErrorCode::REQUIRED_FIRST));
    };
    if let Some(at) = attempt.done_at {
        note(&format!("attempt {} was done at {at}", attempt.number));
        return Ok(Exit::Done);
    }
    let facts = judge::facts(&client, &subject, &attempt, &keyring)
        .await
        .map_err(of_run)?;
    note(&format!(
        "attempt {}, closed at {} by {}",
        attempt.number, attempt.closed_at, attempt.closed_by
    ));
    show(place, &facts, attempt.now);
    let blocked = facts.iter().any(|fact| fact.blocks(attempt.now).is_some());
    Ok(if blocked {
        Exit::Migrate(18)
    } else {
        Exit::Done
    })
}

/// The facts as a list, with what blocks and the way out.
pub(super) fn show(place: &Place<'_>, facts: &[Fact], now: Timestamp) {
    let rows = facts.iter().map(|fact| {
        let block = fact.blocks(now);
        vec![
            fact.need.to_string(),
            word(&fact.standing).to_owned(),
            block.map_or_else(String::new, |_| "blocks".to_owned()),
            fact.source.clone(),
            fact.at.map_or_else(String::new, |at| at.to_string()),
            fact.at.map_or_else(String::new, |at| {
                format!(
                    "{} s of {} s",
                    now.duration_since(at).as_secs(),
                    fact.age_limit_s
                )
            }),
            fact.detail.clone(),
        ]
    });
    let columns = ["fact", "standing", "", "source", "at", "age", "detail"];
    let documents = facts.iter().map(|fact| document(fact, now));
    place
        .output
        .list(&columns, rows.collect(), documents.collect());
    for block in facts.iter().filter_map(|fact| fact.blocks(now)) {
        note(&format!("{}: {}; {}", block.need, block.why, block.way_out));
    }
}

/// A fact with whether it blocks.
pub(super) fn document(fact: &Fact, now: Timestamp) -> Value {
    let mut document = json!(fact);
    document["age_s"] = json!(fact.at.map(|at| now.duration_since(at).as_secs()));
    document["blocks"] = json!(fact.blocks(now));
    document
}

fn word(standing: &Standing) -> &'static str {
    match standing {
        Standing::Shown => "shown",
        Standing::Attested { .. } => "attested",
        Standing::Excluded { .. } => "excluded",
        Standing::Refuted => "refuted",
        Standing::Inconclusive => "inconclusive",
        Standing::Missing => "missing",
    }
}
