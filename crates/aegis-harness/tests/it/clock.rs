//! Time passes at once, for everything that the engine has stored.

use std::time::Duration;

use aegis_harness::{
    Cut, Effects, Fault, Harness, HarnessError, NewTask, Outcome, Point, RetryPolicy,
};
use aegis_worker::{Class, TaskContext, TaskError, handler_fn};

use crate::support::{Charge, harness};

const DAY: Duration = Duration::from_hours(24);

#[tokio::test]
async fn snoozes_and_back_off_pass_at_once() {
    let mut harness = harness!(|_world| handler_fn(
        "slow",
        |ctx: TaskContext, (): ()| async move {
            match (ctx.snoozes(), ctx.failures()) {
                (0, _) => Err(TaskError::snooze(DAY * 30)),
                (_, 0 | 1) => Err(TaskError::retryable("busy", "later").with_retry_after(DAY)),
                _ => Ok(ctx.failures()),
            }
        }
    ));
    let run = harness.run(NewTask::new("slow", "null")).await.unwrap();
    assert_eq!(run.outcome, Outcome::Succeeded);
    assert_eq!(run.result_as::<i32>().unwrap(), 2);
    assert_eq!(run.executions, 4);
    // Real time, by the same clock, is the rest.
    let about = DAY * 32;
    assert!(
        run.passed.abs_diff(about) < Duration::from_mins(1),
        "{:?}",
        run.passed
    );
}

#[tokio::test]
async fn a_settled_task_waits_until_time_passes() {
    let mut harness = harness!(|_world| handler_fn(
        "later",
        |ctx: TaskContext, (): ()| async move {
            if ctx.snoozes() == 0 {
                return Err(TaskError::snooze(DAY));
            }
            Ok(())
        }
    ));
    let task = harness.submit(NewTask::new("later", "null")).await.unwrap();
    let state = async |harness: &mut Harness| harness.settle(task).await.unwrap().state;
    assert_eq!(state(&mut harness).await, 0, "scheduled");
    harness.advance(Duration::from_hours(23)).await.unwrap();
    assert_eq!(state(&mut harness).await, 0);
    harness.advance(Duration::from_hours(1)).await.unwrap();
    assert_eq!(state(&mut harness).await, 5, "succeeded");
}

#[tokio::test]
async fn a_key_past_its_retention_is_left_to_a_person() {
    for (retention, outcome) in [
        (Duration::from_hours(1), Outcome::Succeeded),
        (
            // Over before the lease of the dead worker is.
            Duration::from_mins(20),
            Outcome::WaitsForPerson {
                operations: vec!["charge/7/v1".to_owned()],
                expected: false,
            },
        ),
    ] {
        let mut harness = harness!(
            |bank| handler_fn("charge", move |ctx: TaskContext, (): ()| {
                let bank = bank.clone();
                async move {
                    ctx.operation("charge", 7)
                        .class(Class::Idempotent)
                        .key_retention(retention)
                        .execute(|call| {
                            let bank = bank.clone();
                            async move { bank.once(&call, || ()) }
                        })
                        .await?;
                    Ok(())
                }
            })
        );
        harness.set_lease(Duration::from_mins(30));
        let dies = Fault::crash(Point::operation("charge", 7, Cut::Ran));
        let task = NewTask::new("charge", "null");
        let run = harness.run_with(task, &[dies]).await.unwrap();
        assert_eq!(run.outcome, outcome, "after {retention:?}");
        assert_eq!(run.effects.get("charge/7/v1"), Some(&1));
    }
}

#[tokio::test]
async fn deadlines_and_the_end_of_an_attempt_pass_too() {
    let mut harness = harness!(|_world| handler_fn(
        "patient",
        |ctx: TaskContext, (): ()| async move {
            if ctx.failures() == 0 {
                let reason = ctx.cancelled().wait().await;
                return Err(ctx.stop(reason));
            }
            Ok(ctx.failures())
        }
    ));
    // Long enough to be claimed within, by the real clock.
    let policy = RetryPolicy {
        start_to_close_ms: Some(600_000),
        kill_after_ms: 1000,
        ..RetryPolicy::default()
    };
    let task = NewTask {
        policy,
        ..NewTask::new("patient", "null")
    };
    let id = harness.submit(task).await.unwrap();
    harness.set_patience(Duration::from_millis(300));
    let error = harness.settle(id).await.unwrap_err();
    assert!(matches!(error, HarnessError::Stuck { .. }), "{error}");
    harness.set_patience(Duration::from_mins(1));
    // Asked to stop by the first, ended for it by the second.
    harness.advance(Duration::from_mins(10)).await.unwrap();
    harness.advance(Duration::from_secs(2)).await.unwrap();
    let scheduled = harness.settle(id).await.unwrap();
    assert_eq!((scheduled.state, scheduled.failures), (0, 1));
    harness.advance(DAY).await.unwrap();
    assert_eq!(harness.settle(id).await.unwrap().state, 5);
}

#[tokio::test]
async fn a_fault_that_does_not_strike_is_said() {
    let mut harness = harness!(|bank| Charge {
        class: Class::Idempotent,
        bank: bank.clone()
    });
    let nowhere = Fault::crash(Point::step("text", 8, Cut::Stored));
    let error = harness
        .run_with(NewTask::new("charge", "7"), &[nowhere])
        .await
        .unwrap_err();
    let text = error.to_string();
    assert!(
        text.starts_with(
            "`step text/8 stored` (time 1) was not reached; reached were: handler before, "
        ),
        "{text}"
    );
}

#[tokio::test]
async fn what_waits_for_something_that_does_not_come_is_stuck_and_the_next_run_is_not() {
    let mut harness = Harness::start(|worker, effects: &Effects| {
        let effects = effects.clone();
        worker.slots(1).handler(handler_fn(
            "wait",
            move |_ctx: TaskContext, forever: bool| {
                let effects = effects.clone();
                async move {
                    if forever {
                        std::future::pending::<()>().await;
                    }
                    effects.happened("done");
                    Ok(())
                }
            },
        ))
    })
    .await
    .unwrap();
    harness.set_patience(Duration::from_millis(300));
    let error = harness.run(NewTask::new("wait", "true")).await.unwrap_err();
    assert!(matches!(error, HarnessError::Stuck { .. }), "{error}");
    harness.set_patience(Duration::from_mins(1));
    let run = harness.run(NewTask::new("wait", "false")).await.unwrap();
    assert_eq!(run.outcome, Outcome::Succeeded);
    assert_eq!(run.effects.get("done"), Some(&1));
}

#[tokio::test]
async fn a_handler_that_never_ends_is_endless() {
    let mut harness = harness!(|_world| handler_fn(
        "never",
        |_ctx: TaskContext, (): ()| async move { Err::<(), _>(TaskError::snooze(DAY)) }
    ));
    harness.set_executions_max(3);
    let error = harness
        .run(NewTask::new("never", "null"))
        .await
        .unwrap_err();
    assert!(
        matches!(error, HarnessError::Endless { executions: 4, .. }),
        "{error}"
    );
}

#[tokio::test]
async fn a_task_that_is_refused_is_said_and_the_next_run_runs() {
    let mut harness =
        harness!(|_world| handler_fn("any", |_ctx: TaskContext, (): ()| async move { Ok(()) }));
    let task = NewTask {
        key: Some("k".to_owned()),
        ..NewTask::new("any", "null")
    };
    let error = harness.run(task).await.unwrap_err();
    assert!(
        matches!(&error, HarnessError::HasKey { key } if key == "k"),
        "{error}"
    );
    let error = harness
        .run(NewTask::new("any", "no JSON"))
        .await
        .unwrap_err();
    assert!(matches!(&error, HarnessError::Store(_)), "{error}");
    let run = harness.run(NewTask::new("any", "null")).await;
    assert_eq!(run.unwrap().outcome, Outcome::Succeeded);
}

#[tokio::test]
async fn every_stored_time_moves_by_the_same_except_those_that_are_told() {
    let mut harness = harness!(|bank| Charge {
        class: Class::Queryable,
        bank: bank.clone()
    });
    // A quiet period, a lost worker and one that lives.
    let id = harness.submit(NewTask::new("charge", "7")).await.unwrap();
    harness.settle(id).await.unwrap();
    let dies = Fault::crash(Point::operation("charge", 7, Cut::Dispatched));
    harness
        .run_with(NewTask::new("charge", "7"), &[dies])
        .await
        .unwrap();
    let waits = NewTask {
        run_at: Some(aegis_worker::Timestamp::now() + jiff::SignedDuration::from_hours(100)),
        ..NewTask::new("charge", "7")
    };
    harness.submit(waits).await.unwrap();
    let (client, connection) =
        tokio_postgres::connect(&harness.database_url(), tokio_postgres::NoTls)
            .await
            .unwrap();
    tokio::spawn(connection);
    // A worker that lives may renew meanwhile; a few seconds are the test's own.
    let sql = "select what, coalesce(extract(epoch from max(at)) / 3600, 0)::float8 from (
            select 'task.run_at' as what, run_at as at from aegis.task
            union all select 'task.ord', to_timestamp(ord / 1000000.0) from aegis.task
            union all select 'operation.dispatched_at', dispatched_at from aegis.operation
            union all select 'task_history.finished_at', finished_at from aegis.task_history
            union all select 'task_event.at', at from aegis.task_event
            union all select 'database.up_since', up_since from aegis.database
            union all select 'worker.registered_at', registered_at from aegis.worker
            union all select 'lost lease', lease_until from aegis.worker_lease l join aegis.worker w on w.id = l.worker where w.state = 3
            union all select 'living lease', lease_until from aegis.worker_lease l join aegis.worker w on w.id = l.worker where w.state = 0
            union all select 'started', postmaster_started from aegis.database
            union all select 'steps', applied_at from aegis.schema_step) x group by what order by what";
    let look = async || {
        let rows = client.query(sql, &[]).await.unwrap();
        let times = rows.iter().map(|row| (row.get(0), row.get(1)));
        times.collect::<Vec<(String, f64)>>()
    };
    let before = look().await;
    harness.advance(DAY).await.unwrap();
    let moved: Vec<(String, f64)> = before
        .iter()
        .zip(look().await)
        .map(|((what, before), (_, after))| (what.clone(), (before - after).round()))
        .collect();
    let wanted = [
        ("database.up_since", 24.0),
        ("living lease", 0.0),
        ("lost lease", 24.0),
        ("operation.dispatched_at", 24.0),
        ("started", 0.0),
        ("steps", 0.0),
        ("task.ord", 24.0),
        ("task.run_at", 24.0),
        ("task_event.at", 24.0),
        ("task_history.finished_at", 24.0),
        ("worker.registered_at", 24.0),
    ]
    .map(|(what, hours)| (what.to_owned(), hours));
    assert_eq!(moved, wanted);
    let late: f64 = client
        .query_one(
            "select max(extract(epoch from clock_timestamp() - next_at))::float8 from aegis.housekeeping where isfinite(next_at)",
            &[],
        )
        .await
        .unwrap()
        .get(0);
    assert!(late < 3600.0, "a job is due, not overdue: {late} s");
}
