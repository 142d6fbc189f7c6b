//! What must not count: a signature of a stranger, another payload, another line, ledger, environment or time, the author, one
//! person twice.

use std::fmt::Write as _;

use aws_lc_rs::encoding::AsDer as _;
use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair as _};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;

use super::approval::{self, Approval, Wanted};
use super::bundle::{self, Attestation, Bundle, Seen};
use super::envelope::{Envelope, Signer};
use super::keyring::Keyring;
use super::need::Need;

const LINE: &str = "20261129T1030_split_name contract 0a0b";

struct Person {
    signer: Signer,
    public: String,
}

fn pem(label: &str, der: &[u8]) -> String {
    format!(
        "-----BEGIN {label}-----\n{}\n-----END {label}-----\n",
        STANDARD.encode(der)
    )
}

fn person(name: &str) -> Person {
    let pair = Ed25519KeyPair::generate().unwrap();
    let private = pem("PRIVATE KEY", pair.to_pkcs8v1().unwrap().as_ref());
    let public = pair.public_key().as_der().unwrap();
    Person {
        signer: Signer::from_pem(name, &private, "a test").unwrap(),
        public: pem("PUBLIC KEY", public.as_ref()),
    }
}

fn keyring(people: &[(&str, &str, &Person)]) -> Keyring {
    let mut text = "format = 1\nenvironment = \"production\"\napprovals = 2\n".to_owned();
    for (name, may, person) in people {
        let key = &person.public;
        writeln!(
            text,
            "[[person]]\nname = \"{name}\"\nmay = [{may}]\nkey = \"\"\"\n{key}\"\"\""
        )
        .unwrap();
    }
    Keyring::read(&text, "approvers.toml").unwrap()
}

fn now() -> Timestamp {
    "2026-11-30T10:00:00Z".parse().unwrap()
}

fn closed_at() -> Timestamp {
    "2026-11-29T10:00:00Z".parse().unwrap()
}

fn approval() -> Approval {
    Approval {
        lock_line: LINE.to_owned(),
        ledger: "ledger-1".to_owned(),
        environment: "production".to_owned(),
        attempt: 1,
        closed_at: closed_at(),
        not_after: "2026-12-01T00:00:00Z".parse().unwrap(),
        author: "ana".to_owned(),
        approvers: vec!["ana".to_owned(), "bo".to_owned(), "cy".to_owned()],
    }
}

fn signed(approval: &Approval, person: &Person) -> (String, Envelope) {
    let envelope = person
        .signer
        .sign(approval::TYPE, &approval.payload().unwrap());
    ("approval.json".to_owned(), envelope)
}

fn judged(envelopes: &[(String, Envelope)], keyring: &Keyring) -> Result<Vec<String>, String> {
    let wanted = Wanted {
        lock_line: LINE,
        ledger: "ledger-1",
        attempt: 1,
        closed_at: closed_at(),
        now: now(),
    };
    approval::judge(envelopes, keyring, &wanted)
        .map(|approved| approved.by)
        .map_err(|error| error.to_string())
}

#[test]
fn enough_people_other_than_the_author() {
    let (ana, bo, cy) = (person("ana"), person("bo"), person("cy"));
    let approve = "\"approve\"";
    let keyring = keyring(&[
        ("ana", approve, &ana),
        ("bo", approve, &bo),
        ("cy", approve, &cy),
    ]);
    let it = approval();
    let both = [signed(&it, &bo), signed(&it, &cy)];
    assert_eq!(judged(&both, &keyring).unwrap(), ["bo", "cy"]);
    let none = judged(&[], &keyring).unwrap_err();
    assert!(
        none.starts_with("no approval of this contract was handed in"),
        "{none}"
    );

    let with_author = judged(&[signed(&it, &bo), signed(&it, &ana)], &keyring).unwrap_err();
    assert!(
        with_author.contains("1 of 2") && with_author.contains("ana is the author"),
        "{with_author}"
    );
    let twice = judged(&[signed(&it, &bo), signed(&it, &bo)], &keyring).unwrap_err();
    assert!(twice.contains("1 of 2"), "{twice}");
    assert!(judged(&[], &keyring).unwrap_err().contains("--approval"));
}

#[test]
fn it_is_for_one_line_one_ledger_one_environment_and_a_time() {
    let (ana, bo, cy) = (person("ana"), person("bo"), person("cy"));
    let approve = "\"approve\"";
    let keyring = keyring(&[
        ("ana", approve, &ana),
        ("bo", approve, &bo),
        ("cy", approve, &cy),
    ]);
    let refused = |change: &dyn Fn(&mut Approval), said: &str| {
        let mut it = approval();
        change(&mut it);
        let why = judged(&[signed(&it, &bo), signed(&it, &cy)], &keyring).unwrap_err();
        assert!(why.contains(said), "{why}");
    };
    refused(
        &|it| it.lock_line = LINE.replace("0a0b", "0a0c"),
        "is about to run",
    );
    refused(&|it| it.ledger = "ledger-2".to_owned(), "ledger-2");
    refused(&|it| it.environment = "staging".to_owned(), "staging");
    refused(&|it| it.not_after = now(), "it ended");
    refused(&|it| it.author = " ".to_owned(), "no author");
    refused(
        &|it| it.approvers = vec!["bo".to_owned()],
        "cy is not among",
    );
    let mut other = approval();
    other.not_after = "2026-12-02T00:00:00Z".parse().unwrap();
    let why = judged(&[signed(&approval(), &bo), signed(&other, &cy)], &keyring).unwrap_err();
    assert!(why.contains("not the same document"), "{why}");
}

#[test]
fn a_stranger_a_changed_payload_and_a_borrowed_name_do_not_count() {
    let (ana, bo, cy, eve) = (person("ana"), person("bo"), person("cy"), person("cy"));
    let approve = "\"approve\"";
    let keyring = keyring(&[
        ("ana", approve, &ana),
        ("bo", approve, &bo),
        ("cy", approve, &cy),
    ]);
    let why = judged(&[signed(&approval(), &eve)], &keyring).unwrap_err();
    assert!(why.contains("nobody vouches"), "{why}");
    assert!(
        why.contains(
            "anybody in approvers.toml, which names ana, bo, cy (it says that it is of cy)"
        ),
        "{why}"
    );

    let (name, mut changed) = signed(&approval(), &bo);
    let mut other = approval();
    other.ledger = "ledger-2".to_owned();
    changed.payload = STANDARD.encode(other.payload().unwrap());
    assert!(
        judged(&[(name, changed)], &keyring)
            .unwrap_err()
            .contains("nobody vouches")
    );

    let (name, mut retyped) = signed(&approval(), &bo);
    retyped.payload_type = bundle::BUNDLE.to_owned();
    assert!(
        judged(&[(name, retyped)], &keyring)
            .unwrap_err()
            .contains("is needed here")
    );
}

#[test]
fn a_bundle_is_by_somebody_who_may_about_this_and_fresh() {
    let (ana, bo, eye) = (person("ana"), person("bo"), person("eye"));
    let keyring = keyring(&[
        ("ana", "\"approve\", \"attest\"", &ana),
        ("bo", "\"approve\"", &bo),
        ("eye", "\"observe\"", &eye),
    ]);
    let bundle = Bundle {
        change: "split".to_owned(),
        environment: "production".to_owned(),
        source: "eu-1/shop".to_owned(),
        at: now(),
        facts: vec![Seen {
            need: Need::Pods,
            holds: Some(true),
            detail: "12 Pods, all of release 2".to_owned(),
        }],
    };
    let open_since = |bundle: &Bundle, by: &Person, since: Timestamp| {
        let envelope = by
            .signer
            .sign(bundle::BUNDLE, &serde_json::to_vec(bundle).unwrap());
        let since = Some(since);
        bundle::open_bundle(&envelope, &keyring, "split", since, now(), "bundle.json")
            .map(|(_, by)| by)
            .map_err(|error| error.to_string())
    };
    let open = |bundle: &Bundle, by: &Person| open_since(bundle, by, closed_at());
    assert_eq!(open(&bundle, &eye).unwrap(), "eye");
    assert!(open(&bundle, &ana).unwrap_err().contains("may not sign"));
    // Of another attempt: what was seen before this door was shut is no evidence.
    let later = now() + jiff::SignedDuration::from_secs(1);
    let replayed = open_since(&bundle, &eye, later).unwrap_err();
    assert!(replayed.contains("before the door was shut"), "{replayed}");
    let changed = |change: &dyn Fn(&mut Bundle)| {
        let mut other = bundle.clone();
        change(&mut other);
        open(&other, &eye).unwrap_err()
    };
    assert!(changed(&|it| it.change = "other".to_owned()).contains("about other"));
    assert!(changed(&|it| it.environment = "staging".to_owned()).contains("staging"));
    assert!(changed(&|it| it.at = "2026-11-30T09:00:00Z".parse().unwrap()).contains("300 s old"));
    assert!(changed(&|it| it.at = "2026-11-30T10:05:00Z".parse().unwrap()).contains("future"));

    let attestation = Attestation {
        change: "split".to_owned(),
        environment: "production".to_owned(),
        need: Need::RollbackWindow,
        until: "2026-12-01T00:00:00Z".parse().unwrap(),
        reason: "release 2 has run for a week".to_owned(),
    };
    let attest = |by: &Person| {
        let envelope = by.signer.sign(
            bundle::ATTESTATION,
            &serde_json::to_vec(&attestation).unwrap(),
        );
        bundle::open_attestation(&envelope, &keyring, "split", now(), "attestation.json")
            .map(|(_, by)| by)
            .map_err(|error| error.to_string())
    };
    assert_eq!(attest(&ana).unwrap(), "ana");
    assert!(attest(&bo).unwrap_err().contains("may not sign"));
}

#[test]
fn rules_that_cannot_be_are_refused() {
    let (ana, bo) = (person("ana"), person("bo"));
    let entry = |name: &str, key: &str| {
        format!("[[person]]\nname = \"{name}\"\nmay = [\"approve\"]\nkey = \"\"\"\n{key}\"\"\"\n")
    };
    let read = |head: &str, people: &str| {
        let text = format!("format = 1\nenvironment = \"production\"\n{head}\n{people}");
        Keyring::read(&text, "approvers.toml")
            .unwrap_err()
            .to_string()
    };
    let both = entry("ana", &ana.public) + &entry("bo", &bo.public);
    assert!(read("approvals = 0", &both).contains("unapproved"));
    assert!(read("approvals = 3", &both).contains("2 people may approve"));
    let twice = entry("ana", &ana.public) + &entry("bo", &ana.public);
    assert!(read("approvals = 1", &twice).contains("count as two"));
    assert!(read("approvals = 1\nquorum = 2", &both).contains("quorum"));
    assert!(read("approvals = 1", &entry("ana", "no key")).contains("PUBLIC KEY"));
    let reasonless = both + "[[exclude]]\nfact = \"pods\"\nreason = \"\"\n";
    assert!(read("approvals = 1", &reasonless).contains("no reason"));
}
