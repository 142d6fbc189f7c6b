//! `contract status`: each fact as `contract run` would judge it now, or what is in the way of closing.
//!
//! Invariants: it writes nothing, and tells what is missing rather than failing for it; what could not be read is `unknown`, with its
//! error on stderr, and never ends with 0.

use std::path::Path;

use aegis_migrate::change::ChangeId;
use aegis_migrate::contract::attempt::Attempt;
use aegis_migrate::contract::fact::{Fact, Standing};
use aegis_migrate::contract::judge;
use aegis_migrate::contract::keyring::Keyring;
use aegis_migrate::contract::need::Need;
use aegis_migrate::contract::ready::{self, UNKNOWN};
use aegis_migrate::contract::subject::Subject;
use aegis_migrate::ledger;
use aegis_migrate::set::Set;
use clap::Args;
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio_postgres::Client;

use super::{failure, keyring, of_run, subject};
use crate::commands::migrate::{Place, connect};
use crate::exit::Exit;
use crate::failure::{Failure, chain};
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
    let (keyring, mut unread) = match keyring {
        Ok(keyring) => (keyring, Vec::new()),
        Err(error) => (
            Keyring::absent(),
            vec![Unread::of("approvers", error, ready::NO_KEYRING)],
        ),
    };
    let mut facts = Vec::new();
    for (need, fact) in judge::each(&client, &subject, &attempt, &keyring)
        .await
        .map_err(of_run)?
    {
        match fact {
            Ok(fact) => facts.push(fact),
            Err(error) => {
                let error = Failure::new(SQL, format!("{need}: {}", chain(&error)));
                unread.push(Unread::of(need.name(), error, ready::UNREAD));
            }
        }
    }
    note(&format!(
        "attempt {}, closed at {} by {}",
        attempt.number, attempt.closed_at, attempt.closed_by
    ));
    show_with(place, &facts, &unread, attempt.now);
    let blocks: Vec<Need> = facts
        .iter()
        .filter_map(|fact| fact.blocks(attempt.now))
        .map(|block| block.need)
        .collect();
    let next = match unread.first() {
        Some(_) if blocks.is_empty() => "mend what could not be read, and look again".to_owned(),
        _ => next(&subject.id, &blocks),
    };
    note(&format!("next: {next}"));
    Ok(if unread.iter().any(|one| one.error.exit == SQL) {
        SQL
    } else if !unread.is_empty() || !blocks.is_empty() {
        Exit::Migrate(18)
    } else {
        Exit::Done
    })
}

/// How `status` ends where the database did not let something be read.
const SQL: Exit = Exit::Migrate(20);

/// Something that could not be read, and so is not known.
struct Unread {
    what: &'static str,
    error: Failure,
    way_out: &'static str,
}

impl Unread {
    fn of(what: &'static str, error: Failure, way_out: &'static str) -> Self {
        Self {
            what,
            error,
            way_out,
        }
    }

    fn row(&self) -> Vec<String> {
        let mut row = vec![
            self.what.to_owned(),
            UNKNOWN.to_owned(),
            "blocks".to_owned(),
        ];
        row.resize(COLUMNS.len(), String::new());
        row
    }

    fn document(&self) -> Value {
        json!({ "need": self.what, "standing": UNKNOWN, "error": self.error.to_string(), "way_out": self.way_out })
    }
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
    let why = keyring.as_ref().err().map(Failure::to_string);
    let read = match (&keyring, &why) {
        (Ok(keyring), _) => Ok(keyring),
        (Err(_), why) => Err(why.as_deref().unwrap_or_default()),
    };
    let lacks = ready::told(client, subject, read).await.map_err(of_run)?;
    let rows = lacks
        .iter()
        .map(|lack| vec![lack.what.clone(), lack.why.clone(), lack.way_out.clone()]);
    let documents = lacks.iter().map(|lack| json!(lack));
    place.output.list(
        &["in the way of closing", "why", "way out"],
        rows.collect(),
        documents.collect(),
    );
    if let Err(error) = &keyring {
        error.tell();
    }
    // That of the file has been told, with its code.
    let of_database = lacks.iter().filter(|lack| lack.what != "approvers");
    let mut exit = Exit::Migrate(21);
    for (lack, error) in of_database.filter_map(|lack| Some((lack, lack.error.as_ref()?))) {
        exit = SQL;
        Failure::new(exit, format!("{}: {error}", lack.what)).tell();
    }
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
    Ok(exit)
}

/// The facts as a list, with what blocks and the way out.
pub(super) fn show(place: &Place<'_>, facts: &[Fact], now: Timestamp) {
    show_with(place, facts, &[], now);
}

const COLUMNS: [&str; 7] = ["fact", "standing", "", "source", "at", "age", "detail"];

fn show_with(place: &Place<'_>, facts: &[Fact], unread: &[Unread], now: Timestamp) {
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
    let rows = rows.chain(unread.iter().map(Unread::row));
    let documents = facts.iter().map(|fact| document(fact, now));
    let documents = documents.chain(unread.iter().map(Unread::document));
    place
        .output
        .list(&COLUMNS, rows.collect(), documents.collect());
    for one in unread {
        one.error.tell();
        note(&format!("{}: {UNKNOWN}; {}", one.what, one.way_out));
    }
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
