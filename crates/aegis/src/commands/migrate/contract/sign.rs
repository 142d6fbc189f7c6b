//! `contract attest` and `contract approve`: what people answer for, and what they decide, signed with their key.
//!
//! Invariants: the private key is read from a file and nothing of it is kept; whose key it is, the keyring says, not the command
//! line; all who approve sign the same bytes.

use std::path::{Path, PathBuf};

use aegis_migrate::change::{ChangeId, Phase, PhaseOf};
use aegis_migrate::contract::approval::{self, Approval};
use aegis_migrate::contract::attempt::Attempt;
use aegis_migrate::contract::bundle::{self, Attestation, open_attestation};
use aegis_migrate::contract::envelope::{Envelope, EnvelopeError, Signer};
use aegis_migrate::contract::error::ContractError;
use aegis_migrate::contract::keyring::{Keyring, May};
use aegis_migrate::contract::need::Need;
use aegis_migrate::contract::{judge, look};
use aegis_migrate::run::contract::line_text;
use aegis_migrate::set::Set;
use aegis_migrate::{ledger, lock};
use clap::Args;
use jiff::Timestamp;
use serde_json::json;

use super::{failure, keyring, ledger_of, of_run, read, subject};
use crate::commands::migrate::{Place, connect, connect_to_write, reason};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::note;

/// Below the help of approve.
pub(super) const APPROVE_AFTER: &str = "The first who approves makes FILE (--author and --not-after); everybody else adds a signature to it with the same command and \
    neither. A key: `openssl genpkey -algorithm ed25519 -out ana.pem`; `openssl pkey -in ana.pem -pubout` belongs into approvers.toml.";

#[derive(Debug, Args)]
pub(super) struct AttestArguments {
    /// The change.
    #[arg(value_name = "ID")]
    id: ChangeId,
    /// What holds.
    #[arg(value_name = "FACT", value_parser = need)]
    fact: Need,
    /// Your private key, Ed25519 in PEM.
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    /// Until when you answer for it, as 2026-12-24T18:00:00Z.
    #[arg(long, value_name = "TIME")]
    until: Timestamp,
    /// How you know.
    #[arg(long, value_name = "TEXT", value_parser = reason::read)]
    reason: String,
}

#[derive(Debug, Args)]
pub(super) struct ApproveArguments {
    /// The change.
    #[arg(value_name = "ID")]
    id: ChangeId,
    /// Your private key, Ed25519 in PEM.
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    /// The approval: made when it is not there, signed too when it is.
    #[arg(long, value_name = "FILE")]
    file: PathBuf,
    /// Who wrote the change, and so cannot approve it.
    #[arg(long, value_name = "NAME", requires = "not_after")]
    author: Option<String>,
    /// From when on the approval counts no more, as 2026-12-24T18:00:00Z.
    #[arg(long, value_name = "TIME", requires = "author")]
    not_after: Option<Timestamp>,
    /// Who is asked to approve; without it everybody who may.
    #[arg(long, value_name = "NAME", requires = "author")]
    ask: Vec<String>,
}

fn need(text: &str) -> Result<Need, String> {
    Need::from_name(text).ok_or_else(|| {
        let names: Vec<_> = Need::ALL.iter().map(|need| need.name()).collect();
        format!("one of {}", names.join(", "))
    })
}

pub(super) async fn attest(
    arguments: &AttestArguments,
    place: &Place<'_>,
    approvers: &Path,
) -> Result<Exit, Failure> {
    let set = Set::read(&place.dir)?;
    let subject = subject(&set, &arguments.id)?;
    let keyring = keyring(approvers)?;
    if !judge::may_be_attested(arguments.fact) {
        let why = format!(
            "{} is seen in the database itself, so nobody has to answer for it: {}",
            arguments.fact,
            arguments.fact.way_out()
        );
        return Err(Failure::new(Exit::Migrate(2), why));
    }
    let client = connect_to_write(place.database.direct()?).await?;
    let attempt = attempt(&client, &set, &subject.id).await?;
    let attestation = Attestation {
        change: subject.id.clone(),
        environment: keyring.environment().to_owned(),
        need: arguments.fact,
        until: arguments.until,
        reason: arguments.reason.clone(),
    };
    let payload = serde_json::to_vec(&attestation).map_err(|error| broken(&error))?;
    let envelope = sign(&arguments.key, bundle::ATTESTATION, &payload, &keyring)?;
    // Whoever may not attest learns it here, and not when the contract runs.
    let (attestation, by) = open_attestation(
        &envelope,
        &keyring,
        &subject.id,
        attempt.now,
        &arguments.key.display().to_string(),
    )
    .map_err(|error| failure(&error.into()))?;
    let kept = json!(envelope);
    look::keep_attestation(&client, &attempt, &attestation, &by, &kept)
        .await
        .map_err(of_run)?;
    place.output.one(
        &[
            ("fact", attestation.need.to_string()),
            ("by", by.clone()),
            ("until", attestation.until.to_string()),
        ],
        &json!({ "fact": attestation.need, "by": by, "until": attestation.until, "reason": attestation.reason }),
    );
    note(&format!(
        "next: `aegis migrate contract status {}` tells what is still missing",
        subject.id
    ));
    Ok(Exit::Done)
}

pub(super) async fn approve(
    arguments: &ApproveArguments,
    place: &Place<'_>,
    approvers: &Path,
) -> Result<Exit, Failure> {
    let set = Set::read(&place.dir)?;
    let subject = subject(&set, &arguments.id)?;
    set.sealed()?;
    let at = PhaseOf {
        id: arguments.id.clone(),
        phase: Phase::Contract,
    };
    let line = set.lock.line(&at).ok_or_else(|| not_sealed(&at))?;
    let keyring = keyring(approvers)?;
    let client = connect(place.database.direct()?).await?;
    let attempt = attempt(&client, &set, &subject.id).await?;
    let ledger = ledger::find(&client)
        .await
        .map_err(of_run)?
        .ok_or_else(|| not_closed(&subject.id))?;
    let named = arguments.file.display().to_string();
    let wanted = approval::Wanted {
        lock_line: &line_text(line),
        ledger: &ledger.id.to_string(),
        attempt: attempt.number,
        closed_at: attempt.closed_at,
        now: attempt.now,
    };
    let (approval, before) = if let Some(author) = &arguments.author {
        (made(arguments, &keyring, &wanted, author)?, None)
    } else {
        let text = read(
            &arguments.file,
            "the first who approves makes it: --author NAME --not-after TIME",
        )?;
        let envelope = Envelope::read(&text, &named).map_err(|error| failure(&error.into()))?;
        let (payload, _) = envelope
            .open(approval::TYPE, &keyring, &named)
            .map_err(|error| failure(&error.into()))?;
        let approval: Approval =
            serde_json::from_slice(&payload).map_err(|error| broken(&error))?;
        (approval, Some((envelope, payload)))
    };
    note(&format!(
        "you sign: `{}` on ledger {} in {}, for attempt {}, until {}; written by {}",
        approval.lock_line,
        approval.ledger,
        approval.environment,
        approval.attempt,
        approval.not_after,
        approval.author
    ));
    let payload = match &before {
        Some((_, payload)) => payload.clone(),
        None => approval.payload().map_err(|error| failure(&error.into()))?,
    };
    let mine = sign(&arguments.key, approval::TYPE, &payload, &keyring)?;
    let mut whole = mine.clone();
    if let Some((before, _)) = before {
        whole = before;
        whole.signatures.extend(mine.signatures);
    }
    // What would not count is not written: it is for this line, this ledger, this environment, and its signers may.
    let (signed, missing) = counted(&whole, &keyring, &wanted, &named)?;
    let text = serde_json::to_string_pretty(&whole).map_err(|error| broken(&error))?;
    std::fs::write(&arguments.file, format!("{text}\n")).map_err(|error| {
        Failure::new(
            Exit::Migrate(2),
            format!("{named} cannot be written: {error}"),
        )
    })?;
    place.output.one(
        &[
            ("approval", named.clone()),
            ("signed by", signed.join(", ")),
            ("still needed", missing.to_string()),
        ],
        &json!({ "approval": named, "signed_by": signed, "still_needed": missing, "document": approval }),
    );
    note(&if missing == 0 {
        format!(
            "next: `aegis migrate contract run {} --approval {named}`",
            subject.id
        )
    } else {
        format!(
            "next: {missing} more of {} sign it: `aegis migrate contract approve {} --key FILE --file {named}`",
            approval.approvers.join(", "),
            subject.id
        )
    });
    Ok(Exit::Done)
}

/// The document that the first one signs.
fn made(
    arguments: &ApproveArguments,
    keyring: &Keyring,
    wanted: &approval::Wanted<'_>,
    author: &str,
) -> Result<Approval, Failure> {
    if arguments.file.exists() {
        let what = format!(
            "{} is there already; sign it without --author and --not-after, or name another file",
            arguments.file.display()
        );
        return Err(Failure::new(Exit::Migrate(2), what));
    }
    let able: Vec<String> = keyring
        .people()
        .iter()
        .filter(|person| person.may.contains(&May::Approve) && person.name != author)
        .map(|person| person.name.clone())
        .collect();
    Ok(Approval {
        lock_line: wanted.lock_line.to_owned(),
        ledger: wanted.ledger.to_owned(),
        environment: keyring.environment().to_owned(),
        attempt: wanted.attempt,
        closed_at: wanted.closed_at,
        not_after: arguments.not_after.unwrap_or(wanted.now),
        author: author.to_owned(),
        approvers: if arguments.ask.is_empty() {
            able
        } else {
            arguments.ask.clone()
        },
    })
}

/// Who has signed with right, and how many are missing. Somebody without the right is an error: their signature would be nothing.
fn counted(
    whole: &Envelope,
    keyring: &Keyring,
    wanted: &approval::Wanted<'_>,
    named: &str,
) -> Result<(Vec<String>, usize), Failure> {
    let signed = approval::signed(&[(named.to_owned(), whole.clone())], keyring, wanted)
        .map_err(|error| failure(&error.into()))?;
    if let Some(why) = signed.without_right.first() {
        let error = approval::ApprovalError::DoesNotCount {
            what: named.to_owned(),
            why: why.clone(),
        };
        return Err(failure(&error.into()));
    }
    let missing = keyring.approvals().saturating_sub(signed.approved.by.len());
    Ok((signed.approved.by, missing))
}

/// Signs, and finds in the keyring whose key it was.
pub(super) fn sign(
    key: &Path,
    kind: &'static str,
    payload: &[u8],
    keyring: &Keyring,
) -> Result<Envelope, Failure> {
    let named = key.display().to_string();
    let pem = read(key, "a private key: `openssl genpkey -algorithm ed25519`")?;
    let refuse = |error: ContractError| failure(&error);
    let signer = Signer::from_pem("", &pem, &named).map_err(|error| refuse(error.into()))?;
    let mut envelope = signer.sign(kind, payload);
    let (_, names) = envelope.open(kind, keyring, &named).map_err(|error| {
        refuse(match error {
            EnvelopeError::NobodyKnown {
                what, file, people, ..
            } => EnvelopeError::UnknownKey { what, file, people }.into(),
            other => other.into(),
        })
    })?;
    for (signature, name) in envelope.signatures.iter_mut().zip(names) {
        signature.keyid = name;
    }
    Ok(envelope)
}

async fn attempt(
    client: &tokio_postgres::Client,
    set: &Set,
    change: &str,
) -> Result<Attempt, Failure> {
    if ledger_of(client, set).await?.is_none() {
        return Err(not_closed(change));
    }
    Attempt::under_way(client, change)
        .await
        .map_err(|error| failure(&error.into()))
}

fn not_closed(change: &str) -> Failure {
    let error = aegis_migrate::contract::attempt::AttemptError::NotClosed {
        change: change.to_owned(),
    };
    failure(&error.into())
}

fn not_sealed(at: &PhaseOf) -> Failure {
    let what = format!("{} has no line {at}: `aegis migrate seal`", lock::LOCK_FILE);
    Failure::new(Exit::Migrate(11), what)
}

pub(super) fn broken(error: &serde_json::Error) -> Failure {
    Failure::new(Exit::Migrate(2), error.to_string())
}
