//! What a concurrent build that was cut short has left, told by the server's catalog.

use aegis_migrate::structure::{
    Detach, IndexStanding, StructureError, detach, expected_index, leftovers_of_reindex, standing,
};
use aegis_testkit::{TestDb, wait_until};
use tokio_postgres::Client;

use super::{account, app, run};

async fn table() -> TestDb {
    let db = account().await;
    run(
        &db.admin,
        "CREATE TABLE app.t (id int, status varchar(10), n numeric); \
         CREATE FUNCTION app.slug(t text) RETURNS text LANGUAGE sql IMMUTABLE AS 'SELECT lower(t)'; \
         CREATE TABLE app.\"We.ird \"\"T\"\"\" (\"Co l\" int)",
    )
    .await;
    db
}

/// How it stands with the index that a statement names.
async fn stands(client: &Client, statement: &str, table: &str, index: &str) -> IndexStanding {
    run(client, "BEGIN; SET LOCAL search_path = app, pg_catalog").await;
    let expected = expected_index(client, statement, &app(table))
        .await
        .unwrap();
    assert_eq!(expected.name, app(index));
    let stands = standing(client, &app(index), Some(&expected), Some(&app(table)))
        .await
        .unwrap();
    run(client, "COMMIT").await;
    stands
}

const STATEMENT: &str = "CREATE INDEX CONCURRENTLY i ON t (slug(status), n DESC) INCLUDE (id) WITH (fillfactor = 70) WHERE status = 'x'";

#[tokio::test]
async fn absent_equal_wrong_and_invalid_are_told_apart() {
    let db = table().await;
    let c = &db.admin;
    assert_eq!(stands(c, STATEMENT, "t", "i").await, IndexStanding::Absent);
    run(c, "SET search_path = app; ").await;
    run(c, STATEMENT).await;
    run(c, "RESET search_path").await;
    assert_eq!(stands(c, STATEMENT, "t", "i").await, IndexStanding::Equal);
    // MG-21: written in another way, it is the same.
    let other = "create index concurrently if not exists I on only app.\"t\" using btree (app.slug((status)::text), n desc nulls first) include (id) with (fillfactor='70') where ((status)::text = 'x'::text)";
    assert_eq!(stands(c, other, "t", "i").await, IndexStanding::Equal);
    let changed = STATEMENT.replace("'x'", "'y'");
    let IndexStanding::Wrong { expected, found } = stands(c, &changed, "t", "i").await else {
        panic!("another predicate is another index");
    };
    assert!(
        expected.contains("'y'::text") && found.contains("'x'::text"),
        "{expected} / {found}"
    );
    let unique = STATEMENT.replace("CREATE INDEX", "CREATE UNIQUE INDEX");
    assert!(matches!(
        stands(c, &unique, "t", "i").await,
        IndexStanding::Wrong { .. }
    ));
    // MG-25: right in every word, and used by nobody.
    run(
        c,
        "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'app.i'::regclass",
    )
    .await;
    assert_eq!(
        stands(c, STATEMENT, "t", "i").await,
        IndexStanding::Invalid { ready: true }
    );
    run(c, "DROP INDEX app.i; CREATE TABLE app.i (a int)").await;
    let IndexStanding::Wrong { found, .. } = stands(c, STATEMENT, "t", "i").await else {
        panic!("a table is no index");
    };
    assert!(found.contains("no index"), "{found}");
}

/// MG-02, MG-38: a build that a lock timeout ended is a leftover, not an index and not absent.
#[tokio::test]
async fn mg_02_mg_38_a_timed_out_build_is_a_leftover() {
    let db = table().await;
    let writer = db.connect().await;
    run(&writer, "BEGIN; INSERT INTO app.t VALUES (1)").await;
    run(
        &db.admin,
        "SET search_path = app; SET lock_timeout = '200ms'",
    )
    .await;
    db.admin.batch_execute(STATEMENT).await.unwrap_err();
    run(&writer, "COMMIT").await;
    run(&db.admin, "RESET search_path").await;
    assert_eq!(
        stands(&db.admin, STATEMENT, "t", "i").await,
        IndexStanding::Invalid { ready: false }
    );
}

#[tokio::test]
async fn hostile_names_stand_as_they_are() {
    let db = table().await;
    let statement = "CREATE INDEX \"In \"\"dex\" ON \"We.ird \"\"T\"\"\" (\"Co l\")";
    assert_eq!(
        stands(&db.admin, statement, "We.ird \"T\"", "In \"dex").await,
        IndexStanding::Absent
    );
    run(&db.admin, "SET search_path = app").await;
    run(&db.admin, statement).await;
    assert_eq!(
        stands(&db.admin, statement, "We.ird \"T\"", "In \"dex").await,
        IndexStanding::Equal
    );
}

#[tokio::test]
async fn what_cannot_be_told_is_said_and_nothing_stays() {
    let db = table().await;
    let c = &db.admin;
    run(c, "BEGIN; SET LOCAL search_path = app, pg_catalog").await;
    for (statement, why) in [
        (
            "CREATE INDEX CONCURRENTLY ON t (id)",
            "give the index a name",
        ),
        ("CREATE INDEX i ON other (id)", "another table"),
        ("CREATE INDEX i ON t (nothing)", "does not exist"),
    ] {
        let error = expected_index(c, statement, &app("t")).await.unwrap_err();
        assert!(matches!(error, StructureError::Unprovable { .. }));
        assert!(error.to_string().contains(why), "{error}");
    }
    // The transaction goes on, and the copy is away.
    expected_index(c, STATEMENT, &app("t")).await.unwrap();
    let row = c
        .query_one(
            "SELECT count(*) FROM pg_class WHERE relpersistence = 't' AND relname = 't'",
            &[],
        )
        .await
        .unwrap();
    assert_eq!(row.get::<_, i64>(0), 0);
    run(c, "COMMIT").await;
}

#[tokio::test]
async fn a_cut_detach_and_a_cut_reindex_are_told() {
    let db = account().await;
    let c = &db.admin;
    run(c, "CREATE TABLE app.p (a int) PARTITION BY RANGE (a); CREATE TABLE app.p1 PARTITION OF app.p FOR VALUES FROM (1) TO (9)").await;
    assert_eq!(
        detach(c, &app("p"), &app("p1")).await.unwrap(),
        Detach::Attached
    );
    // A reader holds the old snapshot, so that the second half waits until it is cancelled.
    let reader = db.connect().await;
    run(&reader, "BEGIN; SELECT * FROM app.p").await;
    let detacher = db.connect().await;
    let cancel = detacher.cancel_token();
    let detaching = tokio::spawn(async move {
        detacher
            .batch_execute("ALTER TABLE app.p DETACH PARTITION app.p1 CONCURRENTLY")
            .await
            .unwrap_err();
    });
    wait_until(
        "the detach is half done",
        std::time::Duration::from_secs(20),
        async || detach(c, &app("p"), &app("p1")).await.unwrap() == Detach::Pending,
    )
    .await;
    cancel.cancel_query(tokio_postgres::NoTls).await.unwrap();
    detaching.await.unwrap();
    run(&reader, "COMMIT").await;
    assert_eq!(
        detach(c, &app("p"), &app("p1")).await.unwrap(),
        Detach::Pending
    );
    run(c, "ALTER TABLE app.p DETACH PARTITION app.p1 FINALIZE").await;
    assert_eq!(
        detach(c, &app("p"), &app("p1")).await.unwrap(),
        Detach::Done
    );

    run(
        c,
        "CREATE TABLE app.t (a int); CREATE INDEX t_a ON app.t (a)",
    )
    .await;
    assert_eq!(leftovers_of_reindex(c, &app("t")).await.unwrap(), []);
    let writer = db.connect().await;
    run(&writer, "BEGIN; INSERT INTO app.t VALUES (1)").await;
    run(c, "SET lock_timeout = '200ms'").await;
    c.batch_execute("REINDEX INDEX CONCURRENTLY app.t_a")
        .await
        .unwrap_err();
    run(&writer, "COMMIT").await;
    assert_eq!(
        leftovers_of_reindex(c, &app("t")).await.unwrap(),
        [app("t_a_ccnew")]
    );
}
