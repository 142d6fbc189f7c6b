//! The generated trigger as a part of a change: in a run, on a fresh database, in a replay, and its end.

use aegis_migrate::change::Phase;
use aegis_migrate::run::{Outcome, RunError};
use aegis_migrate::shadow;
use aegis_testkit::TestDb;

use crate::folder::Folder;
use crate::run::{ran, sealed};

const USERS: &str = "20261101T0900_users";
const SPLIT: &str = "20261129T1030_split";

const CHANGE: &str = r#"format = 1
id = "20261129T1030_split"
schema = "app"
[expand]
sql = "expand.sql"
compatible = [{ rule = "add-column", reason = "clients name their columns" }]
[sync]
table = "users"
old = ["name"]
new = ["first_name", "last_name"]
[sync.forward]
first_name = "split_part(name, ' ', 1) -- the first word"
last_name = "split_part(name, ' ', 2)"
[sync.backward]
name = "concat_ws(' ', first_name, last_name)"
"#;

const CONTRACT: &str = r#"[contract]
sql = "contract.sql"
observe = "1m"
evidence = ["sightings"]
"#;

fn users() -> Folder {
    let toml =
        format!("format = 1\nid = \"{USERS}\"\nschema = \"app\"\n[expand]\nsql = \"expand.sql\"\n");
    Folder::default()
        .with(&format!("{USERS}/change.toml"), toml)
        .with(
            &format!("{USERS}/expand.sql"),
            "CREATE TABLE users (id bigint PRIMARY KEY, name text NOT NULL);\n",
        )
}

fn split(contract: bool) -> Folder {
    let toml = format!("{CHANGE}{}", if contract { CONTRACT } else { "" });
    let folder = users()
        .with(&format!("{SPLIT}/change.toml"), toml)
        .with(
            &format!("{SPLIT}/expand.sql"),
            "ALTER TABLE users ADD COLUMN first_name text;\nALTER TABLE users ADD COLUMN last_name text;\n",
        );
    if contract {
        folder.with(
            &format!("{SPLIT}/contract.sql"),
            "ALTER TABLE users DROP COLUMN name;\n",
        )
    } else {
        folder
    }
}

/// A database in use, in which the table of before stands.
async fn in_use() -> TestDb {
    let db = TestDb::empty().await;
    db.admin.batch_execute("CREATE SCHEMA app").await.unwrap();
    ran(&db, &sealed(&users()), Phase::Expand).await.unwrap();
    db.admin
        .batch_execute("INSERT INTO app.users VALUES (1, 'Ada Lovelace')")
        .await
        .unwrap();
    db
}

async fn row(db: &TestDb, id: i64) -> Vec<Option<String>> {
    let sql = "SELECT name, first_name, last_name FROM app.users WHERE id = $1";
    let row = db.admin.query_one(sql, &[&id]).await.unwrap();
    (0..3).map(|at| row.get(at)).collect()
}

fn words(words: [&str; 3]) -> Vec<Option<String>> {
    words.map(|word| Some(word.to_owned())).into()
}

#[tokio::test]
async fn a_run_makes_the_trigger_as_its_last_steps_of_class_a() {
    let db = in_use().await;
    let set = sealed(&split(false));
    let summary = ran(&db, &set, Phase::Expand).await.unwrap();
    assert_eq!((summary.outcome, summary.applied), (Outcome::Applied, 5));
    db.admin
        .batch_execute("INSERT INTO app.users (id, name) VALUES (2, 'Grace Hopper'); INSERT INTO app.users (id, first_name, last_name) VALUES (3, 'Barbara', 'Liskov')")
        .await
        .unwrap();
    assert_eq!(
        row(&db, 2).await,
        words(["Grace Hopper", "Grace", "Hopper"])
    );
    assert_eq!(
        row(&db, 3).await,
        words(["Barbara Liskov", "Barbara", "Liskov"])
    );
    let steps = "SELECT count(*) FROM aegis_migrate.step WHERE file LIKE '%[sync]' AND class = 'A' AND state = 'applied'";
    let count: i64 = db.admin.query_one(steps, &[]).await.unwrap().get(0);
    assert_eq!(count, 3);
    let again = ran(&db, &set, Phase::Expand).await.unwrap();
    assert_eq!(again.outcome, Outcome::Nothing);
}

#[tokio::test]
async fn an_expression_that_fails_for_a_row_that_is_there_makes_no_trigger() {
    let db = in_use().await;
    let folder = split(false).edited(
        &format!("{SPLIT}/change.toml"),
        "split_part(name, ' ', 2)",
        "(name::int)::text",
    );
    let error = ran(&db, &sealed(&folder), Phase::Expand).await.unwrap_err();
    assert!(matches!(error, RunError::Sync { .. }), "{error}");
    assert_eq!(error.exit_code(), 2);
    let text = error.to_string();
    assert!(
        text.contains("invalid input syntax for type integer"),
        "{text}"
    );
    let sql = "INSERT INTO app.users (id, name) VALUES (2, 'still written')";
    db.admin.batch_execute(sql).await.unwrap();
}

#[tokio::test]
async fn a_replay_has_the_trigger_until_the_contract_ends_it() {
    for (contract, triggers) in [(false, 2_i64), (true, 0)] {
        let set = sealed(&split(contract));
        let count = "SELECT count(*) FROM pg_trigger t JOIN pg_class c ON c.oid = tgrelid WHERE relname = 'users'";
        let db = TestDb::empty().await;
        shadow::replay(&db.connect().await, &set).await.unwrap();
        let replayed = shadow::structure(&db.admin, &set, None).await.unwrap();
        let found: i64 = db.admin.query_one(count, &[]).await.unwrap().get(0);
        assert_eq!(found, triggers);
        // A fresh database gets the same by a run.
        let db = TestDb::empty().await;
        db.admin.batch_execute("CREATE SCHEMA app").await.unwrap();
        ran(&db, &set, Phase::Expand).await.unwrap();
        let run = shadow::structure(&db.admin, &set, None).await.unwrap();
        assert_eq!(run.fingerprint(), replayed.fingerprint());
        let insert = if contract {
            "INSERT INTO app.users (id, first_name) VALUES (5, 'x')"
        } else {
            "INSERT INTO app.users (id, name) VALUES (5, 'x y')"
        };
        db.admin.batch_execute(insert).await.unwrap();
    }
}
