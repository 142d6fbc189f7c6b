//! `switch` and `contract` as people call them: the whole path of a split column, and what is refused on the way.

use std::fmt::Write as _;
use std::process::Stdio;
use std::time::Duration;

use aegis_migrate::contract::bundle::{BUNDLE, Bundle, Seen};
use aegis_migrate::contract::envelope::Signer;
use aegis_migrate::contract::need::Need;
use aegis_testkit::{TestDb, process_slot, wait_until};
use aws_lc_rs::encoding::AsDer as _;
use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair as _};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use super::contracting_edited::nothing_goes_by_what_was_edited;
use super::folder::Folder;
use crate::support::{BOUND, Ran, command};

pub(super) const ID: &str = "20261129T1030_split_name";

const CHANGE: &str = r#"format = 1
id = "20261129T1030_split_name"
schema = "app"
[expand]
sql = "expand.sql"
compatible = [{ rule = "add-column", reason = "clients name their columns" }]
[sync]
table = "users"
old = ["name"]
new = ["first_name", "last_name"]
[sync.forward]
first_name = "split_part(name, ' ', 1)"
last_name = "split_part(name, ' ', 2)"
[sync.backward]
name = "concat_ws(' ', first_name, last_name)"
[backfill]
key = ["id"]
set = "sync.forward"
[reconcile]
compare = "sync"
[switch]
reads = ["old", "new"]
writes = ["old", "new"]
cache_ttl_ms = 1
"#;

const CONTRACT: &str = r#"[contract]
tighten = "tighten.sql"
sql = "contract.sql"
revoke_from = ["RW"]
observe = "30s"
evidence = ["reconciled", "sightings", "pods", "workers", "clients", "dependents", "rollback_window"]
"#;

/// A database, a folder, the role of the application, and people's keys in files.
pub(super) struct Shop {
    pub(super) folder: Folder,
    pub(super) db: TestDb,
    url: String,
    rw: String,
}

fn pem(label: &str, der: &[u8]) -> String {
    format!(
        "-----BEGIN {label}-----\n{}\n-----END {label}-----\n",
        STANDARD.encode(der)
    )
}

impl Shop {
    /// A table that an old program writes.
    async fn new() -> Self {
        let (folder, db) = (Folder::new(), TestDb::empty().await);
        let rw = format!("{}_rw", db.name());
        let shop = Self {
            url: db.url(),
            folder,
            db,
            rw,
        };
        shop.sql(&format!("CREATE SCHEMA app; CREATE ROLE {} LOGIN", shop.rw))
            .await;
        shop.folder.change(
            "20261101T0900_users",
            "CREATE TABLE users (id bigint PRIMARY KEY, name text NOT NULL);\n",
        );
        shop.keys(2);
        shop.ok(&["seal"]).await;
        shop.ok(&["run", "--phase", "expand"]).await;
        shop.sql(&format!(
            "GRANT USAGE ON SCHEMA app TO {0}; GRANT SELECT, INSERT, UPDATE ON app.users TO {0};
             INSERT INTO app.users SELECT n, 'Ada Lovelace' FROM generate_series(1, 500) n",
            shop.rw
        ))
        .await;
        shop
    }

    /// ana has written the change; bo and cy approve; eye is the cluster's collector.
    fn keys(&self, approvals: usize) {
        let mut text =
            format!("format = 1\nenvironment = \"production\"\napprovals = {approvals}\n");
        for (name, may) in [
            ("ana", "\"approve\""),
            ("bo", "\"approve\", \"attest\""),
            ("cy", "\"approve\""),
            ("eye", "\"observe\""),
        ] {
            let pair = Ed25519KeyPair::generate().unwrap();
            let private = pem("PRIVATE KEY", pair.to_pkcs8v1().unwrap().as_ref());
            std::fs::write(self.folder.path().join(format!("{name}.pem")), private).unwrap();
            let public = pem("PUBLIC KEY", pair.public_key().as_der().unwrap().as_ref());
            writeln!(
                text,
                "[[person]]\nname = \"{name}\"\nmay = [{may}]\nkey = \"\"\"\n{public}\"\"\""
            )
            .unwrap();
        }
        text.push_str("[[exclude]]\nfact = \"workers\"\nreason = \"no engine here\"\n");
        self.folder.write("approvers.toml", text);
    }

    pub(super) async fn sql(&self, sql: &str) {
        self.db.admin.batch_execute(sql).await.unwrap();
    }

    async fn number(&self, sql: &str) -> i64 {
        self.db.admin.query_one(sql, &[]).await.unwrap().get(0)
    }

    async fn run(&self, words: &[&str]) -> Ran {
        self.folder.run(Some(&self.url), words).await
    }

    async fn ok(&self, words: &[&str]) -> Ran {
        let ran = self.run(words).await;
        assert_eq!(ran.code, 0, "{words:?}: {ran:?}");
        ran
    }

    async fn json(&self, words: &[&str]) -> Value {
        let mut all = words.to_vec();
        all.extend(["--output", "json"]);
        let ran = self.ok(&all).await;
        // Events come first where there are any.
        serde_json::from_str(ran.stdout.lines().last().unwrap()).unwrap()
    }

    /// Ends with this code, and says this.
    pub(super) async fn refused(&self, words: &[&str], code: i32, says: &str) {
        let ran = self.run(words).await;
        assert_eq!(ran.code, code, "{words:?}: {ran:?}");
        assert!(ran.stderr.contains(says), "{words:?}: {ran:?}");
    }

    /// What the cluster's collector saw now.
    fn bundle(&self, file: &str, holds: bool, environment: &str) {
        let key = std::fs::read_to_string(self.folder.path().join("eye.pem")).unwrap();
        let bundle = Bundle {
            change: ID.to_owned(),
            environment: environment.to_owned(),
            source: "eu-1/shop".to_owned(),
            at: jiff::Timestamp::now(),
            facts: vec![Seen {
                need: Need::Pods,
                holds: Some(holds),
                detail: "no Pod of release r1".to_owned(),
            }],
        };
        let signer = Signer::from_pem("eye", &key, "a test").unwrap();
        let envelope = signer.sign(BUNDLE, &serde_json::to_vec(&bundle).unwrap());
        let text = serde_json::to_string(&envelope).unwrap();
        std::fs::write(self.folder.path().join(file), text).unwrap();
    }

    /// What the cluster's list says now, as the collector of the examples does it.
    async fn collect(&self, file: &str) {
        let meta = serde_json::json!({ "name": "shop-1", "namespace": "shop", "labels": {} });
        let list = |digest: &str| {
            serde_json::json!({ "apiVersion": "v1", "kind": "List", "metadata": { "resourceVersion": "" }, "items": [{
                "apiVersion": "v1", "kind": "Pod", "metadata": meta, "status": { "phase": "Running" },
                "spec": { "containers": [{ "name": "shop", "image": format!("registry.example/shop@{digest}") }] } }] })
        };
        let words = |key| {
            [
                "contract",
                "collect",
                ID,
                "--kind",
                "pods",
                "--from",
                "list.json",
                "--image-of",
                "registry.example/shop",
            ]
            .into_iter()
            .chain([
                "--knows",
                "sha256:2222",
                "--source",
                "eu-1/shop",
                "--out",
                file,
                "--key",
                key,
            ])
            .collect::<Vec<_>>()
        };
        let write = |text: String| std::fs::write(self.folder.path().join("list.json"), text);
        write(list("sha256:1111").to_string()).unwrap();
        let old = self.json(&words("eye.pem")).await;
        assert_eq!(old[0]["holds"], false, "{old}");
        assert!(
            old[0]["detail"]
                .as_str()
                .unwrap()
                .contains("Pod shop/shop-1"),
            "{old}"
        );
        write(String::new()).unwrap();
        assert_eq!(self.json(&words("eye.pem")).await[0]["holds"], Value::Null);
        write(list("sha256:2222").to_string()).unwrap();
        // Somebody who may not observe.
        std::fs::remove_file(self.folder.path().join(file)).unwrap();
        self.refused(&words("cy.pem"), 18, "may not sign it").await;
        assert!(!self.folder.path().join(file).exists());
        assert_eq!(self.json(&words("eye.pem")).await[0]["holds"], true);
    }

    async fn expand(&self) {
        self.folder.write(&format!("{ID}/change.toml"), CHANGE);
        self.folder.write(
            &format!("{ID}/expand.sql"),
            "ALTER TABLE users ADD COLUMN first_name text, ADD COLUMN last_name text;\n",
        );
        self.ok(&["seal"]).await;
        self.ok(&["run", "--phase", "expand"]).await;
    }

    /// Its own commit, weeks later.
    async fn write_contract(&self) {
        let contract = CONTRACT.replace("RW", &self.rw);
        self.folder
            .write(&format!("{ID}/change.toml"), format!("{CHANGE}{contract}"));
        self.folder.write(
            &format!("{ID}/tighten.sql"),
            "ALTER TABLE users ALTER COLUMN first_name SET NOT NULL;\n",
        );
        self.folder.write(
            &format!("{ID}/contract.sql"),
            "ALTER TABLE users DROP COLUMN name;\n",
        );
        self.ok(&["seal"]).await;
    }

    async fn old_column(&self) -> bool {
        let column = "SELECT count(*) FROM pg_attribute WHERE attrelid = 'app.users'::regclass AND attname = 'name'";
        self.number(column).await == 1
    }
}

const SWITCH: [&str; 8] = [
    "switch",
    ID,
    "--reads",
    "new",
    "--writes",
    "new",
    "--reason",
    "r2 is everywhere",
];

#[tokio::test]
async fn process_a_column_is_split_from_its_first_line_to_the_last_drop() {
    let _slot = process_slot();
    let shop = Shop::new().await;
    shop.expand().await;
    let app = shop.db.connect_as(&shop.rw).await;
    app.batch_execute("SET application_name = 'shop/1'; INSERT INTO app.users (id, name) VALUES (501, 'Grace Hopper')")
        .await
        .unwrap();
    shop.refused(&SWITCH, 18, "AEG-0025").await;
    shop.ok(&["run", "--phase", "migrate"]).await;
    let shown = shop.json(&["switch", ID]).await;
    assert_eq!(shown["standing"]["reads"], "old");
    let moved = shop.json(&SWITCH).await;
    assert_eq!(
        (moved["outcome"].as_str(), moved["rev"].as_i64()),
        (Some("applied"), Some(1))
    );
    assert_eq!(shop.json(&SWITCH).await["outcome"], "nothing");
    let mut behind = SWITCH.to_vec();
    behind.extend(["--rev", "0"]);
    shop.refused(&behind, 16, "somebody else has moved").await;
    for never in ["2", "7"] {
        let mut wrong = SWITCH.to_vec();
        wrong.extend(["--rev", never]);
        let said = format!("is at rev 1, and rev {never} was never there");
        shop.refused(&wrong, 2, &said).await;
    }
    // The new program writes the new side; the old one still has a session.
    shop.sql("INSERT INTO app.users (id, first_name, last_name) VALUES (502, 'Barbara', 'Liskov')")
        .await;

    shop.refused(&["contract", "close", ID], 2, "has no [contract]")
        .await;
    shop.write_contract().await;
    shop.refused(&["contract", "status", ID], 21, "contract close")
        .await;
    let closed = shop
        .json(&["contract", "close", ID, "--by", "ana", "--release", "r2"])
        .await;
    assert_eq!(closed["moved"]["min_schema"], 3, "{closed}");
    assert_eq!(
        shop.json(&["contract", "close", ID]).await["moved"]["outcome"],
        "nothing"
    );
    assert_eq!(
        shop.number("SELECT min_schema::bigint FROM aegis_migrate.ledger")
            .await,
        3
    );
    let denied = app
        .batch_execute("UPDATE app.users SET name = 'x' WHERE id = 1")
        .await;
    assert!(denied.is_err(), "the door is open");
    let back = ["switch", ID, "--reads", "old", "--reason", "x"];
    shop.refused(&back, 18, "contract reopen").await;

    let opened = ["contract", "reopen", ID, "--reason", "r1 must come back"];
    assert_eq!(shop.json(&opened).await["moved"]["min_schema"], 0);
    app.batch_execute("UPDATE app.users SET name = 'Ada Byron' WHERE id = 1")
        .await
        .unwrap();
    shop.ok(&["contract", "close", ID]).await;

    // The evidence of before the move to new writes is none, and somebody has an old session.
    let once = shop.run(&["contract", "observe", ID, "--once"]).await;
    assert_eq!(once.code, 18, "{once:?}");
    assert!(once.stdout.contains("shop/1"), "{once:?}");
    drop(app);
    let sessions = format!(
        "SELECT count(*) FROM pg_stat_activity WHERE usename = '{}'",
        shop.rw
    );
    wait_until("the old session is gone", BOUND, async || {
        shop.number(&sessions).await == 0
    })
    .await;
    // What was written a minute ago is past.
    shop.sql("UPDATE aegis_migrate.sighting SET minute = minute - interval '1 hour'")
        .await;
    shop.ok(&["reconcile", ID]).await;
    shop.bundle("staging.json", true, "staging");
    shop.refused(
        &["contract", "observe", ID, "--bundle", "staging.json"],
        18,
        "it is about staging",
    )
    .await;
    shop.bundle("first.json", true, "production");
    shop.ok(&["contract", "observe", ID, "--bundle", "first.json"])
        .await;
    let observed = shop
        .run(&["contract", "observe", ID, "--for-s", "120"])
        .await;
    assert_eq!(observed.code, 0, "{observed:?}");
    shop.collect("last.json").await;
    shop.ok(&["contract", "observe", ID, "--bundle", "last.json"])
        .await;

    sign_and_run(&shop).await;
}

/// Answers, signatures, and a run that is killed once.
async fn sign_and_run(shop: &Shop) {
    let until = (jiff::Timestamp::now() + jiff::SignedDuration::from_hours(1)).to_string();
    let attest = |fact: &'static str, key: &'static str| {
        vec![
            "contract",
            "attest",
            ID,
            fact,
            "--key",
            key,
            "--reason",
            "r1 will not come back",
            "--until",
        ]
    };
    let refused = async |fact, key, code, says| {
        let mut words = attest(fact, key);
        words.push(&until);
        shop.refused(&words, code, says).await;
    };
    refused("clients", "bo.pem", 2, "seen in the database itself").await;
    refused("rollback_window", "cy.pem", 18, "may not sign it").await;
    let mut words = attest("rollback_window", "bo.pem");
    words.push(&until);
    shop.ok(&words).await;
    let status = shop
        .run(&["contract", "status", ID, "--output", "json"])
        .await;
    assert_eq!(status.code, 0, "{status:?}");
    let facts: Vec<Value> = serde_json::from_str(&status.stdout).unwrap();
    let standing: Vec<&str> = facts
        .iter()
        .map(|fact| fact["standing"].as_str().unwrap())
        .collect();
    assert_eq!(
        standing,
        [
            "shown", "shown", "shown", "excluded", "shown", "shown", "attested"
        ]
    );

    let first = [
        "contract",
        "approve",
        ID,
        "--file",
        "approval.json",
        "--author",
        "ana",
        "--not-after",
        &until,
        "--key",
    ];
    let with = |words: &[&'static str], key: &'static str| {
        let mut words = words.to_vec();
        words.push(key);
        words
    };
    let stranger = Ed25519KeyPair::generate().unwrap();
    let private = pem("PRIVATE KEY", stranger.to_pkcs8v1().unwrap().as_ref());
    std::fs::write(shop.folder.path().join("eve.pem"), private).unwrap();
    let says = "approvers.toml, which names ana, bo, cy, eye; sign with";
    let mut by_eve = first.to_vec();
    by_eve.push("eve.pem");
    shop.refused(&by_eve, 18, says).await;
    nothing_goes_by_what_was_edited(shop, &until).await;
    let mut by_author = first.to_vec();
    by_author.push("ana.pem");
    shop.refused(&by_author, 18, "ana is the author").await;
    let mut by_bo = first.to_vec();
    by_bo.push("bo.pem");
    assert_eq!(shop.json(&by_bo).await["still_needed"], 1);
    let run = ["contract", "run", ID, "--approval", "approval.json"];
    shop.refused(&run, 18, "1 of 2").await;
    let second = [
        "contract",
        "approve",
        ID,
        "--file",
        "approval.json",
        "--key",
    ];
    let signed = shop.ok(&with(&second, "cy.pem")).await;
    assert!(
        signed.stdout.contains("still needed")
            && signed.stderr.contains("next: `aegis migrate contract run"),
        "{signed:?}"
    );
    assert!(shop.old_column().await);

    let mut other = shop.db.connect().await;
    let reader = other.transaction().await.unwrap();
    reader
        .query("SELECT count(*) FROM app.users", &[])
        .await
        .unwrap();
    let mut words = vec!["migrate"];
    words.extend(run);
    words.extend(["--lock-timeout-ms", "60000"]);
    let mut child = command(Some(&shop.url), &words);
    child
        .current_dir(shop.folder.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut child = child.spawn().unwrap();
    let waiting = "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'aegis migrate/%' AND wait_event_type = 'Lock' AND datname = current_database()";
    wait_until("the contract waits for a lock", BOUND, async || {
        shop.number(waiting).await == 1
    })
    .await;
    kill(
        Pid::from_raw(i32::try_from(child.id()).unwrap()),
        Signal::SIGKILL,
    )
    .unwrap();
    tokio::task::spawn_blocking(move || child.wait())
        .await
        .unwrap()
        .unwrap();
    wait_until(
        "the server has noticed",
        Duration::from_secs(30),
        async || shop.number(waiting).await == 0,
    )
    .await;
    reader.rollback().await.unwrap();
    assert!(shop.old_column().await);

    let done = shop.json(&run).await;
    assert_eq!(done["outcome"], "applied", "{done}");
    assert_eq!(done["approved_by"], serde_json::json!(["bo", "cy"]));
    assert!(!shop.old_column().await);
    let back = ["switch", ID, "--reads", "old", "--reason", "x"];
    shop.refused(&back, 18, "has run here at").await;
    let told = shop.run(&back).await;
    assert!(!told.stderr.contains("reopen"), "{told:?}");
    let triggers = "SELECT count(*) FROM pg_trigger WHERE tgrelid = 'app.users'::regclass AND NOT tgisinternal";
    assert_eq!(shop.number(triggers).await, 0);
    let app = shop.db.connect_as(&shop.rw).await;
    app.batch_execute(
        "INSERT INTO app.users (id, first_name, last_name) VALUES (503, 'Edith', 'Clarke')",
    )
    .await
    .unwrap();
    drop(app);
    assert_eq!(shop.json(&run).await["outcome"], "nothing");
    let whole = "SELECT count(*) FROM app.users WHERE first_name IS NULL OR last_name IS NULL";
    assert_eq!(shop.number(whole).await, 0);
    shop.ok(&["status"]).await;
    shop.sql(&format!("DROP OWNED BY {0}; DROP ROLE {0}", shop.rw))
        .await;
}

/// A cell says `unknown` of this, and stderr says why.
fn is_unknown(ran: &Ran, what: &str, why: &str) {
    let row = ran.stdout.lines().find(|line| line.starts_with(what));
    assert!(row.is_some_and(|row| row.contains("unknown")), "{ran:?}");
    assert!(!ran.stdout.contains(why), "{ran:?}");
    assert!(ran.stderr.contains(why), "{ran:?}");
}

#[tokio::test]
async fn process_an_observation_whose_connection_is_lost_goes_on_and_ends_when_it_is_asked_to() {
    let _slot = process_slot();
    let shop = Shop::new().await;
    shop.expand().await;
    shop.ok(&["run", "--phase", "migrate"]).await;
    shop.ok(&SWITCH).await;
    shop.write_contract().await;
    // Without a file of approvers nothing after the door could go on.
    let approvers = shop.folder.read("approvers.toml");
    std::fs::remove_file(shop.folder.dir().join("approvers.toml")).unwrap();
    shop.refused(&["contract", "close", ID], 2, "approvers.toml")
        .await;
    let attempts = "SELECT count(*) FROM aegis_migrate.contract";
    assert_eq!(shop.number(attempts).await, 0);
    let status = shop.run(&["contract", "status", ID]).await;
    assert_eq!(status.code, 21, "{status:?}");
    is_unknown(&status, "approvers", "it cannot be read: No such file");
    assert!(status.stderr.contains("error[AEG-0019]"), "{status:?}");
    let words = ["contract", "status", ID, "--output", "json"];
    let told: Value = serde_json::from_str(&shop.run(&words).await.stdout).unwrap();
    assert_eq!(told[0]["why"], "unknown", "{told}");
    let error = told[0]["error"].as_str().unwrap();
    assert!(error.contains("it cannot be read: No such file"), "{told}");
    shop.folder.write("approvers.toml", &approvers);
    let moved = "ALTER TABLE aegis_migrate.reconcile_pass RENAME COLUMN asked_sha256 TO away";
    shop.sql(moved).await;
    let status = shop.run(&["contract", "status", ID]).await;
    assert_eq!(status.code, 20, "{status:?}");
    is_unknown(&status, "reconciled", "asked_sha256");
    shop.sql("ALTER TABLE aegis_migrate.reconcile_pass RENAME COLUMN away TO asked_sha256")
        .await;
    let ready = shop.run(&["contract", "status", ID]).await;
    assert_eq!(ready.code, 21, "{ready:?}");
    assert!(
        ready.stderr.contains("next: `aegis migrate contract close"),
        "{ready:?}"
    );
    shop.ok(&["contract", "close", ID]).await;
    std::fs::remove_file(shop.folder.dir().join("approvers.toml")).unwrap();
    let status = shop.run(&["contract", "status", ID]).await;
    assert_eq!(status.code, 18, "{status:?}");
    assert!(status.stdout.contains("sightings"), "{status:?}");
    is_unknown(&status, "approvers", "it cannot be read: No such file");
    shop.folder.write("approvers.toml", &approvers);
    // One fact that the database does not let read: the others are told all the same.
    shop.sql("ALTER TABLE aegis_migrate.contract_look RENAME COLUMN holds TO away")
        .await;
    let status = shop.run(&["contract", "status", ID]).await;
    assert_eq!(status.code, 20, "{status:?}");
    is_unknown(&status, "clients", "column l.holds does not exist");
    assert!(status.stdout.contains("dependents"), "{status:?}");
    let told: Value = serde_json::from_str(&shop.run(&words).await.stdout).unwrap();
    let facts = told.as_array().unwrap();
    let clients = facts.iter().find(|fact| fact["need"] == "clients").unwrap();
    assert_eq!(clients["standing"], "unknown", "{told}");
    let error = clients["error"].as_str().unwrap();
    assert!(error.contains("holds"), "{told}");
    shop.sql("ALTER TABLE aegis_migrate.contract_look RENAME COLUMN away TO holds")
        .await;
    // The folder of the version before: its programs must not start any more.
    let older = Folder::new();
    for name in [
        "20261101T0900_users/change.toml",
        "20261101T0900_users/expand.sql",
    ] {
        older.write(name, shop.folder.read(name));
    }
    older.json(None, &["seal"]).await;
    let check = ["check", "--at-least", "20261101T0900_users:expand"];
    let refused = older.run(Some(&shop.url), &check).await;
    assert_eq!(refused.code, 19, "{refused:?}");
    assert!(refused.stderr.contains("contract reopen"), "{refused:?}");
    shop.ok(&check).await;

    let mut child = command(Some(&shop.url), &["migrate", "contract", "observe", ID]);
    child
        .current_dir(shop.folder.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut child = child.spawn().unwrap();
    let looks = "SELECT count(DISTINCT at) FROM aegis_migrate.contract_look WHERE need = 'clients'";
    wait_until("it has looked", BOUND, async || {
        shop.number(looks).await == 1
    })
    .await;
    let end = "SELECT count(pg_terminate_backend(pid, 5000)) FROM pg_stat_activity
        WHERE application_name = 'aegis migrate' AND datname = current_database()";
    assert_eq!(shop.number(end).await, 1);
    // The next look finds out, the one after it has a new connection.
    wait_until("it has looked again", BOUND, async || {
        shop.number(looks).await == 2
    })
    .await;
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap());
    kill(pid, Signal::SIGTERM).unwrap();
    let ended = tokio::task::spawn_blocking(move || child.wait())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(ended.code(), Some(22));
    shop.sql(&format!("DROP OWNED BY {0}; DROP ROLE {0}", shop.rw))
        .await;
}
