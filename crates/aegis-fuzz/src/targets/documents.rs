//! Whole documents: snapshots, sealed structures, keyrings, envelopes, reports, orders, inputs and checkpoints.

use aegis_catalog::{Catalog, Structure};
use aegis_demo::orders;
use aegis_drill::page::page;
use aegis_drill::report::Report;
use aegis_migrate::contract::approval::{self, Wanted};
use aegis_migrate::contract::bundle::{open_attestation, open_bundle};
use aegis_migrate::contract::envelope::Envelope;
use aegis_migrate::contract::keyring::Keyring;
use aegis_model::ProtocolRange;
use aegis_store::NewTask;
use aegis_worker::Protocols;
use jiff::Timestamp;
use serde_json::Value;

use crate::holds::{same, says, text};

/// A snapshot of a database.
pub(super) fn catalog(bytes: &[u8]) {
    let Some(text) = text(bytes) else { return };
    match Catalog::from_json(text) {
        Ok(catalog) => {
            let said = catalog.to_json().unwrap_or_default();
            same(&Some(&catalog), &Catalog::from_json(&said).ok().as_ref());
        }
        Err(error) => says(&error, bytes),
    }
}

/// What `seal` wrote about a structure.
pub(super) fn sealed(bytes: &[u8]) {
    let Some(text) = text(bytes) else { return };
    match Structure::from_json(text) {
        Ok(structure) => {
            let said = structure.to_json().unwrap_or_default();
            let again = Structure::from_json(&said).map(|again| again.fingerprint());
            same(&Some(structure.fingerprint()), &again.ok());
        }
        Err(error) => says(&error, bytes),
    }
}

/// `approvers.toml`.
pub(super) fn keyring(bytes: &[u8]) {
    let Some(text) = text(bytes) else { return };
    match Keyring::read(text, "approvers.toml") {
        Ok(keyring) => {
            assert!(keyring.approvals() >= 1, "a contract may run unapproved");
            assert!(
                keyring.approvals() <= keyring.people().len(),
                "nobody can approve"
            );
        }
        Err(error) => says(&error, bytes),
    }
}

/// An envelope of somebody whom this keyring does not know: never opened, whatever it says.
pub(super) fn approvals(bytes: &[u8]) {
    const KEYRING: &str = include_str!("../../corpus/keyring/two-people.toml");
    let Some(text) = text(bytes) else { return };
    let keyring = Keyring::read(KEYRING, "approvers.toml");
    let envelope = match Envelope::read(text, "approval.json") {
        Ok(envelope) => envelope,
        Err(error) => return says(&error, bytes),
    };
    let Ok(keyring) = keyring else {
        panic!("the corpus has a keyring that is not read");
    };
    let now = Timestamp::UNIX_EPOCH;
    let wanted = Wanted {
        lock_line: "a",
        ledger: "b",
        attempt: 1,
        closed_at: now,
        now,
    };
    match approval::judge(
        &[("approval.json".to_owned(), envelope.clone())],
        &keyring,
        &wanted,
    ) {
        Ok(_) => panic!("approved by nobody: {text:?}"),
        Err(error) => says(&error, bytes),
    }
    match open_bundle(&envelope, &keyring, "a", None, now, "bundle.json") {
        Ok(_) => panic!("a bundle of nobody: {text:?}"),
        Err(error) => says(&error, bytes),
    }
    match open_attestation(&envelope, &keyring, "a", now, "attestation.json") {
        Ok(_) => panic!("attested by nobody: {text:?}"),
        Err(error) => says(&error, bytes),
    }
}

/// The report of a drill, and the page that is made from it.
pub(super) fn report(bytes: &[u8]) {
    match Report::parse(bytes) {
        Ok(report) => {
            let _ = page(std::slice::from_ref(&report));
            let said = serde_json::to_vec(&report).unwrap_or_default();
            same(&Some(&report), &Report::parse(&said).ok().as_ref());
        }
        Err(error) => says(&error, bytes),
    }
}

/// A file of orders of the demo: each row is an order or refused with its place.
pub(super) fn orders(bytes: &[u8]) {
    match orders::parse(bytes) {
        Ok(file) => {
            for order in &file.orders {
                match order.validate() {
                    Ok(valid) => assert!(valid.amount_minor > 0, "an order of nothing: {order:?}"),
                    Err(error) => says(&error, bytes),
                }
            }
        }
        Err(error) => says(&error, bytes),
    }
}

/// The input of a task: what is let through is one JSON document that PostgreSQL can hold.
pub(super) fn input(bytes: &[u8]) {
    let task = NewTask {
        input: bytes.to_vec(),
        ..NewTask::new("k", "")
    };
    match task.check(0) {
        Ok(()) => assert!(
            serde_json::from_slice::<Box<serde_json::value::RawValue>>(bytes).is_ok(),
            "let through: {bytes:?}"
        ),
        Err(error) => says(&error, bytes),
    }
}

/// A checkpoint as it stands in the database, which an older program may have written.
pub(super) fn checkpoint(bytes: &[u8]) {
    let Ok(range) = ProtocolRange::new(1, 3, 3) else {
        return;
    };
    let protocols = Protocols::new(range).upcast_checkpoint(1, |value| match value {
        Value::Object(_) => Ok(value),
        _ => Err("protocol 1 wrote objects".to_owned()),
    });
    for protocol in 1..=3 {
        if let Err(error) = protocols.decode_checkpoint::<Value>(protocol, bytes) {
            says(&error, bytes);
        }
    }
}
