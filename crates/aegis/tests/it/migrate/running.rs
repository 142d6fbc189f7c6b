//! `run` and `unlock`: events and a summary, what may not run, a signal, a killed runner.

use std::process::Stdio;
use std::time::Duration;

use aegis_testkit::{TestDb, process_slot, wait_until};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use super::folder::Folder;
use crate::support::command;

const BOUND: Duration = Duration::from_mins(1);

/// A database in which a first change has made `app.users`.
async fn used(folder: &Folder) -> TestDb {
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
    db
}

#[tokio::test]
async fn process_run_tells_each_step_and_a_summary_last_and_has_nothing_to_do_the_second_time() {
    let _slot = process_slot();
    let folder = Folder::new();
    let db = used(&folder).await;
    folder.change(
        "20261129T1030_a",
        "CREATE TABLE app.more (id int);\nALTER TABLE users ADD COLUMN age int;\n",
    );
    folder.json(None, &["seal"]).await;
    let words = [
        "run",
        "--phase",
        "expand",
        "--by",
        "ana",
        "--release",
        "r1",
        "--output",
        "json",
    ];
    let ran = folder.run(Some(&db.url()), &words).await;
    assert_eq!(ran.code, 0, "{ran:?}");
    let lines: Vec<Value> = ran
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let last = lines.last().unwrap();
    assert_eq!(
        (last["outcome"].as_str(), last["applied"].as_i64()),
        (Some("applied"), Some(2)),
        "{last}"
    );
    assert_eq!(lines[0]["step"], "20261129T1030_a:expand#1");
    let row = db
        .admin
        .query_one(
            "SELECT by_whom, release, statement, server_version = current_setting('server_version'),
                 raw_sha256 = encode(sha256(convert_to(statement, 'UTF8')), 'hex'), sha256
             FROM aegis_migrate.step WHERE ordinal = 1 AND change LIKE '%_a'",
            &[],
        )
        .await
        .unwrap();
    assert_eq!(
        (
            row.get::<_, &str>(0),
            row.get::<_, &str>(1),
            row.get::<_, &str>(2)
        ),
        ("ana", "r1", "CREATE TABLE app.more (id int)")
    );
    assert!(row.get::<_, bool>(3), "the server's version");
    assert!(row.get::<_, bool>(4), "the raw hash is of the statement");
    assert_eq!(row.get::<_, &str>(5).len(), 64);
    let again = folder
        .json(Some(&db.url()), &["run", "--phase", "expand"])
        .await;
    assert_eq!(again["outcome"], "nothing");
}

#[tokio::test]
async fn process_a_busy_mutex_ends_with_10_and_a_lock_that_is_not_had_with_14() {
    let _slot = process_slot();
    let folder = Folder::new();
    let db = used(&folder).await;
    folder.change("20261129T1030_a", "ALTER TABLE users ADD COLUMN age int;\n");
    folder.json(None, &["seal"]).await;
    let mut other = db.connect().await;
    let open = other.transaction().await.unwrap();
    open.batch_execute("SELECT pg_advisory_xact_lock(1634035561, 1)")
        .await
        .unwrap();
    let busy = ["run", "--phase", "expand", "--wait-s", "0"];
    let told = folder.run(Some(&db.url()), &busy).await;
    assert_eq!(told.code, 10, "{told:?}");
    assert!(told.stderr.contains("holds the mutex"), "{told:?}");
    open.rollback().await.unwrap();

    let open = other.transaction().await.unwrap();
    open.batch_execute("LOCK TABLE app.users IN ACCESS SHARE MODE")
        .await
        .unwrap();
    let locked = ["run", "--phase", "expand", "--tries", "2"];
    let told = folder.run(Some(&db.url()), &locked).await;
    assert_eq!(told.code, 14, "{told:?}");
    open.rollback().await.unwrap();
    let ran = folder
        .run(Some(&db.url()), &["run", "--phase", "expand"])
        .await;
    assert_eq!(ran.code, 0, "{ran:?}");
}

#[tokio::test]
async fn process_a_statement_of_another_class_ends_with_13_and_changes_nothing() {
    let _slot = process_slot();
    let folder = Folder::new();
    let db = used(&folder).await;
    folder.change("20261129T1030_a", "ALTER TABLE users DROP COLUMN name;\n");
    folder.json(None, &["seal"]).await;
    let ran = folder
        .run(Some(&db.url()), &["run", "--phase", "expand"])
        .await;
    assert_eq!(ran.code, 13, "{ran:?}");
    assert!(ran.stderr.contains("drop-column"), "{ran:?}");
    db.admin
        .execute("SELECT name FROM app.users", &[])
        .await
        .unwrap();
}

#[tokio::test]
async fn process_a_run_that_is_asked_to_end_ends_with_22_and_one_that_is_killed_leaves_nothing_in_the_way()
 {
    let _slot = process_slot();
    let folder = Folder::new();
    let db = used(&folder).await;
    folder.change("20261129T1030_a", "ALTER TABLE users ADD COLUMN age int;\n");
    folder.json(None, &["seal"]).await;
    let mut other = db.connect().await;
    let reader = other.transaction().await.unwrap();
    reader.query("SELECT * FROM app.users", &[]).await.unwrap();
    let url = db.url();
    let start = || {
        let words = [
            "migrate",
            "run",
            "--phase",
            "expand",
            "--tries",
            "1000",
            "--lock-timeout-ms",
            "60000",
        ];
        let mut command = command(Some(&url), &words);
        command
            .current_dir(folder.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command.spawn().unwrap()
    };
    let waits = async |count: i64| {
        wait_until("a runner waits for its lock", BOUND, async || {
            db.admin
                .query_one(
                    "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'aegis migrate/%' AND wait_event_type = 'Lock'
                     AND datname = current_database()",
                    &[],
                )
                .await
                .unwrap()
                .get::<_, i64>(0)
                == count
        })
        .await;
    };
    for signal in [Signal::SIGTERM, Signal::SIGKILL] {
        let mut child = start();
        waits(1).await;
        let pid = Pid::from_raw(i32::try_from(child.id()).unwrap());
        kill(pid, signal).unwrap();
        let status = tokio::task::spawn_blocking(move || child.wait())
            .await
            .unwrap()
            .unwrap();
        if signal == Signal::SIGTERM {
            assert_eq!(status.code(), Some(22));
        }
        // The server notices that its client is gone (client_connection_check_interval).
        waits(0).await;
    }
    reader.rollback().await.unwrap();
    let ran = folder
        .run(Some(&db.url()), &["run", "--phase", "expand"])
        .await;
    assert_eq!(ran.code, 0, "{ran:?}");
    let ran = folder
        .run(Some(&db.url()), &["unlock", "--terminate-holder"])
        .await;
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.stderr.contains("nobody holds the mutex"), "{ran:?}");
}
