//! A developer's database, and lines that are recorded without being executed.

use aegis_migrate::baseline::{self, BaselineError, How};
use aegis_migrate::dev::{self, DevError};
use aegis_migrate::set::Set;
use aegis_migrate::standing::{State, recorded, standing};
use aegis_testkit::TestDb;

use crate::folder::Folder;

const A: &str = "20261129T1030_a";
const B: &str = "20261129T1031_b";

async fn follow(db: &TestDb, set: &Set, mark: Option<&str>) -> Result<dev::Done, DevError> {
    let mut client = db.connect().await;
    dev::follow(&mut client, set, mark, "ada").await
}

async fn rows(db: &TestDb) -> i64 {
    db.admin
        .query_one("SELECT count(*) FROM app.t1030", &[])
        .await
        .unwrap()
        .get(0)
}

#[tokio::test]
async fn a_database_that_nobody_has_marked_by_its_name_is_left_alone() {
    let db = TestDb::empty().await;
    let set = Folder::small(A).set().unwrap();
    let told = follow(&db, &set, None).await.unwrap_err();
    assert!(
        matches!(told, DevError::NotMarked { .. }) && told.exit_code() == 17,
        "{told}"
    );
    let told = follow(&db, &set, Some("production")).await.unwrap_err();
    assert!(
        told.to_string()
            .starts_with("--mark production does not name this database"),
        "{told}"
    );
    let there = db
        .admin
        .query_one("SELECT to_regnamespace('app')::text", &[])
        .await
        .unwrap();
    assert_eq!(there.get::<_, Option<String>>(0), None);
}

#[tokio::test]
async fn a_marked_database_follows_the_folder_and_is_made_again_after_an_edit() {
    let db = TestDb::empty().await;
    let first = Folder::small(A);
    let done = follow(&db, &first.set().unwrap(), Some(db.name()))
        .await
        .unwrap();
    assert_eq!((done.applied.len(), done.redone), (1, None));
    db.admin
        .batch_execute("INSERT INTO app.t1030 VALUES (1)")
        .await
        .unwrap();
    let two = first.clone().and_small(B).set().unwrap();
    let done = follow(&db, &two, None).await.unwrap();
    assert_eq!(
        (done.applied.len(), done.redone, rows(&db).await),
        (1, None, 1)
    );
    assert_eq!(follow(&db, &two, None).await.unwrap().applied, []);

    let edited = first
        .clone()
        .with(&format!("{A}/expand.sql"), "CREATE TABLE t1030 (id int);\n");
    let done = follow(&db, &edited.clone().and_small(B).set().unwrap(), None)
        .await
        .unwrap();
    assert_eq!(
        done.redone.as_deref(),
        Some("20261129T1030_a:expand was edited, or broke off")
    );
    assert_eq!((done.applied.len(), rows(&db).await), (2, 0));
    let done = follow(&db, &edited.set().unwrap(), None).await.unwrap();
    assert_eq!(
        done.redone.as_deref(),
        Some("20261129T1031_b:expand is not in the folder any more")
    );
}

#[tokio::test]
async fn a_phase_that_broke_off_is_not_taken_for_applied() {
    let db = TestDb::empty().await;
    let name = format!("{A}/expand.sql");
    let bad = Folder::small(A).with(
        &name,
        "CREATE TABLE t1030 (id int);\nALTER TABLE nowhere ADD x int;\n",
    );
    let told = follow(&db, &bad.set().unwrap(), Some(db.name()))
        .await
        .unwrap_err();
    assert!(
        told.to_string()
            .contains("expand.sql:2: relation \"nowhere\" does not exist"),
        "{told}"
    );
    assert_eq!(told.exit_code(), 20);
    let good = Folder::small(A).set().unwrap();
    let done = follow(&db, &good, None).await.unwrap();
    assert!(done.redone.is_some());
    assert_eq!(rows(&db).await, 0);
}

#[tokio::test]
async fn what_is_recorded_counts_and_a_run_that_is_at_work_is_waited_for() {
    let db = TestDb::empty().await;
    let set = dev::as_written(&Folder::small(A).set().unwrap());
    let lines: Vec<_> = set.lock.lines.iter().collect();
    let mut client = db.connect().await;
    db.admin
        .batch_execute("SELECT pg_advisory_lock(1634035561, 1)")
        .await
        .unwrap();
    let transaction = client.transaction().await.unwrap();
    let told = baseline::take(&transaction, "ada").await.unwrap_err();
    assert!(
        matches!(&told, BaselineError::Busy { holder } if holder.contains("process "))
            && told.exit_code() == 10,
        "{told}"
    );
    transaction.rollback().await.unwrap();
    db.admin
        .batch_execute("SELECT pg_advisory_unlock(1634035561, 1)")
        .await
        .unwrap();

    assert_eq!(recorded(&client).await.unwrap(), []);
    let transaction = client.transaction().await.unwrap();
    let taken = baseline::take(&transaction, "ada").await.unwrap();
    baseline::record(
        &transaction,
        &taken,
        &lines,
        How::Compared,
        "ada",
        "by hand",
    )
    .await
    .unwrap();
    transaction.commit().await.unwrap();
    let stands = standing(&set, &recorded(&client).await.unwrap());
    assert_eq!(stands.of(&lines[0].at), Some(&State::Applied));
    let row = client
        .query_one("SELECT fresh, epoch FROM aegis_migrate.ledger", &[])
        .await
        .unwrap();
    assert_eq!((row.get::<_, bool>(0), row.get::<_, i64>(1)), (false, 1));

    let other = dev::as_written(
        &Folder::small(A)
            .with(&format!("{A}/expand.sql"), "SELECT 1;\n")
            .set()
            .unwrap(),
    );
    let transaction = client.transaction().await.unwrap();
    let taken = baseline::take(&transaction, "ada").await.unwrap();
    let lines: Vec<_> = other.lock.lines.iter().collect();
    let told = baseline::record(&transaction, &taken, &lines, How::Compared, "ada", "x")
        .await
        .unwrap_err();
    assert!(matches!(told, BaselineError::Edited { .. }), "{told}");
    transaction.rollback().await.unwrap();

    // A step that is open makes its phase begun, not applied.
    client
        .batch_execute(
            "DELETE FROM aegis_migrate.phase; DELETE FROM aegis_migrate.baseline;
             INSERT INTO aegis_migrate.step SELECT '20261129T1030_a', 'expand', n, CASE n WHEN 1 THEN 'applied' ELSE 'failed' END,
                 'x', 'x', 'x', 'f', 1, 's', 'A', 1, 1, 'r', 'ada', '', '15', now(), now() FROM generate_series(1, 2) n",
        )
        .await
        .unwrap();
    let rows = recorded(&client).await.unwrap();
    assert_eq!(
        (rows[0].whole, rows[0].steps_done, rows[0].open.as_deref()),
        (false, 1, Some("failed (step 2)"))
    );
}
