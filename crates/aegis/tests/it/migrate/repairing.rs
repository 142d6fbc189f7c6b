//! `run` on many databases, what a failed run says last, `repair`, and `check` while a hook is skipped.

use std::fmt::Write as _;
use std::time::Duration;

use aegis_testkit::{TestDb, process_slot, wait_until};
use serde_json::Value;

use super::folder::Folder;
use crate::support::{Ran, command, run};

const BOUND: Duration = Duration::from_mins(1);
const USERS: &str = "20261128T0900_users";
const MORE: &str = "20261129T1030_more";

/// A folder with a change that makes everything.
async fn folder() -> Folder {
    let folder = Folder::new();
    folder.change(
        USERS,
        "CREATE SCHEMA app;\nCREATE TABLE app.users (id bigint PRIMARY KEY, name text);\n",
    );
    folder.json(None, &["seal"]).await;
    folder
}

/// A database in which it is applied.
async fn used(folder: &Folder) -> TestDb {
    let db = TestDb::empty().await;
    let ran = folder
        .run(Some(&db.url()), &["run", "--phase", "expand"])
        .await;
    assert_eq!(ran.code, 0, "{ran:?}");
    db
}

fn lines(ran: &Ran) -> Vec<Value> {
    ran.stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[tokio::test]
async fn process_a_run_over_targets_tells_each_and_stops_by_the_rule() {
    let _slot = process_slot();
    let folder = folder().await;
    let (one, two, three) = (
        used(&folder).await,
        used(&folder).await,
        used(&folder).await,
    );
    two.admin
        .batch_execute("CREATE TABLE app.more (id int)")
        .await
        .unwrap();
    folder.change(MORE, "CREATE TABLE app.more (id bigint);\n");
    folder.json(None, &["seal"]).await;
    let targets = |stop: &str, parallel: u32| {
        let mut text = format!("format = 1\nparallel = {parallel}\nstop = {stop}\n");
        for name in ["one", "two", "three"] {
            writeln!(
                text,
                "[[target]]\nname = \"{name}\"\nurl_env = \"URL_{name}\""
            )
            .unwrap();
        }
        folder.write("targets.toml", text);
    };
    let all = async || {
        let words = ["migrate", "run", "--phase", "expand", "--output", "json"];
        let mut command = command(None, &words);
        command
            .current_dir(folder.path())
            .env("URL_one", one.url())
            .env("URL_two", two.url())
            .env("URL_three", three.url());
        run(command).await
    };
    targets("\"first\"", 1);
    let ran = all().await;
    assert_eq!(ran.code, 20, "{ran:?}");
    assert!(ran.stderr.contains("target two"), "{ran:?}");
    let told = lines(&ran);
    let last = told.last().unwrap();
    assert_eq!(
        (
            last["done"].as_i64(),
            last["failed"].as_i64(),
            last["not_tried"].as_i64()
        ),
        (Some(1), Some(1), Some(1)),
        "{last}"
    );
    assert_eq!(last["targets"][1]["exit_code"], 20, "{last}");
    assert_eq!(last["targets"][2]["outcome"], "not_tried", "{last}");
    assert!(
        told.iter()
            .any(|event| event["event"] == "step" && event["target"] == "one"),
        "{told:?}"
    );
    targets("\"never\"", 2);
    let last = lines(&all().await).pop().unwrap();
    assert_eq!(last["targets"][0]["outcome"], "nothing", "{last}");
    assert_eq!(last["targets"][1]["outcome"], "failed", "{last}");
    assert_eq!(last["targets"][2]["outcome"], "applied", "{last}");
    two.admin
        .batch_execute("DROP TABLE app.more")
        .await
        .unwrap();
    let ran = all().await;
    assert_eq!(ran.code, 0, "{ran:?}");
}

#[tokio::test]
async fn process_a_run_that_fails_has_a_summary_as_its_last_line_and_an_edit_is_accepted_with_proof()
 {
    let _slot = process_slot();
    let folder = folder().await;
    let db = used(&folder).await;
    folder.change(
        MORE,
        "CREATE TABLE app.more (id bigint);\nALTER TABLE users ADD COLUMN age nonsense;\n",
    );
    // It cannot be sealed as it is: a statement that never works is found by the replay.
    let sealed = folder.run(None, &["seal"]).await;
    assert_eq!(sealed.code, 20, "{sealed:?}");
    folder.change(
        MORE,
        "CREATE TABLE app.more (id bigint);\nCREATE TABLE app.users2 (id bigint);\n",
    );
    folder.json(None, &["seal"]).await;
    db.admin
        .batch_execute("CREATE TABLE app.users2 (other text)")
        .await
        .unwrap();
    let words = ["run", "--phase", "expand", "--output", "json"];
    let ran = folder.run(Some(&db.url()), &words).await;
    assert_eq!(ran.code, 20, "{ran:?}");
    let last = lines(&ran).pop().unwrap();
    assert_eq!(
        (
            last["outcome"].as_str(),
            last["exit_code"].as_i64(),
            last["applied"].as_i64()
        ),
        (Some("failed"), Some(20), Some(1)),
        "{last}"
    );
    // Somebody took the name; the change takes another one.
    folder.change(
        MORE,
        "CREATE TABLE app.more (id bigint);\nCREATE TABLE app.users3 (id bigint);\n",
    );
    let line = format!("{MORE}:expand");
    folder.json(None, &["seal", "--edited", &line]).await;
    let ran = folder.run(Some(&db.url()), &words).await;
    assert!(
        ran.code == 11
            && ran
                .stdout
                .contains("is accepted by `aegis migrate repair accept-checksum"),
        "{ran:?}"
    );
    let accept = [
        "repair",
        "accept-checksum",
        &line,
        "--reason",
        "the name was taken",
    ];
    let accepted = folder.json(Some(&db.url()), &accept).await;
    assert_eq!(accepted["accepted"], line, "{accepted}");
    let ran = folder.run(Some(&db.url()), &words).await;
    assert_eq!(ran.code, 0, "{ran:?}");
    // A whole phase: its new text is replayed, and it is not what is there.
    folder.change(
        MORE,
        "CREATE TABLE app.more (id bigint);\nCREATE TABLE app.users3 (id bigint, more text);\n",
    );
    folder.json(None, &["seal", "--edited", &line]).await;
    let ran = folder.run(Some(&db.url()), &accept).await;
    assert_eq!(ran.code, 12, "{ran:?}");
    assert!(ran.stderr.contains("users3"), "{ran:?}");
    db.admin
        .batch_execute("ALTER TABLE app.users3 ADD COLUMN more text")
        .await
        .unwrap();
    folder.json(Some(&db.url()), &accept).await;
    let again = folder
        .json(Some(&db.url()), &["run", "--phase", "expand"])
        .await;
    assert_eq!(again["outcome"], "nothing", "{again}");
    // Nothing is left to repair.
    let retry = [
        "repair", "retry", &line, "--step", "1", "--reason", "looked",
    ];
    let ran = folder.run(Some(&db.url()), &retry).await;
    assert_eq!(ran.code, 2, "{ran:?}");
}

#[tokio::test]
async fn process_what_was_done_by_hand_is_marked_when_a_replay_shows_it() {
    let _slot = process_slot();
    let folder = folder().await;
    let db = used(&folder).await;
    folder.change(MORE, "CREATE TABLE app.more (id bigint);\n");
    folder.json(None, &["seal"]).await;
    let line = format!("{MORE}:expand");
    let mark = ["repair", "mark-applied", &line, "--reason", "by hand"];
    let ran = folder.run(Some(&db.url()), &mark).await;
    assert_eq!(ran.code, 12, "{ran:?}");
    db.admin
        .batch_execute("CREATE TABLE app.more (id bigint)")
        .await
        .unwrap();
    let marked = folder.json(Some(&db.url()), &mark).await;
    assert_eq!(marked["steps"], 1, "{marked}");
    let status = folder.json(Some(&db.url()), &["verify"]).await;
    assert_eq!(status["outcome"], "equal", "{status}");
}

#[tokio::test]
async fn process_mg_36_a_program_waits_for_its_schema_when_the_hook_is_skipped() {
    let _slot = process_slot();
    let folder = folder().await;
    let db = used(&folder).await;
    folder.change(MORE, "CREATE TABLE app.more (id bigint);\n");
    folder.json(None, &["seal"]).await;
    let line = format!("{MORE}:expand");
    // The init container of the new version; nobody has run the hook.
    let ran = folder
        .run(Some(&db.url()), &["check", "--at-least", &line])
        .await;
    assert_eq!(ran.code, 21, "{ran:?}");
    assert!(ran.stderr.contains("aegis migrate run"), "{ran:?}");
    let url = db.url();
    let words = ["check", "--at-least", &line, "--wait-s", "120"];
    let waits = folder.run(Some(&url), &words);
    let hook = async {
        wait_until("the check has looked", BOUND, async || {
            let sql = "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'aegis migrate%' AND datname = current_database()";
            let there: i64 = db.admin.query_one(sql, &[]).await.unwrap().get(0);
            there > 0
        })
        .await;
        folder.run(Some(&url), &["run", "--phase", "expand"]).await
    };
    let (checked, hooked) = tokio::join!(waits, hook);
    assert_eq!(hooked.code, 0, "{hooked:?}");
    assert_eq!(checked.code, 0, "{checked:?}");
}
