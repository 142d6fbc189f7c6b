//! `backfill` and `reconcile`, and a run that moves rows: killed at any point, held back, told what to do.

use std::process::{Child, Stdio};
use std::time::Duration;

use aegis_testkit::{TestDb, process_slot, wait_until};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use super::folder::Folder;
use crate::support::{command, run};

const BOUND: Duration = Duration::from_mins(1);
const ID: &str = "20261129T1030_count";

/// A table whose rows say how often they were moved, and the change that moves each once.
async fn used(folder: &Folder, rows: i32, batch: i32) -> TestDb {
    let db = TestDb::empty().await;
    folder.change(
        "20261128T0900_counted",
        "CREATE SCHEMA app;\nCREATE TABLE app.counted (id bigint PRIMARY KEY, moved int NOT NULL DEFAULT 0);\n",
    );
    folder.json(None, &["seal"]).await;
    let url = db.url();
    last(folder, &url, &["run", "--phase", "expand"]).await;
    db.admin
        .batch_execute(&format!(
            "INSERT INTO app.counted (id) SELECT g * 3 FROM generate_series(1, {rows}) g; ANALYZE app.counted"
        ))
        .await
        .unwrap();
    folder.write(
        &format!("{ID}/change.toml"),
        format!(
            "format = 1\nid = \"{ID}\"\nschema = \"app\"\n[backfill]\ntable = \"counted\"\nkey = [\"id\"]\nstatement = \"backfill.sql\"\n\
             batch = {{ start = {batch}, max = {batch}, target_ms = 500 }}\n[reconcile]\nsql = \"reconcile.sql\"\n"
        ),
    );
    folder.write(
        &format!("{ID}/backfill.sql"),
        "UPDATE counted SET moved = moved + 1 WHERE id > :from AND id <= :to;\n",
    );
    folder.write(
        &format!("{ID}/reconcile.sql"),
        "SELECT id, 'mismatch' FROM counted WHERE moved <> 1;\n",
    );
    folder.json(None, &["seal"]).await;
    db
}

/// Runs it, wants success, and reads the last line: those before are events.
async fn last(folder: &Folder, url: &str, words: &[&str]) -> Value {
    let mut all = words.to_vec();
    all.extend(["--output", "json"]);
    let ran = folder.run(Some(url), &all).await;
    assert_eq!(ran.code, 0, "{words:?}: {ran:?}");
    serde_json::from_str(ran.stdout.lines().last().unwrap()).unwrap()
}

fn start(folder: &Folder, url: &str) -> Child {
    let mut command = command(Some(url), &["migrate", "run", "--phase", "migrate"]);
    command
        .current_dir(folder.path())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    command.spawn().unwrap()
}

/// Its exit code and what it said, after a signal.
async fn ended(child: Child, signal: Signal) -> (Option<i32>, String) {
    kill(Pid::from_raw(i32::try_from(child.id()).unwrap()), signal).unwrap();
    let output = tokio::task::spawn_blocking(move || child.wait_with_output())
        .await
        .unwrap()
        .unwrap();
    (
        output.status.code(),
        String::from_utf8(output.stderr).unwrap(),
    )
}

async fn number(db: &TestDb, sql: &str) -> i64 {
    db.admin.query_one(sql, &[]).await.unwrap().get(0)
}

async fn seen(db: &TestDb) -> i64 {
    number(
        db,
        "SELECT coalesce(max(rows_seen), 0) FROM aegis_migrate.backfill",
    )
    .await
}

#[tokio::test]
async fn process_a_backfill_that_is_killed_ten_times_moves_each_row_once() {
    let _slot = process_slot();
    let folder = Folder::new();
    let rows = 40_000;
    let db = used(&folder, rows, 20).await;
    let url = db.url();
    // Numerical Recipes' generator: other points in each run of ten, the same ten in each run of the test.
    let mut random = 20_261_130_u64;
    for time in 1..=10 {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let more = i64::try_from(random >> 33).unwrap() % 2500;
        let from = seen(&db).await;
        let child = start(&folder, &url);
        wait_until("it has moved some", BOUND, async || {
            seen(&db).await > from + more
        })
        .await;
        assert_eq!(ended(child, Signal::SIGKILL).await.0, None, "time {time}");
    }
    assert!(
        seen(&db).await < i64::from(rows),
        "it was killed before its end"
    );
    let ran = last(&folder, &url, &["run", "--phase", "migrate"]);
    let ran = ran.await;
    assert_eq!(ran["outcome"], "applied", "{ran}");
    assert_eq!(
        number(&db, "SELECT count(*) FROM app.counted WHERE moved <> 1").await,
        0
    );
    assert_eq!(seen(&db).await, i64::from(rows));
    assert_eq!(
        number(&db, "SELECT epoch FROM aegis_migrate.backfill").await,
        11
    );
    let zero = "SELECT count(*) FROM aegis_migrate.reconcile_pass WHERE kind = 'sql' AND is_zero";
    assert_eq!(number(&db, zero).await, 1);
}

#[tokio::test]
async fn process_a_backfill_is_paused_shown_resumed_and_cancelled_by_commands() {
    let _slot = process_slot();
    let folder = Folder::new();
    let db = used(&folder, 40_000, 20).await;
    let url = db.url();
    let tell = async |words: &[&str]| {
        let mut all = vec!["backfill"];
        all.extend(words);
        folder.run(Some(&url), &all).await
    };
    let none = tell(&["pause", ID, "--reason", "a look"]).await;
    assert_eq!(none.code, 21, "{none:?}");
    let child = start(&folder, &url);
    wait_until("it moves", BOUND, async || seen(&db).await > 100).await;
    let paused = tell(&["pause", ID, "--reason", "a look", "--actor", "ana"]).await;
    assert_eq!(paused.code, 0, "{paused:?}");
    let at = seen(&db).await;
    wait_until("the runner has seen it", BOUND, async || {
        number(&db, "SELECT count(waiting) FROM aegis_migrate.backfill").await == 1
    })
    .await;
    let shown = folder.json(Some(&url), &["backfill", "status", ID]).await;
    assert_eq!(shown["job"]["state"], "paused", "{shown}");
    assert_eq!(shown["job"]["progress"]["rows_estimated"], 40_000);
    let words = tell(&["status", ID]).await;
    assert!(words.stdout.contains("paused by ana (a look)"), "{words:?}");
    assert_eq!(seen(&db).await, at);
    let (code, said) = ended(child, Signal::SIGTERM).await;
    assert_eq!(code, Some(22), "{said}");
    assert!(said.contains("paused by ana (a look)"), "{said}");
    assert!(!said.contains("the mutex"), "it was not held: {said}");
    let list = folder.json(Some(&url), &["backfill", "status"]).await;
    assert_eq!(list[0]["change"], ID, "{list}");
    // Nobody said who, and the shell has no user: the word is that of `run --by`.
    let words = ["migrate", "backfill", "cancel", ID, "--reason", "not now"];
    let mut nobody = command(Some(&url), &words);
    nobody.current_dir(folder.path()).env_remove("USER");
    let cancelled = run(nobody).await;
    assert_eq!(cancelled.code, 0, "{cancelled:?}");
    let refused = folder.run(Some(&url), &["run", "--phase", "migrate"]).await;
    assert_eq!(refused.code, 22, "{refused:?}");
    let by = "cancelled by unnamed (not now)";
    assert!(refused.stderr.contains(by), "{refused:?}");
    let wrong = tell(&["resume", ID, "--reason", "x"]).await;
    assert_eq!(wrong.code, 2, "{wrong:?}");
    let retried = tell(&["retry", ID, "--reason", "now"]).await;
    assert_eq!(retried.code, 0, "{retried:?}");
    last(&folder, &url, &["run", "--phase", "migrate"]).await;
    assert_eq!(
        number(&db, "SELECT count(*) FROM app.counted WHERE moved <> 1").await,
        0
    );
    let done = tell(&["status", ID]).await;
    assert!(done.stdout.contains("40000 rows seen"), "{done:?}");
}

#[tokio::test]
async fn process_limits_that_are_edited_in_the_file_are_heard_by_a_run_that_waits() {
    let _slot = process_slot();
    let folder = Folder::new();
    let db = used(&folder, 1000, 100).await;
    let url = db.url();
    let file = format!("{ID}/change.toml");
    let sealed = folder.read(&file);
    let limited = |query: &str| format!("{sealed}[throttle]\nquery = \"{query}\"\n");
    let says = async |what: &str| {
        wait_until(what, BOUND, async || {
            let sql = "SELECT waiting FROM aegis_migrate.backfill";
            let rows = db.admin.query(sql, &[]).await.unwrap();
            let waiting = rows.first().and_then(|row| row.get::<_, Option<String>>(0));
            waiting.is_some_and(|why| why.contains(what))
        })
        .await;
    };
    folder.write(&file, limited("SELECT true"));
    let child = start(&folder, &url);
    says("query: it answers true").await;
    // Another answer of the same source: the file was read, and nothing has moved.
    folder.write(&file, limited("SELECT 1 / 0 = 0"));
    says("division by zero").await;
    assert_eq!(seen(&db).await, 0);
    folder.write(&file, limited("SELECT false"));
    let output = tokio::task::spawn_blocking(move || child.wait_with_output())
        .await
        .unwrap()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(
        number(&db, "SELECT count(*) FROM app.counted WHERE moved <> 1").await,
        0
    );
}

#[tokio::test]
async fn process_a_reconciliation_that_counts_something_ends_with_18_and_names_it() {
    let _slot = process_slot();
    let folder = Folder::new();
    let db = used(&folder, 500, 100).await;
    let url = db.url();
    last(&folder, &url, &["run", "--phase", "migrate"]).await;
    let zero = last(&folder, &url, &["reconcile", ID]).await;
    assert_eq!(zero["outcome"], "zero", "{zero}");
    db.admin
        .batch_execute("UPDATE app.counted SET moved = 2 WHERE id IN (3, 300)")
        .await
        .unwrap();
    let ran = folder.run(Some(&url), &["reconcile", ID]).await;
    assert_eq!(ran.code, 18, "{ran:?}");
    assert!(ran.stdout.contains("0 missing, 2 mismatching"), "{ran:?}");
    assert!(ran.stderr.contains("300 (mismatch)"), "{ran:?}");
    assert!(ran.stderr.contains("retry --restart"), "{ran:?}");
    let kept = "SELECT count(*) FROM aegis_migrate.reconcile_pass WHERE NOT is_zero AND jsonb_array_length(samples) = 2";
    assert_eq!(number(&db, kept).await, 1);
    // Its phase is over, and the rows are moved again all the same.
    db.admin
        .batch_execute("UPDATE app.counted SET moved = 0")
        .await
        .unwrap();
    let nothing = last(&folder, &url, &["backfill", "run", ID]).await;
    assert_eq!(nothing["outcome"], "nothing", "{nothing}");
    let words = [
        "backfill",
        "retry",
        "--restart",
        ID,
        "--reason",
        "lost rows",
    ];
    last(&folder, &url, &words).await;
    let again = last(&folder, &url, &["backfill", "run", ID]).await;
    assert_eq!(again["report"]["rows_changed"], 500, "{again}");
    let zero = last(&folder, &url, &["reconcile", ID]).await;
    assert_eq!(zero["outcome"], "zero", "{zero}");
    let other = folder
        .run(Some(&url), &["reconcile", "20261128T0900_counted"])
        .await;
    assert_eq!(other.code, 2, "{other:?}");
}

/// A change with two sides in use, and its URL.
async fn two_sides(folder: &Folder) -> TestDb {
    let db = used(folder, 10, 10).await;
    last(folder, &db.url(), &["run", "--phase", "migrate"]).await;
    folder.write(
        "20261130T0900_sides/change.toml",
        "format = 1\nid = \"20261130T0900_sides\"\nschema = \"app\"\n[expand]\nsql = \"expand.sql\"\n\
         compatible = [{ rule = \"add-column\", reason = \"clients name their columns\" }]\n\
         [sync]\ntable = \"counted\"\nold = [\"moved\"]\nnew = [\"times\"]\n[sync.forward]\ntimes = \"moved\"\n[sync.backward]\nmoved = \"times\"\n\
         [backfill]\nkey = [\"id\"]\nset = \"sync.forward\"\n[reconcile]\ncompare = \"sync\"\n\
         [switch]\nreads = [\"old\", \"new\"]\nwrites = [\"old\", \"new\"]\ncache_ttl_ms = 0\n",
    );
    folder.write(
        "20261130T0900_sides/expand.sql",
        "ALTER TABLE counted ADD COLUMN times int;\n",
    );
    folder.json(None, &["seal"]).await;
    last(folder, &db.url(), &["run", "--phase", "expand"]).await;
    db
}

#[tokio::test]
async fn process_a_sync_trigger_that_is_disabled_stops_check_and_run_until_repair_sync() {
    let _slot = process_slot();
    let folder = Folder::new();
    let db = two_sides(&folder).await;
    let url = db.url();
    let check = ["check", "--at-least", "20261130T0900_sides:expand"];
    assert_eq!(folder.run(Some(&url), &check).await.code, 0);
    db.admin
        .batch_execute("ALTER TABLE app.counted DISABLE TRIGGER USER; UPDATE app.counted SET moved = 5 WHERE id = 3")
        .await
        .unwrap();
    for words in [
        &check[..],
        &["status"],
        &["run", "--phase", "expand"],
        &["run", "--phase", "migrate"],
    ] {
        let ran = folder.run(Some(&url), words).await;
        assert_eq!(ran.code, 12, "{words:?}: {ran:?}");
        for part in ["app.counted", "disabled", "aegis migrate repair sync"] {
            assert!(ran.stderr.contains(part), "{words:?}: {part}: {ran:?}");
        }
    }
    let repair = [
        "repair",
        "sync",
        "20261130T0900_sides",
        "--reason",
        "somebody restored a table",
        "--output",
        "json",
    ];
    let repaired: Value =
        serde_json::from_str(&folder.run(Some(&url), &repair).await.stdout).unwrap();
    assert!(
        repaired["was"].as_str().unwrap().contains("disabled"),
        "{repaired}"
    );
    assert!(
        repaired["next"].as_str().unwrap().contains("reconcile"),
        "{repaired}"
    );
    assert_eq!(folder.run(Some(&url), &check).await.code, 0);
    assert_eq!(folder.run(Some(&url), &["status"]).await.code, 0);
    last(&folder, &url, &["run", "--phase", "migrate"]).await;
    assert_eq!(
        number(&db, "SELECT count(*) FROM app.counted WHERE times = moved").await,
        10
    );
    // Twice is a mistake that is told.
    assert_eq!(folder.run(Some(&url), &repair).await.code, 2);
}

#[tokio::test]
async fn process_what_writes_without_the_mutex_is_refused_where_nothing_may_be_written() {
    let _slot = process_slot();
    let folder = Folder::new();
    let db = used(&folder, 10, 10).await;
    let url = db.url();
    last(&folder, &url, &["run", "--phase", "migrate"]).await;
    db.admin
        .batch_execute(&format!(
            "ALTER DATABASE {} SET default_transaction_read_only = on",
            db.name()
        ))
        .await
        .unwrap();
    for verb in [
        &["backfill", "pause", ID, "--reason", "r"][..],
        &["backfill", "resume", ID, "--reason", "r"],
        &["backfill", "cancel", ID, "--reason", "r"],
        &["backfill", "retry", ID, "--reason", "r"],
        &["adopt", "--from", "sqlx", "--undo"],
    ] {
        let told = folder.run(Some(&url), verb).await;
        assert_eq!(told.code, 17, "{verb:?}: {told:?}");
        assert!(told.stderr.contains("read only"), "{verb:?}: {told:?}");
    }
    let status = folder.run(Some(&url), &["backfill", "status"]).await;
    assert_eq!(status.code, 0, "{status:?}");
}

const SIDES: &str = "20261130T0900_sides";

#[tokio::test]
async fn process_rows_are_not_counted_or_moved_by_another_edition_of_what_is_applied() {
    let _slot = process_slot();
    let folder = Folder::new();
    let db = two_sides(&folder).await;
    let url = db.url();
    last(&folder, &url, &["run", "--phase", "migrate"]).await;
    let toml = format!("{SIDES}/change.toml");
    let applied = folder.read(&toml);
    let edits = [
        ("times = \"moved\"", "times = \"times\"", "expand"),
        (
            "compare = \"sync\"",
            "compare = \"sync\"\nmax_age = \"9h\"",
            "migrate",
        ),
    ];
    let passes = "SELECT count(*) FROM aegis_migrate.reconcile_pass";
    let before = number(&db, passes).await;
    for (from, to, phase) in edits {
        folder.write(&toml, applied.replacen(from, to, 1));
        let line = format!("{SIDES}:{phase}");
        folder.json(None, &["seal", "--edited", &line]).await;
        for words in [&["reconcile", SIDES][..], &["backfill", "run", SIDES]] {
            let ran = folder.run(Some(&url), words).await;
            assert_eq!(ran.code, 11, "{phase}: {words:?}: {ran:?}");
            assert!(ran.stderr.contains(&line), "{phase}: {ran:?}");
        }
        folder.write(&toml, &applied);
        folder.json(None, &["seal", "--edited", &line]).await;
    }
    assert_eq!(number(&db, passes).await, before);
    last(&folder, &url, &["reconcile", SIDES]).await;
}

#[tokio::test]
async fn process_a_new_side_that_is_written_is_not_overwritten_by_the_old_one() {
    let _slot = process_slot();
    let folder = Folder::new();
    let db = two_sides(&folder).await;
    let url = db.url();
    last(&folder, &url, &["run", "--phase", "migrate"]).await;
    let to_new = [
        "switch", SIDES, "--reads", "new", "--writes", "new", "--reason", "r2",
    ];
    last(&folder, &url, &to_new).await;
    db.admin
        .batch_execute(
            "ALTER TABLE app.counted DISABLE TRIGGER USER; UPDATE app.counted SET times = 7 WHERE id = 3",
        )
        .await
        .unwrap();
    let repaired = last(&folder, &url, &["repair", "sync", SIDES, "--reason", "x"]).await;
    assert!(
        repaired["next"]
            .as_str()
            .unwrap()
            .contains("[sync.backward]"),
        "{repaired}"
    );
    let restart = ["backfill", "retry", "--restart", SIDES, "--reason", "x"];
    let counted = folder.run(Some(&url), &["reconcile", SIDES]).await;
    assert_eq!(counted.code, 18, "{counted:?}");
    assert!(counted.stderr.contains("[sync.backward]"), "{counted:?}");
    let refused = folder.run(Some(&url), &restart).await;
    assert_eq!(refused.code, 18, "{refused:?}");
    assert!(refused.stderr.contains("nothing was moved"), "{refused:?}");
    // As one that was restarted before the switch moved.
    db.admin
        .batch_execute(
            "UPDATE aegis_migrate.backfill SET state = 'running', ended_at = NULL WHERE change = '20261130T0900_sides';
             UPDATE aegis_migrate.backfill_leaf SET state = 'open', cursor_key = NULL WHERE change = '20261130T0900_sides'",
        )
        .await
        .unwrap();
    let refused = folder.run(Some(&url), &["backfill", "run", SIDES]).await;
    assert_eq!(refused.code, 18, "{refused:?}");
    let seven = "SELECT times::bigint FROM app.counted WHERE id = 3";
    assert_eq!(number(&db, seven).await, 7);
    // The way out that was told.
    db.admin
        .batch_execute(
            "BEGIN; SET LOCAL aegis_migrate.silent = '20261130T0900_sides';
             UPDATE app.counted SET moved = times WHERE id = 3; COMMIT",
        )
        .await
        .unwrap();
    last(&folder, &url, &["reconcile", SIDES]).await;
    // And back to the old side everything goes as before the switch.
    let to_old = [
        "switch", SIDES, "--reads", "old", "--writes", "old", "--reason", "back",
    ];
    last(&folder, &url, &to_old).await;
    last(&folder, &url, &["backfill", "run", SIDES]).await;
    assert_eq!(number(&db, seven).await, 7);
}
