//! `close` and `reopen`: when the door may shut, what that raises, and who is too old then.

use aegis_migrate::change::Phase;
use aegis_migrate::contract::error::ContractError;
use aegis_migrate::contract::keyring::Keyring;
use aegis_migrate::contract::ready;
use aegis_migrate::contract::subject::Subject;
use aegis_migrate::contract::verbs::{self, Moved};
use aegis_migrate::run::contract::goes_by_what_was_applied;
use aegis_migrate::run::{Outcome, RunError};
use aegis_migrate::structure::{Sealed, verify};
use aegis_testkit::TestDb;

use super::shop::{ID, Shop, id};
use crate::run::ran;

const DROP: &str = "ALTER TABLE users DROP COLUMN name;\n";

async fn close(shop: &Shop) -> Result<Moved, ContractError> {
    close_by(shop, &shop.keyring()).await
}

async fn close_by(shop: &Shop, keyring: &Keyring) -> Result<Moved, ContractError> {
    let mut held = shop.held().await;
    let closed = verbs::close(&mut held, &shop.set, &id(), keyring).await;
    held.release().await;
    closed
}

/// Nothing shuts, and this is why.
async fn stays_open(shop: &Shop, keyring: &Keyring, why: &str) {
    let error = close_by(shop, keyring).await.unwrap_err();
    assert_eq!(error.exit_code(), 18, "{error}");
    assert!(error.to_string().contains(why), "{why}: {error}");
    let attempts = "SELECT count(*) FROM aegis_migrate.contract";
    let floor = "SELECT min_schema::bigint FROM aegis_migrate.ledger";
    assert_eq!(
        (shop.number(attempts).await, shop.number(floor).await),
        (0, 0)
    );
    let grants = format!(
        "SELECT count(*) FROM information_schema.role_table_grants WHERE grantee IN ('{0}', '{0}_away') AND table_name = 'users'",
        shop.rw
    );
    assert_eq!(shop.number(&grants).await, 3, "{why}");
}

#[tokio::test]
async fn the_door_stays_open_while_something_is_lacking_that_the_contract_needs_later() {
    let shop = Shop::expanded(DROP).await;
    let all = shop.keyring();
    shop.move_switch().await;
    stays_open(&shop, &all, "no pass of kind").await;
    shop.pass("forward", 3).await;
    stays_open(&shop, &all, "3 mismatching").await;
    shop.pass("forward", 0).await;
    // Nobody could answer for the rollback window.
    stays_open(
        &shop,
        &shop.keyring_of("\"approve\""),
        "nobody in approvers.toml may attest",
    )
    .await;
    shop.sql("ALTER TABLE app.users DISABLE TRIGGER USER").await;
    stays_open(&shop, &all, "trigger is disabled").await;
    shop.sql("ALTER TABLE app.users ENABLE TRIGGER USER").await;
    shop.pass("forward", 0).await;
    shop.sql("CREATE VIEW app.names AS SELECT name FROM app.users")
        .await;
    stays_open(&shop, &all, "view app.names").await;
    shop.sql("DROP VIEW app.names").await;
    let rw = &shop.rw;
    shop.sql(&format!("ALTER ROLE {rw} RENAME TO {rw}_away"))
        .await;
    stays_open(&shop, &all, "roles that do not exist").await;
    shop.sql(&format!("ALTER ROLE {rw}_away RENAME TO {rw}"))
        .await;
    // Without a file of approvers `status` still tells, and that this is in the way too.
    let subject = Subject::of(&shop.set.changes[&id()]).unwrap();
    let lacks = ready::lacks(&shop.db.admin, &subject, Err("it is not there"))
        .await
        .unwrap();
    let what: Vec<&str> = lacks.iter().map(|lack| lack.what.as_str()).collect();
    assert_eq!(what, ["approvers"]);
    // Nothing else was in the way.
    assert_eq!(close(&shop).await.unwrap().outcome, Outcome::Applied);
    shop.end().await;
}

async fn reopen(shop: &Shop) -> Result<Moved, ContractError> {
    let mut held = shop.held().await;
    let opened = verbs::reopen(&mut held, &id(), "r1 must come back").await;
    held.release().await;
    opened
}

/// What the role of the application may do with the old column.
async fn may(shop: &Shop) -> Vec<String> {
    let sql = "SELECT p FROM unnest(ARRAY['SELECT', 'INSERT', 'UPDATE']) p WHERE has_column_privilege($1, 'app.users', 'name', p) ORDER BY p";
    let rows = shop.db.admin.query(sql, &[&shop.rw]).await.unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

#[tokio::test]
async fn the_door_shuts_when_everything_before_is_applied_and_nobody_is_told_the_old_side() {
    let shop = Shop::expanded(DROP).await;
    shop.sql("DELETE FROM aegis_migrate.phase WHERE phase = 'migrate'")
        .await;
    let early = close(&shop).await.unwrap_err();
    assert_eq!(early.exit_code(), 21, "{early}");
    shop.migrated().await;
    let unmoved = close(&shop).await.unwrap_err();
    assert_eq!(unmoved.exit_code(), 18, "{unmoved}");
    assert!(
        unmoved.to_string().contains("read the old side"),
        "{unmoved}"
    );
    shop.move_switch().await;
    shop.pass("agrees", 0).await;
    shop.sql("UPDATE aegis_migrate.switch SET cache_ttl_ms = 3600000")
        .await;
    let soon = close(&shop).await.unwrap_err();
    assert!(soon.to_string().contains("counts from"), "{soon}");
    let said = soon.to_string();
    let (_, wait) = said.split_once("wait ").unwrap();
    let (seconds, then) = wait.split_once(' ').unwrap();
    assert!(then.starts_with("s, then close again"), "{said}");
    assert!(
        (3000..=3600).contains(&seconds.parse::<i64>().unwrap()),
        "{said}"
    );
    assert!(!said.contains("migrate switch"), "{said}");
    shop.sql("UPDATE aegis_migrate.switch SET cache_ttl_ms = 0")
        .await;

    shop.sql("GRANT SELECT ON app.users TO PUBLIC").await;
    let public = close(&shop).await.unwrap_err();
    assert_eq!(public.exit_code(), 18, "{public}");
    assert!(
        public.to_string().contains("the door stays open"),
        "{public}"
    );
    assert_eq!(may(&shop).await, ["INSERT", "SELECT", "UPDATE"]);
    shop.sql("REVOKE SELECT ON app.users FROM PUBLIC").await;

    let closed = close(&shop).await.unwrap();
    assert_eq!(
        (closed.outcome, closed.attempt, closed.min_schema),
        (Outcome::Applied, 1, 3)
    );
    assert!(may(&shop).await.is_empty());
    assert_eq!(close(&shop).await.unwrap().outcome, Outcome::Nothing);
    let opened = reopen(&shop).await.unwrap();
    assert_eq!((opened.attempt, opened.min_schema), (1, 0));
    assert_eq!(may(&shop).await, ["INSERT", "SELECT", "UPDATE"]);
    assert_eq!(reopen(&shop).await.unwrap_err().exit_code(), 21);
    assert_eq!(close(&shop).await.unwrap().attempt, 2);
    let floor = "SELECT min_schema::bigint FROM aegis_migrate.ledger";
    assert_eq!(shop.number(floor).await, 3);
    shop.end().await;
}

#[tokio::test]
async fn a_line_that_was_edited_after_it_was_applied_is_refused_by_every_verb() {
    let shop = Shop::ready(DROP).await;
    let edit = format!(
        "UPDATE aegis_migrate.phase SET line_sha256 = md5('x') || md5('y') WHERE change = '{ID}' AND phase = 'expand'"
    );
    let kept = "SELECT line_sha256 FROM aegis_migrate.phase WHERE phase = 'expand' AND change = $1";
    let row = shop.db.admin.query_one(kept, &[&ID]).await.unwrap();
    let was: String = row.get(0);
    shop.sql(&edit).await;
    let error = close(&shop).await.unwrap_err();
    assert_eq!(error.exit_code(), 11, "{error}");
    let back = format!(
        "UPDATE aegis_migrate.phase SET line_sha256 = '{was}' WHERE change = '{ID}' AND phase = 'expand'"
    );
    shop.sql(&back).await;
    close(&shop).await.unwrap();
    shop.sql(&edit).await;
    // Also of a door that is shut already, and for the verbs that hold no mutex.
    let error = close(&shop).await.unwrap_err();
    assert_eq!(error.exit_code(), 11, "{error}");
    let asked = goes_by_what_was_applied(&shop.db.admin, &shop.set, false).await;
    assert_eq!(asked.unwrap_err().exit_code(), 11);
    let error = shop.run(&shop.approved().await).await.unwrap_err();
    assert_eq!(error.exit_code(), 11, "{error}");
    shop.end().await;
}

#[tokio::test]
async fn where_rows_are_moved_they_must_have_been_counted_whether_evidence_names_it_or_not() {
    let shop = Shop::expanded_with(DROP, "tasks").await;
    shop.move_switch().await;
    stays_open(&shop, &shop.keyring(), "reconciled: no pass of kind").await;
    shop.pass("agrees", 0).await;
    let closed = close(&shop).await.unwrap();
    assert_eq!(closed.outcome, Outcome::Applied);
    shop.pass("agrees", 2).await;
    let error = shop.run(&shop.approved().await).await.unwrap_err();
    assert!(error.to_string().contains("2 mismatching"), "{error}");
    shop.end().await;
}

#[tokio::test]
async fn a_folder_that_does_not_know_a_closed_change_is_too_old() {
    let shop = Shop::closed(DROP).await;
    let old = ran(&shop.db, &shop.older, Phase::Expand).await.unwrap_err();
    assert!(
        matches!(&old, RunError::TooOld(change) if change == ID),
        "{old}"
    );
    assert_eq!(old.exit_code(), 19);
    let known = ran(&shop.db, &shop.set, Phase::Expand).await.unwrap();
    assert_eq!(known.outcome, Outcome::Nothing);
    reopen(&shop).await.unwrap();
    let back = ran(&shop.db, &shop.older, Phase::Expand).await.unwrap();
    assert_eq!(back.outcome, Outcome::Ahead);
    shop.end().await;
}

#[tokio::test]
async fn a_database_that_is_made_fresh_with_the_contract_has_only_the_new_side() {
    let shop = Shop::expanded(DROP).await;
    let switched = format!("SELECT reads || ' ' || writes FROM aegis_migrate.switched('{ID}')");
    let asked =
        async |db: &TestDb| -> String { db.admin.query_one(&switched, &[]).await.unwrap().get(0) };
    assert_eq!(asked(&shop.db).await, "old old");
    let fresh = TestDb::empty().await;
    let schema = "DO $$ BEGIN IF to_regnamespace('app') IS NULL THEN EXECUTE 'CREATE SCHEMA app'; END IF; END $$";
    fresh.admin.batch_execute(schema).await.unwrap();
    ran(&fresh, &shop.set, Phase::Expand).await.unwrap();
    assert_eq!(asked(&fresh).await, "new new");
    let owned = format!("DROP OWNED BY {}", shop.rw);
    fresh.admin.batch_execute(&owned).await.unwrap();
    shop.end().await;
}

#[tokio::test]
async fn what_a_shut_door_has_taken_is_no_difference() {
    let shop = Shop::closed(DROP).await;
    let schemas = ["app".to_owned()];
    let unknown = Sealed::Unknown {
        why: "not asked".to_owned(),
    };
    let report = verify(&shop.db.admin, &schemas, unknown).await.unwrap();
    assert!(report.steps.holds(), "{report:?}");
    // What somebody has taken by hand is one.
    shop.db
        .admin
        .batch_execute("DROP INDEX app.users_name")
        .await
        .unwrap();
    let unknown = Sealed::Unknown {
        why: "not asked".to_owned(),
    };
    let report = verify(&shop.db.admin, &schemas, unknown).await.unwrap();
    assert!(report.steps.is_wrong(), "{report:?}");
    shop.end().await;
}
