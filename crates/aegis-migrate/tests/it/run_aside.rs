//! A build without the mutex: what others can do meanwhile, and what has to wait for it.

use std::time::Duration;

use aegis_migrate::change::Phase;
use aegis_migrate::ledger::LedgerName;
use aegis_migrate::mutex::Held;
use aegis_migrate::repair;
use aegis_migrate::run::{Ladder, Outcome, RunError, Summary, builds, interrupted, run};
use aegis_migrate::set::Set;
use aegis_migrate::structure::{Sealed, verify};
use aegis_testkit::{TestDb, wait_until};
use serde_json::Value;
use tokio_postgres::Client;

use crate::folder::Folder;
use crate::run::{ID, change, held, ladder, ran, sealed, used};

const BOUND: Duration = Duration::from_secs(20);
const OTHER: &str = "20261129T1040_two";

/// A change with a build, applied but for that.
fn first() -> Folder {
    change(
        Folder::default(),
        ID,
        "CREATE TABLE app.x (id int);",
        Some("CREATE INDEX CONCURRENTLY i ON app.users (name);\nINSERT INTO app.x VALUES (1);"),
    )
}

/// With another change behind it.
fn and(expand: &str) -> Set {
    sealed(&change(first(), OTHER, expand, None))
}

/// A build that waits for a writer of its table.
struct Building {
    db: TestDb,
    /// Whom it waits for.
    writer: Client,
    /// The process that builds.
    pid: i32,
    build: tokio::task::JoinHandle<Result<Summary, RunError>>,
}

async fn waits(db: &TestDb, pid: i32) {
    wait_until("the build waits for the writer", BOUND, async || {
        db.admin
            .query_opt(
                "SELECT FROM pg_stat_progress_create_index p JOIN pg_stat_activity a USING (pid) WHERE p.pid = $1 AND a.wait_event_type = 'Lock'",
                &[&pid],
            )
            .await
            .unwrap()
            .is_some()
    })
    .await;
}

impl Building {
    async fn begin() -> Self {
        let db = used().await;
        let set = sealed(&first());
        ran(&db, &set, Phase::Expand).await.unwrap();
        let writer = db.connect().await;
        writer
            .batch_execute("BEGIN; INSERT INTO app.users VALUES (99, 'x')")
            .await
            .unwrap();
        let mut mine = held(&db, BOUND).await.unwrap();
        mine.watch = Some(db.connect().await);
        let pid = mine.session.pid;
        let build = tokio::spawn(async move {
            let ended = run(&mut mine, &set, Phase::Migrate, &ladder(), &mut |_| {}).await;
            mine.release().await;
            ended
        });
        waits(&db, pid).await;
        Self {
            db,
            writer,
            pid,
            build,
        }
    }

    async fn let_go(&self) {
        self.writer.batch_execute("COMMIT").await.unwrap();
    }
}

/// All of the first change, once.
async fn is_whole(db: &TestDb) {
    let row = db
        .admin
        .query_one(
            "SELECT (SELECT count(*) FROM app.x), (SELECT bool_and(indisvalid) FROM pg_index WHERE indexrelid = 'app.i'::regclass),
                 (SELECT count(*) FROM aegis_migrate.step WHERE state NOT IN ('applied', 'reconciled')),
                 (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND classid = 1634035563
                    AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))",
            &[],
        )
        .await
        .unwrap();
    let found: (i64, bool, i64, i64) = (row.get(0), row.get(1), row.get(2), row.get(3));
    assert_eq!(found, (1, true, 0, 0));
    let sealed = Sealed::Unknown {
        why: "a test".to_owned(),
    };
    let report = verify(&db.admin, &["app".to_owned()], sealed)
        .await
        .unwrap();
    assert!(report.steps.holds(), "{report:?}");
}

async fn of(
    db: &TestDb,
    wait: Duration,
    set: &Set,
    phase: Phase,
    ladder: Ladder,
) -> Result<Summary, RunError> {
    let mut mine: Held = held(db, wait).await.unwrap();
    let ended = run(&mut mine, set, phase, &ladder, &mut |_| {}).await;
    mine.release().await;
    ended
}

#[tokio::test]
async fn others_can_run_while_an_index_is_built_and_the_build_ends_as_one_attempt() {
    let building = Building::begin().await;
    let set = and("CREATE TABLE app.y (id int);\nALTER TABLE app.x ADD COLUMN a int;");
    let done = ran(&building.db, &set, Phase::Expand).await.unwrap();
    assert_eq!((done.outcome, done.applied), (Outcome::Applied, 2));
    // What is seen of the build is kept all the same.
    wait_until("an event of the build is kept", BOUND, async || {
        count(&building.db, "event ->> 'event' = 'build'").await >= 1
    })
    .await;
    let id = ID.parse().unwrap();
    let builds = builds(&building.db.admin, LedgerName::Application, &[&id]).await;
    let (of, event) = builds.unwrap().remove(0);
    let writer: i32 = building
        .writer
        .query_one("SELECT pg_backend_pid()", &[])
        .await
        .unwrap()
        .get(0);
    assert_eq!(
        (
            of,
            event["pid"].as_i64(),
            event["waits_for"]["pid"].as_i64()
        ),
        (id, Some(building.pid.into()), Some(writer.into()))
    );
    assert!(
        event["phase"]
            .as_str()
            .unwrap()
            .starts_with("waiting for writers"),
        "{event}"
    );
    building.let_go().await;
    let built = building.build.await.unwrap().unwrap();
    assert_eq!(built.applied, 2);
    assert!(built.epoch > done.epoch, "{} {}", built.epoch, done.epoch);
    let row = building
        .db
        .admin
        .query_one("SELECT state, attempt, epoch FROM aegis_migrate.step WHERE change = $1 AND phase = 'migrate' AND ordinal = 1", &[&ID])
        .await
        .unwrap();
    assert_eq!(
        (row.get(0), row.get(1), row.get(2)),
        ("applied".to_owned(), 1, built.epoch)
    );
    is_whole(&building.db).await;
}

async fn count(db: &TestDb, of: &str) -> i64 {
    let sql = format!("SELECT count(*) FROM aegis_migrate.event WHERE {of}");
    db.admin.query_one(&*sql, &[]).await.unwrap().get(0)
}

#[tokio::test]
async fn what_wants_the_relation_of_a_build_waits_and_is_told_who_builds() {
    let building = Building::begin().await;
    let set = and("ALTER TABLE users ADD COLUMN a int;");
    let hasty = Ladder {
        budget: Duration::from_millis(200),
        ..ladder()
    };
    let busy = of(&building.db, BOUND, &set, Phase::Expand, hasty)
        .await
        .unwrap_err();
    assert_eq!(busy.exit_code(), 10);
    let words = busy.to_string();
    for word in [
        format!("process {} (aegis migrate/r1/run-1", building.pid),
        "builds on app.users".to_owned(),
    ] {
        assert!(words.contains(&word), "{words}");
    }
    let (expand, ()) = tokio::join!(
        of(&building.db, BOUND, &set, Phase::Expand, ladder()),
        async {
            wait_until("the other run has the mutex and waits", BOUND, async || {
                let sql = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND classid = 1634035561 AND objid = 1
                           AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
                let held: i64 = building.db.admin.query_one(sql, &[]).await.unwrap().get(0);
                held == 1
            })
            .await;
            building.let_go().await;
        }
    );
    assert_eq!(expand.unwrap().applied, 1);
    building.build.await.unwrap().unwrap();
    is_whole(&building.db).await;
}

#[tokio::test]
async fn mg_01_a_second_runner_of_a_build_waits_without_the_mutex_and_finds_it_done() {
    let building = Building::begin().await;
    let set = sealed(&first());
    let hasty = Duration::from_millis(300);
    let busy = of(&building.db, hasty, &set, Phase::Migrate, ladder())
        .await
        .unwrap_err();
    assert_eq!(busy.exit_code(), 10);
    assert!(
        busy.to_string()
            .contains(&format!("process {}", building.pid)),
        "{busy}"
    );
    // Its work is let be: it is as it was.
    waits(&building.db, building.pid).await;
    let (second, ()) = tokio::join!(
        of(&building.db, BOUND, &set, Phase::Migrate, ladder()),
        async {
            // The mutex is free for others while both are at it.
            let other = and("CREATE TABLE app.y (id int);");
            ran(&building.db, &other, Phase::Expand).await.unwrap();
            building.let_go().await;
        }
    );
    let built = building.build.await.unwrap().unwrap();
    let second = second.unwrap();
    assert_eq!(built.applied + second.applied, 2, "{built:?} {second:?}");
    is_whole(&building.db).await;
}

#[tokio::test]
async fn a_builder_that_is_gone_leaves_no_lock_and_the_next_run_ends_its_work() {
    let building = Building::begin().await;
    building
        .db
        .admin
        .query("SELECT pg_terminate_backend($1, 10000)", &[&building.pid])
        .await
        .unwrap();
    building.let_go().await;
    let (build, db) = (building.build, building.db);
    let lost = build.await.unwrap().unwrap_err();
    assert_eq!(lost.exit_code(), 15, "{lost}");
    let set = sealed(&first());
    assert_eq!(ran(&db, &set, Phase::Migrate).await.unwrap().applied, 2);
    is_whole(&db).await;
}

#[tokio::test]
async fn a_step_that_is_being_built_is_not_repaired() {
    let building = Building::begin().await;
    let set = sealed(&first());
    let at = set.lock.lines[1].at.clone();
    let mut person = held(&building.db, BOUND).await.unwrap();
    let refused = repair::retry(&mut person, &at, 1, "it takes long").await;
    assert_eq!(refused.unwrap_err().exit_code(), 10);
    person.release().await;
    building.let_go().await;
    building.build.await.unwrap().unwrap();
    is_whole(&building.db).await;
}

/// As a signal does it: what runs is dropped and cancelled, and somebody else has had the mutex meanwhile.
#[tokio::test]
async fn a_build_that_is_interrupted_is_told_as_that_also_when_others_had_the_mutex() {
    let db = used().await;
    let set = sealed(&first());
    ran(&db, &set, Phase::Expand).await.unwrap();
    let writer = db.connect().await;
    writer
        .batch_execute("BEGIN; INSERT INTO app.users VALUES (100, 'x')")
        .await
        .unwrap();
    let mut mine = held(&db, BOUND).await.unwrap();
    let (pid, cancel) = (mine.session.pid, mine.session.cancel.clone());
    let (ladder, mut nobody) = (ladder(), |_: &Value| {});
    tokio::select! {
        ended = run(&mut mine, &set, Phase::Migrate, &ladder, &mut nobody) => panic!("{ended:?}"),
        () = waits(&db, pid) => {}
    }
    ran(&db, &and("CREATE TABLE app.y (id int);"), Phase::Expand)
        .await
        .unwrap();
    cancel.send(tokio_postgres::NoTls).await.unwrap();
    interrupted(&mut mine).await.unwrap();
    mine.release().await;
    let sql = "SELECT state FROM aegis_migrate.step WHERE phase = 'migrate' AND ordinal = 1";
    let state: String = db.admin.query_one(sql, &[]).await.unwrap().get(0);
    assert_eq!(state, "interrupted");
    writer.batch_execute("COMMIT").await.unwrap();
    let set = and("CREATE TABLE app.y (id int);");
    ran(&db, &set, Phase::Migrate).await.unwrap();
    is_whole(&db).await;
}
