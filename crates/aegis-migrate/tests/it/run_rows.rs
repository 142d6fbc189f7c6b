//! The runner with rows: the backfill and the reconciliation of a change, between its statements.

use std::time::Duration;

use aegis_backfill::job::control::{Command, status, tell};
use aegis_migrate::change::Phase;
use aegis_migrate::mutex::Held;
use aegis_migrate::run::{Outcome, RunError, Summary, run};
use aegis_migrate::set::Set;
use aegis_testkit::{TestDb, wait_until};
use serde_json::Value;

use crate::folder::Folder;
use crate::run::{held, ladder, ran, sealed};

pub(crate) const ID: &str = "20261129T1030_cents";
const BOUND: Duration = Duration::from_mins(1);

/// A table of prices with `rows` rows, and the change that brings their cents.
pub(crate) async fn database(rows: i32) -> TestDb {
    let db = TestDb::empty().await;
    db.admin
        .batch_execute(&format!(
            "CREATE SCHEMA app; CREATE TABLE app.t (id bigint PRIMARY KEY, price numeric);
             INSERT INTO app.t SELECT g, g * 1.25 FROM generate_series(1, {rows}) g"
        ))
        .await
        .unwrap();
    db
}

pub(crate) fn folder(batch: u32) -> Folder {
    let toml = format!(
        r#"format = 1
id = "{ID}"
schema = "app"
[expand]
sql = "expand.sql"
compatible = [{{ rule = "add-column", reason = "clients name their columns" }}]
[sync]
table = "t"
old = ["price"]
new = ["cents"]
[sync.forward]
cents = "(price * 100)::bigint"
[sync.backward]
price = "cents / 100.0"
[migrate]
after_backfill = "after.sql"
[backfill]
key = ["id"]
set = "sync.forward"
batch = {{ start = {batch}, max = {batch}, target_ms = 500 }}
[reconcile]
compare = "sync"
"#
    );
    Folder::default()
        .with(&format!("{ID}/change.toml"), toml)
        .with(
            &format!("{ID}/expand.sql"),
            "ALTER TABLE t ADD COLUMN cents bigint;\n",
        )
        .with(
            &format!("{ID}/after.sql"),
            "CREATE INDEX CONCURRENTLY of_cents ON t (cents);\n",
        )
}

pub(crate) async fn number(db: &TestDb, sql: &str) -> i64 {
    db.admin.query_one(sql, &[]).await.unwrap().get(0)
}

async fn events(db: &TestDb, name: &str) -> Vec<Value> {
    let rows = db
        .admin
        .query(
            "SELECT event FROM aegis_migrate.event WHERE event ->> 'event' = $1 ORDER BY at",
            &[&name],
        )
        .await
        .unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

/// A run beside the test.
pub(crate) fn beside(db: &TestDb, set: &Set) -> tokio::task::JoinHandle<Result<Summary, RunError>> {
    let (url, set) = (db.url(), set.clone());
    tokio::spawn(async move {
        let name = aegis_migrate::mutex::RunName {
            run: "run-2".to_owned(),
            by: "bob".to_owned(),
            release: "r1".to_owned(),
        };
        let session = aegis_migrate::session::Direct::connect(
            &url.parse().unwrap(),
            tokio_postgres::NoTls,
            &name.application_name(),
        )
        .await
        .unwrap();
        let mut held = Held::take(session, &name, BOUND).await.unwrap();
        let ended = run(&mut held, &set, Phase::Migrate, &ladder(), &mut |_| {}).await;
        held.release().await;
        ended
    })
}

#[tokio::test]
async fn rows_are_moved_and_counted_before_what_comes_after_and_only_once() {
    let db = database(5000).await;
    let set = sealed(&folder(500));
    ran(&db, &set, Phase::Expand).await.unwrap();
    let first = ran(&db, &set, Phase::Migrate).await.unwrap();
    assert_eq!(
        (first.outcome, first.applied, first.version),
        (Outcome::Applied, 1, 2)
    );
    let wrong = "SELECT count(*) FROM app.t WHERE cents IS DISTINCT FROM (price * 100)::bigint";
    assert_eq!(number(&db, wrong).await, 0);
    let report = &events(&db, "backfill_done").await[0]["report"];
    assert_eq!(report["rows_changed"], 5000, "{report}");
    let counts = &events(&db, "reconciled").await[0]["counts"];
    assert_eq!(
        (&counts[0]["kind"], &counts[1]["rows"]),
        (&Value::from("forward"), &Value::from(5000))
    );
    let zero = "SELECT count(*) FROM aegis_migrate.reconcile_pass WHERE is_zero AND trigger_sha256 IS NOT NULL";
    assert_eq!(number(&db, zero).await, 2);
    let again = ran(&db, &set, Phase::Migrate).await.unwrap();
    assert_eq!(again.outcome, Outcome::Nothing);
    assert_eq!(
        number(&db, "SELECT count(*) FROM aegis_migrate.reconcile_pass").await,
        2
    );
}

#[tokio::test]
async fn others_can_run_while_rows_are_moved_and_what_they_did_is_not_done_again() {
    let db = database(2000).await;
    let folder = folder(20);
    let set = sealed(&folder);
    ran(&db, &set, Phase::Expand).await.unwrap();
    let first = beside(&db, &set);
    wait_until("rows are moved", BOUND, async || {
        number(
            &db,
            "SELECT coalesce(max(rows_seen), 0) FROM aegis_migrate.backfill",
        )
        .await
            > 0
    })
    .await;
    tell(&db.admin, ID, Command::Pause, "ana", "to look")
        .await
        .unwrap();
    // Another change's expand, and a second run of this one, which waits for the job.
    let more = "20261130T0900_more";
    let both = sealed(
        &folder
            .clone()
            .with("migrations.lock", set.lock.text())
            .with(&format!("{more}/expand.sql"), "CREATE TABLE app.more (id int);\n")
            .with(&format!("{more}/change.toml"), format!("format = 1\nid = \"{more}\"\nschema = \"app\"\n[expand]\nsql = \"expand.sql\"\n")),
    );
    let beside_it = ran(&db, &both, Phase::Expand).await.unwrap();
    assert_eq!(
        (beside_it.outcome, beside_it.applied),
        (Outcome::Applied, 1)
    );
    let second = beside(&db, &both);
    wait_until("the second waits for the job", BOUND, async || {
        number(&db, "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'aegis backfill/%' AND datname = current_database()").await == 2
    })
    .await;
    tell(&db.admin, ID, Command::Resume, "ana", "seen")
        .await
        .unwrap();
    let (first, second) = (first.await.unwrap(), second.await.unwrap());
    let ends = [first.unwrap(), second.unwrap()];
    assert_eq!(
        ends.iter().map(|end| end.applied).sum::<u32>(),
        1,
        "the index is made once: {ends:?}"
    );
    assert!(ends.iter().all(|end| end.epoch > beside_it.epoch));
    assert_eq!(number(&db, "SELECT count(*) FROM pg_index WHERE indexrelid = 'app.of_cents'::regclass AND indisvalid").await, 1);
    let job = status(&db.admin, Some(ID)).await.unwrap().remove(0);
    assert_eq!(
        (job.state.as_str(), job.progress.rows_changed),
        ("done", 2000)
    );
}

#[tokio::test]
async fn a_backfill_that_fails_ends_the_run_and_a_retry_takes_it_up() {
    let db = database(300).await;
    let set = sealed(&folder(100));
    ran(&db, &set, Phase::Expand).await.unwrap();
    // This price has no cents that a bigint holds.
    db.admin
        .batch_execute("SET session_replication_role = replica; UPDATE app.t SET price = 1e30 WHERE id = 7; RESET session_replication_role")
        .await
        .unwrap();
    let error = ran(&db, &set, Phase::Migrate).await.unwrap_err();
    assert_eq!(error.exit_code(), 20, "{error}");
    assert!(error.to_string().contains("{7}"), "{error}");
    assert_eq!(number(&db, "SELECT count(cents) FROM app.t").await, 299);
    let error = ran(&db, &set, Phase::Migrate).await.unwrap_err();
    assert!(error.to_string().contains("backfill retry"), "{error}");
    let last = events(&db, "ended").await.pop().unwrap();
    assert_eq!(last["summary"]["exit_code"], 20, "{last}");
    db.admin
        .batch_execute("SET session_replication_role = replica; UPDATE app.t SET price = 7, cents = 0 WHERE id = 7; RESET session_replication_role")
        .await
        .unwrap();
    tell(&db.admin, ID, Command::Retry, "ana", "mended")
        .await
        .unwrap();
    ran(&db, &set, Phase::Migrate).await.unwrap();
    assert_eq!(
        number(&db, "SELECT cents FROM app.t WHERE id = 7").await,
        700
    );
}

#[tokio::test]
async fn a_count_that_is_not_zero_ends_with_18_until_the_rows_are_moved_again() {
    let db = database(300).await;
    let set = sealed(&folder(100));
    ran(&db, &set, Phase::Expand).await.unwrap();
    ran(&db, &set, Phase::Migrate).await.unwrap();
    // The phase is open again, as after a kill between the backfill and its end, and rows were lost.
    db.admin
        .batch_execute(
            "DELETE FROM aegis_migrate.phase WHERE phase = 'migrate'; SET session_replication_role = replica;
             UPDATE app.t SET cents = 0 WHERE id IN (5, 6); RESET session_replication_role",
        )
        .await
        .unwrap();
    let error = ran(&db, &set, Phase::Migrate).await.unwrap_err();
    assert_eq!(error.exit_code(), 18, "{error}");
    assert!(
        error
            .to_string()
            .contains("agrees of 300 rows: 0 missing, 2 mismatching"),
        "{error}"
    );
    tell(&db.admin, ID, Command::Restart, "ana", "lost rows")
        .await
        .unwrap();
    assert_eq!(events(&db, "backfill_restart").await[0]["by"], "ana");
    ran(&db, &set, Phase::Migrate).await.unwrap();
    assert_eq!(
        number(
            &db,
            "SELECT sum(cents)::bigint FROM app.t WHERE id IN (5, 6)"
        )
        .await,
        1375
    );
}

#[tokio::test]
async fn a_statement_and_a_query_of_the_author_are_run_as_they_stand() {
    let db = database(300).await;
    let toml = format!(
        "format = 1\nid = \"{ID}\"\nschema = \"app\"\n[backfill]\ntable = \"t\"\nkey = [\"id\"]\nstatement = \"backfill.sql\"\n[reconcile]\nsql = \"reconcile.sql\"\n[throttle]\nquery = \"SELECT false\"\n"
    );
    let set = sealed(
        &Folder::default()
            .with(&format!("{ID}/change.toml"), toml)
            .with(
                &format!("{ID}/backfill.sql"),
                "UPDATE t SET price = price + 1 -- :from\nWHERE id > :from AND id <= :to;\n",
            )
            .with(
                &format!("{ID}/reconcile.sql"),
                "SELECT id, 'mismatch' FROM t WHERE price <> id * 1.25 + 1;\n",
            ),
    );
    let mut holds = held(&db, BOUND).await.unwrap();
    // In use, and not fresh.
    assert!(!holds.ledger.fresh);
    run(&mut holds, &set, Phase::Migrate, &ladder(), &mut |_| {})
        .await
        .unwrap();
    holds.release().await;
    assert_eq!(
        number(
            &db,
            "SELECT count(*) FROM app.t WHERE price = id * 1.25 + 1"
        )
        .await,
        300
    );
    assert_eq!(
        number(
            &db,
            "SELECT count(*) FROM aegis_migrate.reconcile_pass WHERE kind = 'sql' AND is_zero"
        )
        .await,
        1
    );
}

#[tokio::test]
async fn mg_33_a_run_that_needs_an_unfinished_backfill_ends_before_its_first_statement_with_the_command()
 {
    const NEXT: &str = "20261130T0900_next";
    let db = database(10).await;
    let toml = format!(
        "format = 1\nid = \"{NEXT}\"\nschema = \"app\"\nrequires = [\"{ID}:migrate\"]\n[expand]\nsql = \"expand.sql\"\n"
    );
    let set = sealed(&folder(5).with(&format!("{NEXT}/change.toml"), toml).with(
        &format!("{NEXT}/expand.sql"),
        "CREATE TABLE app.next (id int);\n",
    ));
    ran(&db, &sealed(&folder(5)), Phase::Expand).await.unwrap();
    // What it needs is not begun; then it is begun and not ended.
    for begun in [false, true] {
        if begun {
            db.admin
                .batch_execute(
                    "ALTER TABLE app.t ADD CONSTRAINT stops CHECK (id < 6 OR cents IS NULL)",
                )
                .await
                .unwrap();
            ran(&db, &set, Phase::Migrate).await.unwrap_err();
            let seen = "SELECT rows_seen FROM aegis_migrate.backfill";
            assert!(number(&db, seen).await > 0);
        }
        let error = ran(&db, &set, Phase::Expand).await.unwrap_err();
        assert_eq!(error.exit_code(), 21, "{error}");
        let told = format!(
            "{NEXT}:expand needs {ID}:migrate, which is not applied: aegis migrate run --phase migrate"
        );
        assert!(error.whole().contains(&told), "{}", error.whole());
        let made = "SELECT count(*) FROM pg_class WHERE relname = 'next'";
        assert_eq!(number(&db, made).await, 0);
    }
    db.admin
        .batch_execute("ALTER TABLE app.t DROP CONSTRAINT stops")
        .await
        .unwrap();
    tell(&db.admin, ID, Command::Retry, "ana", "the check is gone")
        .await
        .unwrap();
    ran(&db, &set, Phase::Migrate).await.unwrap();
    let done = ran(&db, &set, Phase::Expand).await.unwrap();
    assert_eq!(done.outcome, Outcome::Applied);
}
