//! `verify`, `check`, `abandon`, `unlock` and `repair` where each schema of a database is a tenant: each by its own books.

use std::time::Duration;

use aegis_migrate::ledger::LedgerName;
use aegis_migrate::mutex::{Held, RunName};
use aegis_migrate::session::Direct;
use aegis_store::{Config, install};
use aegis_testkit::{TestDb, process_slot};
use serde_json::Value;

use super::folder::Folder;
use super::tenants::{MORE, USERS, on};

/// What a server prints with the schema's name in it, in as many ways as there are.
const RICH: &str = "CREATE TYPE mood AS ENUM ('good', 'app.bad');
CREATE TABLE users (id bigint PRIMARY KEY, name text, n serial, feels mood DEFAULT 'good', CHECK (name <> 'app.x'));
CREATE TABLE orders (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, buyer bigint REFERENCES users (id));
CREATE INDEX orders_buyer ON orders (buyer) WHERE buyer > 7;
CREATE FUNCTION louder(one mood) RETURNS mood LANGUAGE sql IMMUTABLE AS 'SELECT one';
CREATE VIEW happy AS SELECT u.id, louder(u.feels) AS feels FROM users u WHERE u.feels = 'good'::mood;
";

/// A folder whose changes are for these schemas. One is a word of SQL, one needs quotes.
fn folder(sql: &str) -> Folder {
    let folder = Folder::new();
    folder.change(USERS, sql);
    folder.write(
        "targets.toml",
        "format = 1\nparallel = 2\nstop = \"never\"\n[[query]]\nname = \"t\"\nurl_env = \"TENANTS\"\n\
         schemas = \"SELECT name FROM public.tenants ORDER BY name\"\n",
    );
    folder
}

async fn tenants(names: &[&str]) -> TestDb {
    let db = TestDb::empty().await;
    db.admin
        .batch_execute("CREATE TABLE public.tenants (name text)")
        .await
        .unwrap();
    for name in names {
        let sql = format!("CREATE SCHEMA \"{name}\"; INSERT INTO public.tenants VALUES ('{name}')");
        db.admin.batch_execute(&sql).await.unwrap();
    }
    db
}

/// Each target with what a field of its answer says.
fn each<'a>(lines: &'a [Value], field: &str) -> Vec<(&'a str, &'a str)> {
    let documents = lines[0].as_array().unwrap();
    let of = |one: &'a Value| {
        let said = one[field].as_str().unwrap_or("-");
        (one["target"].as_str().unwrap(), said)
    };
    documents.iter().map(of).collect()
}

async fn run(db: &TestDb, folder: &Folder) {
    let (ran, _) = on(db, folder, &["run", "--phase", "expand"]).await;
    assert_eq!(ran.code, 0, "{ran:?}");
}

async fn count(db: &TestDb, sql: &str) -> i64 {
    let row = db.admin.query_one(sql, &[]).await;
    row.unwrap().get(0)
}

#[tokio::test]
async fn process_verify_and_check_answer_for_each_schema_by_its_own_books() {
    let _slot = process_slot();
    let (folder, db) = (folder(RICH), tenants(&["t 3", "t_1", "user"]).await);
    folder.json(None, &["seal"]).await;
    let at = format!("{USERS}:expand");
    let (ran, _) = on(&db, &folder, &["check", "--at-least", &at]).await;
    assert_eq!(ran.code, 21, "{ran:?}");
    run(&db, &folder).await;
    let (ran, lines) = on(&db, &folder, &["check", "--at-least", &at]).await;
    assert_eq!(ran.code, 0, "{ran:?}");
    let applied = [
        ("t/t 3", "applied"),
        ("t/t_1", "applied"),
        ("t/user", "applied"),
    ];
    assert_eq!(each(&lines, "state"), applied);
    let (ran, lines) = on(&db, &folder, &["verify"]).await;
    assert_eq!(ran.code, 0, "{ran:?}");
    let equal = [("t/t 3", "equal"), ("t/t_1", "equal"), ("t/user", "equal")];
    assert_eq!(each(&lines, "outcome"), equal);

    // One is changed by hand, one has something that no change made, one has lost its books.
    db.admin
        .batch_execute(
            "ALTER TABLE t_1.orders ALTER buyer TYPE int; ALTER TABLE \"user\".orders ADD CHECK (id > 0);
             DELETE FROM aegis_migrate_of_user.phase",
        )
        .await
        .unwrap();
    let (ran, lines) = on(&db, &folder, &["verify"]).await;
    assert_eq!(ran.code, 12, "{ran:?}");
    let found = [
        ("t/t 3", "equal"),
        ("t/t_1", "different"),
        ("t/user", "different"),
    ];
    assert_eq!(each(&lines, "outcome"), found);
    let told = "t/t_1: wrong: column buyer of t_1.orders: type is integer, expected bigint";
    assert!(ran.stderr.contains(told), "{ran:?}");
    let (ran, lines) = on(&db, &folder, &["check", "--at-least", &at]).await;
    assert_eq!(ran.code, 21, "{ran:?}");
    assert_eq!(each(&lines, "state")[..2], applied[..2]);
    assert!(ran.stderr.contains("in this schema"), "{ran:?}");

    // Those that are named, and no other.
    let three = ["verify", "--shadow", "--target", "t/t 3"];
    let (ran, lines) = on(&db, &folder, &three).await;
    assert_eq!(
        (ran.code, each(&lines, "outcome")),
        (0, vec![equal[0]]),
        "{ran:?}"
    );
    for verb in [
        vec!["status"],
        vec!["run", "--phase", "expand"],
        vec!["verify"],
        vec!["check", "--at-least", &at],
        vec!["abandon", USERS, "--reason", "x"],
        vec!["unlock", "--terminate-holder"],
        vec!["repair", "retry", &at, "--step", "1", "--reason", "x"],
    ] {
        let words = [verb.clone(), vec!["--target", "t/t_2"]].concat();
        let (ran, _) = on(&db, &folder, &words).await;
        assert_eq!(ran.code, 2, "{verb:?} {ran:?}");
        let told = "no target `t/t_2`; it names t/t 3, t/t_1, t/user";
        assert!(ran.stderr.contains(told), "{verb:?} {ran:?}");
        let words = [verb, vec!["--target", "t/t_1"]].concat();
        let ran = folder.run(Some(&db.url()), &words).await;
        assert_eq!(ran.code, 2, "{ran:?}");
        assert!(ran.stderr.contains("leave out one of both"), "{ran:?}");
    }
    std::fs::remove_file(folder.dir().join("targets.toml")).unwrap();
    let (ran, _) = on(&db, &folder, &["status", "--target", "t/t_1"]).await;
    assert!(
        ran.code == 2 && ran.stderr.contains("no such file"),
        "{ran:?}"
    );
}

/// Holds the mutex of a schema, as a run does.
async fn holds(db: &TestDb, schema: &str) -> Held {
    let config = Config::from_url(&db.url()).unwrap();
    let (postgres, tls) = install::direct_parts(&config);
    let session = Direct::connect(postgres, tls, "aegis migrate/none/frozen");
    let name = RunName {
        run: "frozen".to_owned(),
        by: "somebody".to_owned(),
        release: "none".to_owned(),
    };
    let ledger = LedgerName::of_schema(schema);
    Held::take_in(session.await.unwrap(), ledger, &name, Duration::ZERO)
        .await
        .unwrap()
}

#[tokio::test]
async fn process_abandon_unlock_and_retry_touch_the_schema_that_is_named() {
    let _slot = process_slot();
    let users = "CREATE TABLE users (id bigint PRIMARY KEY, name text);\n";
    let (folder, db) = (folder(users), tenants(&["t_1", "t_2"]).await);
    folder.change(MORE, "ALTER TABLE users ADD COLUMN age int;\n");
    folder.json(None, &["seal"]).await;
    run(&db, &folder).await;
    let columns = "SELECT count(*) FROM information_schema.columns WHERE column_name = 'age'";
    assert_eq!(count(&db, columns).await, 2);

    let back = [
        "abandon",
        MORE,
        "--reason",
        "not wanted",
        "--target",
        "t/t_1",
    ];
    let (ran, lines) = on(&db, &folder, &back).await;
    assert_eq!(
        (ran.code, each(&lines, "abandoned")),
        (0, vec![("t/t_1", MORE)]),
        "{ran:?}"
    );
    let left = format!("{columns} AND table_schema = 't_2'");
    assert_eq!((count(&db, columns).await, count(&db, &left).await), (1, 1));
    let kept =
        "SELECT (SELECT count(*) FROM aegis_migrate_of_t_1.repair WHERE verb = 'abandon') * 10 +
        (SELECT count(*) FROM aegis_migrate_of_t_2.repair)";
    assert_eq!(count(&db, kept).await, 10);
    // On all: one has nothing of it any more, which hides no other.
    let (ran, lines) = on(&db, &folder, &["abandon", MORE, "--reason", "nor here"]).await;
    assert_eq!(ran.code, 2, "{ran:?}");
    assert_eq!(each(&lines, "abandoned"), [("t/t_1", "-"), ("t/t_2", MORE)]);
    assert_eq!(count(&db, columns).await, 0);

    let held = holds(&db, "t_1").await;
    let (ran, lines) = on(&db, &folder, &["run", "--phase", "expand", "--wait-s", "0"]).await;
    assert_eq!(ran.code, 10, "{ran:?}");
    assert_eq!(lines.last().unwrap()["done"], 1);
    let (ran, _) = on(&db, &folder, &["unlock", "--terminate-holder"]).await;
    let told = "targets.toml names 2: name it with --target (t/t_1, t/t_2)";
    assert!(ran.code == 2 && ran.stderr.contains(told), "{ran:?}");
    let (ran, _) = on(
        &db,
        &folder,
        &["unlock", "--terminate-holder", "--target", "t/t_2"],
    )
    .await;
    assert!(
        ran.code == 0 && ran.stderr.contains("nobody holds"),
        "{ran:?}"
    );
    let (ran, lines) = on(
        &db,
        &folder,
        &["unlock", "--terminate-holder", "--target", "t/t_1"],
    )
    .await;
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(
        lines[0]["ended"].as_str().unwrap().contains("frozen"),
        "{lines:?}"
    );
    drop(held);
    run(&db, &folder).await;
    assert_eq!(count(&db, columns).await, 2);

    let begun = format!(
        "UPDATE aegis_migrate_of_t_1.step SET state = 'unknown' WHERE change = '{MORE}';
         DELETE FROM aegis_migrate_of_t_1.phase WHERE change = '{MORE}'"
    );
    db.admin.batch_execute(&begun).await.unwrap();
    let at = format!("{MORE}:expand");
    let retry = [
        "repair",
        "retry",
        &at,
        "--step",
        "1",
        "--reason",
        "nothing is there",
    ];
    let (ran, _) = on(&db, &folder, &retry).await;
    assert!(ran.code == 2 && ran.stderr.contains(told), "{ran:?}");
    for (target, code) in [("t/t_2", 2), ("t/t_1", 0)] {
        let words = [retry.as_slice(), &["--target", target]].concat();
        let (ran, _) = on(&db, &folder, &words).await;
        assert_eq!(ran.code, code, "{ran:?}");
    }
    let failed = "SELECT count(*) FROM aegis_migrate_of_t_1.step WHERE state = 'failed'";
    assert_eq!(count(&db, failed).await, 1);
    let none = "SELECT count(*) FROM pg_namespace WHERE nspname = 'aegis_migrate'";
    assert_eq!(
        count(&db, none).await,
        0,
        "the database's own books were not asked for"
    );
}

#[tokio::test]
async fn process_repair_accepts_and_marks_in_the_schema_that_is_named() {
    let _slot = process_slot();
    let users = "CREATE TABLE users (id bigint PRIMARY KEY, name text);\n";
    let (folder, db) = (folder(users), tenants(&["t_1", "user"]).await);
    folder.json(None, &["seal"]).await;
    run(&db, &folder).await;
    folder.change(USERS, &format!("-- reviewed\n{users}"));
    folder.change(MORE, "CREATE TABLE more (id int);\n");
    let at = format!("{USERS}:expand");
    folder.json(None, &["seal", "--edited", &at]).await;
    let (ran, _) = on(&db, &folder, &["run", "--phase", "expand"]).await;
    assert_eq!(ran.code, 11, "{ran:?}");
    let accept = ["repair", "accept-checksum", &at, "--reason", "a comment"];
    let (ran, lines) = on(&db, &folder, &accept).await;
    assert_eq!(ran.code, 0, "{ran:?}");
    let proof = "a replay of the lock made what is there";
    assert_eq!(each(&lines, "proof"), [("t/t_1", proof), ("t/user", proof)]);

    db.admin
        .batch_execute("CREATE TABLE \"user\".more (id int)")
        .await
        .unwrap();
    let at = format!("{MORE}:expand");
    let mark = [
        "repair",
        "mark-applied",
        &at,
        "--reason",
        "by hand",
        "--target",
        "t/user",
    ];
    let (ran, lines) = on(&db, &folder, &mark).await;
    assert_eq!(
        (ran.code, each(&lines, "marked")),
        (0, vec![("t/user", &*at)]),
        "{ran:?}"
    );
    let (ran, lines) = on(&db, &folder, &["run", "--phase", "expand"]).await;
    assert_eq!(ran.code, 0, "{ran:?}");
    let outcomes = lines.last().unwrap()["targets"].as_array().unwrap();
    let outcomes: Vec<&str> = outcomes
        .iter()
        .map(|one| one["outcome"].as_str().unwrap())
        .collect();
    assert_eq!(outcomes, ["applied", "nothing"]);
}
