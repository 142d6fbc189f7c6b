//! `unlock`: a runner that holds the mutex and does nothing any more is ended by its session.

use std::process::Stdio;
use std::time::Duration;

use aegis_testkit::{TestDb, process_slot, wait_until};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::folder::Folder;
use crate::support::command;

const BOUND: Duration = Duration::from_mins(1);

#[tokio::test]
async fn process_unlock_ends_the_session_of_a_frozen_runner_and_the_next_run_has_the_mutex() {
    let _slot = process_slot();
    let folder = Folder::new();
    let db = TestDb::empty().await;
    folder.change(
        "20261128T0900_users",
        "CREATE SCHEMA app;\nCREATE TABLE app.users (id bigint PRIMARY KEY, name text);\n",
    );
    folder.json(None, &["seal"]).await;
    let first = folder
        .run(Some(&db.url()), &["run", "--phase", "expand"])
        .await;
    assert_eq!(first.code, 0, "{first:?}");
    folder.change(
        "20261129T1030_a",
        "ALTER TABLE users ALTER name SET STATISTICS 10;\n",
    );
    folder.json(None, &["seal"]).await;
    let mut other = db.connect().await;
    let holds = other.transaction().await.unwrap();
    holds
        .batch_execute("LOCK TABLE app.users IN SHARE UPDATE EXCLUSIVE MODE")
        .await
        .unwrap();
    let url = db.url();
    let words = [
        "migrate",
        "run",
        "--phase",
        "expand",
        "--lock-timeout-ms",
        "60000",
    ];
    let mut starts = command(Some(&url), &words);
    starts
        .current_dir(folder.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut frozen = starts.spawn().unwrap();
    let process = Pid::from_raw(i32::try_from(frozen.id()).unwrap());
    wait_until("the runner has the mutex and waits", BOUND, async || {
        let sql = "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'aegis migrate/%' AND wait_event_type = 'Lock'
                   AND datname = current_database()";
        db.admin.query_one(sql, &[]).await.unwrap().get::<_, i64>(0) == 1
    })
    .await;
    kill(process, Signal::SIGSTOP).unwrap();
    let words = ["run", "--phase", "expand", "--wait-s", "0"];
    let busy = folder.run(Some(&url), &words).await;
    assert_eq!(busy.code, 10, "{busy:?}");
    assert!(
        busy.stderr.contains("unlock --terminate-holder"),
        "{busy:?}"
    );
    let ended = folder
        .json(Some(&url), &["unlock", "--terminate-holder"])
        .await;
    assert!(
        ended["ended"].as_str().unwrap().contains("aegis migrate/"),
        "{ended}"
    );
    holds.rollback().await.unwrap();
    let ran = folder.run(Some(&url), &words).await;
    assert_eq!(ran.code, 0, "{ran:?}");
    // It wakes up, finds its session gone, and writes nothing.
    kill(process, Signal::SIGCONT).unwrap();
    let status = tokio::task::spawn_blocking(move || frozen.wait())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(status.code(), Some(17));
    let row = db
        .admin
        .query_one(
            "SELECT count(*), min(attempt) FROM aegis_migrate.step WHERE state = 'applied' AND change LIKE '%_a'",
            &[],
        )
        .await
        .unwrap();
    assert_eq!((row.get::<_, i64>(0), row.get::<_, i32>(1)), (1, 1));
}
