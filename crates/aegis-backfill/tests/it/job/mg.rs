//! What has gone wrong elsewhere, by its number in the reference.

use super::{CHANGE, counted, counting, database, not_moved, number, ran, sized, statement};

#[tokio::test]
async fn mg_27_the_end_is_fixed_at_the_start_so_inserts_do_not_keep_it_going() {
    let db = counted(300).await;
    // Each moved row brings a new one: a loop until "no rows are left" never ends.
    db.admin
        .batch_execute(
            "CREATE FUNCTION app.more() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO app.t VALUES (NEW.id + 1000000, 0); RETURN NULL; END $$;
             CREATE TRIGGER more AFTER UPDATE ON app.t FOR EACH ROW EXECUTE FUNCTION app.more()",
        )
        .await
        .unwrap();
    let report = ran(&db, &counting()).await.unwrap();
    assert_eq!((report.rows_seen, report.rows_changed), (300, 300));
    assert_eq!(number(&db, "SELECT count(*) FROM app.t").await, 600);
    let wrong = "SELECT count(*) FROM app.t WHERE (id <= 300) <> (done = 1)";
    assert_eq!(number(&db, wrong).await, 0);
}

#[tokio::test]
async fn mg_28_gaps_between_keys_end_nothing() {
    let db = counted(0).await;
    db.admin
        .batch_execute(
            "INSERT INTO app.t (id) SELECT g FROM generate_series(1, 25) g;
             INSERT INTO app.t (id) SELECT 1000000000 + g * 1000000 FROM generate_series(1, 25) g;
             INSERT INTO app.t (id) VALUES (-5), (9223372036854775807)",
        )
        .await
        .unwrap();
    assert_eq!(ran(&db, &counting()).await.unwrap().rows_seen, 52);
    assert_eq!(not_moved(&db, 1).await, 0);
}

#[tokio::test]
async fn mg_29_rows_that_are_deleted_meanwhile_make_it_pass_over_none() {
    let db = counted(200).await;
    // What is moved goes at once: an OFFSET would jump over as many.
    db.admin
        .batch_execute(
            "CREATE TABLE app.moved (id bigint);
             CREATE FUNCTION app.away() RETURNS trigger LANGUAGE plpgsql AS $$
             BEGIN INSERT INTO app.moved VALUES (NEW.id); DELETE FROM app.t WHERE id = NEW.id; RETURN NULL; END $$;
             CREATE TRIGGER away AFTER UPDATE ON app.t FOR EACH ROW EXECUTE FUNCTION app.away()",
        )
        .await
        .unwrap();
    ran(&db, &counting()).await.unwrap();
    assert_eq!(number(&db, "SELECT count(*) FROM app.t").await, 0);
    let moved = "SELECT count(DISTINCT id) + 1000 * count(*) FROM app.moved";
    assert_eq!(number(&db, moved).await, 200_200);
}

#[tokio::test]
async fn mg_30_each_batch_is_a_transaction_of_its_own_and_never_larger_than_max() {
    let db = counted(500).await;
    db.admin
        .batch_execute("ALTER TABLE app.t ADD by_xid text")
        .await
        .unwrap();
    let mut spec = statement(
        "UPDATE t SET by_xid = pg_current_xact_id()::text WHERE id > :from AND id <= :to",
    );
    spec.batch = sized(10, 40);
    // One id for all rows of a transaction is what the trial takes for a value that should be each row's own.
    let said = ran(&db, &spec).await.unwrap_err().to_string();
    assert!(said.contains("by_xid"), "{said}");
    let mut spec = statement(
        "UPDATE t SET by_xid = id || ' ' || pg_current_xact_id()::text WHERE id > :from AND id <= :to",
    );
    spec.batch = sized(10, 40);
    ran(&db, &spec).await.unwrap();
    let row = db
        .admin
        .query_one(
            "SELECT count(*), max(n), sum(n)::bigint FROM (SELECT count(*) AS n FROM app.t GROUP BY split_part(by_xid, ' ', 2)) AS b",
            &[],
        )
        .await
        .unwrap();
    let (batches, largest, rows): (i64, i64, i64) = (row.get(0), row.get(1), row.get(2));
    assert_eq!(
        (largest, rows),
        (40, 500),
        "it grew to max, and not over it"
    );
    assert!((13..30).contains(&batches), "{batches} batches");
}

#[tokio::test]
async fn mg_34_a_value_that_is_computed_once_for_all_rows_is_found_before_anything_is_changed() {
    let db = database(
        "CREATE TABLE app.t (id bigint PRIMARY KEY, token uuid, at timestamptz, kind text);
         INSERT INTO app.t (id) SELECT g FROM generate_series(1, 30) g",
    )
    .await;
    let set = |set: &str| {
        statement(&format!(
            "UPDATE t SET {set} WHERE id > :from AND id <= :to"
        ))
    };
    let wrong = set("token = (SELECT gen_random_uuid())");
    let said = ran(&db, &wrong).await.unwrap_err().to_string();
    assert!(said.contains("\"app\".\"t\".token"), "{said}");
    let touched = "SELECT count(*) FROM app.t WHERE token IS NOT NULL";
    assert_eq!(number(&db, touched).await, 0);
    let jobs = format!("SELECT count(*) FROM aegis_migrate.backfill WHERE change = '{CHANGE}'");
    assert_eq!(number(&db, &jobs).await, 0, "nothing was begun");
    // A constant, the time of the batch, and a value for each row are what they are meant to be.
    let right = set("token = gen_random_uuid(), at = now(), kind = 'x'");
    ran(&db, &right).await.unwrap();
    let tokens = "SELECT count(DISTINCT token) FROM app.t WHERE kind = 'x' AND at IS NOT NULL";
    assert_eq!(number(&db, tokens).await, 30);
}
