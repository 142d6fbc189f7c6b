//! A shop whose `users.name` becomes two columns: its database in use, its change, the people who sign.

use std::fmt::Write as _;
use std::time::Duration;

use aegis_backfill::pass::{Asked, What};
use aegis_migrate::change::{ChangeId, Phase};
use aegis_migrate::contract::approval::{self, Approval};
use aegis_migrate::contract::attempt::Attempt;
use aegis_migrate::contract::envelope::{Envelope, Signer};
use aegis_migrate::contract::error::ContractError;
use aegis_migrate::contract::keyring::Keyring;
use aegis_migrate::contract::verbs;
use aegis_migrate::ledger;
use aegis_migrate::mutex::Held;
use aegis_migrate::run::Ladder;
use aegis_migrate::run::contract::{self, Brought, Summary, line_text};
use aegis_migrate::set::Set;
use aegis_testkit::TestDb;
use aws_lc_rs::encoding::AsDer as _;
use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair as _};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;

use crate::folder::Folder;
use crate::run::{held, ran, sealed};

/// The change.
pub(super) const ID: &str = "20261129T1030_split";

const CHANGE: &str = r#"format = 1
id = "20261129T1030_split"
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
[reconcile]
compare = "sync"
[switch]
reads = ["old", "new"]
writes = ["old", "new"]
cache_ttl_ms = 0
[contract]
tighten = "tighten.sql"
sql = "contract.sql"
revoke_from = ["RW"]
observe = "30s"
evidence = ["reconciled", "sightings", "clients", "dependents", "rollback_window"]
"#;

/// Its id.
pub(super) fn id() -> ChangeId {
    ID.parse().unwrap()
}

/// Somebody with a key.
pub(super) struct Person {
    pub(super) signer: Signer,
    public: String,
}

pub(super) struct Shop {
    pub(super) db: TestDb,
    pub(super) set: Set,
    /// The folder of the version before.
    pub(super) older: Set,
    pub(super) rw: String,
    pub(super) ana: Person,
    pub(super) bo: Person,
    pub(super) cy: Person,
}

fn pem(label: &str, der: &[u8]) -> String {
    format!(
        "-----BEGIN {label}-----\n{}\n-----END {label}-----\n",
        STANDARD.encode(der)
    )
}

pub(super) fn person(name: &str) -> Person {
    let pair = Ed25519KeyPair::generate().unwrap();
    let private = pem("PRIVATE KEY", pair.to_pkcs8v1().unwrap().as_ref());
    let public = pair.public_key().as_der().unwrap();
    Person {
        signer: Signer::from_pem(name, &private, "a test").unwrap(),
        public: pem("PUBLIC KEY", public.as_ref()),
    }
}

impl Shop {
    /// Expanded, filled, switched and closed, with this `contract.sql`.
    pub(super) async fn closed(contract: &str) -> Self {
        let shop = Self::ready(contract).await;
        let mut held = shop.held().await;
        verbs::close(&mut held, &shop.set, &id(), &shop.keyring())
            .await
            .unwrap();
        held.release().await;
        shop
    }

    /// Expanded, filled and switched.
    pub(super) async fn ready(contract: &str) -> Self {
        let shop = Self::expanded(contract).await;
        shop.move_switch().await;
        shop.pass("agrees", 0).await;
        shop
    }

    /// As [`Self::closed`], with every fact shown.
    pub(super) async fn shown(contract: &str) -> Self {
        let shop = Self::closed(contract).await;
        shop.observed("0").await;
        shop.attested("1 hour").await;
        shop
    }

    /// Expanded, with one row.
    pub(super) async fn expanded(contract: &str) -> Self {
        Self::expanded_with(contract, "reconciled").await
    }

    /// With this fact in the place of `reconciled`.
    pub(super) async fn expanded_with(contract: &str, fact: &str) -> Self {
        let db = TestDb::empty().await;
        let rw = format!("{}_rw", db.name());
        let users = "20261101T0900_users";
        let folder = Folder::default()
            .with(
                &format!("{users}/change.toml"),
                format!("format = 1\nid = \"{users}\"\nschema = \"app\"\n[expand]\nsql = \"expand.sql\"\n"),
            )
            .with(
                &format!("{users}/expand.sql"),
                format!("CREATE TABLE users (id bigint PRIMARY KEY, name text NOT NULL);\nCREATE INDEX users_name ON users (name);\nCREATE TABLE t (id int);\nGRANT SELECT, INSERT, UPDATE ON users TO {rw};\n"),
            );
        db.admin
            .batch_execute(&format!("CREATE SCHEMA app; CREATE ROLE {rw} LOGIN"))
            .await
            .unwrap();
        let older = sealed(&folder);
        ran(&db, &older, Phase::Expand).await.unwrap();
        db.admin
            .batch_execute(&format!(
                "GRANT USAGE ON SCHEMA app TO {rw};
                 INSERT INTO app.users VALUES (1, 'Ada Lovelace')"
            ))
            .await
            .unwrap();
        let set = sealed(
            &folder
                .with(
                    &format!("{ID}/change.toml"),
                    CHANGE.replace("RW", &rw).replace("reconciled", fact),
                )
                .with(
                    &format!("{ID}/expand.sql"),
                    "ALTER TABLE users ADD COLUMN first_name text, ADD COLUMN last_name text;\n",
                )
                .with(
                    &format!("{ID}/tighten.sql"),
                    // Of another table, so that a lock on this one stops the drop alone.
                    "ALTER TABLE t ALTER COLUMN id SET NOT NULL;\n",
                )
                .with(&format!("{ID}/contract.sql"), contract),
        );
        ran(&db, &set, Phase::Expand).await.unwrap();
        let shop = Self {
            db,
            set,
            older,
            rw,
            ana: person("ana"),
            bo: person("bo"),
            cy: person("cy"),
        };
        shop.migrated().await;
        shop
    }

    pub(super) async fn held(&self) -> Held {
        held(&self.db, Duration::from_secs(20)).await.unwrap()
    }

    pub(super) async fn sql(&self, sql: &str) {
        self.db.admin.batch_execute(sql).await.unwrap();
    }

    pub(super) async fn number(&self, sql: &str) -> i64 {
        self.db.admin.query_one(sql, &[]).await.unwrap().get(0)
    }

    /// The row of before moved, as a backfill would, and the phase recorded.
    pub(super) async fn migrated(&self) {
        let line = self
            .set
            .lock
            .line(&format!("{ID}:migrate").parse().unwrap())
            .unwrap();
        self.sql(&format!(
            "BEGIN; SELECT set_config('aegis_migrate.silent', '{ID}', true);
             UPDATE app.users SET first_name = split_part(name, ' ', 1), last_name = split_part(name, ' ', 2); COMMIT;
             INSERT INTO aegis_migrate.phase (change, phase, line_sha256, steps, epoch, run, release) VALUES ('{ID}', 'migrate', '{}', 0, 1, 'test', 'r1')",
            line.sha256
        ))
        .await;
    }

    /// Both sides new; it counts at once.
    pub(super) async fn move_switch(&self) {
        self.sql(&format!(
            "INSERT INTO aegis_migrate.switch (change, rev, reads, writes, cache_ttl_ms, release, made_by, reason)
             VALUES ('{ID}', 1, 'new', 'new', 0, 'r2', 'ana', 'test')"
        ))
        .await;
    }

    /// A pass that has ended now.
    pub(super) async fn pass(&self, kind: &str, mismatch: i64) {
        let rule = self.set.changes[&id()].sync_rule().unwrap();
        let trigger = rule.state(&self.db.admin).await.unwrap().unwrap();
        let asked = Asked {
            change: ID.to_owned(),
            schema: "app".to_owned(),
            run_as: None,
            key: Vec::new(),
            what: What::Sides(rule),
        };
        let asked = asked.sha256();
        self.sql(&format!(
            "INSERT INTO aegis_migrate.reconcile_pass (change, kind, asked_sha256, started_at, snapshot_lsn, rows_counted, missing, mismatch,
                 orphaned, samples, trigger_sha256, run, by_whom, release)
             VALUES ('{ID}', '{kind}', '{asked}', clock_timestamp(), pg_current_wal_lsn(), 1, 0, {mismatch}, 0, '[]', '{}', 'test', 'ana', 'r2')",
            trigger.definition
        ))
        .await;
    }

    /// Forty seconds of looks that held, the last so many seconds ago.
    pub(super) async fn observed(&self, ago_s: &str) {
        self.sql(&format!(
            "DELETE FROM aegis_migrate.contract_look;
             INSERT INTO aegis_migrate.contract_look (change, attempt, need, at, source, holds, detail)
             SELECT c.change, c.attempt, need, clock_timestamp() - make_interval(secs => {ago_s} + 10 * n), 'target', true, 'none'
             FROM aegis_migrate.contract c, unnest(ARRAY['sightings', 'clients']) need, generate_series(0, 4) n WHERE c.reopened_at IS NULL"
        ))
        .await;
    }

    /// Somebody answers for the rollback window, for so long.
    pub(super) async fn attested(&self, long: &str) {
        self.sql(&format!(
            "DELETE FROM aegis_migrate.contract_attestation;
             INSERT INTO aegis_migrate.contract_attestation (change, attempt, need, by_whom, until, reason, envelope)
             SELECT c.change, c.attempt, 'rollback_window', 'bo', clock_timestamp() + interval '{long}', 'r1 is gone', '{{}}'
             FROM aegis_migrate.contract c WHERE c.reopened_at IS NULL"
        ))
        .await;
    }

    pub(super) fn keyring(&self) -> Keyring {
        self.keyring_of("\"approve\", \"attest\", \"observe\"")
    }

    /// Everybody may sign this.
    pub(super) fn keyring_of(&self, may: &str) -> Keyring {
        let mut text = "format = 1\nenvironment = \"production\"\napprovals = 2\n".to_owned();
        for (name, person) in [("ana", &self.ana), ("bo", &self.bo), ("cy", &self.cy)] {
            writeln!(
                text,
                "[[person]]\nname = \"{name}\"\nmay = [{may}]\nkey = \"\"\"\n{}\"\"\"",
                person.public
            )
            .unwrap();
        }
        Keyring::read(&text, "approvers.toml").unwrap()
    }

    /// What is to be signed.
    pub(super) async fn approval(&self) -> Approval {
        let ledger = ledger::find(&self.db.admin).await.unwrap().unwrap();
        let attempt = self.attempt().await;
        let line = self
            .set
            .lock
            .line(&format!("{ID}:contract").parse().unwrap());
        Approval {
            lock_line: line_text(line.unwrap()),
            ledger: ledger.id.to_string(),
            environment: "production".to_owned(),
            attempt: attempt.number,
            closed_at: attempt.closed_at,
            not_after: Timestamp::now() + jiff::SignedDuration::from_hours(1),
            author: "ana".to_owned(),
            approvers: vec!["bo".to_owned(), "cy".to_owned()],
        }
    }

    /// Signed by bo and cy.
    pub(super) async fn approved(&self) -> Vec<(String, Envelope)> {
        signed(&self.approval().await, &[&self.bo, &self.cy])
    }

    pub(super) async fn run(
        &self,
        envelopes: &[(String, Envelope)],
    ) -> Result<Summary, ContractError> {
        let mut held = self.held().await;
        let (id, keyring) = (id(), self.keyring());
        let brought = Brought {
            change: &id,
            keyring: &keyring,
            envelopes,
        };
        let ran = contract::run(
            &mut held,
            &self.set,
            &brought,
            &Ladder::default(),
            &mut |_| {},
        )
        .await;
        held.release().await;
        ran
    }

    pub(super) async fn attempt(&self) -> Attempt {
        Attempt::find(&self.db.admin, ID).await.unwrap().unwrap()
    }

    /// Whether the old column, and the trigger that writes it, are there.
    pub(super) async fn old_side(&self) -> (bool, bool) {
        let column = "SELECT count(*) FROM pg_attribute WHERE attrelid = 'app.users'::regclass AND attname = 'name'";
        let trigger = "SELECT count(*) FROM pg_trigger WHERE tgrelid = 'app.users'::regclass AND NOT tgisinternal";
        (
            self.number(column).await == 1,
            self.number(trigger).await == 2,
        )
    }

    pub(super) async fn steps(&self) -> i64 {
        self.number("SELECT count(*) FROM aegis_migrate.step WHERE phase = 'contract' AND state = 'applied'")
            .await
    }

    pub(super) async fn end(self) {
        let rw = &self.rw;
        self.sql(&format!("DROP OWNED BY {rw}; DROP ROLE {rw}"))
            .await;
    }
}

/// A document with these signatures.
pub(super) fn signed(approval: &Approval, people: &[&Person]) -> Vec<(String, Envelope)> {
    let payload = approval.payload().unwrap();
    people
        .iter()
        .map(|person| {
            let envelope = person.signer.sign(approval::TYPE, &payload);
            ("approval.json".to_owned(), envelope)
        })
        .collect()
}
