//! `run` as a process that is ended: while it builds, while it waits for the mutex, and the run after it.

use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use aegis_testkit::{TestDb, process_slot, wait_until};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio_postgres::Client;

use super::folder::Folder;
use crate::support::command;

const BOUND: Duration = Duration::from_mins(1);
pub(super) const ID: &str = "20261129T1030_index";

/// A used database, and a change that builds an index there.
pub(super) async fn stage(folder: &Folder) -> TestDb {
    let db = TestDb::empty().await;
    folder.change(
        "20261128T0900_users",
        "CREATE SCHEMA app;\nCREATE TABLE app.users (id bigint PRIMARY KEY, name text);\n",
    );
    folder.json(None, &["seal"]).await;
    let ran = folder
        .run(Some(&db.url()), &["run", "--phase", "expand"])
        .await;
    assert_eq!(ran.code, 0, "{ran:?}");
    folder.write(
        &format!("{ID}/change.toml"),
        format!("format = 1\nid = \"{ID}\"\nschema = \"app\"\n[migrate]\nsql = \"migrate.sql\"\n"),
    );
    folder.write(
        &format!("{ID}/migrate.sql"),
        "CREATE INDEX CONCURRENTLY names ON app.users (name);\n",
    );
    folder.json(None, &["seal"]).await;
    db
}

pub(super) fn start(folder: &Folder, db: &TestDb) -> Child {
    let words = ["migrate", "run", "--phase", "migrate"];
    let mut command = command(Some(&db.url()), &words);
    command
        .current_dir(folder.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.spawn().unwrap()
}

async fn end(mut child: Child, signal: Signal) -> Option<i32> {
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap());
    kill(pid, signal).unwrap();
    tokio::task::spawn_blocking(move || child.wait())
        .await
        .unwrap()
        .unwrap()
        .code()
}

/// Waits until so many runners stand in this database, and the count is as told for those that wait for a lock.
pub(super) async fn runners(db: &TestDb, all: i64, waiting: i64) {
    wait_until("the runners stand as told", BOUND, async || {
        let row = db
            .admin
            .query_one(
                "SELECT count(*), count(*) FILTER (WHERE wait_event_type = 'Lock') FROM pg_stat_activity
                 WHERE application_name LIKE 'aegis migrate/%' AND datname = current_database()",
                &[],
            )
            .await
            .unwrap();
        (row.get::<_, i64>(0), row.get::<_, i64>(1)) == (all, waiting)
    })
    .await;
}

pub(super) async fn writer(db: &TestDb) -> Client {
    let client = db.connect().await;
    client
        .batch_execute("BEGIN; INSERT INTO app.users VALUES (9, 'x')")
        .await
        .unwrap();
    client
}

#[tokio::test]
async fn process_a_build_that_is_interrupted_or_killed_is_known_as_that_and_ended_by_the_next_run()
{
    let _slot = process_slot();
    for (signal, code, state, said) in [
        (
            Signal::SIGTERM,
            Some(22),
            "interrupted",
            Some("interrupted"),
        ),
        // A killed one has no last word.
        (Signal::SIGKILL, None, "intent", None),
    ] {
        let folder = Folder::new();
        let db = stage(&folder).await;
        let writer = writer(&db).await;
        let child = start(&folder, &db);
        runners(&db, 1, 1).await;
        assert_eq!(end(child, signal).await, code);
        // The server notices; nobody has to end it.
        runners(&db, 0, 0).await;
        let row = db
            .admin
            .query_one(
                "SELECT (SELECT state FROM aegis_migrate.step WHERE phase = 'migrate'),
                     (SELECT event #>> '{summary,outcome}' FROM aegis_migrate.event WHERE event ->> 'event' = 'ended' AND epoch > 1)",
                &[],
            )
            .await
            .unwrap();
        let found: (String, Option<String>) = (row.get(0), row.get(1));
        assert_eq!((found.0.as_str(), found.1.as_deref()), (state, said));
        writer.batch_execute("ROLLBACK").await.unwrap();
        let ran = folder
            .run(Some(&db.url()), &["run", "--phase", "migrate"])
            .await;
        assert_eq!(ran.code, 0, "{ran:?}");
        let valid: bool = db
            .admin
            .query_one(
                "SELECT indisvalid AND indisready FROM pg_index WHERE indexrelid = 'app.names'::regclass",
                &[],
            )
            .await
            .unwrap()
            .get(0);
        assert!(valid);
    }
}

#[tokio::test]
async fn process_mg_08_a_runner_that_is_killed_while_it_waits_for_the_mutex_is_in_nobodys_way() {
    let _slot = process_slot();
    let folder = Folder::new();
    let db = stage(&folder).await;
    let writer = writer(&db).await;
    let holder = start(&folder, &db);
    runners(&db, 1, 1).await;
    for (signal, code) in [(Signal::SIGTERM, Some(22)), (Signal::SIGKILL, None)] {
        let second = start(&folder, &db);
        // It polls: nobody waits for the mutex inside the server.
        runners(&db, 2, 1).await;
        let asked = Instant::now();
        assert_eq!(end(second, signal).await, code);
        assert!(asked.elapsed() < BOUND, "{signal} was heard late");
        runners(&db, 1, 1).await;
    }
    assert_eq!(end(holder, Signal::SIGKILL).await, None);
    runners(&db, 0, 0).await;
    writer.batch_execute("ROLLBACK").await.unwrap();
    let ran = folder
        .run(Some(&db.url()), &["run", "--phase", "migrate"])
        .await;
    assert_eq!(ran.code, 0, "{ran:?}");
}

#[tokio::test]
async fn process_a_build_whose_session_is_ended_knows_that_it_does_not_know() {
    let _slot = process_slot();
    let folder = Folder::new();
    let db = stage(&folder).await;
    let writer = writer(&db).await;
    let mut holder = start(&folder, &db);
    runners(&db, 1, 1).await;
    db.admin
        .execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
             WHERE wait_event_type = 'Lock' AND application_name LIKE 'aegis migrate/%' AND datname = current_database()",
            &[],
        )
        .await
        .unwrap();
    let status = tokio::task::spawn_blocking(move || holder.wait())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(status.code(), Some(15));
    writer.batch_execute("ROLLBACK").await.unwrap();
    let ran = folder
        .run(Some(&db.url()), &["run", "--phase", "migrate"])
        .await;
    assert_eq!(ran.code, 0, "{ran:?}");
}

#[tokio::test]
async fn process_mg_09_a_holder_dies_and_who_waits_for_the_mutex_does_what_is_left_once() {
    let _slot = process_slot();
    let folder = Folder::new();
    let db = stage(&folder).await;
    folder.change(
        "20261130T0900_two_steps",
        "CREATE TABLE app.first (id int);\nALTER TABLE users ALTER name SET STATISTICS 10;\n",
    );
    folder.json(None, &["seal"]).await;
    let mut other = db.connect().await;
    let holds = other.transaction().await.unwrap();
    holds
        .batch_execute("LOCK TABLE app.users IN SHARE UPDATE EXCLUSIVE MODE")
        .await
        .unwrap();
    let begin = || {
        let words = [
            "migrate",
            "run",
            "--phase",
            "expand",
            "--lock-timeout-ms",
            "60000",
        ];
        let mut command = command(Some(&db.url()), &words);
        command
            .current_dir(folder.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command.spawn().unwrap()
    };
    // It has done the first step, and waits for the table of the second.
    let holder = begin();
    runners(&db, 1, 1).await;
    let mut second = begin();
    runners(&db, 2, 1).await;
    assert_eq!(end(holder, Signal::SIGKILL).await, None);
    // Its session is seen to be dead, and the other has the mutex and waits where it did.
    runners(&db, 1, 1).await;
    holds.rollback().await.unwrap();
    let ended = tokio::task::spawn_blocking(move || second.wait())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(ended.code(), Some(0));
    let steps = db
        .admin
        .query(
            "SELECT ordinal, state, attempt, epoch < (SELECT epoch FROM aegis_migrate.ledger) FROM aegis_migrate.step
             WHERE change = '20261130T0900_two_steps' ORDER BY ordinal",
            &[],
        )
        .await
        .unwrap();
    let steps: Vec<(i32, String, i32, bool)> = steps
        .iter()
        .map(|row| (row.get(0), row.get(1), row.get(2), row.get(3)))
        .collect();
    let applied = |ordinal, of_before| (ordinal, "applied".to_owned(), 1, of_before);
    assert_eq!(steps, [applied(1, true), applied(2, false)]);
}
