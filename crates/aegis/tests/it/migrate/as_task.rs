//! `aegis.backfill`: rows moved by a worker, which may be killed; and what such a task is told that cannot work.

use std::process::{Child, Stdio};
use std::time::Duration;

use aegis_testkit::{TestDb, process_slot, wait_until};
use serde_json::{Value, json};

use super::folder::Folder;
use crate::support::{Place, command};

const ID: &str = "20261129T1030_count";
const BOUND: Duration = Duration::from_mins(2);
const ROWS: i64 = 30_000;

/// A change that counts in each row how often it was moved, and pauses in each batch.
fn folder() -> Folder {
    let folder = Folder::new();
    folder.write(
        &format!("{ID}/change.toml"),
        format!(
            "format = 1\nid = \"{ID}\"\nschema = \"app\"\n[expand]\nsql = \"expand.sql\"\n\
             [backfill]\ntable = \"t\"\nkey = [\"id\"]\nstatement = \"backfill.sql\"\nbatch = {{ start = 200, max = 200, target_ms = 500 }}\n"
        ),
    );
    folder.write(
        &format!("{ID}/expand.sql"),
        "CREATE TABLE t (id bigint PRIMARY KEY, times int NOT NULL DEFAULT 0);\n",
    );
    folder.write(
        &format!("{ID}/backfill.sql"),
        "UPDATE t SET times = times + 1 WHERE id > :from AND id <= :to;\n",
    );
    folder
}

async fn target() -> TestDb {
    let db = TestDb::empty().await;
    // In use: a fresh one has no rows to move.
    db.admin
        .batch_execute("CREATE SCHEMA app; CREATE TABLE app.other (id int)")
        .await
        .unwrap();
    db
}

fn worker(place: &Place, folder: &Folder, target: &TestDb) -> Child {
    let mut words = command(
        Some(&place.url),
        &[
            "worker",
            "--handlers",
            "aegis.backfill",
            "--lease-ttl-ms",
            "1500",
            "--release",
            "shop-7",
            "--migrate-dir",
        ],
    );
    words
        .arg(folder.dir())
        .args(["--migrate-database-url", &target.url()])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

async fn number(db: &TestDb, sql: &str) -> i64 {
    db.admin.query_one(sql, &[]).await.unwrap().get(0)
}

async fn shown(place: &Place, task: &str) -> Value {
    place.json(&["task", "show", task]).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn process_a_backfill_as_a_task_outlives_its_worker_and_moves_each_row_once() {
    let _slot = process_slot();
    let (place, folder, target) = (Place::new().await, folder(), target().await);
    folder.json(None, &["seal"]).await;
    let expand = ["run", "--phase", "expand"];
    let ran = folder.run(Some(&target.url()), &expand).await;
    assert_eq!(ran.code, 0, "{ran:?}");
    target
        .admin
        .batch_execute(&format!(
            "INSERT INTO app.t (id) SELECT generate_series(1, {ROWS})"
        ))
        .await
        .unwrap();
    let input = json!({ "change": ID }).to_string();
    let task = place.submit(&["aegis.backfill", "--input", &input]).await;
    let mut first = worker(&place, &folder, &target);
    let moved = "SELECT coalesce(sum(times), 0)::bigint FROM app.t";
    wait_until("some rows are moved", BOUND, async || {
        number(&target, moved).await > 0
    })
    .await;
    first.kill().unwrap();
    first.wait().unwrap();
    assert!(
        number(&target, moved).await < ROWS,
        "it was done before it was killed"
    );
    let mut second = worker(&place, &folder, &target);
    wait_until("the task is done", BOUND, async || {
        shown(&place, &task).await["state"] == "succeeded"
    })
    .await;
    second.kill().unwrap();
    second.wait().unwrap();
    let wrong = "SELECT count(*) FROM app.t WHERE times <> 1";
    assert_eq!(number(&target, wrong).await, 0);
    let result = &shown(&place, &task).await["result"];
    assert_eq!(result["rows_seen"], ROWS, "{result}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn process_a_backfill_task_that_cannot_work_says_why() {
    let _slot = process_slot();
    let (place, folder, target) = (Place::new().await, folder(), target().await);
    folder.json(None, &["seal"]).await;
    let of = |change: &str| json!({ "change": change }).to_string();
    let other = place
        .submit(&["aegis.backfill", "--input", &of("20261129T1031_other")])
        .await;
    let odd = place
        .submit(&["aegis.backfill", "--input", &of("../etc")])
        .await;
    // Its expand phase is not applied: postponed, not failed.
    let early = place.submit(&["aegis.backfill", "--input", &of(ID)]).await;
    let mut worker = worker(&place, &folder, &target);
    for (task, code) in [(&other, "no_such_change"), (&odd, "input_invalid")] {
        wait_until("it is given up", BOUND, async || {
            shown(&place, task).await.to_string().contains(code)
        })
        .await;
    }
    wait_until("it is postponed", BOUND, async || {
        shown(&place, &early).await["snoozes"].as_i64() > Some(0)
    })
    .await;
    worker.kill().unwrap();
    worker.wait().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn process_a_backfill_task_leaves_its_slot_while_the_job_is_paused_and_ends_with_it() {
    let _slot = process_slot();
    let (place, folder, target) = (Place::new().await, folder(), target().await);
    folder.json(None, &["seal"]).await;
    let run = async |words: &[&str]| {
        let ran = folder.run(Some(&target.url()), words).await;
        assert_eq!(ran.code, 0, "{words:?}: {ran:?}");
    };
    run(&["run", "--phase", "expand"]).await;
    target
        .admin
        .batch_execute(&format!(
            "INSERT INTO app.t (id) SELECT generate_series(1, {ROWS})"
        ))
        .await
        .unwrap();
    let input = json!({ "change": ID }).to_string();
    let submit = async || place.submit(&["aegis.backfill", "--input", &input]).await;
    let task = submit().await;
    let mut worker = worker(&place, &folder, &target);
    let moved = "SELECT coalesce(sum(times), 0)::bigint FROM app.t";
    wait_until("some rows are moved", BOUND, async || {
        number(&target, moved).await > 0
    })
    .await;
    run(&["backfill", "pause", ID, "--reason", "the sale"]).await;
    // Not a running one that waits: its slot is somebody else's.
    wait_until("it is postponed", BOUND, async || {
        let shown = shown(&place, &task).await;
        shown["snoozes"].as_i64() > Some(0) && shown["state"] != "running"
    })
    .await;
    let here = number(&target, moved).await;
    assert!(here < ROWS, "it was done before it was paused");
    let of_worker =
        "SELECT count(*) FROM aegis_migrate.backfill WHERE release = 'shop-7' AND state = 'paused'";
    assert_eq!(number(&target, of_worker).await, 1);
    // Begun anew while it is paused: postponed at once, with the epoch as it was.
    let snoozes = shown(&place, &task).await["snoozes"].as_i64();
    let epoch = "SELECT epoch FROM aegis_migrate.backfill";
    let before = number(&target, epoch).await;
    place
        .json(&["task", "run-now", &task, "--reason", "a test"])
        .await;
    wait_until("it is postponed again", BOUND, async || {
        shown(&place, &task).await["snoozes"].as_i64() > snoozes
    })
    .await;
    assert_eq!(number(&target, epoch).await, before);
    assert_eq!(number(&target, moved).await, here);
    run(&["backfill", "cancel", ID, "--reason", "not today"]).await;
    place
        .json(&["task", "run-now", &task, "--reason", "a test"])
        .await;
    wait_until("it is given up", BOUND, async || {
        shown(&place, &task)
            .await
            .to_string()
            .contains("backfill_cancelled")
    })
    .await;
    run(&["backfill", "retry", ID, "--reason", "now"]).await;
    let task = submit().await;
    wait_until("the task is done", BOUND, async || {
        shown(&place, &task).await["state"] == "succeeded"
    })
    .await;
    let wrong = "SELECT count(*) FROM app.t WHERE times <> 1";
    assert_eq!(number(&target, wrong).await, 0);
    worker.kill().unwrap();
    worker.wait().unwrap();
}
