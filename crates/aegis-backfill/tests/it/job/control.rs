//! Pause, resume, cancel, retry: durable, and obeyed at once.

use std::sync::Arc;
use std::sync::Mutex;

use aegis_backfill::job::JobError;
use aegis_backfill::job::control::{Command, ControlError, tell};
use aegis_backfill::throttle::Limits;
use aegis_testkit::{TestDb, wait_until};
use tokio::task::JoinHandle;

use super::{BOUND, CHANGE, beside, counted, counting, not_moved, ran, stands};

async fn told(db: &TestDb, command: Command) -> bool {
    tell(&db.admin, CHANGE, command, "bob", "a look")
        .await
        .unwrap()
}

async fn some_rows<T>(db: &TestDb, _running: &JoinHandle<T>) {
    wait_until("some rows are moved", BOUND, async || {
        let made = aegis_backfill::job::control::status(&db.admin, None).await;
        made.unwrap()
            .first()
            .is_some_and(|job| job.progress.rows_seen >= 100)
    })
    .await;
}

#[tokio::test]
async fn mg_32_a_pause_holds_when_the_call_returns_survives_the_runner_and_a_resume_goes_on_there()
{
    let db = counted(20_000).await;
    let spec = counting();
    let first = beside(&db, &spec, Arc::default());
    some_rows(&db, &first).await;
    assert!(told(&db, Command::Pause).await);
    let paused = stands(&db).await;
    assert!(!told(&db, Command::Pause).await, "it is paused already");
    wait_until("the runner says that it is paused", BOUND, async || {
        let waiting = stands(&db).await.waiting;
        waiting.is_some_and(|why| why.contains("paused by bob (a look)"))
    })
    .await;
    let now = stands(&db).await;
    assert_eq!(now.progress.rows_seen, paused.progress.rows_seen);
    assert!(now.runner.is_some_and(|runner| runner.contains("a runner")));
    first.abort();
    assert!(first.await.unwrap_err().is_cancelled());
    wait_until("the runner is gone", BOUND, async || {
        stands(&db).await.runner.is_none()
    })
    .await;
    assert_eq!(stands(&db).await.state, "paused");
    let second = beside(&db, &spec, Arc::default());
    wait_until("a second runner has taken it", BOUND, async || {
        stands(&db).await.epoch == 2
    })
    .await;
    assert_eq!(
        stands(&db).await.progress.rows_seen,
        paused.progress.rows_seen
    );
    assert!(told(&db, Command::Resume).await);
    let report = second.await.unwrap().unwrap();
    assert_eq!(report.rows_seen, 20_000);
    assert_eq!(not_moved(&db, 1).await, 0);
    assert_eq!(stands(&db).await.state, "done");
}

#[tokio::test]
async fn mg_32_a_runner_whose_cursor_is_stale_or_whose_job_another_one_has_writes_nothing_more() {
    for (what, sql) in [
        (
            "cursor",
            "UPDATE aegis_migrate.backfill_leaf SET cursor_key = '{15000}'",
        ),
        (
            "epoch",
            "UPDATE aegis_migrate.backfill SET epoch = epoch + 1",
        ),
    ] {
        let db = counted(20_000).await;
        let first = beside(&db, &counting(), Arc::default());
        some_rows(&db, &first).await;
        db.admin.batch_execute(sql).await.unwrap();
        let moved = stands(&db).await.progress.rows_seen;
        let error = first.await.unwrap().unwrap_err();
        assert!(matches!(error, JobError::Fenced { .. }), "{what}: {error}");
        assert_eq!(stands(&db).await.progress.rows_seen, moved, "{what}");
        let twice = "SELECT count(*) FROM app.t WHERE done > 1";
        assert_eq!(super::number(&db, twice).await, 0, "{what}");
    }
}

#[tokio::test]
async fn a_cancelled_job_ends_stays_so_and_a_retry_takes_it_up() {
    let db = counted(20_000).await;
    let first = beside(&db, &counting(), Arc::default());
    some_rows(&db, &first).await;
    assert!(told(&db, Command::Cancel).await);
    let error = first.await.unwrap().unwrap_err();
    assert!(matches!(error, JobError::Cancelled { .. }), "{error}");
    let error = ran(&db, &counting()).await.unwrap_err();
    assert!(
        error.to_string().contains("cancelled by bob (a look)"),
        "{error}"
    );
    let error = tell(&db.admin, CHANGE, Command::Resume, "bob", "")
        .await
        .unwrap_err();
    assert!(error.to_string().contains("is cancelled"), "{error}");
    assert!(told(&db, Command::Retry).await);
    ran(&db, &counting()).await.unwrap();
    assert_eq!(not_moved(&db, 1).await, 0);
    let error = tell(&db.admin, "20260101T0000_no", Command::Pause, "bob", "")
        .await
        .unwrap_err();
    assert!(matches!(error, ControlError::NoJob { .. }), "{error}");
}

#[tokio::test]
async fn a_job_is_done_once_and_a_second_runner_waits_for_the_first() {
    let db = counted(3000).await;
    let runners: Vec<_> = (0..3)
        .map(|_| beside(&db, &counting(), Arc::default()))
        .collect();
    let mut done_before = 0;
    for runner in runners {
        let report = runner.await.unwrap().unwrap();
        assert_eq!(report.rows_changed, 3000);
        done_before += i32::from(report.was_done);
    }
    assert_eq!(done_before, 2);
    assert_eq!(not_moved(&db, 1).await, 0);
}

#[tokio::test]
async fn limits_are_read_again_while_it_is_held_back() {
    let db = counted(100).await;
    let limits = Limits {
        query: Some("SELECT true".to_owned()),
        ..Limits::default()
    };
    let limits = Arc::new(Mutex::new(limits));
    let runner = beside(&db, &counting(), limits.clone());
    wait_until("the throttle holds it", BOUND, async || {
        let made = aegis_backfill::job::control::status(&db.admin, None).await;
        let waiting = made.unwrap().pop().and_then(|job| job.waiting);
        waiting.is_some_and(|why| why.contains("query: it answers true"))
    })
    .await;
    assert_eq!(not_moved(&db, 0).await, 0, "nothing moved");
    *limits.lock().unwrap() = Limits::default();
    runner.await.unwrap().unwrap();
    let after = stands(&db).await;
    assert!(after.progress.waited_ms >= 500, "{after:?}");
    assert_eq!(after.waiting, None);
    assert_eq!(not_moved(&db, 1).await, 0);
}

/// Each row sleeps, so that the machine does not decide the pace.
#[tokio::test]
async fn at_half_of_a_job_what_is_left_is_foretold_and_a_pause_is_no_work() {
    let rows = 2000;
    let db = counted(rows).await;
    db.admin
        .batch_execute(
            "CREATE FUNCTION app.slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(0.001); RETURN NEW; END $$;
             CREATE TRIGGER slow BEFORE UPDATE ON app.t FOR EACH ROW EXECUTE FUNCTION app.slow()",
        )
        .await
        .unwrap();
    let mut spec = counting();
    spec.batch = super::sized(50, 50);
    let runner = beside(&db, &spec, Arc::default());
    wait_until("half of it is done", BOUND, async || {
        let seen = "SELECT coalesce(max(rows_seen), 0) FROM aegis_migrate.backfill";
        super::number(&db, seen).await >= i64::from(rows / 2)
    })
    .await;
    assert!(told(&db, Command::Pause).await);
    let half = stands(&db).await.progress;
    wait_until("the pause was counted", BOUND, async || {
        stands(&db).await.progress.waited_ms >= 500
    })
    .await;
    let paused = stands(&db).await.progress;
    assert_eq!(paused.left_s_estimated, half.left_s_estimated, "a pause");
    assert_eq!(half.rows_estimated, Some(i64::from(rows)));
    let percent = half.percent_estimated.unwrap();
    assert!((50.0..90.0).contains(&percent), "{half:?}");
    assert!(told(&db, Command::Resume).await);
    runner.await.unwrap().unwrap();
    let end = stands(&db).await.progress;
    let took = end.worked_ms - half.worked_ms;
    let foretold = half.left_s_estimated.unwrap() * 1000;
    // Rounded up to a second; other tests on the same machine make one half slower than the other.
    assert!(
        foretold + 1000 >= took / 3 && foretold <= took * 3 + 1000,
        "foretold {foretold} ms of work, took {took} ms: {half:?}"
    );
    assert!(took >= 500, "each row has slept: {end:?}");
}

#[tokio::test]
async fn a_batch_that_is_in_flight_when_somebody_else_takes_the_job_or_pauses_it_is_not_committed()
{
    for (what, sql) in [
        (
            "epoch",
            "UPDATE aegis_migrate.backfill SET epoch = epoch + 1",
        ),
        (
            "pause",
            "UPDATE aegis_migrate.backfill SET state = 'paused'",
        ),
    ] {
        let db = counted(100).await;
        // The batch of row 55 waits, without a lock of the server, which would have a time-out.
        db.admin
            .batch_execute(
                "CREATE FUNCTION app.held() RETURNS trigger LANGUAGE plpgsql AS $$
                 BEGIN WHILE NOT pg_try_advisory_xact_lock_shared(79) LOOP PERFORM pg_sleep(0.005); END LOOP; RETURN NEW; END $$;
                 CREATE TRIGGER held BEFORE UPDATE ON app.t FOR EACH ROW WHEN (OLD.id = 55) EXECUTE FUNCTION app.held();
                 SELECT pg_advisory_lock(79)",
            )
            .await
            .unwrap();
        let runner = beside(&db, &counting(), Arc::default());
        wait_until("the batch is in flight", BOUND, async || {
            let seen = "SELECT coalesce(max(rows_seen), 0) FROM aegis_migrate.backfill";
            let held = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND datname = current_database()";
            super::number(&db, seen).await == 50 && super::number(&db, held).await == 1
        })
        .await;
        db.admin.batch_execute(sql).await.unwrap();
        db.admin
            .batch_execute("SELECT pg_advisory_unlock(79)")
            .await
            .unwrap();
        if what == "epoch" {
            let error = runner.await.unwrap().unwrap_err();
            assert!(matches!(error, JobError::Fenced { .. }), "{error}");
            assert_eq!(not_moved(&db, 1).await, 50);
            continue;
        }
        wait_until("the runner says that it is paused", BOUND, async || {
            stands(&db).await.waiting.is_some()
        })
        .await;
        assert_eq!(not_moved(&db, 1).await, 50);
        assert!(told(&db, Command::Resume).await);
        assert_eq!(runner.await.unwrap().unwrap().rows_changed, 100);
        assert_eq!(not_moved(&db, 1).await, 0);
    }
}
