//! `contract status`: each fact as `contract run` would judge it now, or what is in the way of closing.
//!
//! Invariants: it writes nothing, and tells what is missing rather than failing for it.

use std::path::Path;

use aegis_migrate::change::ChangeId;
use aegis_migrate::contract::attempt::Attempt;
use aegis_migrate::contract::fact::{Fact, Standing};
use aegis_migrate::contract::keyring::Keyring;
use aegis_migrate::contract::need::Need;
use aegis_migrate::contract::subject::Subject;
use aegis_migrate::contract::{judge, ready};
use aegis_migrate::ledger;
use aegis_migrate::set::Set;
use clap::Args;
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio_postgres::Client;

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
    let keyring = keyring(approvers);
    let client = connect(place.database.direct()?).await?;
    let found = match ledger::find(&client).await.map_err(of_run)? {
        Some(_) => Attempt::find(&client, &subject.id)
            .await
            .map_err(|error| failure(&error.into()))?,
        None => None,
    };
    let Some(attempt) = found else {
        return open(&client, &subject, keyring, place).await;
    };
    if let Some(at) = attempt.done_at {
        note(&format!("attempt {} was done at {at}", attempt.number));
        return Ok(Exit::Done);
    }
    let why = keyring.as_ref().err().map(why_none);
    let keyring = keyring.unwrap_or_else(|_| Keyring::absent());
    let facts = judge::facts(&client, &subject, &attempt, &keyring)
        .await
        .map_err(of_run)?;
    note(&format!(
        "attempt {}, closed at {} by {}",
        attempt.number, attempt.closed_at, attempt.closed_by
    ));
    show(place, &facts, attempt.now);
    if let Some(why) = &why {
        note(&format!("approvers: {why}; {}", ready::NO_KEYRING));
    }
    let blocks: Vec<Need> = facts
        .iter()
        .filter_map(|fact| fact.blocks(attempt.now))
        .map(|block| block.need)
        .collect();
    note(&format!("next: {}", next(&subject.id, &blocks)));
    Ok(if why.is_some() || !blocks.is_empty() {
        Exit::Migrate(18)
    } else {
        Exit::Done
    })
}

/// Why there is no file of approvers, as part of a sentence.
fn why_none(failure: &Failure) -> String {
    failure.to_string().trim_start_matches("error: ").to_owned()
}

/// The command that comes next.
fn next(id: &str, blocks: &[Need]) -> String {
    let watched = |need: &&Need| need.is_watched() && need.is_seen_here();
    if blocks.contains(&Need::Reconciled) {
        format!("`aegis migrate reconcile {id}`")
    } else if blocks.iter().any(|need| watched(&need)) {
        format!("`aegis migrate contract observe {id}`")
    } else if let Some(need) = blocks.first() {
        need.way_out().replace("ID", id)
    } else {
        format!(
            "`aegis migrate contract approve {id} --key FILE --file approval.json --author NAME --not-after TIME`, then `aegis migrate contract run {id} --approval approval.json`"
        )
    }
}

/// The door stands open: what is in the way of shutting it.
async fn open(
    client: &Client,
    subject: &Subject<'_>,
    keyring: Result<Keyring, Failure>,
    place: &Place<'_>,
) -> Result<Exit, Failure> {
    let why = keyring.as_ref().err().map(why_none);
    let read = match (&keyring, &why) {
        (Ok(keyring), _) => Ok(keyring),
        (Err(_), why) => Err(why.as_deref().unwrap_or_default()),
    };
    let lacks = ready::lacks(client, subject, read).await.map_err(of_run)?;
    let rows = lacks
        .iter()
        .map(|lack| vec![lack.what.clone(), lack.why.clone(), lack.way_out.clone()]);
    let documents = lacks.iter().map(|lack| json!(lack));
    place.output.list(
        &["in the way of closing", "why", "way out"],
        rows.collect(),
        documents.collect(),
    );
    let next = if lacks.is_empty() {
        format!("`aegis migrate contract close {}`", subject.id)
    } else {
        format!(
            "what is listed, then `aegis migrate contract close {}`",
            subject.id
        )
    };
    note(&format!(
        "the door of {} stands open; next: {next}",
        subject.id
    ));
    Ok(Exit::Migrate(21))
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
