//! Drains.

use std::sync::Arc;
use std::time::Duration;

use aegis_testkit::wait_until;
use aegis_worker::{Budgets, CancelReason, Exit, TaskContext, TaskError, WorkerPhase, handler_fn};
use serde_json::json;
use tokio::sync::Notify;

use crate::support::{BOUND, Bench, Running, TTL, result, started};

fn short_drain() -> Budgets {
    Budgets {
        stop_acquiring: Duration::from_secs(5),
        drain: Duration::from_millis(300),
        cancel_and_save: Duration::from_millis(700),
        exit_margin: Duration::from_secs(4),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn te_01_te_02_te_03_rl_16_what_runs_goes_on_with_its_lease_until_it_has_ended() {
    let bench = Bench::new().await;
    let handler = handler_fn("slow", |ctx: TaskContext, (): ()| async move {
        // Longer than a lease: only renewal keeps it.
        tokio::time::sleep(TTL * 2).await;
        ctx.save_checkpoint(&json!(1)).await?;
        Ok(ctx.epoch())
    });
    let worker = Running::start(bench.worker().handler(handler));
    let task = bench.submit("slow", json!(null)).await;
    started(&worker, 1).await;
    worker.handle.drain();
    let later = bench.submit("slow", json!(null)).await;
    let id = worker.handle.id().unwrap();
    assert_eq!(worker.exit().await, Exit::Drained);
    assert_eq!(result(&bench.ended(task).await), json!(1));
    assert_eq!(bench.causes(task).await, Vec::<String>::new());
    assert_eq!(bench.store.task(later).await.unwrap().unwrap().state, 1);
    let rows = bench.store.workers(true, 10).await.unwrap();
    let row = rows.iter().find(|row| row.id == id).unwrap();
    assert_eq!(row.state, 2, "stopped, holding nothing");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rl_18_the_unstarted_are_handed_back_at_once_and_nobody_is_charged() {
    let bench = Bench::new().await;
    let release = Arc::new(Notify::new());
    let held = Arc::clone(&release);
    let handler = handler_fn("mixed", move |_: TaskContext, wait: bool| {
        let held = Arc::clone(&held);
        async move {
            if wait {
                held.notified().await;
            }
            Ok(())
        }
    });
    let worker = Running::start(bench.worker().handler(handler).slots(1));
    // Measured as short, so that tasks are claimed ahead.
    for _ in 0..50 {
        let short = bench.submit("mixed", json!(false)).await;
        bench.ended(short).await;
    }
    bench.submit("mixed", json!(true)).await;
    // Claims of one statement start in the order of their ids, which is not that of their submits.
    started(&worker, 1).await;
    let mut queued = Vec::new();
    for _ in 0..20 {
        queued.push(bench.submit("mixed", json!(false)).await);
    }
    wait_until("a local queue", BOUND, async || {
        let snapshot = worker.handle.snapshot();
        snapshot.executing == 1 && snapshot.queued > 0
    })
    .await;
    worker.handle.drain();
    wait_until("the hand back", BOUND, async || {
        let snapshot = worker.handle.snapshot();
        snapshot.queued == 0 && snapshot.counts.handed_back > 0 && snapshot.in_flight == 1
    })
    .await;
    let mut handed_back = 0;
    for task in queued {
        let detail = bench.store.task(task).await.unwrap().unwrap();
        assert_eq!((detail.state, detail.failures, detail.crashes), (1, 0, 0));
        handed_back += u64::try_from(detail.interruptions).unwrap();
    }
    assert_eq!(worker.handle.snapshot().counts.handed_back, handed_back);
    release.notify_one();
    assert_eq!(worker.exit().await, Exit::Drained);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn te_04_te_05_at_the_deadline_what_stops_is_handed_back_with_its_checkpoint() {
    let bench = Bench::new().await;
    let handler = handler_fn("long", |ctx: TaskContext, (): ()| async move {
        let reason = ctx.cancelled().wait().await;
        assert_eq!(reason, CancelReason::Drain);
        ctx.save_checkpoint(&json!("saved in time")).await?;
        Err::<(), _>(ctx.stop(reason))
    });
    let worker = Running::start(bench.worker().handler(handler).budgets(short_drain()));
    let task = bench.submit("long", json!(null)).await;
    started(&worker, 1).await;
    assert_eq!(worker.drain().await, Exit::HandedBack { tasks: 1 });
    let detail = bench.store.task(task).await.unwrap().unwrap();
    assert_eq!(
        (
            detail.state,
            detail.failures,
            detail.interruptions,
            detail.crashes
        ),
        (1, 0, 1, 0)
    );
    assert_eq!(detail.checkpoint_seq, Some(1));
    assert_eq!(bench.causes(task).await, ["drain"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn te_11_rl_17_what_finishes_in_the_cancel_phase_is_completed_and_what_fails_then_is_not_charged()
 {
    let bench = Bench::new().await;
    let handler = handler_fn("late", |ctx: TaskContext, ok: bool| async move {
        ctx.cancelled().wait().await;
        if ok {
            Ok("just in time")
        } else {
            Err(TaskError::retryable("torn", "the cancellation tore it"))
        }
    });
    let worker = Running::start(bench.worker().handler(handler).budgets(short_drain()));
    let good = bench.submit("late", json!(true)).await;
    let torn = bench.submit("late", json!(false)).await;
    started(&worker, 2).await;
    assert_eq!(worker.drain().await, Exit::HandedBack { tasks: 1 });
    assert_eq!(result(&bench.ended(good).await), json!("just in time"));
    let detail = bench.store.task(torn).await.unwrap().unwrap();
    assert_eq!(
        (detail.state, detail.failures, detail.interruptions),
        (1, 0, 1)
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn te_17_what_does_not_stop_is_left_to_expiry_and_never_set_back() {
    let bench = Bench::new().await;
    let handler = handler_fn("deaf", |_: TaskContext, (): ()| async move {
        std::future::pending::<Result<(), TaskError>>().await
    });
    let worker = Running::start(bench.worker().handler(handler).budgets(short_drain()));
    let task = bench.submit("deaf", json!(null)).await;
    started(&worker, 1).await;
    assert_eq!(worker.drain().await, Exit::LeftToExpiry { tasks: 1 });
    let detail = bench.store.task(task).await.unwrap().unwrap();
    assert_eq!((detail.state, detail.epoch), (2, 1), "still its own");
    wait_until("the reaper", BOUND, async || {
        bench.store.tick(uuid::Uuid::new_v4()).await.unwrap();
        bench.store.task(task).await.unwrap().unwrap().state == 1
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_administrator_drains_through_the_database() {
    let bench = Bench::new().await;
    let handler = handler_fn("any", |_: TaskContext, (): ()| async move { Ok(()) });
    let worker = Running::start(bench.worker().handler(handler));
    wait_until("the registration", BOUND, async || worker.handle.is_ready()).await;
    let handle = worker.handle.clone();
    bench.store.drain(handle.id().unwrap()).await.unwrap();
    assert_eq!(worker.exit().await, Exit::Drained);
    assert_eq!(handle.snapshot().phase, WorkerPhase::Ended);
    assert!(!handle.is_ready());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_drain_during_claims_strands_nothing() {
    let bench = Bench::new().await;
    for round in 0..10_u64 {
        let handler = handler_fn("burst", |_: TaskContext, n: u64| async move { Ok(n) });
        let worker = Running::start(bench.worker().handler(handler).slots(4));
        let tasks = (0..200)
            .map(|n| aegis_store::NewTask::new("burst", n.to_string()))
            .collect();
        bench.store.submit_batch(tasks).await.unwrap();
        wait_until("some claims", BOUND, async || {
            worker.handle.snapshot().counts.claimed > round * 7
        })
        .await;
        assert_eq!(worker.drain().await, Exit::Drained);
        let sql = "select count(*) from aegis.task where state = 2";
        let running: i64 = bench.db.admin.query_one(sql, &[]).await.unwrap().get(0);
        assert_eq!(running, 0, "round {round}");
    }
}
