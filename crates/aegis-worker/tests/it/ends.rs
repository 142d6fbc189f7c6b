//! How executions end that do not end well: errors, panics, cancels, deadlines, postponements.

use std::sync::Arc;
use std::time::Duration;

use aegis_store::overrides::Cancelled;
use aegis_store::{NewTask, RetryPolicy};
use aegis_testkit::wait_until;
use aegis_worker::{CancelReason, Exit, TaskContext, TaskError, handler_fn};
use serde_json::json;
use tokio::sync::Notify;

use crate::support::{BOUND, Bench, Running, quick_retries, quick_task, result, started};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_panic_is_caught_charged_and_retried() {
    let bench = Bench::new().await;
    let handler = handler_fn("shaky", |ctx: TaskContext, (): ()| async move {
        assert!(ctx.failures() > 0, "the first attempt panics");
        Ok("fine")
    });
    let worker = Running::start(bench.worker().handler(handler));
    let task = bench.submit_task(quick_task("shaky")).await;
    let ended = bench.ended(task).await;
    assert_eq!(result(&ended), json!("fine"));
    let errors = bench.store.attempt_errors(task).await.unwrap();
    assert_eq!(errors.len(), 1);
    assert_eq!(errors[0].code, "panic");
    assert!(errors[0].message.contains("the first attempt panics"));
    assert_eq!(worker.drain().await, Exit::Drained);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_input_that_cannot_be_decoded_is_given_up_at_once() {
    let bench = Bench::new().await;
    let handler = handler_fn("number", |_: TaskContext, n: u32| async move { Ok(n) });
    let worker = Running::start(bench.worker().handler(handler));
    let task = bench.submit("number", json!("no number")).await;
    let ended = bench.ended(task).await;
    assert_eq!((ended.state, ended.failures), (6, 1));
    assert_eq!(ended.error.unwrap()["code"], "input_invalid");
    worker.drain().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn errors_are_charged_until_the_maximum_and_kept() {
    let bench = Bench::new().await;
    let handler = handler_fn("bad", |ctx: TaskContext, (): ()| async move {
        let n = ctx.failures();
        Err::<(), _>(
            TaskError::retryable("busy", format!("attempt {n} with \0 inside"))
                .with_details(json!({ "n": n })),
        )
    });
    let worker = Running::start(bench.worker().handler(handler));
    let task = bench
        .submit_task(NewTask {
            policy: RetryPolicy {
                max_failures: 3,
                ..quick_retries()
            },
            ..NewTask::new("bad", "null")
        })
        .await;
    let ended = bench.ended(task).await;
    assert_eq!((ended.state, ended.failures), (6, 3));
    let errors = bench.store.attempt_errors(task).await.unwrap();
    assert_eq!(errors.len(), 3);
    assert_eq!(worker.handle.snapshot().counts.failed, 3);
    worker.drain().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn details_that_the_database_cannot_store_do_not_hide_the_error() {
    let bench = Bench::new().await;
    let handler = handler_fn("bad", |_: TaskContext, (): ()| async move {
        Err::<(), _>(TaskError::terminal("odd", "oh").with_details(json!({ "a": "\0" })))
    });
    let worker = Running::start(bench.worker().handler(handler));
    let task = bench.submit("bad", json!(null)).await;
    let ended = bench.ended(task).await;
    assert_eq!(ended.error.unwrap()["code"], "odd");
    worker.drain().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_postponed_task_comes_back_uncharged() {
    let bench = Bench::new().await;
    let handler = handler_fn("later", |ctx: TaskContext, (): ()| async move {
        match ctx.snoozes() {
            0 => Err(TaskError::snooze(Duration::from_millis(100))),
            1 => Err(TaskError::sleep_until(
                jiff::Timestamp::now() + Duration::from_millis(100),
            )),
            n => Ok(n),
        }
    });
    let worker = Running::start(bench.worker().handler(handler));
    let task = bench.submit("later", json!(null)).await;
    let ended = bench.ended(task).await;
    assert_eq!(result(&ended), json!(2));
    assert_eq!(
        (ended.failures, ended.interruptions, ended.snoozes),
        (0, 0, 2)
    );
    assert_eq!(bench.causes(task).await, ["snooze", "snooze"]);
    worker.drain().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_request_reaches_the_handler_and_ends_the_task() {
    let bench = Bench::new().await;
    let handler = handler_fn("long", |ctx: TaskContext, (): ()| async move {
        let reason = ctx.cancelled().wait().await;
        assert_eq!(reason, CancelReason::Requested);
        // Swallowed: new work is refused all the same, and this error stands.
        ctx.step("more", "", || async { Ok(()) }).await.ok();
        Ok(())
    });
    let worker = Running::start(bench.worker().handler(handler));
    let task = bench.submit("long", json!(null)).await;
    started(&worker, 1).await;
    let answer = bench.store.cancel(task, "ann", "not needed").await.unwrap();
    assert_eq!(answer, Cancelled::Requested);
    let ended = bench.ended(task).await;
    assert_eq!(ended.state, 7);
    assert_eq!(bench.causes(task).await, ["cancel_requested", "cancelled"]);
    assert_eq!(worker.drain().await, Exit::Drained);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_attempt_over_start_to_close_is_stopped_and_charged() {
    let bench = Bench::new().await;
    let handler = handler_fn("slow", |ctx: TaskContext, (): ()| async move {
        if ctx.failures() > 0 {
            return Ok("second");
        }
        ctx.unless_cancelled(std::future::pending()).await
    });
    let worker = Running::start(bench.worker().handler(handler));
    let task = bench
        .submit_task(NewTask {
            policy: RetryPolicy {
                start_to_close_ms: Some(300),
                ..quick_retries()
            },
            ..NewTask::new("slow", "null")
        })
        .await;
    let ended = bench.ended(task).await;
    assert_eq!(result(&ended), json!("second"));
    let errors = bench.store.attempt_errors(task).await.unwrap();
    assert_eq!(errors[0].code, "start_to_close_exceeded");
    worker.drain().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_whose_every_slot_ignores_a_cancel_ends() {
    let bench = Bench::new().await;
    let release = Arc::new(Notify::new());
    let held = Arc::clone(&release);
    let handler = handler_fn("deaf", move |_: TaskContext, (): ()| {
        let held = Arc::clone(&held);
        async move {
            held.notified().await;
            Ok(())
        }
    });
    let worker = Running::start(
        bench
            .worker()
            .handler(handler)
            .slots(1)
            .kill_after(Duration::from_millis(200)),
    );
    let task = bench
        .submit_task(NewTask {
            policy: RetryPolicy {
                kill_after_ms: 200,
                ..quick_retries()
            },
            ..NewTask::new("deaf", "null")
        })
        .await;
    started(&worker, 1).await;
    bench.store.cancel(task, "ann", "stop").await.unwrap();
    // The database ends it after kill_after, and the worker whose only slot does not come free ends, too.
    let handle = worker.handle.clone();
    assert_eq!(worker.exit().await, Exit::Stuck);
    assert_eq!(handle.snapshot().executing, 1);
    wait_until("the task's end", BOUND, async || {
        // Nobody is left to do the housekeeping: any process may.
        bench.store.tick(uuid::Uuid::new_v4()).await.unwrap();
        bench.store.task(task).await.unwrap().unwrap().state == 7
    })
    .await;
    release.notify_one();
}
