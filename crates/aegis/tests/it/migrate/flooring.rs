//! A closed contract and the engine's workers: one that knows the change claims on, one that does not claims nothing more and does not
//! start again, until the contract is reopened.

use std::process::{Child, Stdio};

use aegis_testkit::{TestDb, process_slot, wait_until};
use aws_lc_rs::encoding::AsDer as _;
use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair as _};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::folder::Folder;
use crate::support::{BOUND, Place, Ran, ran};

const ID: &str = "20261129T1030_notes";
const LIVE: &str =
    "SELECT count(*) FROM aegis.worker WHERE name = $1 AND state = 0 AND ended_at IS NULL";

/// A worker that ends with its test.
struct Running(Option<Child>);

impl Running {
    fn start(place: &Place, name: &str, folder: &Folder, more: &[&str]) -> Self {
        let migrations = folder.dir().display().to_string();
        let mut words = vec!["worker", "--name", name, "--slots", "1"];
        words.extend(["--lease-ttl-ms", "2000", "--migrations", &migrations]);
        words.extend(more);
        let child = place
            .command(&words)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        Self(Some(child))
    }

    /// Its code and what it said, when it ends by itself.
    async fn ended(mut self) -> Ran {
        let child = self.0.take().unwrap();
        let output = tokio::task::spawn_blocking(move || child.wait_with_output().unwrap());
        ran(&tokio::time::timeout(BOUND, output)
            .await
            .expect("the worker ends in time")
            .unwrap())
    }

    async fn stopped(self) -> Ran {
        let pid = i32::try_from(self.0.as_ref().unwrap().id()).unwrap();
        kill(Pid::from_raw(pid), Signal::SIGTERM).unwrap();
        self.ended().await
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }
}

async fn accepts(place: &Place, name: &str) {
    wait_until("the worker is registered", BOUND, async || {
        let row = place.db.admin.query_one(LIVE, &[&name]).await.unwrap();
        row.get::<_, i64>(0) == 1
    })
    .await;
}

/// A key in approvers.toml, so that a door may shut.
fn approvers(folder: &Folder) {
    let pair = Ed25519KeyPair::generate().unwrap();
    let der = STANDARD.encode(pair.public_key().as_der().unwrap().as_ref());
    folder.write(
        "approvers.toml",
        format!("format = 1\nenvironment = \"production\"\napprovals = 1\n[[person]]\nname = \"bo\"\nmay = [\"approve\"]\nkey = \"\"\"\n-----BEGIN PUBLIC KEY-----\n{der}\n-----END PUBLIC KEY-----\n\"\"\"\n"),
    );
}

#[tokio::test]
async fn process_a_worker_that_does_not_know_a_closed_contract_claims_nothing_more() {
    let _slot = process_slot();
    let place = Place::new().await;
    let url = place.db.url();
    let (older, newer) = (Folder::new(), Folder::new());
    let admin = &place.db.admin;
    admin.batch_execute("CREATE SCHEMA app").await.unwrap();
    for folder in [&older, &newer] {
        folder.change(
            "20261101T0900_users",
            "CREATE TABLE users (id bigint PRIMARY KEY);\nCREATE TABLE gone (id bigint PRIMARY KEY);\n",
        );
        folder.run(None, &["seal"]).await;
    }
    newer.write(
        &format!("{ID}/change.toml"),
        format!("format = 1\nid = \"{ID}\"\nschema = \"app\"\n[expand]\nsql = \"expand.sql\"\n[contract]\nsql = \"contract.sql\"\nobserve = \"30s\"\nevidence = [\"dependents\"]\n"),
    );
    newer.write(
        &format!("{ID}/expand.sql"),
        "CREATE TABLE notes (id bigint PRIMARY KEY);\n",
    );
    newer.write(&format!("{ID}/contract.sql"), "DROP TABLE gone;\n");
    approvers(&newer);
    let ok = async |words: &[&str]| {
        let ran = newer.run(Some(&url), words).await;
        assert_eq!(ran.code, 0, "{words:?}: {ran:?}");
    };
    ok(&["seal"]).await;
    ok(&["run", "--phase", "expand"]).await;

    let old = Running::start(&place, "old", &older, &[]);
    accepts(&place, "old").await;
    let noop = ["task", "submit", "aegis.noop", "--input", "1", "--wait"];
    let done = place.json(&noop).await;
    assert_eq!(done["state"], "succeeded");

    let closed = newer.run(Some(&url), &["contract", "close", ID]).await;
    assert_eq!(closed.code, 0, "{closed:?}");
    // Its contract names no role that would lose anything, which is told.
    assert!(closed.stderr.contains("only the floor"), "{closed:?}");
    let ended = old.ended().await;
    assert_eq!(ended.code, 19, "{ended:?}");
    assert!(ended.stderr.contains(ID), "{ended:?}");
    let task = place.submit(&["aegis.noop", "--input", "2"]).await;
    let again = Running::start(&place, "old-again", &older, &[]);
    let refused = again.ended().await;
    assert_eq!(refused.code, 19, "{refused:?}");
    assert!(refused.stderr.contains("contract reopen"), "{refused:?}");
    let registered = "SELECT count(*) FROM aegis.worker WHERE name = 'old-again'";
    let row = admin.query_one(registered, &[]).await.unwrap();
    assert_eq!(row.get::<_, i64>(0), 0);
    let shown = place.json(&["task", "show", &task]).await;
    assert_eq!(shown["state"], "ready", "{shown}");

    // One that knows the change goes on, and so does one whose application has another database.
    let new = Running::start(&place, "new", &newer, &[]);
    wait_until("the new one has done it", BOUND, async || {
        place.json(&["task", "show", &task]).await["state"] == "succeeded"
    })
    .await;
    let elsewhere = TestDb::empty().await;
    let there = ["--migrations-database-url", &elsewhere.url()];
    let other = Running::start(&place, "other", &older, &there);
    accepts(&place, "other").await;
    assert_eq!(other.stopped().await.code, 0);
    let stopped = new.stopped().await;
    assert_eq!(stopped.code, 0, "{stopped:?}");

    ok(&["contract", "reopen", ID, "--reason", "r1 must come back"]).await;
    let back = Running::start(&place, "old-back", &older, &[]);
    accepts(&place, "old-back").await;
    assert_eq!(back.stopped().await.code, 0);
    // A floor that nobody can read is no floor that is met.
    let lost = "postgres://nobody@127.0.0.1:1/none";
    let lost = Running::start(&place, "lost", &older, &["--migrations-database-url", lost]);
    assert_eq!(lost.ended().await.code, 5);
}
