//! `seal`: a lock that was replayed, and its structure.

use aegis_testkit::{TestDb, process_slot};
use serde_json::json;

use super::folder::Folder;

const A: &str = "20261129T1030_a";
const B: &str = "20261129T1031_b";

#[tokio::test]
async fn process_seal_replays_appends_and_writes_the_structure() {
    let _slot = process_slot();
    let folder = Folder::new();
    folder.change(
        A,
        "CREATE TABLE users (id bigint PRIMARY KEY, name text);\n",
    );
    let first = folder.json(None, &["seal"]).await;
    assert_eq!(first["outcome"], "sealed");
    assert_eq!(first["added"], json!([format!("{A}:expand")]));
    let lock = folder.read("migrations.lock");
    let major = first["structures"][0]["major"].as_u64().unwrap();
    let file = format!("schema.{major}.json");
    assert!(folder.read(&file).contains("users"));

    let again = folder.json(None, &["seal"]).await;
    assert_eq!(
        (&again["outcome"], &again["added"]),
        (&json!("nothing"), &json!([]))
    );
    assert_eq!(again["structures"], first["structures"]);
    folder.json(None, &["seal", "--check"]).await;

    folder.change(B, "CREATE INDEX CONCURRENTLY users_name ON users (name);\n");
    let ran = folder.run(None, &["seal", "--check"]).await;
    assert_eq!(ran.code, 11, "{ran:?}");
    assert!(
        ran.stderr.contains("20261129T1031_b:expand is not sealed"),
        "{ran:?}"
    );
    let second = folder.json(None, &["seal"]).await;
    assert_ne!(second["structures"], first["structures"]);
    assert!(folder.read("migrations.lock").starts_with(&lock));
    assert!(folder.read(&file).contains("users_name"));

    folder.write(&file, "{}");
    let ran = folder.run(None, &["seal", "--check"]).await;
    assert_eq!(ran.code, 11, "{ran:?}");
    assert!(ran.stderr.contains("is not what the lock makes"), "{ran:?}");
}

#[tokio::test]
async fn process_a_statement_that_fails_or_cannot_be_read_seals_nothing() {
    let _slot = process_slot();
    let folder = Folder::new();
    folder.change(
        A,
        "CREATE TABLE users (id bigint);\n\nALTER TABLE usrs ADD COLUMN x int;\n",
    );
    let ran = folder.run(None, &["seal"]).await;
    assert_eq!((ran.code, ran.stdout.as_str()), (20, ""), "{ran:?}");
    assert!(
        ran.stderr.contains(
            "migrations/20261129T1030_a/expand.sql:3: relation \"usrs\" does not exist (42P01) (in 20261129T1030_a:expand: ALTER TABLE usrs ADD COLUMN x int)"
        ),
        "{ran:?}"
    );
    folder.change(A, "CREATE TABEL users (id bigint);\n");
    let ran = folder.run(None, &["seal"]).await;
    assert_eq!((ran.code, ran.stdout.as_str()), (3, ""), "{ran:?}");
    assert!(
        ran.stderr
            .contains("migrations/20261129T1030_a/expand.sql:1: [unreadable] column 1: ")
            && ran.stderr.contains('^'),
        "{ran:?}"
    );
    assert!(!folder.dir().join("migrations.lock").exists());
}

#[tokio::test]
async fn process_what_no_run_would_take_is_refused_before_anything_is_replayed() {
    let _slot = process_slot();
    let folder = Folder::new();
    folder.write("shadow.sql", "this is no SQL, and would fail the replay\n");
    for (sql, said) in [
        (
            "CREATE TABLE users (id bigint);\nBEGIN;\nALTER TABLE users ADD COLUMN x int;\n",
            "expand.sql:2: [transaction-in-file] BEGIN: ",
        ),
        (
            "BEGIN;\nCREATE TABLE users (id bigint);\nCOMMIT;\n",
            "expand.sql:3: [transaction-in-file] COMMIT: ",
        ),
        (
            "\nCREATE DATABASE other;\n",
            "expand.sql:2: [cluster-wide] CREATE DATABASE acts on the whole server",
        ),
        (
            "SELECT 1;\nALTER SYSTEM SET work_mem = '1GB';\n",
            "expand.sql:2: [cluster-wide] ALTER SYSTEM",
        ),
        (
            "SELECT 1;\nSELEC 2;\n",
            "expand.sql:2: [unreadable] column 1: ",
        ),
    ] {
        folder.change(A, sql);
        let ran = folder.run(None, &["seal"]).await;
        assert_eq!((ran.code, ran.stdout.as_str()), (3, ""), "{ran:?}");
        assert!(ran.stderr.contains(said), "{said}: {ran:?}");
        assert!(!folder.dir().join("migrations.lock").exists());
    }
}

#[tokio::test]
async fn process_an_override_that_nothing_needs_is_neither_sealed_nor_planned() {
    let _slot = process_slot();
    let folder = Folder::new();
    folder.write("shadow.sql", "this is no SQL, and would fail the replay\n");
    for (rule, said) in [
        ("rename", "rename: nothing here needs it; take it out"),
        ("renames", "renames: there is no such rule"),
        (
            "create-index-not-concurrent",
            "create-index-not-concurrent: it is about locks, and no reason changes them",
        ),
    ] {
        folder.change(A, "CREATE TABLE users (id bigint);\n");
        let toml = folder.read(&format!("{A}/change.toml"));
        let reason = format!("compatible = [{{ rule = \"{rule}\", reason = \"x\" }}]\n");
        let line = toml.lines().count() + 1;
        folder.write(&format!("{A}/change.toml"), toml + &reason);
        let ran = folder.run(None, &["seal"]).await;
        assert_eq!((ran.code, ran.stdout.as_str()), (3, ""), "{ran:?}");
        assert!(
            ran.stderr
                .contains(&format!("{A}/change.toml:{line}: [unused-override] {said}")),
            "{ran:?}"
        );
        assert!(!folder.dir().join("migrations.lock").exists());
        let ran = folder.run(None, &["plan"]).await;
        assert_eq!(ran.code, 3, "{ran:?}");
        assert!(ran.stdout.contains(said), "{ran:?}");
        let ran = folder.run(None, &["plan", "--output", "json"]).await;
        let plan: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!(
            (
                ran.code,
                &plan[1]["what"],
                plan[1]["said"]
                    .as_str()
                    .is_some_and(|one| one.starts_with(said))
            ),
            (3, &serde_json::json!("override"), true),
            "{plan}"
        );
    }
}

#[tokio::test]
async fn process_edited_history_is_refused_until_it_is_named() {
    let _slot = process_slot();
    let folder = Folder::new();
    folder.change(A, "CREATE TABLE users (id bigint);\n");
    folder.json(None, &["seal"]).await;
    folder.change(A, "CREATE TABLE users (id int);\n");
    let lock = folder.read("migrations.lock");
    let ran = folder.run(None, &["seal"]).await;
    assert_eq!((ran.code, ran.stdout.as_str()), (11, ""), "{ran:?}");
    assert!(
        ran.stderr.contains(
            "migrations/migrations.lock:3: 20261129T1030_a:expand was edited after it was sealed"
        ),
        "{ran:?}"
    );
    assert_eq!(folder.read("migrations.lock"), lock);
    let at = format!("{A}:expand");
    let said = folder.json(None, &["seal", "--edited", &at]).await;
    assert_eq!(said["edited"], json!([at]));
    assert_ne!(folder.read("migrations.lock"), lock);
    // mg_15: other line ends are no edit, and are told.
    let told = "expand.sql: line ends are CRLF";
    let plain = folder.run(None, &["seal"]).await;
    assert!(plain.code == 0 && !plain.stderr.contains(told), "{plain:?}");
    folder.write(
        &format!("{A}/expand.sql"),
        "\u{feff}CREATE TABLE users (id int);\r\n",
    );
    let ran = folder.run(None, &["seal", "--output", "json"]).await;
    assert!(ran.code == 0 && ran.stderr.contains(told), "{ran:?}");
    assert!(ran.stdout.contains("\"outcome\":\"nothing\""), "{ran:?}");
}

#[tokio::test]
async fn process_what_the_platform_gives_stands_in_shadow_sql_or_in_a_clone() {
    let _slot = process_slot();
    let folder = Folder::new();
    folder.change(
        A,
        "CREATE TABLE users (id bigint);\nGRANT SELECT ON users TO app_reader;\n",
    );
    let ran = folder.run(None, &["seal"]).await;
    assert_eq!(ran.code, 20, "{ran:?}");
    assert!(ran.stderr.contains("role \"app_reader\" does not exist (42704); what the platform gives (roles, extensions) stands in shadow.sql"), "{ran:?}");
    folder.write("shadow.sql", "CREATE ROLE app_reader NOLOGIN;\n");
    folder.json(None, &["seal"]).await;
    // A clone is an empty database, or nothing.
    let clone = TestDb::empty().await;
    folder.write(
        &format!("{A}/expand.sql"),
        "CREATE TABLE users (id bigint);\n",
    );
    std::fs::remove_file(folder.dir().join("shadow.sql")).unwrap();
    let words = [
        "seal",
        "--edited",
        "20261129T1030_a:expand",
        "--clone-url",
        &clone.url(),
    ];
    folder.json(None, &words).await;
    let ran = folder.run(None, &words).await;
    assert_eq!(ran.code, 17, "{ran:?}");
    assert!(
        ran.stderr
            .contains("the clone has objects in the schema app already"),
        "{ran:?}"
    );
}
