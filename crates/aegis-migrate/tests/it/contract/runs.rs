//! `contract run`: what it needs, what it asserts under the locks, how it goes on after a death.

use std::time::Duration;

use aegis_migrate::abandon::abandon;
use aegis_migrate::change::Phase;
use aegis_migrate::contract::approval::Approval;
use aegis_migrate::contract::envelope::Envelope;
use aegis_migrate::contract::error::ContractError;
use aegis_migrate::contract::need::Need;
use aegis_migrate::contract::verbs;
use aegis_migrate::run::contract::{self, Brought};
use aegis_migrate::run::{Ladder, Outcome};
use aegis_migrate::structure::{Sealed, verify};
use aegis_testkit::wait_until;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};

use super::shop::{ID, Shop, id, signed};
use crate::run::ran;

const DROP: &str = "ALTER TABLE users DROP COLUMN name;\n";
const BOUND: Duration = Duration::from_secs(30);

const WAITS: &str = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE 'LOCK TABLE%'";

/// As the ledger names an approval.
fn digest(approval: &Approval) -> String {
    Sha256::digest(approval.payload().unwrap())
        .iter()
        .fold(String::new(), |text, byte| format!("{text}{byte:02x}"))
}

/// What was signed.
fn payload(envelopes: &[(String, Envelope)]) -> Approval {
    serde_json::from_slice(&STANDARD.decode(&envelopes[0].1.payload).unwrap()).unwrap()
}

/// What blocks, and that nothing was changed.
async fn blocked(shop: &Shop) -> Vec<(Need, String)> {
    let error = shop.run(&shop.approved().await).await.unwrap_err();
    assert_eq!(error.exit_code(), 18, "{error}");
    assert_eq!(shop.old_side().await, (true, true));
    assert_eq!(shop.steps().await, 0);
    let kept = "SELECT count(*) FROM aegis_migrate.event WHERE event->'summary'->>'exit_code' = '18' AND event->'summary'->>'change' IS NOT NULL";
    assert!(shop.number(kept).await >= 1);
    match error {
        ContractError::Blocked { blocks, .. } => blocks
            .into_iter()
            .map(|block| (block.need, block.why))
            .collect(),
        other => panic!("{other}"),
    }
}

async fn blocks_alone(shop: &Shop, need: Need, why: &str) {
    let found = blocked(shop).await;
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].0 == need && found[0].1.contains(why), "{found:?}");
}

#[tokio::test]
async fn with_every_fact_and_enough_signatures_the_old_side_goes_in_one_transaction() {
    let shop = Shop::shown(DROP).await;
    let ran = shop.run(&shop.approved().await).await.unwrap();
    assert_eq!((ran.outcome, ran.attempt), (Outcome::Applied, 1));
    // Tighten, three of the trigger, the column.
    assert_eq!(ran.applied, 5);
    assert_eq!(ran.approved_by, ["bo", "cy"]);
    assert_eq!(ran.facts.len(), 5);
    assert_eq!(shop.old_side().await, (false, false));
    let functions = "SELECT count(*) FROM pg_proc WHERE proname LIKE 'aegis_sync_%'";
    assert_eq!(shop.number(functions).await, 0);
    let together = "SELECT count(DISTINCT xmin::text) FROM aegis_migrate.step WHERE phase = 'contract' AND ordinal > 1";
    assert_eq!(shop.number(together).await, 1);
    assert!(shop.attempt().await.done_at.is_some());
    let used = "SELECT count(*) FROM aegis_migrate.approval_used";
    assert_eq!(shop.number(used).await, 1);

    let app = shop.db.connect_as(&shop.rw).await;
    app.batch_execute("INSERT INTO app.users (id, first_name, last_name) VALUES (2, 'Grace', 'Hopper'); UPDATE app.users SET last_name = 'Byron' WHERE id = 1")
        .await
        .unwrap();
    drop(app);
    // The table's own grants are back: a column that comes later is the application's too, and the structure is what was written.
    let of_table = format!(
        "SELECT count(*) FROM information_schema.role_table_grants WHERE grantee = '{}' AND table_name = 'users'",
        shop.rw
    );
    assert_eq!(shop.number(&of_table).await, 3);
    let of_columns = "SELECT count(*) FROM pg_attribute WHERE attrelid = 'app.users'::regclass AND attacl IS NOT NULL";
    assert_eq!(shop.number(of_columns).await, 0);
    let again = shop.run(&[]).await.unwrap();
    assert_eq!((again.outcome, again.applied), (Outcome::Nothing, 0));
    let mut held = shop.held().await;
    let late = verbs::reopen(&mut held, &id(), "too late")
        .await
        .unwrap_err();
    held.release().await;
    assert_eq!(late.exit_code(), 18, "{late}");
    what_stands_after(&shop).await;
    shop.end().await;
}

/// The structure is what the changes say, an expand whose contract has run is not taken back, older programs are too old for good, and
/// what comes later runs.
async fn what_stands_after(shop: &Shop) {
    let unknown = Sealed::Unknown {
        why: "not asked".to_owned(),
    };
    let report = verify(&shop.db.admin, &["app".to_owned()], unknown)
        .await
        .unwrap();
    assert!(report.steps.holds(), "{report:?}");
    let mut held = shop.held().await;
    let back = abandon(
        &mut held,
        &shop.set,
        &id(),
        &Ladder::default(),
        true,
        "a wrong turn",
    )
    .await
    .unwrap_err();
    let closed = verbs::close(&mut held, &shop.set, &id(), &shop.keyring())
        .await
        .unwrap_err();
    held.release().await;
    assert!(back.to_string().contains("is applied"), "{back}");
    assert_eq!(closed.exit_code(), 18, "{closed}");
    assert!(closed.to_string().contains("has run at"), "{closed}");
    let old = ran(&shop.db, &shop.older, Phase::Expand).await.unwrap_err();
    assert_eq!(old.exit_code(), 19, "{old}");
    let known = ran(&shop.db, &shop.set, Phase::Expand).await.unwrap();
    assert_eq!(known.outcome, Outcome::Nothing);
}

#[tokio::test]
async fn each_fact_blocks_by_itself_while_it_is_missing_stale_inconclusive_or_refuted() {
    let shop = Shop::closed(DROP).await;
    let all: Vec<Need> = blocked(&shop).await.into_iter().map(|one| one.0).collect();
    assert_eq!(
        all,
        [Need::Sightings, Need::Clients, Need::RollbackWindow],
        "those that nobody has looked at"
    );
    shop.observed("0").await;
    blocks_alone(&shop, Need::RollbackWindow, "missing").await;
    shop.attested("-1 second").await;
    blocks_alone(&shop, Need::RollbackWindow, "ended").await;
    shop.attested("1 hour").await;

    shop.observed("3600").await;
    let stale = blocked(&shop).await;
    assert_eq!(stale.len(), 2, "{stale:?}");
    assert!(
        stale.iter().all(|(_, why)| why.contains("stale")),
        "{stale:?}"
    );

    shop.observed("0").await;
    shop.sql("DELETE FROM aegis_migrate.contract_look WHERE need = 'clients' AND at BETWEEN clock_timestamp() - interval '35 s' AND clock_timestamp() - interval '5 s'")
        .await;
    blocks_alone(&shop, Need::Clients, "nobody looked between").await;

    shop.observed("0").await;
    shop.sql(&format!("INSERT INTO aegis_migrate.sighting VALUES ('{ID}', 'old', 'shop/1', 'app', date_trunc('minute', clock_timestamp()))"))
        .await;
    blocks_alone(&shop, Need::Sightings, "shop/1").await;
    shop.sql("DELETE FROM aegis_migrate.sighting").await;

    shop.sql("CREATE VIEW app.names AS SELECT name FROM app.users")
        .await;
    blocks_alone(&shop, Need::Dependents, "view app.names").await;
    shop.sql("DROP VIEW app.names").await;

    shop.pass("agrees", 3).await;
    blocks_alone(&shop, Need::Reconciled, "3 mismatching").await;
    shop.pass("agrees", 0).await;
    shop.sql(&format!(
        "INSERT INTO aegis_migrate.switch (change, rev, reads, writes, cache_ttl_ms, release, made_by, reason)
         VALUES ('{ID}', 2, 'new', 'old', 0, 'r2', 'ana', 'test'), ('{ID}', 3, 'new', 'new', 0, 'r2', 'ana', 'test')"
    ))
    .await;
    blocks_alone(&shop, Need::Reconciled, "before new writes counted").await;
    shop.pass("agrees", 0).await;
    shop.sql("ALTER TABLE app.users DISABLE TRIGGER USER").await;
    let found = blocked(&shop).await;
    assert!(
        found
            .iter()
            .any(|(need, why)| *need == Need::Reconciled && why.contains("disabled")),
        "{found:?}"
    );
    shop.sql("ALTER TABLE app.users ENABLE TRIGGER USER").await;
    // It was not there all the time since the count.
    blocks_alone(&shop, Need::Reconciled, "trigger").await;
    shop.pass("agrees", 0).await;

    // Nothing else was in the way.
    let ran = shop.run(&shop.approved().await).await.unwrap();
    assert_eq!(ran.outcome, Outcome::Applied);
    shop.end().await;
}

#[tokio::test]
async fn an_old_session_of_a_member_of_a_runtime_role_blocks_until_it_ends() {
    let shop = Shop::expanded(DROP).await;
    let member = format!("{}_member", shop.db.name());
    shop.sql(&format!("CREATE ROLE {member} LOGIN IN ROLE {}", shop.rw))
        .await;
    let old = shop.db.connect_as(&member).await;
    shop.move_switch().await;
    shop.pass("agrees", 0).await;
    let mut held = shop.held().await;
    verbs::close(&mut held, &shop.set, &id(), &shop.keyring())
        .await
        .unwrap();
    held.release().await;
    shop.observed("0").await;
    shop.attested("1 hour").await;
    blocks_alone(&shop, Need::Clients, &member).await;
    drop(old);
    let sessions = format!("SELECT count(*) FROM pg_stat_activity WHERE usename = '{member}'");
    wait_until("the old session is gone", BOUND, async || {
        shop.number(&sessions).await == 0
    })
    .await;
    shop.run(&shop.approved().await).await.unwrap();
    shop.sql(&format!("DROP ROLE {member}")).await;
    shop.end().await;
}

#[tokio::test]
async fn an_approval_counts_for_its_line_its_ledger_its_environment_in_time_by_others_and_once() {
    let shop = Shop::shown(DROP).await;
    let refused = async |envelopes: Vec<_>, why: &str| {
        let error = shop.run(&envelopes).await.unwrap_err();
        assert_eq!(error.exit_code(), 18, "{error}");
        assert!(error.to_string().contains(why), "{error}");
        assert_eq!(
            (shop.old_side().await, shop.steps().await),
            ((true, true), 0)
        );
    };
    let it = shop.approval().await;
    let both = [&shop.bo, &shop.cy];
    refused(Vec::new(), "no approval").await;
    refused(signed(&it, &[&shop.bo]), "1 of 2").await;
    refused(signed(&it, &[&shop.bo, &shop.ana]), "ana is the author").await;
    let mut other = it.clone();
    other.ledger = "another".to_owned();
    refused(signed(&other, &both), "it is for ledger another").await;
    other = it.clone();
    other.environment = "staging".to_owned();
    refused(signed(&other, &both), "it is for environment staging").await;
    other = it.clone();
    other.lock_line.push('0');
    refused(signed(&other, &both), "it is for the line").await;
    other = it.clone();
    other.not_after = "2026-01-01T00:00:00Z".parse().unwrap();
    refused(signed(&other, &both), "it ended at").await;

    let envelopes = signed(&it, &both);
    let digest = digest(&it);
    shop.sql(&format!(
        "INSERT INTO aegis_migrate.approval_used (digest, change, by_whom) VALUES ('{digest}', '{ID}', '{{bo,cy}}')"
    ))
    .await;
    refused(envelopes, "it counts once").await;
    shop.end().await;
}

#[tokio::test]
async fn what_changes_while_the_locks_are_waited_for_is_seen_under_them() {
    let shop = Shop::shown(DROP).await;
    let envelopes = shop.approved().await;
    let rw = shop.rw.clone();
    let body = "SELECT quote_ident(proname)::text FROM pg_proc WHERE proname LIKE 'aegis_sync_%'";
    let function: String = shop.db.admin.query_one(body, &[]).await.unwrap().get(0);
    let definition =
        "SELECT pg_get_functiondef(oid) FROM pg_proc WHERE proname LIKE 'aegis_sync_%'";
    let definition: String = shop
        .db
        .admin
        .query_one(definition, &[])
        .await
        .unwrap()
        .get(0);
    let digest = digest(&payload(&envelopes));
    let cases = [
        (
            "the door is open again",
            format!("GRANT SELECT (name) ON app.users TO {rw}"),
            format!("REVOKE SELECT (name) ON app.users FROM {rw}"),
        ),
        (
            "the sync trigger is another one",
            format!("CREATE OR REPLACE FUNCTION app.{function}() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'"),
            definition,
        ),
        (
            "the sync trigger is disabled",
            "ALTER TABLE app.users DISABLE TRIGGER USER".to_owned(),
            "ALTER TABLE app.users ENABLE TRIGGER USER".to_owned(),
        ),
        (
            "it counts once",
            "DELETE FROM aegis_migrate.contract_bound".to_owned(),
            format!("INSERT INTO aegis_migrate.contract_bound (digest, change, attempt) VALUES ('{digest}', '{ID}', 1)"),
        ),
        (
            "the switch was moved back",
            format!("INSERT INTO aegis_migrate.switch (change, rev, reads, writes, cache_ttl_ms, release, made_by, reason)
                VALUES ('{ID}', 2, 'old', 'new', 0, 'r1', 'eve', 'past the verb')"),
            "DELETE FROM aegis_migrate.switch WHERE rev = 2".to_owned(),
        ),
        (
            "was reopened meanwhile",
            "UPDATE aegis_migrate.contract SET reopened_at = clock_timestamp(), reopened_by = 'ana', reopen_reason = 'x'".to_owned(),
            "UPDATE aegis_migrate.contract SET reopened_at = NULL, reopened_by = NULL, reopen_reason = NULL".to_owned(),
        ),
    ];
    for (says, meddle, mend) in cases {
        let mut other = shop.db.connect().await;
        let reader = other.transaction().await.unwrap();
        reader
            .batch_execute("LOCK TABLE app.users IN ACCESS SHARE MODE")
            .await
            .unwrap();
        let run = async {
            let error = shop.run(&envelopes).await.unwrap_err();
            assert_eq!(error.exit_code(), 18, "{error}");
            assert!(error.to_string().contains(says), "{says}: {error}");
        };
        let meddle = async {
            wait_until("the contract waits for its locks", BOUND, async || {
                shop.number(WAITS).await == 1
            })
            .await;
            shop.sql(&meddle).await;
            reader.rollback().await.unwrap();
        };
        tokio::join!(run, meddle);
        assert_eq!(shop.old_side().await, (true, true), "{says}");
        shop.sql(&mend).await;
        // A trigger that was another one meanwhile has to be counted after.
        shop.pass("agrees", 0).await;
    }
    let used = "SELECT count(*) FROM aegis_migrate.approval_used";
    assert_eq!(shop.number(used).await, 1);
    let ran = shop.run(&envelopes).await.unwrap();
    assert_eq!(ran.outcome, Outcome::Applied);
    shop.end().await;
}

#[tokio::test]
async fn a_contract_that_was_killed_between_its_steps_goes_on_with_the_same_approval() {
    let shop = Shop::shown(DROP).await;
    let envelopes = shop.approved().await;
    // It is killed while it waits for the locks of the drop: tighten, of another table, is done.
    let mut other = shop.db.connect().await;
    let reader = other.transaction().await.unwrap();
    reader
        .batch_execute("LOCK TABLE app.users IN ACCESS SHARE MODE")
        .await
        .unwrap();
    let run = shop.run(&envelopes);
    let kill = async {
        wait_until("the contract waits for its locks", BOUND, async || {
            shop.number(WAITS).await == 1 && shop.steps().await == 1
        })
        .await;
        shop.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE 'aegis migrate/%'")
            .await;
    };
    let (killed, ()) = tokio::join!(run, kill);
    assert!(killed.is_err());
    reader.rollback().await.unwrap();
    assert_eq!(
        (shop.old_side().await, shop.steps().await),
        ((true, true), 1)
    );
    let ran = shop.run(&envelopes).await.unwrap();
    assert_eq!((ran.outcome, ran.applied), (Outcome::Applied, 4));
    assert_eq!(
        (shop.old_side().await, shop.steps().await),
        ((false, false), 5)
    );
    shop.end().await;
}

#[tokio::test]
async fn a_session_that_is_lost_with_nothing_in_the_air_ends_as_the_runner_s_does() {
    let shop = Shop::shown(DROP).await;
    let (id, keyring, envelopes) = (id(), shop.keyring(), shop.approved().await);
    let mut held = shop.held().await;
    shop.sql(&format!(
        "SELECT pg_terminate_backend({})",
        held.session.pid
    ))
    .await;
    let brought = Brought {
        change: &id,
        keyring: &keyring,
        envelopes: &envelopes,
    };
    let ladder = Ladder::default();
    let error = contract::run(&mut held, &shop.set, &brought, &ladder, &mut |_| {})
        .await
        .unwrap_err();
    held.release().await;
    assert_eq!(error.exit_code(), 17, "{}", error.whole());
    assert!(error.whole().contains("Run again"), "{}", error.whole());
    let ran = shop.run(&envelopes).await.unwrap();
    assert_eq!(ran.outcome, Outcome::Applied);
    shop.end().await;
}

#[tokio::test]
async fn what_cannot_run_in_a_transaction_stands_above_or_below_and_a_dead_run_goes_on_there() {
    let mixed = format!("{DROP}DROP INDEX CONCURRENTLY users_gone;\nDROP TABLE t;\n");
    // It is known before the door shuts.
    let shop = Shop::ready(&mixed).await;
    let mut held = shop.held().await;
    let error = verbs::close(&mut held, &shop.set, &id(), &shop.keyring())
        .await
        .unwrap_err();
    held.release().await;
    assert_eq!(error.exit_code(), 18, "{error}");
    assert!(error.to_string().contains("move it above"), "{error}");
    shop.end().await;

    let around = format!(
        "DROP INDEX CONCURRENTLY users_name;\n{DROP}DROP INDEX CONCURRENTLY users_first;\n"
    );
    let shop = Shop::shown(&around).await;
    // The last one is refused, when the old form is gone and the approval used.
    let refused = shop.run(&shop.approved().await).await.unwrap_err();
    assert_eq!(refused.exit_code(), 20, "{refused}");
    assert_eq!(shop.old_side().await, (false, false));
    let indexes = "SELECT count(*) FROM pg_class WHERE relname = 'users_name'";
    assert_eq!((shop.steps().await, shop.number(indexes).await), (6, 0));
    shop.sql("CREATE INDEX users_first ON app.users (first_name)")
        .await;
    let ran = shop.run(&[]).await.unwrap();
    assert_eq!((ran.outcome, ran.applied), (Outcome::Applied, 1));
    assert_eq!((ran.approval, shop.steps().await), (None, 7));
    shop.end().await;
}
