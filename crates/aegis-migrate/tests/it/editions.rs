//! The tool's own tables: who makes them newer, who leaves them alone, and who waits for whom meanwhile.

use std::time::Duration;

use aegis_migrate::mutex::Held;
use aegis_testkit::{TestDb, wait_until};

use crate::run::held;

const BOUND: Duration = Duration::from_secs(20);
/// Only so that a test which hangs has an end.
const HANGS: Duration = Duration::from_mins(1);

const SIGHT: &str =
    "INSERT INTO aegis_migrate.sighting (change, side, application_name, role, minute)
    VALUES ('c', 'old', $1, 'app', date_trunc('minute', now()))";

async fn taken(db: &TestDb) -> Held {
    tokio::time::timeout(HANGS, held(db, BOUND))
        .await
        .unwrap()
        .unwrap()
}

async fn edition(db: &TestDb) -> i32 {
    let sql = "SELECT number FROM aegis_migrate.edition";
    db.admin.query_one(sql, &[]).await.unwrap().get(0)
}

#[tokio::test]
async fn who_brings_nothing_newer_waits_for_no_writer_that_was_sighted() {
    let db = TestDb::empty().await;
    taken(&db).await.release().await;
    let mut writer = db.connect().await;
    let open = writer.transaction().await.unwrap();
    open.execute(SIGHT, &[&"slow"]).await.unwrap();
    taken(&db).await.release().await;
    open.commit().await.unwrap();
}

#[tokio::test]
async fn a_program_of_before_leaves_the_tables_of_a_newer_one_alone() {
    let db = TestDb::empty().await;
    taken(&db).await.release().await;
    db.admin
        .batch_execute(
            "UPDATE aegis_migrate.edition SET number = 1000;
             CREATE OR REPLACE FUNCTION aegis_migrate.refuse_edit_of_pass() RETURNS trigger LANGUAGE plpgsql
             AS $$ BEGIN RAISE EXCEPTION 'newer'; END $$",
        )
        .await
        .unwrap();
    taken(&db).await.release().await;
    let body: String = db
        .admin
        .query_one(
            "SELECT prosrc FROM pg_proc WHERE proname = 'refuse_edit_of_pass'",
            &[],
        )
        .await
        .unwrap()
        .get(0);
    assert!(body.contains("'newer'"), "{body}");
    assert_eq!(edition(&db).await, 1000);
}

#[tokio::test]
async fn older_tables_are_made_newer_and_no_writer_is_held_up_behind_another() {
    let db = TestDb::empty().await;
    taken(&db).await.release().await;
    let now = edition(&db).await;
    // As a release of before left them: without a number.
    db.admin
        .batch_execute("DROP TABLE aegis_migrate.edition")
        .await
        .unwrap();
    let mut slow = db.connect().await;
    let open = slow.transaction().await.unwrap();
    open.execute(SIGHT, &[&"slow"]).await.unwrap();
    let writer = db.connect().await;
    let making = async { taken(&db).await.release().await };
    let others = async {
        let waits = "SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND relation = 'aegis_migrate.sighting'::regclass)";
        wait_until("somebody waits for the sightings", HANGS, async || {
            db.admin.query_one(waits, &[]).await.unwrap().get(0)
        })
        .await;
        // It stands behind the one who waits, and goes on while the slow one is still open.
        tokio::time::timeout(HANGS, writer.execute(SIGHT, &[&"quick"]))
            .await
            .expect("a writer is held up")
            .unwrap();
        open.commit().await.unwrap();
    };
    tokio::join!(making, others);
    assert_eq!(edition(&db).await, now);
}
