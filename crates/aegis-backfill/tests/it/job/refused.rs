//! What a job stands on, and what it says where that is not there.

use super::{counting, database, number, ran, statement};

#[tokio::test]
async fn a_key_that_cannot_be_walked_is_refused() {
    for (table, said) in [
        (
            "CREATE TABLE app.t (id int NOT NULL, done int)",
            "no valid unique index",
        ),
        (
            "CREATE TABLE app.t (id int UNIQUE, done int)",
            "may be NULL",
        ),
        (
            "CREATE TABLE app.t (n int PRIMARY KEY, done int)",
            "no column id",
        ),
        (
            "CREATE TABLE app.t (id int NOT NULL, n int, done int, UNIQUE (id, n))",
            "no valid unique index",
        ),
        (
            "CREATE TABLE app.t (id int NOT NULL, done int); CREATE UNIQUE INDEX i ON app.t (id) WHERE id > 5",
            "no valid unique index",
        ),
        (
            "CREATE TABLE app.t (id text COLLATE \"C\" NOT NULL, done int); CREATE UNIQUE INDEX i ON app.t (id COLLATE \"POSIX\")",
            "no valid unique index",
        ),
        ("SELECT 1", "no table app.t"),
        (
            "CREATE VIEW app.t AS SELECT 1 AS id, 0 AS done",
            "no table app.t",
        ),
        (
            "CREATE TABLE app.t (id inet PRIMARY KEY, done int); INSERT INTO app.t VALUES ('::1')",
            "no smallest value",
        ),
        (
            "CREATE TABLE app.t (id int PRIMARY KEY, done int); INSERT INTO app.t VALUES (-2147483648)",
            "smallest key",
        ),
    ] {
        let db = database(table).await;
        let error = ran(&db, &counting()).await.unwrap_err().to_string();
        assert!(error.contains(said), "{table}: {error}");
        let jobs = "SELECT count(*) FROM aegis_migrate.backfill";
        assert_eq!(number(&db, jobs).await, 0, "{table}");
    }
}

#[tokio::test]
async fn a_statement_without_its_range_is_refused() {
    let db = database("CREATE TABLE app.t (id int PRIMARY KEY, done int)").await;
    let spec = statement("UPDATE t SET done = 1 WHERE id > :from");
    let error = ran(&db, &spec).await.unwrap_err().to_string();
    assert!(
        error.contains("backfill.sql") && error.contains(":to"),
        "{error}"
    );
}

#[tokio::test]
async fn an_empty_table_is_done_at_once() {
    let db = database("CREATE TABLE app.t (id int PRIMARY KEY, done int)").await;
    let report = ran(&db, &counting()).await.unwrap();
    assert_eq!((report.rows_seen, report.was_done), (0, false));
}
