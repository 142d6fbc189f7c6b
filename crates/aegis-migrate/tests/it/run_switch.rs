//! A switch that is moved while rows are moved: a batch does not write the old side over one that is the newer one now.

use std::time::Duration;

use aegis_migrate::change::Phase;
use aegis_migrate::contract::fact::{Fact, Standing};
use aegis_migrate::contract::need::Need;
use aegis_migrate::contract::reconciled::WrittenNew;
use aegis_migrate::switch::{self, Move, Moved, Side};
use aegis_testkit::{TestDb, wait_until};
use jiff::Timestamp;
use tokio_postgres::Transaction;

use crate::run::{ran, sealed};
use crate::run_rows::{ID, beside, database, folder, number};

const BOUND: Duration = Duration::from_mins(1);

/// New programs write the new side from now on. The caller commits.
async fn moved(transaction: &Transaction<'_>) {
    let both = [Side::Old, Side::New];
    let forward = Fact {
        need: Need::Reconciled,
        standing: Standing::Shown,
        source: "target".to_owned(),
        at: Some(Timestamp::now()),
        age_limit_s: 86_400,
        detail: "0 rows differ".to_owned(),
    };
    let wanted = Move {
        change: ID,
        seen: None,
        reads: Side::New,
        writes: Side::New,
        may_read: &both,
        may_write: &both,
        cache_ttl_ms: 0,
        release: "r2",
        by: "ana",
        reason: "a test",
        forward: &forward,
        written_new: &WrittenNew::Unknown(String::new()),
        accept_forward: None,
        now: Timestamp::now(),
    };
    let moved = switch::make(transaction, &wanted).await.unwrap();
    assert!(matches!(moved, Moved::Applied { .. }), "{moved:?}");
}

/// What is told, and that nothing was moved but these rows.
async fn is_refused(db: &TestDb, error: &aegis_migrate::run::RunError, rows: i64) {
    let text = error.to_string();
    assert_eq!(error.exit_code(), 18, "{text}");
    for part in [ID, "writes new", "backfill retry --restart"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(number(db, "SELECT count(cents) FROM app.t").await, rows);
}

#[tokio::test]
async fn a_batch_that_began_before_the_switch_moved_is_not_committed_after_it() {
    let db = database(300).await;
    let set = sealed(&folder(100));
    ran(&db, &set, Phase::Expand).await.unwrap();
    // The second batch stops inside its statement.
    db.admin
        .batch_execute(
            "CREATE FUNCTION app.held() RETURNS trigger LANGUAGE plpgsql AS $$
             BEGIN WHILE NOT pg_try_advisory_xact_lock_shared(79) LOOP PERFORM pg_sleep(0.005); END LOOP; RETURN NEW; END $$;
             CREATE TRIGGER held BEFORE UPDATE OF cents ON app.t FOR EACH ROW WHEN (OLD.id = 150) EXECUTE FUNCTION app.held();
             SELECT pg_advisory_lock(79)",
        )
        .await
        .unwrap();
    let runner = beside(&db, &set);
    wait_until("a batch is under way", BOUND, async || {
        let held = "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'aegis backfill/%' AND wait_event = 'PgSleep' AND datname = current_database()";
        number(&db, held).await == 1
    })
    .await;
    let mut mover = db.connect().await;
    let transaction = mover.transaction().await.unwrap();
    moved(&transaction).await;
    transaction.commit().await.unwrap();
    // What the batch has seen as apart is the new program's now.
    db.admin
        .batch_execute("SELECT pg_advisory_unlock(79)")
        .await
        .unwrap();
    let error = runner.await.unwrap().unwrap_err();
    is_refused(&db, &error, 100).await;
    // Nor later.
    let error = ran(&db, &set, Phase::Migrate).await.unwrap_err();
    is_refused(&db, &error, 100).await;
}

#[tokio::test]
async fn a_job_that_is_made_while_the_switch_moves_waits_for_the_move_and_moves_nothing() {
    let db = database(300).await;
    let set = sealed(&folder(100));
    ran(&db, &set, Phase::Expand).await.unwrap();
    let mut mover = db.connect().await;
    let transaction = mover.transaction().await.unwrap();
    moved(&transaction).await;
    let runner = beside(&db, &set);
    wait_until("the job is there, and waits", BOUND, async || {
        let waits = "SELECT count(*) FROM aegis_migrate.backfill b, pg_stat_activity a WHERE a.application_name LIKE 'aegis backfill/%'
            AND a.wait_event_type = 'Lock' AND a.wait_event = 'advisory' AND a.datname = current_database()";
        assert!(!runner.is_finished(), "its end before the move's");
        number(&db, waits).await == 1
    })
    .await;
    transaction.commit().await.unwrap();
    let error = runner.await.unwrap().unwrap_err();
    is_refused(&db, &error, 0).await;
}
