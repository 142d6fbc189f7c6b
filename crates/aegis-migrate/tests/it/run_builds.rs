//! Steps outside of a transaction: watched, cured, and part of the structure.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use aegis_migrate::change::Phase;
use aegis_migrate::run::{Ladder, run};
use aegis_migrate::structure::{Sealed, verify};
use aegis_testkit::{TestDb, wait_until};
use serde_json::Value;
use tokio_postgres::Client;

use crate::run::{held, ladder, ran, set, used};

const BOUND: Duration = Duration::from_secs(20);

/// What verify finds wrong beside what the steps did.
async fn wrong(db: &TestDb) -> bool {
    let sealed = Sealed::Unknown {
        why: "a test".to_owned(),
    };
    let report = verify(&db.admin, &["app".to_owned()], sealed)
        .await
        .unwrap();
    report.steps.is_wrong()
}

/// Ends the runner's session when it waits in a build for somebody: its process was killed there. False: not yet.
async fn cut_when_it_waits(db: &TestDb, phase: &str) {
    wait_until("the build waits", BOUND, async || {
        db.admin
            .query_opt(
                "SELECT pg_terminate_backend(a.pid, 10000) FROM pg_stat_activity a LEFT JOIN pg_stat_progress_create_index p USING (pid)
                 WHERE a.application_name LIKE 'aegis migrate/%' AND a.datname = current_database() AND a.wait_event_type = 'Lock'
                   AND coalesce(p.phase, 'none') LIKE $1",
                &[&phase],
            )
            .await
            .unwrap()
            .is_some()
    })
    .await;
}

/// A transaction that has written a table, and so is waited for by a build.
async fn writer(db: &TestDb, table: &str) -> Client {
    let client = db.connect().await;
    client
        .batch_execute(&format!("BEGIN; INSERT INTO {table} VALUES (99, 'x')"))
        .await
        .unwrap();
    client
}

#[tokio::test]
async fn mg_03_and_mg_23_a_build_waits_outside_of_the_ladder_and_the_blocker_is_told() {
    let db = used().await;
    let set = set(
        "CREATE TABLE app.x (id int);",
        Some("CREATE INDEX CONCURRENTLY i ON app.users (name);"),
    );
    ran(&db, &set, Phase::Expand).await.unwrap();
    let blocker = writer(&db, "app.users").await;
    let pid: i32 = blocker
        .query_one("SELECT pg_backend_pid()", &[])
        .await
        .unwrap()
        .get(0);
    let mut mine = held(&db, BOUND).await.unwrap();
    mine.watch = Some(db.connect().await);
    let seen: Arc<Mutex<Vec<Value>>> = Arc::default();
    let hears = Arc::clone(&seen);
    // A lock time-out of the ladder would have ended it long before the blocker is told.
    let hasty = Ladder {
        lock_timeout: Duration::from_millis(50),
        statement_timeout: Duration::from_millis(100),
        tries: 1,
        ..ladder()
    };
    let mut tells = |event: &Value| hears.lock().unwrap().push(event.clone());
    let (ended, ()) = tokio::join!(
        run(&mut mine, &set, Phase::Migrate, &hasty, &mut tells),
        async {
            wait_until("the blocker is told", BOUND, async || {
                let seen = seen.lock().unwrap();
                seen.iter()
                    .any(|event| event["waits_for"]["pid"].as_i64() == Some(i64::from(pid)))
            })
            .await;
            // Only the build's own statement is under way: no transaction of ours is older.
            let idle: i64 = db
                .admin
                .query_one(
                    "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'aegis migrate/%' AND state LIKE 'idle in%'
                     AND datname = current_database()",
                    &[],
                )
                .await
                .unwrap()
                .get(0);
            assert_eq!(idle, 0);
            blocker.batch_execute("COMMIT").await.unwrap();
        }
    );
    assert_eq!(ended.unwrap().applied, 1);
    let told: i64 = db
        .admin
        .query_one(
            "SELECT count(*) FROM aegis_migrate.event WHERE event ->> 'event' = 'build' AND event #>> '{waits_for,pid}' = $1::int::text",
            &[&pid],
        )
        .await
        .unwrap()
        .get(0);
    assert!(told >= 1, "{told} events");
}

#[tokio::test]
async fn a_build_without_a_second_connection_goes_on_when_that_is_lost() {
    let db = used().await;
    let set = set(
        "CREATE TABLE app.x (id int);",
        Some("CREATE INDEX CONCURRENTLY i ON app.users (name);"),
    );
    ran(&db, &set, Phase::Expand).await.unwrap();
    let blocker = writer(&db, "app.users").await;
    let watch = db.connect().await;
    let pid: i32 = watch
        .query_one("SELECT pg_backend_pid()", &[])
        .await
        .unwrap()
        .get(0);
    let mut mine = held(&db, BOUND).await.unwrap();
    mine.watch = Some(watch);
    let ladder = ladder();
    let mut nobody = |_: &Value| {};
    let (ended, ()) = tokio::join!(
        run(&mut mine, &set, Phase::Migrate, &ladder, &mut nobody),
        async {
            wait_until("it has been looked at", BOUND, async || {
                let sql =
                    "SELECT count(*) FROM aegis_migrate.event WHERE event ->> 'event' = 'build'";
                let seen: i64 = db.admin.query_one(sql, &[]).await.unwrap().get(0);
                seen > 0
            })
            .await;
            db.admin
                .query("SELECT pg_terminate_backend($1, 10000)", &[&pid])
                .await
                .unwrap();
            blocker.batch_execute("COMMIT").await.unwrap();
        }
    );
    assert_eq!(ended.unwrap().applied, 1);
}

#[tokio::test]
async fn what_was_found_as_it_should_be_is_expected_from_then_on() {
    let db = used().await;
    db.admin
        .batch_execute("CREATE INDEX u ON app.users (name)")
        .await
        .unwrap();
    let set = set(
        "CREATE TABLE app.x (id int);",
        Some("CREATE INDEX CONCURRENTLY u ON app.users (name);"),
    );
    ran(&db, &set, Phase::Expand).await.unwrap();
    let found = ran(&db, &set, Phase::Migrate).await.unwrap();
    assert_eq!((found.applied, found.reconciled), (0, 1));
    assert!(!wrong(&db).await);
    db.admin.batch_execute("DROP INDEX app.u").await.unwrap();
    assert!(wrong(&db).await, "the index is gone, and nothing is wrong");
}

#[tokio::test]
async fn what_others_change_while_an_index_is_built_is_not_taken_for_the_steps_work() {
    let db = used().await;
    let set = set(
        "CREATE TABLE app.t (id bigint, name text);\nGRANT SELECT ON app.t TO public;",
        Some("CREATE INDEX CONCURRENTLY i ON app.t (name);"),
    );
    ran(&db, &set, Phase::Expand).await.unwrap();
    assert!(!wrong(&db).await);
    let blocker = writer(&db, "app.t").await;
    let (ended, ()) = tokio::join!(ran(&db, &set, Phase::Migrate), async {
        wait_until("the build waits", BOUND, async || {
            db.admin
                .query_opt(
                    "SELECT FROM pg_stat_activity WHERE application_name LIKE 'aegis migrate/%' AND datname = current_database()
                     AND wait_event_type = 'Lock'",
                    &[],
                )
                .await
                .unwrap()
                .is_some()
        })
        .await;
        // It needs no lock that the build has.
        db.admin
            .batch_execute("REVOKE SELECT ON app.t FROM public")
            .await
            .unwrap();
        blocker.batch_execute("COMMIT").await.unwrap();
    });
    ended.unwrap();
    assert!(
        wrong(&db).await,
        "the loss of the grant became what is expected"
    );
}

#[tokio::test]
async fn mg_25_a_reindex_that_was_cut_leaves_no_copy_after_the_next_run_and_one_of_somebody_else_stays()
 {
    let db = used().await;
    db.admin
        .batch_execute("CREATE INDEX i ON app.users (name)")
        .await
        .unwrap();
    let set = set(
        "CREATE TABLE app.x (id int);",
        Some("REINDEX INDEX CONCURRENTLY app.i;"),
    );
    ran(&db, &set, Phase::Expand).await.unwrap();
    let copies = async || -> Vec<String> {
        let sql = "SELECT relname::text FROM pg_class WHERE relname LIKE 'i\\_cc%' OR relname LIKE 'users_pkey\\_cc%' ORDER BY 1";
        let rows = db.admin.query(sql, &[]).await.unwrap();
        rows.iter().map(|row| row.get(0)).collect()
    };
    // Somebody else's, on the same table.
    let theirs = writer(&db, "app.users").await;
    let other = db.connect().await;
    other
        .batch_execute("SET lock_timeout = '1s'")
        .await
        .unwrap();
    other
        .batch_execute("REINDEX INDEX CONCURRENTLY app.users_pkey")
        .await
        .unwrap_err();
    assert_eq!(copies().await, ["users_pkey_ccnew"]);
    let (ended, ()) = tokio::join!(ran(&db, &set, Phase::Migrate), cut_when_it_waits(&db, "%"));
    assert_eq!(ended.unwrap_err().exit_code(), 15);
    assert_eq!(copies().await, ["i_ccnew", "users_pkey_ccnew"]);
    theirs.batch_execute("COMMIT").await.unwrap();
    ran(&db, &set, Phase::Migrate).await.unwrap();
    assert_eq!(copies().await, ["users_pkey_ccnew"]);
}

#[tokio::test]
async fn a_detach_that_was_cut_is_finalized_by_the_next_run() {
    let db = used().await;
    db.admin
        .batch_execute(
            "CREATE TABLE app.p (id int, name text) PARTITION BY LIST (id);
             CREATE TABLE app.p1 PARTITION OF app.p FOR VALUES IN (99)",
        )
        .await
        .unwrap();
    let folder = crate::run::change(
        crate::folder::Folder::default(),
        crate::run::ID,
        "CREATE TABLE app.x (id int);",
        Some("ALTER TABLE p DETACH PARTITION p1 CONCURRENTLY;"),
    );
    let toml = format!("{}/change.toml", crate::run::ID);
    let folder = folder.edited(
        &toml,
        "sql = \"migrate.sql\"\n",
        "sql = \"migrate.sql\"\ncompatible = [{ rule = \"detach-partition\", reason = \"nobody reads old months\" }]\n",
    );
    let set = crate::run::sealed(&folder);
    ran(&db, &set, Phase::Expand).await.unwrap();
    let reader = writer(&db, "app.p").await;
    let (ended, ()) = tokio::join!(ran(&db, &set, Phase::Migrate), cut_when_it_waits(&db, "%"));
    let error = ended.unwrap_err();
    assert_eq!(error.exit_code(), 15, "{error}");
    let sql =
        "SELECT count(*) FROM pg_inherits WHERE inhrelid = 'app.p1'::regclass AND inhdetachpending";
    let pending: i64 = db.admin.query_one(sql, &[]).await.unwrap().get(0);
    assert_eq!(pending, 1, "it was not cut in the middle");
    reader.batch_execute("COMMIT").await.unwrap();
    assert_eq!(ran(&db, &set, Phase::Migrate).await.unwrap().applied, 1);
    let sql = "SELECT count(*) FROM pg_inherits WHERE inhrelid = 'app.p1'::regclass";
    let left: i64 = db.admin.query_one(sql, &[]).await.unwrap().get(0);
    assert_eq!(left, 0);
    assert!(!wrong(&db).await);
}

#[tokio::test]
async fn a_fresh_database_builds_without_concurrently_and_waits_for_no_snapshot() {
    let db = TestDb::empty().await;
    let set = set(
        "CREATE SCHEMA app;\nCREATE TABLE app.users (id int, name text);",
        Some("CREATE INDEX CONCURRENTLY i ON app.users (name);"),
    );
    // A concurrent build would wait for it.
    let old = db.connect().await;
    old.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM pg_class")
        .await
        .unwrap();
    let done = tokio::time::timeout(BOUND, ran(&db, &set, Phase::Expand))
        .await
        .unwrap()
        .unwrap();
    assert_eq!((done.applied, done.fresh), (3, true));
    // It ran in the transaction of its verdict.
    let one: bool = db
        .admin
        .query_one(
            "SELECT s.xmin::text = c.xmin::text FROM aegis_migrate.step s, pg_class c WHERE s.phase = 'migrate' AND c.oid = 'app.i'::regclass",
            &[],
        )
        .await
        .unwrap()
        .get(0);
    assert!(one);
    old.batch_execute("COMMIT").await.unwrap();
}

#[tokio::test]
async fn mg_25_the_parent_of_a_partitioned_index_is_invalid_on_purpose_until_its_last_leaf() {
    let db = used().await;
    db.admin
        .batch_execute(
            "CREATE TABLE app.p (id int, name text) PARTITION BY LIST (id);
             CREATE TABLE app.p1 PARTITION OF app.p FOR VALUES IN (1);
             CREATE TABLE app.p2 PARTITION OF app.p FOR VALUES IN (2)",
        )
        .await
        .unwrap();
    let first = crate::run::change(
        crate::folder::Folder::default(),
        crate::run::ID,
        "CREATE TABLE app.x (id int);",
        Some(
            "CREATE INDEX i ON ONLY app.p (name);\nCREATE INDEX CONCURRENTLY i1 ON app.p1 (name);\nALTER INDEX app.i ATTACH PARTITION app.i1;",
        ),
    );
    let set = crate::run::sealed(&first);
    ran(&db, &set, Phase::Expand).await.unwrap();
    ran(&db, &set, Phase::Migrate).await.unwrap();
    let valid = async || -> bool {
        let sql = "SELECT indisvalid FROM pg_index WHERE indexrelid = 'app.i'::regclass";
        db.admin.query_one(sql, &[]).await.unwrap().get(0)
    };
    assert!(!valid().await);
    assert!(
        !wrong(&db).await,
        "a parent that waits for its leaf is no drift"
    );
    let both = crate::run::sealed(&crate::run::change(
        first,
        "20261130T0900_two",
        "CREATE TABLE app.y (id int);",
        Some(
            "CREATE INDEX CONCURRENTLY i2 ON app.p2 (name);\nALTER INDEX app.i ATTACH PARTITION app.i2;",
        ),
    ));
    ran(&db, &both, Phase::Expand).await.unwrap();
    ran(&db, &both, Phase::Migrate).await.unwrap();
    assert!(valid().await);
    assert!(!wrong(&db).await, "the last leaf has made it valid");
}
