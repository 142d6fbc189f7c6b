//! What a run refuses, and when: before the first statement, or under its locks.

use std::time::Duration;

use aegis_migrate::change::Phase;
use aegis_migrate::run::{Ladder, RunError, run};
use aegis_migrate::session::Direct;
use aegis_testkit::{TestDb, wait_until};
use tokio_postgres::NoTls;

use crate::folder::Folder;
use crate::run::{ID, change, held, ladder, ran, sealed, set, used};

const BOUND: Duration = Duration::from_mins(1);

#[tokio::test]
async fn a_class_is_decided_again_under_the_lock() {
    let db = used().await;
    // Above 16 MiB, from where on a table is not small.
    db.admin
        .batch_execute("INSERT INTO app.users SELECT g, repeat('x', 2000) FROM generate_series(2, 20000) g; ALTER TABLE app.users ALTER name SET STORAGE plain")
        .await
        .unwrap();
    db.admin
        .batch_execute("UPDATE app.users SET name = repeat(md5(id::text), 60) WHERE id > 1")
        .await
        .unwrap();
    let set = set("CREATE INDEX i ON app.users (name);", None);
    let error = ran(&db, &set, Phase::Expand).await.unwrap_err();
    assert_eq!(error.exit_code(), 13, "{error}");
    assert!(
        error.to_string().contains("create-index-not-concurrent"),
        "{error}"
    );
    let there: Option<String> = db
        .admin
        .query_one("SELECT to_regclass('app.i')::text", &[])
        .await
        .unwrap()
        .get(0);
    assert_eq!(there, None);
}

#[tokio::test]
async fn an_override_that_nothing_needs_is_refused_before_the_first_statement() {
    for (rule, said) in [
        ("rename", "rename: nothing here needs it"),
        ("renames", "renames: there is no such rule"),
        (
            "create-index-not-concurrent",
            "create-index-not-concurrent: it is about locks",
        ),
    ] {
        let toml = format!(
            "format = 1\nid = \"{ID}\"\nschema = \"app\"\n[expand]\nsql = \"expand.sql\"\ncompatible = [{{ rule = \"{rule}\", reason = \"x\" }}]\n"
        );
        let folder = Folder::default()
            .with(&format!("{ID}/change.toml"), toml.as_str())
            .with(
                &format!("{ID}/expand.sql"),
                "CREATE TABLE app.more (id int);",
            );
        let set = sealed(&folder);
        let db = used().await;
        let error = ran(&db, &set, Phase::Expand).await.unwrap_err();
        assert_eq!(error.exit_code(), 13, "{error}");
        let text = error.to_string();
        assert!(
            text.contains(&format!("{ID}/change.toml: `expand.compatible`: {said}")),
            "{text}"
        );
        let there: Option<String> = db
            .admin
            .query_one("SELECT to_regclass('app.more')::text", &[])
            .await
            .unwrap()
            .get(0);
        assert_eq!(there, None);
        // What is sealed cannot be edited, and rules become sharper: a new database is made of it all the same.
        let new = TestDb::empty().await;
        new.admin.batch_execute("CREATE SCHEMA app").await.unwrap();
        assert_eq!(ran(&new, &set, Phase::Expand).await.unwrap().applied, 1);
    }
}

#[tokio::test]
async fn locks_that_are_not_had_end_with_the_budget_and_change_nothing() {
    let db = used().await;
    let mut other = db.connect().await;
    let reader = other.transaction().await.unwrap();
    reader.query("SELECT * FROM app.users", &[]).await.unwrap();
    let set = set("ALTER TABLE users ADD COLUMN a int;", None);
    let error = ran(&db, &set, Phase::Expand).await.unwrap_err();
    assert_eq!(error.exit_code(), 14, "{error}");
    assert!(error.to_string().contains("3 tries"), "{error}");
    reader.rollback().await.unwrap();
    assert_eq!(ran(&db, &set, Phase::Expand).await.unwrap().applied, 1);
}

#[tokio::test]
async fn a_fresh_database_without_the_schema_of_its_first_change_says_so() {
    let db = TestDb::empty().await;
    let set = set("CREATE TABLE users (id bigint PRIMARY KEY);", None);
    let error = ran(&db, &set, Phase::Expand).await.unwrap_err();
    assert_eq!(error.exit_code(), 21, "{error}");
    assert!(
        error.to_string().contains("CREATE SCHEMA \"app\""),
        "{error}"
    );
    db.admin.batch_execute("CREATE SCHEMA app").await.unwrap();
    assert_eq!(ran(&db, &set, Phase::Expand).await.unwrap().applied, 1);
    // Made where only the server can see it.
    let db = TestDb::empty().await;
    let set = self::set(
        "DO $$BEGIN EXECUTE 'CREATE SCHEMA app'; END$$;\nCREATE TABLE app.t (id int);",
        None,
    );
    let ended = ran(&db, &set, Phase::Expand).await;
    let asked = ended.as_ref().err().map(RunError::exit_code);
    assert!(asked != Some(21), "{ended:?}");
}

#[tokio::test]
async fn a_database_that_is_set_to_read_only_is_left_alone() {
    let db = used().await;
    db.admin
        .batch_execute(&format!(
            "ALTER DATABASE {} SET default_transaction_read_only = on",
            db.name()
        ))
        .await
        .unwrap();
    let config = db.url().parse().unwrap();
    let error = Direct::connect(&config, NoTls, "a test").await.unwrap_err();
    assert!(error.to_string().contains("read only"), "{error}");
}

#[tokio::test]
async fn a_schema_that_is_missing_or_shut_is_told_before_anything_is_made_elsewhere() {
    let db = used().await;
    db.admin
        .batch_execute("DROP SCHEMA app CASCADE")
        .await
        .unwrap();
    let made = set(
        "CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1';\n",
        None,
    );
    // Something is in the database, so it is no fresh one.
    let sql = "CREATE SCHEMA other; CREATE TABLE other.t (id int)";
    db.admin.batch_execute(sql).await.unwrap();
    let mut held = held(&db, Duration::from_secs(20)).await.unwrap();
    held.ledger.fresh = false;
    let error = run(&mut held, &made, Phase::Expand, &ladder(), &mut |_| {})
        .await
        .unwrap_err();
    held.release().await;
    assert_eq!(error.exit_code(), 21, "{error}");
    assert!(
        error
            .to_string()
            .contains("the schema app is not in this database"),
        "{error}"
    );
    // It may be the wrong database: what is left there is said.
    assert!(
        error
            .to_string()
            .contains("only the ledger's tables are here"),
        "{error}"
    );
}

#[tokio::test]
async fn a_phase_with_a_statement_that_is_refused_anyway_begins_with_none() {
    let db = used().await;
    let made = set(
        "ALTER TABLE users ADD COLUMN age int;\nALTER TABLE users DROP COLUMN name;\n",
        None,
    );
    let error = ran(&db, &made, Phase::Expand).await.unwrap_err();
    assert_eq!(error.exit_code(), 13, "{error}");
    let sql = "SELECT count(*) FROM pg_attribute WHERE attrelid = 'app.users'::regclass AND attname = 'age'";
    let count: i64 = db.admin.query_one(sql, &[]).await.unwrap().get(0);
    assert_eq!(count, 0, "{error}");
}

#[tokio::test]
async fn what_nobody_has_sealed_is_not_passed_over() {
    let db = used().await;
    let open = change(
        Folder::default(),
        ID,
        "ALTER TABLE users ADD COLUMN age int;\n",
        None,
    );
    let unsealed = open.clone().with("migrations.lock", "").set().unwrap();
    let error = ran(&db, &unsealed, Phase::Expand).await.unwrap_err();
    assert_eq!(error.exit_code(), 11, "{error}");
    let error = ran(&db, &open.set().unwrap(), Phase::Expand)
        .await
        .unwrap_err();
    assert_eq!(error.exit_code(), 2, "{error}");
}

#[tokio::test]
async fn a_table_that_grows_between_the_look_and_the_lock_is_not_small_any_more() {
    let db = used().await;
    let set = set("CREATE INDEX i ON app.users (name);", None);
    let mut other = db.connect().await;
    let writer = other.transaction().await.unwrap();
    writer
        .batch_execute("ALTER TABLE app.users ALTER name SET STORAGE plain")
        .await
        .unwrap();
    writer.commit().await.unwrap();
    let writer = other.transaction().await.unwrap();
    writer
        .batch_execute("INSERT INTO app.users VALUES (2, 'x')")
        .await
        .unwrap();
    let mut held = held(&db, Duration::ZERO).await.unwrap();
    let (pid, patient) = (
        held.session.pid,
        Ladder {
            lock_timeout: Duration::from_mins(1),
            tries: 1,
            ..Ladder::default()
        },
    );
    let runs = tokio::spawn(async move {
        let ended = run(&mut held, &set, Phase::Expand, &patient, &mut |_| {}).await;
        held.release().await;
        ended
    });
    // It has looked at a table of one page, and wants the lock that goes with that.
    wait_until("the runner waits for the table", BOUND, async || {
        let sql = "SELECT FROM pg_locks WHERE pid = $1 AND NOT granted AND relation = 'app.users'::regclass AND mode = 'ShareLock'";
        let waits = db.admin.query_opt(sql, &[&pid]).await;
        waits.unwrap().is_some()
    })
    .await;
    writer
        .batch_execute("INSERT INTO app.users SELECT g, repeat(md5(g::text), 60) FROM generate_series(3, 12000) g")
        .await
        .unwrap();
    writer.commit().await.unwrap();
    let error = runs.await.unwrap().unwrap_err();
    assert_eq!(error.exit_code(), 13, "{error}");
    assert!(
        error.to_string().contains("create-index-not-concurrent"),
        "{error}"
    );
    let row = db
        .admin
        .query_one(
            "SELECT to_regclass('app.i')::text, pg_relation_size('app.users') > 16 * 1024 * 1024, (SELECT count(*) FROM aegis_migrate.phase)",
            &[],
        )
        .await
        .unwrap();
    let found: (Option<String>, bool, i64) = (row.get(0), row.get(1), row.get(2));
    assert_eq!(found, (None, true, 0));
}
