//! Lines that die silently, neighbours that are in the way, handlers that ask for too much.

use std::sync::Arc;
use std::time::Duration;

use aegis_store::{Config, NewTask, RetryPolicy, Store};
use aegis_testkit::wait_until;
use aegis_worker::{
    CallError, Class, Exit, HandlerOptions, TaskContext, TaskError, handler_fn, operation_id,
};
use serde_json::{Value, json};
use tokio::sync::Notify;
use uuid::Uuid;

use crate::support::proxy::{Line, Proxy};
use crate::support::{
    BOUND, Bench, Running, quick_retries, quick_task, result, started, worker_on,
};

/// A store that gives a silent connection up after a second.
async fn impatient(proxy: &Proxy) -> Store {
    let config = Config::from_url(&proxy.url()).unwrap();
    Store::connect(config.with_deadline(Duration::from_secs(1)))
        .await
        .unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_result_gets_through_although_every_connection_became_half_open() {
    let bench = Bench::new().await;
    let proxy = Proxy::before(&bench.db.url_as("aegis_engine")).await;
    let release = Arc::new(Notify::new());
    let held = Arc::clone(&release);
    let handler = handler_fn("wait", move |ctx: TaskContext, (): ()| {
        let held = Arc::clone(&held);
        async move {
            held.notified().await;
            ctx.save_checkpoint(&json!(1)).await?;
            Ok(ctx.epoch())
        }
    });
    let builder = worker_on(impatient(&proxy).await).handler(handler);
    // Long enough that the lease is no question.
    let worker = Running::start(builder.lease_ttl(Duration::from_secs(20)));
    let task = bench.submit("wait", json!(null)).await;
    started(&worker, 1).await;
    proxy.freeze();
    release.notify_one();
    assert_eq!(result(&bench.ended(task).await), json!(1));
    assert_eq!(worker.drain().await, Exit::Drained);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_handlers_own_sql_on_a_silent_line_does_not_hold_the_task_for_ever() {
    let bench = Bench::new().await;
    let proxy = Proxy::before(&bench.db.url_as("aegis_engine")).await;
    let release = Arc::new(Notify::new());
    let held = Arc::clone(&release);
    let handler = handler_fn("wait", move |ctx: TaskContext, (): ()| {
        let held = Arc::clone(&held);
        async move {
            // A connection that is lent to the handler now is the one that falls silent.
            ctx.commit(&json!(0), |tx| {
                Box::pin(async move { Ok(tx.execute("select 1", &[]).await?) })
            })
            .await?;
            if ctx.epoch() == 1 {
                held.notified().await;
            }
            ctx.commit(&json!(1), |tx| {
                Box::pin(async move { Ok(tx.execute("select 1", &[]).await?) })
            })
            .await?;
            Ok(ctx.epoch())
        }
    });
    let builder = worker_on(impatient(&proxy).await).handler(handler);
    let worker = Running::start(builder.lease_ttl(Duration::from_secs(20)));
    let task = bench.submit("wait", json!(null)).await;
    started(&worker, 1).await;
    wait_until("the first commit", BOUND, async || {
        bench
            .db
            .admin
            .query_one(
                "select count(*) from aegis.checkpoint where task = $1",
                &[&task],
            )
            .await
            .unwrap()
            .get::<_, i64>(0)
            > 0
    })
    .await;
    proxy.freeze();
    release.notify_one();
    bench.ended(task).await;
    assert_eq!(worker.drain().await, Exit::Drained);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_registers_on_a_silent_line_still_drains() {
    let bench = Bench::new().await;
    let proxy = Proxy::before(&bench.db.url_as("aegis_engine")).await;
    let store = Store::connect(Config::from_url(&proxy.url()).unwrap())
        .await
        .unwrap();
    proxy.line(Line::Silent);
    let handler = handler_fn("any", |_: TaskContext, (): ()| async move { Ok(()) });
    let worker = Running::start(worker_on(store).handler(handler));
    // Nothing shows that it hangs, which is the point; it has begun to register by then.
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(worker.drain().await, Exit::Drained);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kind_with_few_slots_needs_no_ticks_to_work_its_backlog_off() {
    let bench = Bench::new().await;
    let quick = handler_fn("quick", |_: TaskContext, (): ()| async move {
        // Long enough that nothing is claimed ahead.
        tokio::time::sleep(Duration::from_millis(60)).await;
        Ok(())
    });
    let idle = handler_fn("idle", |_: TaskContext, (): ()| async move { Ok(()) });
    let tasks = (0..20).map(|_| NewTask::new("quick", "null")).collect();
    let submitted = bench.store.submit_batch(tasks).await.unwrap();
    let options = HandlerOptions {
        slots: Some(2),
        ..HandlerOptions::default()
    };
    let builder = bench.worker().handler_with(quick, options).handler(idle);
    // Ticks are rare.
    let worker = Running::start(builder.slots(10).lease_ttl(Duration::from_secs(30)));
    for one in submitted {
        bench.ended(one.task).await;
    }
    let counts = worker.handle.snapshot().counts;
    // Ten rounds of two.
    assert!(counts.ticks <= 6, "{counts:?}");
    assert_eq!(worker.drain().await, Exit::Drained);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_waits_for_a_slot_here_is_handed_back_for_another_worker() {
    let bench = Bench::new().await;
    let release = Arc::new(Notify::new());
    let mixed = |held: Arc<Notify>| {
        handler_fn("mixed", move |_: TaskContext, wait: bool| {
            let held = Arc::clone(&held);
            async move {
                if wait {
                    held.notified().await;
                }
                Ok(())
            }
        })
    };
    let busy = bench.worker().handler(mixed(Arc::clone(&release)));
    let busy = Running::start(busy.slots(1));
    // Measured as short, so that tasks are claimed ahead.
    for _ in 0..50 {
        let short = bench.submit("mixed", json!(false)).await;
        bench.ended(short).await;
    }
    let blocker = bench.submit("mixed", json!(true)).await;
    started(&busy, 1).await;
    let mut short = Vec::new();
    for _ in 0..3 {
        short.push(bench.submit("mixed", json!(false)).await);
    }
    wait_until("a local queue", BOUND, async || {
        busy.handle.snapshot().queued > 0
    })
    .await;
    let free = Running::start(bench.worker().handler(mixed(Arc::clone(&release))));
    for task in short {
        let ended = bench.ended(task).await;
        assert_eq!((ended.failures, ended.crashes), (0, 0));
    }
    assert!(busy.handle.snapshot().counts.handed_back > 0);
    assert_eq!(busy.handle.snapshot().executing, 1);
    release.notify_one();
    bench.ended(blocker).await;
    assert_eq!(free.drain().await, Exit::Drained);
    assert_eq!(busy.drain().await, Exit::Drained);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_exhausted_pool_of_handlers_is_waited_for_and_not_charged() {
    let bench = Bench::new().await;
    let handler = handler_fn("commit", |ctx: TaskContext, (): ()| async move {
        ctx.commit(&json!(1), |tx| {
            Box::pin(async move {
                tx.execute("select 1", &[]).await?;
                Ok(())
            })
        })
        .await?;
        Ok(ctx.failures())
    });
    let mut taken = Vec::new();
    for _ in 0..8 {
        taken.push(bench.store.handler_pool().get().await.unwrap());
    }
    let worker = Running::start(bench.worker().handler(handler));
    let task = bench.submit_task(quick_task("commit")).await;
    started(&worker, 1).await;
    // Longer than the pool lets anybody wait.
    tokio::time::sleep(Duration::from_secs(6)).await;
    drop(taken);
    assert_eq!(result(&bench.ended(task).await), json!(0));
    worker.drain().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_settling_handler_that_swallows_doubts_ends_with_a_person() {
    let bench = Bench::new().await;
    let handler = handler_fn("charge", |ctx: TaskContext, (): ()| async move {
        ctx.operation("charge", 1)
            .class(Class::Idempotent)
            .repeats(0)
            .execute(|_| async { Err::<Value, _>(CallError::doubtful("cut")) })
            .await
            .ok();
        Ok("done")
    });
    let worker = Running::start(bench.worker().handler(handler));
    let task = bench
        .submit_task(NewTask {
            policy: RetryPolicy {
                max_failures: 3,
                ..quick_retries()
            },
            ..NewTask::new("charge", "null")
        })
        .await;
    let id = operation_id(task, "charge", "1", 1);
    wait_until("the doubt", BOUND, async || {
        let operation = bench.store.operation(task, &id).await.unwrap();
        operation.is_some_and(|operation| operation.state == 4)
    })
    .await;
    let operation = bench.store.operation(task, &id).await.unwrap().unwrap();
    assert!(operation.dispatches <= 4, "{operation:?}");
    worker.handle.cancel_now();
    worker.exit().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn endless_durations_are_stored_as_long_ones() {
    let bench = Bench::new().await;
    let handler = handler_fn("endless", |ctx: TaskContext, retry: bool| async move {
        let probed = ctx
            .operation("charge", 1)
            .timeout(Duration::MAX)
            .quiet(Duration::MAX)
            .key_retention(Duration::MAX)
            .class(Class::Idempotent);
        let _: Value = probed.execute(|_| async { Ok(json!(1)) }).await?;
        Err::<(), _>(if retry {
            TaskError::Retryable {
                code: "later".to_owned(),
                message: "much later".to_owned(),
                details: None,
                retry_after: Some(Duration::MAX),
            }
        } else {
            TaskError::snooze(Duration::MAX)
        })
    });
    let worker = Running::start(bench.worker().handler(handler));
    for retry in [false, true] {
        let task = bench.submit("endless", json!(retry)).await;
        wait_until("the postponement", BOUND, async || {
            bench.store.task(task).await.unwrap().unwrap().state == 0
        })
        .await;
    }
    assert_eq!(worker.drain().await, Exit::Drained);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_draining_worker_still_keeps_house() {
    let bench = Bench::new().await;
    let release = Arc::new(Notify::new());
    let held = Arc::clone(&release);
    let handler = handler_fn("wait", move |_: TaskContext, (): ()| {
        let held = Arc::clone(&held);
        async move {
            held.notified().await;
            Ok(())
        }
    });
    let worker = Running::start(bench.worker().handler(handler));
    bench.submit("wait", json!(null)).await;
    started(&worker, 1).await;
    worker.handle.drain();
    wait_until("the drain", BOUND, async || {
        worker.handle.snapshot().phase == aegis_worker::WorkerPhase::Draining
    })
    .await;
    let before = worker.handle.snapshot().counts.ticks;
    wait_until("more ticks", BOUND, async || {
        worker.handle.snapshot().counts.ticks > before + 2
    })
    .await;
    release.notify_one();
    assert_eq!(worker.exit().await, Exit::Drained);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_that_nobody_knows_is_returned_although_it_was_locked_for_long() {
    let bench = Bench::new().await;
    let handler = handler_fn(
        "late",
        |ctx: TaskContext, (): ()| async move { Ok(ctx.epoch()) },
    );
    let worker = Running::start(bench.worker().handler(handler));
    wait_until("a beat", BOUND, async || {
        worker.handle.snapshot().counts.renewals > 0
    })
    .await;
    let task = bench
        .submit_task(NewTask {
            run_at: Some(jiff::Timestamp::now() + jiff::SignedDuration::from_hours(1)),
            ..NewTask::new("late", "null")
        })
        .await;
    // A claim whose answer went nowhere, and somebody who holds its row.
    let claim = format!(
        "begin; update aegis.task set state = 2, epoch = 1, run_at = null, owner = '{}', claim_id = '{}',
            claimed_at = clock_timestamp(), floor = 0, timeline = 1 where id = '{task}'; commit;
        begin; select from aegis.task where id = '{task}' for update",
        worker.handle.id().unwrap(),
        Uuid::new_v4(),
    );
    bench.db.admin.batch_execute(&claim).await.unwrap();
    let beats = worker.handle.snapshot().counts.renewals;
    wait_until("a long idle time", BOUND, async || {
        worker.handle.snapshot().counts.renewals > beats + 12
    })
    .await;
    bench.db.admin.batch_execute("rollback").await.unwrap();
    wait_until("its return", BOUND, async || {
        worker.handle.snapshot().counts.absent_returned == 1
    })
    .await;
    assert_eq!(result(&bench.ended(task).await).as_i64(), Some(3));
    worker.drain().await;
}
