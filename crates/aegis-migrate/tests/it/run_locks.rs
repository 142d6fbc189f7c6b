//! The runner's transactions: all locks first, short limits, one end.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use aegis_migrate::change::Phase;
use aegis_migrate::run::{Ladder, run};
use aegis_migrate::set::Set;
use aegis_testkit::{TestDb, wait_until};
use serde_json::Value;

use crate::folder::Folder;
use crate::run::{ID, change, held, ladder, ran, sealed, set, state, used};

const BOUND: Duration = Duration::from_secs(20);

/// A change whose file is one transaction.
fn atomic(expand: &str) -> Set {
    let folder = change(Folder::default(), ID, expand, None);
    let toml = format!("{ID}/change.toml");
    sealed(&folder.edited(
        &toml,
        "sql = \"expand.sql\"\n",
        "sql = \"expand.sql\"\natomic = true\n",
    ))
}

async fn count(db: &TestDb, sql: &str) -> i64 {
    db.admin.query_one(sql, &[]).await.unwrap().get(0)
}

/// Locks of the runner in this database: those it has, or those it waits for.
async fn locks(db: &TestDb, granted: bool) -> Vec<String> {
    let rows = db
        .admin
        .query(
            "SELECT c.relname || ' ' || l.mode FROM pg_locks l JOIN pg_stat_activity a USING (pid) JOIN pg_class c ON c.oid = l.relation
             WHERE a.application_name LIKE 'aegis migrate/%' AND a.datname = current_database() AND l.granted = $1
               AND c.relnamespace = 'app'::regnamespace AND c.relkind = 'r' ORDER BY 1",
            &[&granted],
        )
        .await
        .unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

#[tokio::test]
async fn an_atomic_file_waits_for_its_first_lock_with_nothing_in_its_hands_and_is_one_transaction()
{
    let db = used().await;
    db.admin
        .batch_execute("CREATE TABLE app.accounts (id int)")
        .await
        .unwrap();
    let set = atomic("ALTER TABLE users ADD COLUMN a int;\nALTER TABLE accounts ADD COLUMN a int;");
    let mut other = db.connect().await;
    let reader = other.transaction().await.unwrap();
    reader
        .query("SELECT * FROM app.accounts", &[])
        .await
        .unwrap();
    let patient = Ladder {
        lock_timeout: BOUND,
        ..ladder()
    };
    let mut mine = held(&db, BOUND).await.unwrap();
    let mut nobody = |_: &Value| {};
    let (ended, ()) = tokio::join!(
        run(&mut mine, &set, Phase::Expand, &patient, &mut nobody),
        async {
            wait_until("the runner waits for the first table", BOUND, async || {
                locks(&db, false).await == ["accounts AccessExclusiveLock"]
            })
            .await;
            assert_eq!(locks(&db, true).await, Vec::<String>::new());
            reader.rollback().await.unwrap();
        }
    );
    assert_eq!(ended.unwrap().applied, 2);
    let transactions = count(
        &db,
        "SELECT count(DISTINCT xmin::text) FROM aegis_migrate.step",
    )
    .await;
    assert_eq!(transactions, 1);
}

#[tokio::test]
async fn an_atomic_file_that_lacks_its_second_lock_gives_the_first_back_and_leaves_nothing() {
    let db = used().await;
    db.admin
        .batch_execute("CREATE TABLE app.accounts (id int)")
        .await
        .unwrap();
    let set = atomic("ALTER TABLE accounts ADD COLUMN a int;\nALTER TABLE users ADD COLUMN a int;");
    let mut other = db.connect().await;
    let reader = other.transaction().await.unwrap();
    reader.query("SELECT * FROM app.users", &[]).await.unwrap();
    let error = ran(&db, &set, Phase::Expand).await.unwrap_err();
    assert_eq!(error.exit_code(), 14, "{error}");
    let made = "SELECT count(*) FROM information_schema.columns WHERE table_schema = 'app' AND column_name = 'a'";
    assert_eq!(count(&db, made).await, 0);
    assert_eq!(
        count(&db, "SELECT count(*) FROM aegis_migrate.step").await,
        0
    );
    reader.rollback().await.unwrap();
    assert_eq!(ran(&db, &set, Phase::Expand).await.unwrap().applied, 2);
}

#[tokio::test]
async fn mg_24_each_try_has_its_own_time_out() {
    let db = used().await;
    let mut other = db.connect().await;
    let reader = other.transaction().await.unwrap();
    reader.query("SELECT * FROM app.users", &[]).await.unwrap();
    let set = set("ALTER TABLE users ADD COLUMN a int;", None);
    let started = Instant::now();
    let error = ran(&db, &set, Phase::Expand).await.unwrap_err();
    assert_eq!(error.exit_code(), 14, "{error}");
    // Three waits of 300 ms; a try without its time-out would wait for as long as the reader reads.
    let took = started.elapsed();
    assert!(took >= Duration::from_millis(900), "{took:?}");
    assert!(took < Duration::from_secs(15), "{took:?}");
    reader.rollback().await.unwrap();
}

#[tokio::test]
async fn a_lock_that_is_waited_for_longer_than_a_statement_may_take_is_no_failure_of_the_statement()
{
    let db = used().await;
    let mut other = db.connect().await;
    let reader = other.transaction().await.unwrap();
    reader.query("SELECT * FROM app.users", &[]).await.unwrap();
    let set = set("ALTER TABLE users ADD COLUMN a int;", None);
    let patient = Ladder {
        lock_timeout: Duration::from_secs(3),
        statement_timeout: Duration::from_millis(500),
        tries: 1,
        ..ladder()
    };
    let mut mine = held(&db, BOUND).await.unwrap();
    let error = run(&mut mine, &set, Phase::Expand, &patient, &mut |_| {})
        .await
        .unwrap_err();
    assert_eq!(error.exit_code(), 14, "{error}");
    mine.release().await;
    reader.rollback().await.unwrap();
    assert_eq!(ran(&db, &set, Phase::Expand).await.unwrap().applied, 1);
}

#[tokio::test]
async fn a_scan_that_is_short_only_because_the_table_is_small_has_one_second() {
    let db = used().await;
    db.admin
        .batch_execute(
            "CREATE FUNCTION app.slow(text) RETURNS text LANGUAGE plpgsql IMMUTABLE AS
             $$BEGIN PERFORM pg_catalog.pg_sleep(1.5); RETURN $1; END$$",
        )
        .await
        .unwrap();
    let set = set("CREATE INDEX i ON app.users (app.slow(name));", None);
    let error = ran(&db, &set, Phase::Expand).await.unwrap_err();
    assert_eq!(error.exit_code(), 20, "{error}");
    assert!(error.to_string().contains("at most 1000 ms"), "{error}");
    assert_eq!(state(&db, 1).await.0, "failed");
}

#[tokio::test]
async fn a_view_is_changed_while_its_tables_are_read() {
    let db = used().await;
    db.admin
        .batch_execute("CREATE VIEW app.names AS SELECT name FROM app.users")
        .await
        .unwrap();
    let folder = change(
        Folder::default(),
        ID,
        "COMMENT ON VIEW names IS 'of users';\nCREATE OR REPLACE VIEW names AS SELECT name FROM app.users;",
        None,
    );
    let toml = format!("{ID}/change.toml");
    let folder = folder.edited(
        &toml,
        "sql = \"expand.sql\"\n",
        "sql = \"expand.sql\"\ncompatible = [{ rule = \"replace-view\", reason = \"the same columns\" }]\n",
    );
    let mut other = db.connect().await;
    let reader = other.transaction().await.unwrap();
    reader.query("SELECT * FROM app.users", &[]).await.unwrap();
    let done = ran(&db, &sealed(&folder), Phase::Expand).await.unwrap();
    assert_eq!(done.applied, 2);
    reader.rollback().await.unwrap();
}

#[tokio::test]
async fn mg_06_the_first_error_is_told_the_mutex_is_given_back_and_the_end_is_an_event() {
    let db = used().await;
    let set = set(
        "CREATE TABLE app.a (id int);\nCREATE TABLE app.users (id int);",
        None,
    );
    let seen: Arc<Mutex<Vec<Value>>> = Arc::default();
    let mut mine = held(&db, BOUND).await.unwrap();
    let hears = Arc::clone(&seen);
    let error = run(&mut mine, &set, Phase::Expand, &ladder(), &mut |event| {
        hears.lock().unwrap().push(event.clone());
    })
    .await
    .unwrap_err();
    assert!(error.to_string().contains("42P07"), "{error}");
    mine.release().await;
    // Without a wait: nothing is left behind.
    held(&db, Duration::ZERO).await.unwrap().release().await;
    let last = seen.lock().unwrap().last().cloned().unwrap();
    assert_eq!(last["event"], "ended");
    let summary = &last["summary"];
    assert_eq!(
        (
            summary["outcome"].as_str(),
            summary["exit_code"].as_i64(),
            summary["applied"].as_i64()
        ),
        (Some("failed"), Some(20), Some(1)),
        "{last}"
    );
    let kept: String = db
        .admin
        .query_one(
            "SELECT event #>> '{summary,error}' FROM aegis_migrate.event ORDER BY at DESC LIMIT 1",
            &[],
        )
        .await
        .unwrap()
        .get(0);
    assert!(kept.contains("42P07"), "{kept}");
}

#[tokio::test]
async fn a_lock_that_only_the_catalog_knows_is_asked_for_with_the_others() {
    let db = used().await;
    db.admin
        .batch_execute(
            "CREATE TABLE app.p (id int) PARTITION BY LIST (id);
             CREATE TABLE app.p_default PARTITION OF app.p DEFAULT;
             CREATE TABLE app.q (id int)",
        )
        .await
        .unwrap();
    let set = set("ALTER TABLE p ATTACH PARTITION q FOR VALUES IN (1);", None);
    let mut other = db.connect().await;
    let reader = other.transaction().await.unwrap();
    reader
        .query("SELECT * FROM app.p_default", &[])
        .await
        .unwrap();
    let error = ran(&db, &set, Phase::Expand).await.unwrap_err();
    assert_eq!(error.exit_code(), 14, "{error}");
    // Not a wait inside the statement, with the lock of the parent in its hands.
    assert!(
        error
            .to_string()
            .contains("could not obtain lock on relation"),
        "{error}"
    );
    reader.rollback().await.unwrap();
    assert_eq!(ran(&db, &set, Phase::Expand).await.unwrap().applied, 1);
}

#[tokio::test]
async fn a_runner_that_stands_still_with_a_lock_in_its_hands_loses_it_before_a_writer_gives_up() {
    let db = used().await;
    let set = set("ALTER TABLE users ADD COLUMN a int;", None);
    let mut other = db.connect().await;
    let reader = other.transaction().await.unwrap();
    reader.query("SELECT * FROM app.users", &[]).await.unwrap();
    let patient = Ladder {
        lock_timeout: BOUND,
        ..ladder()
    };
    let mut mine = held(&db, BOUND).await.unwrap();
    let mut nobody = |_: &Value| {};
    let mut running = std::pin::pin!(run(&mut mine, &set, Phase::Expand, &patient, &mut nobody));
    tokio::select! {
        ended = &mut running => panic!("{ended:?}"),
        () = wait_until("the runner waits for the table", BOUND, async || !locks(&db, false).await.is_empty()) => {}
    }
    // From here on nobody polls the run, as if its process was stopped: the lock is had, and nothing is made of it.
    reader.rollback().await.unwrap();
    wait_until("the frozen runner has the lock", BOUND, async || {
        locks(&db, true).await == ["users AccessExclusiveLock"]
    })
    .await;
    db.admin
        .batch_execute("SET statement_timeout = '20s'; INSERT INTO app.users VALUES (2, 'Bob')")
        .await
        .unwrap();
    let error = running.await.unwrap_err();
    assert_eq!(error.exit_code(), 17, "{}", error.whole());
    assert_eq!(ran(&db, &set, Phase::Expand).await.unwrap().applied, 1);
}

#[tokio::test]
async fn the_budget_ends_the_tries_before_their_number_does() {
    let db = used().await;
    let set = set("ALTER TABLE users ADD COLUMN a int;", None);
    let mut other = db.connect().await;
    let reader = other.transaction().await.unwrap();
    reader.query("SELECT * FROM app.users", &[]).await.unwrap();
    let short = Ladder {
        tries: 1000,
        budget: Duration::from_millis(1),
        ..Ladder::default()
    };
    let mut mine = held(&db, BOUND).await.unwrap();
    let error = run(&mut mine, &set, Phase::Expand, &short, &mut |_| {})
        .await
        .unwrap_err();
    assert_eq!(error.exit_code(), 14, "{error}");
    assert!(error.to_string().contains("in 1 tries"), "{error}");
}

/// The numbers of the design page: who changes one changes what operators were promised.
#[test]
fn the_ladder_is_300_ms_2_s_30_tries_or_120_s() {
    let ladder = Ladder::default();
    assert_eq!(ladder.lock_timeout, Duration::from_millis(300));
    assert_eq!(ladder.statement_timeout, Duration::from_secs(2));
    assert_eq!((ladder.tries, ladder.budget), (30, Duration::from_mins(2)));
}
