//! Rows that the server refuses, and rows that somebody holds.

use std::sync::Arc;

use aegis_backfill::job::JobError;
use aegis_backfill::job::control::{Command, failed_rows, tell};
use aegis_testkit::wait_until;

use super::{
    BOUND, CHANGE, beside, counted, counting, not_moved, number, ran, sized, stands, statement,
};

#[tokio::test]
async fn rows_that_are_refused_are_found_alone_and_the_others_are_moved_then_a_retry_moves_them() {
    let db = counted(2000).await;
    db.admin
        .batch_execute("ALTER TABLE app.t ADD d int NOT NULL DEFAULT 1; UPDATE app.t SET d = 0 WHERE id IN (1, 777, 778, 2000)")
        .await
        .unwrap();
    let mut spec = statement("UPDATE t SET done = done + 1 / d WHERE id > :from AND id <= :to");
    spec.batch = sized(500, 500);
    let error = ran(&db, &spec).await.unwrap_err();
    assert!(matches!(error, JobError::Failed { .. }), "{error}");
    assert!(
        error.to_string().contains("4 rows could not be moved"),
        "{error}"
    );
    let job = stands(&db).await;
    assert_eq!((job.state.as_str(), job.failed_rows), ("failed", 4));
    assert_eq!(job.progress.rows_seen, 2000);
    let failed = failed_rows(&db.admin, CHANGE, 10).await.unwrap();
    let keys: Vec<&str> = failed.iter().map(|row| row.key[0].as_str()).collect();
    assert_eq!(keys, ["1", "777", "778", "2000"]);
    assert!(
        failed.iter().all(|row| row.sqlstate == "22012"),
        "{failed:?}"
    );
    assert_eq!(not_moved(&db, 1).await, 4);
    // Without a retry a run says so and changes nothing.
    let again = ran(&db, &spec).await.unwrap_err();
    assert!(again.to_string().contains("backfill retry"), "{again}");
    // A retry before all are mended leaves the rest.
    db.admin
        .batch_execute("UPDATE app.t SET d = 1 WHERE id IN (1, 778)")
        .await
        .unwrap();
    tell(&db.admin, CHANGE, Command::Retry, "bob", "")
        .await
        .unwrap();
    ran(&db, &spec).await.unwrap_err();
    let failed = failed_rows(&db.admin, CHANGE, 10).await.unwrap();
    assert!(
        failed.len() == 2 && failed.iter().all(|row| row.attempts == 2),
        "{failed:?}"
    );
    db.admin
        .batch_execute("UPDATE app.t SET d = 1 WHERE d = 0")
        .await
        .unwrap();
    tell(&db.admin, CHANGE, Command::Retry, "bob", "")
        .await
        .unwrap();
    ran(&db, &spec).await.unwrap();
    assert_eq!(not_moved(&db, 1).await, 0);
    assert_eq!(stands(&db).await.failed_rows, 0);
}

#[tokio::test]
async fn a_refusal_at_the_commit_costs_its_row_only() {
    let db = counted(100).await;
    db.admin
        .batch_execute(
            "CREATE FUNCTION app.late() RETURNS trigger LANGUAGE plpgsql AS $$
             BEGIN IF NEW.id = 42 AND NEW.done > 0 THEN RAISE EXCEPTION 'not this one'; END IF; RETURN NULL; END $$;
             CREATE CONSTRAINT TRIGGER late AFTER UPDATE ON app.t DEFERRABLE INITIALLY DEFERRED
             FOR EACH ROW EXECUTE FUNCTION app.late()",
        )
        .await
        .unwrap();
    ran(&db, &counting()).await.unwrap_err();
    let failed = failed_rows(&db.admin, CHANGE, 10).await.unwrap();
    assert_eq!((failed.len(), failed[0].key[0].as_str()), (1, "42"));
    assert_eq!(failed[0].said, "not this one");
    assert_eq!(not_moved(&db, 1).await, 1);
}

#[tokio::test]
async fn a_statement_that_is_wrong_ends_the_job_at_once() {
    let db = counted(100).await;
    let none = statement("UPDATE t SET nothing = 1 WHERE id > :from AND id <= :to");
    let said = ran(&db, &none).await.unwrap_err().to_string();
    assert!(said.contains("42703"), "{said}");
    // The trial has gone well, and then somebody takes the column away.
    let db = counted(20_000).await;
    let first = beside(&db, &counting(), Arc::default());
    wait_until("some rows are moved", BOUND, async || {
        number(
            &db,
            "SELECT coalesce(max(rows_seen), 0) FROM aegis_migrate.backfill",
        )
        .await
            >= 100
    })
    .await;
    db.admin
        .batch_execute("ALTER TABLE app.t RENAME done TO did")
        .await
        .unwrap();
    let error = first.await.unwrap().unwrap_err();
    assert!(error.to_string().contains("42703"), "{error}");
    let job = stands(&db).await;
    assert_eq!((job.state.as_str(), job.failed_rows), ("failed", 0));
}

#[tokio::test]
async fn a_row_that_somebody_holds_is_waited_for_and_nobody_is_held_up_behind_it() {
    let db = counted(100).await;
    let mut other = db.connect().await;
    let holds = other.transaction().await.unwrap();
    holds
        .execute("UPDATE app.t SET done = done + 10 WHERE id = 55", &[])
        .await
        .unwrap();
    let mut spec = counting();
    spec.batch = sized(100, 100);
    let runner = beside(&db, &spec, Arc::default());
    // Smaller batches have passed what is before it.
    wait_until("it waits for the row alone", BOUND, async || {
        let seen = "SELECT coalesce(max(rows_seen), 0) FROM aegis_migrate.backfill WHERE waiting LIKE '%lock%'";
        number(&db, seen).await == 54
    })
    .await;
    holds.commit().await.unwrap();
    runner.await.unwrap().unwrap();
    assert_eq!(not_moved(&db, 1).await, 1);
    let held = "SELECT done::bigint FROM app.t WHERE id = 55";
    assert_eq!(number(&db, held).await, 11, "both writes are there");
}
