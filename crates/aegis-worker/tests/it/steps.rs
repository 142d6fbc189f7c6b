//! Keyed steps over attempts and workers.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use aegis_store::{NewTask, RetryPolicy};
use aegis_worker::{Exit, ProtocolRange, Protocols, TaskContext, TaskError, handler_fn};
use serde_json::{Value, json};

use crate::support::{Bench, Running, quick_retries, result, started};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn steps_that_are_done_answer_from_the_store_after_a_takeover() {
    let bench = Bench::new().await;
    let runs = Arc::new(AtomicUsize::new(0));
    let handler = |finish: bool| {
        let runs = Arc::clone(&runs);
        handler_fn("walk", move |ctx: TaskContext, (): ()| {
            let runs = Arc::clone(&runs);
            async move {
                let mut seen = Vec::new();
                for item in 0..3 {
                    let runs = Arc::clone(&runs);
                    let value: usize = ctx
                        .step("item", item, || async move {
                            runs.fetch_add(1, Ordering::SeqCst);
                            Ok(item * 10)
                        })
                        .await?;
                    seen.push(value);
                    if item == 1 && !finish {
                        ctx.unless_cancelled(std::future::pending::<()>()).await?;
                    }
                }
                Ok((seen, ctx.epoch()))
            }
        })
    };
    let first = Running::start(bench.worker().handler(handler(false)));
    let task = bench.submit("walk", json!(null)).await;
    started(&first, 1).await;
    bench.wait_steps(task, 2).await;
    first.handle.cancel_now();
    assert_eq!(first.exit().await, Exit::HandedBack { tasks: 1 });
    let second = Running::start(bench.worker().handler(handler(true)));
    let ended = bench.ended(task).await;
    // The claim is one epoch, the hand back another.
    assert_eq!(result(&ended), json!([[0, 10, 20], 3]));
    assert_eq!(runs.load(Ordering::SeqCst), 3);
    assert_eq!((ended.failures, ended.interruptions), (0, 1));
    assert_eq!(second.drain().await, Exit::Drained);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_use_of_a_name_and_key_in_one_attempt_is_an_error() {
    let bench = Bench::new().await;
    let handler = handler_fn("twice", |ctx: TaskContext, (): ()| async move {
        for _ in 0..2 {
            ctx.step("same", "key", || async { Ok(1) }).await?;
        }
        Ok(())
    });
    let worker = Running::start(bench.worker().handler(handler));
    let task = bench.submit("twice", json!(null)).await;
    let ended = bench.ended(task).await;
    assert_eq!(ended.state, 6);
    assert_eq!(ended.error.unwrap()["code"], "AEG-0012");
    worker.drain().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn parallel_steps_are_queued_and_all_kept() {
    let bench = Bench::new().await;
    let handler = handler_fn("parallel", |ctx: TaskContext, (): ()| async move {
        let one = |n: usize| {
            let ctx = ctx.clone();
            async move { ctx.step("n", n, || async move { Ok(n) }).await }
        };
        let all = futures_util::future::join_all((0..20).map(one)).await;
        all.into_iter().sum::<Result<usize, TaskError>>()
    });
    let worker = Running::start(bench.worker().handler(handler));
    let task = bench.submit("parallel", json!(null)).await;
    assert_eq!(result(&bench.ended(task).await), json!(190));
    assert_eq!(worker.drain().await, Exit::Drained);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_step_of_an_older_protocol_is_brought_to_the_handlers_own() {
    let bench = Bench::new().await;
    let write = handler_fn("grow", |ctx: TaskContext, (): ()| async move {
        ctx.step("size", "", || async { Ok(json!({ "cm": 5 })) })
            .await?;
        Err::<(), _>(TaskError::snooze(std::time::Duration::ZERO))
    });
    let first = Running::start(bench.worker().handler(write));
    let task = bench.submit("grow", json!(null)).await;
    bench.wait_steps(task, 1).await;
    first.drain().await;
    let protocols = Protocols::new(ProtocolRange::new(1, 2, 2).unwrap()).upcast_step(1, |value| {
        Ok(json!({ "mm": value["cm"].as_i64().ok_or("no cm")? * 10 }))
    });
    let read = handler_fn("grow", |ctx: TaskContext, (): ()| async move {
        ctx.step("size", "", || async { Ok(Value::Null) }).await
    });
    let second = Running::start(bench.worker().handler(read.protocols(protocols)));
    assert_eq!(result(&bench.ended(task).await), json!({ "mm": 50 }));
    second.drain().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_step_stores_nothing_and_the_next_attempt_runs_it() {
    let bench = Bench::new().await;
    let runs = Arc::new(AtomicUsize::new(0));
    let handler = {
        let runs = Arc::clone(&runs);
        handler_fn("flaky", move |ctx: TaskContext, (): ()| {
            let runs = Arc::clone(&runs);
            async move {
                ctx.step("once", "", || async {
                    match runs.fetch_add(1, Ordering::SeqCst) {
                        0 => Err(TaskError::retryable("busy", "not yet")),
                        n => Ok(n),
                    }
                })
                .await
            }
        })
    };
    let worker = Running::start(bench.worker().handler(handler));
    let task = bench
        .submit_task(NewTask {
            policy: RetryPolicy {
                max_failures: 2,
                ..quick_retries()
            },
            ..NewTask::new("flaky", "null")
        })
        .await;
    let ended = bench.ended(task).await;
    assert_eq!(result(&ended), json!(1));
    assert_eq!(ended.failures, 1);
    worker.drain().await;
}
