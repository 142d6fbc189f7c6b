//! The lease: kept whatever the runtime does, lost without a second opinion, and what follows.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use aegis_store::{AcquireRequest, Cursor, KindCapacity};
use aegis_testkit::wait_until;
use aegis_worker::{
    CancelReason, EngineStop, Exit, OperationError, TaskContext, TaskError, handler_fn,
};
use serde_json::{Value, json};
use tokio::sync::Notify;
use uuid::Uuid;

use crate::support::proxy::{Line, Proxy};
use crate::support::{
    BOUND, Bench, Running, TTL, result, started, store_at, store_at_unnamed, worker_on,
};

/// The task that keeps the only slot busy.
const BLOCKER: usize = 1000;

/// What the reaper does to a worker whose lease has run out.
async fn end_lease(bench: &Bench, worker: Uuid) {
    let sql = "update aegis.worker set state = 3, ended_at = clock_timestamp() where id = $1 and state <= 1";
    assert_eq!(bench.db.admin.execute(sql, &[&worker]).await.unwrap(), 1);
}

#[test]
fn te_35_rl_19_rl_27_rl_28_rl_29_every_runtime_thread_blocked_for_three_leases_loses_nothing() {
    let watching = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let bench = watching.block_on(Bench::new());
    let url = bench.db.url_as("aegis_engine");
    let (give, take) = std::sync::mpsc::channel();
    let working = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async move {
            let handler = handler_fn("block", |ctx: TaskContext, (): ()| async move {
                std::thread::sleep(TTL * 3);
                Ok(ctx.epoch())
            });
            let worker = worker_on(store_at(&url).await).handler(handler).slots(2);
            let worker = Running::start(worker);
            give.send(worker.handle.clone()).unwrap();
            worker.exit().await
        })
    });
    let handle = take.recv().unwrap();
    watching.block_on(async {
        let one = bench.submit("block", json!(null)).await;
        let other = bench.submit("block", json!(null)).await;
        for task in [one, other] {
            let ended = bench.ended(task).await;
            assert_eq!(result(&ended), json!(1), "somebody else had it");
            assert_eq!(bench.causes(task).await, Vec::<String>::new());
        }
        let counts = handle.snapshot().counts;
        assert_eq!(
            (counts.leases_lost, counts.self_fenced),
            (0, 0),
            "{counts:?}"
        );
        // At a beat every quarter of a lease, three leases are more than eight beats.
        assert!(counts.renewals >= 8, "{counts:?}");
    });
    handle.drain();
    assert_eq!(working.join().unwrap(), Exit::Drained);
}

/// Its renewals are applied, but what it has lost meanwhile cannot be heard: it stops on its own clock, with its lease alive.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_cannot_hear_what_it_lost_stops_believing_while_its_lease_is_renewed() {
    let bench = Bench::new().await;
    let begun = Arc::new(Notify::new());
    let told = Arc::new(Mutex::new(None));
    let handler = {
        let (begun, told) = (Arc::clone(&begun), Arc::clone(&told));
        handler_fn("deaf", move |ctx: TaskContext, (): ()| {
            let (begun, told) = (Arc::clone(&begun), Arc::clone(&told));
            async move {
                if ctx.epoch() > 1 {
                    return Ok(json!("second"));
                }
                begun.notify_one();
                *told.lock().unwrap() = Some(ctx.cancelled().wait().await);
                Ok(json!("first"))
            }
        })
    };
    let url = bench.db.url_as("aegis_engine");
    let worker = Running::start(worker_on(store_at(&url).await).handler(handler).slots(1));
    bench.submit("deaf", json!(null)).await;
    begun.notified().await;
    // Renewal touches the lease's row; the compare reads tasks.
    let holder = bench.db.connect().await;
    let lock = "begin; lock table aegis.task in access exclusive mode";
    holder.batch_execute(lock).await.unwrap();
    let before = worker.handle.snapshot().counts.renewals;
    wait_until("the execution is cancelled", BOUND, async || {
        told.lock().unwrap().is_some()
    })
    .await;
    assert_eq!(*told.lock().unwrap(), Some(CancelReason::LeaseLost));
    let counts = worker.handle.snapshot().counts;
    assert!(counts.renewals > before, "{counts:?}");
    assert_eq!(
        (counts.self_fenced, counts.leases_lost),
        (1, 0),
        "{counts:?}"
    );
    let live = "select count(*) from aegis.worker_lease l join aegis.worker w on w.id = l.worker
        where w.state = 0 and l.lease_until > clock_timestamp()";
    let live: i64 = bench.db.admin.query_one(live, &[]).await.unwrap().get(0);
    assert_eq!(live, 1, "the lease itself lives");
    holder.batch_execute("rollback").await.unwrap();
    worker.handle.drain();
    worker.exit().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn te_44_without_a_database_the_worker_fences_itself_before_its_lease_ends() {
    let bench = Bench::new().await;
    let proxy = Proxy::before(&bench.db.url_as("aegis_engine")).await;
    let calls = Arc::new(AtomicUsize::new(0));
    let (noted, released) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let handler = {
        let (calls, noted, released) = (
            Arc::clone(&calls),
            Arc::clone(&noted),
            Arc::clone(&released),
        );
        handler_fn("cut off", move |ctx: TaskContext, (): ()| {
            let (calls, noted, released) = (
                Arc::clone(&calls),
                Arc::clone(&noted),
                Arc::clone(&released),
            );
            async move {
                if ctx.epoch() > 1 {
                    return Ok(json!("second"));
                }
                let reason = ctx.cancelled().wait().await;
                assert_eq!(reason, CancelReason::LeaseLost);
                let refused = ctx
                    .operation("charge", 1)
                    .execute(|_| async {
                        calls.fetch_add(1, Ordering::SeqCst);
                        Ok(1)
                    })
                    .await;
                assert!(matches!(
                    refused,
                    Err(OperationError::Task(TaskError::Engine(
                        EngineStop::Cancelled { .. }
                    )))
                ));
                noted.notify_one();
                released.notified().await;
                Ok(json!("first"))
            }
        })
    };
    let worker = Running::start(
        worker_on(store_at_unnamed(&proxy.url()).await)
            .handler(handler)
            .kill_after(BOUND),
    );
    let task = bench.submit("cut off", json!(null)).await;
    started(&worker, 1).await;
    let first = worker.handle.id().unwrap();
    proxy.line(Line::Silent);
    let silent = Instant::now();
    tokio::time::timeout(BOUND, noted.notified())
        .await
        .expect("the handler was not told");
    // At most the lease, counted from a beat that was sent before the silence; less the margin of a fifth.
    assert!(silent.elapsed() < TTL, "{:?}", silent.elapsed());
    assert!(!worker.handle.snapshot().eligible);
    assert_eq!(
        calls.load(Ordering::SeqCst),
        0,
        "an operation left without a lease"
    );

    // The database is back: the lease is lost, and what the handler finished meanwhile is sent and refused.
    wait_until("the end of the lease", BOUND, async || {
        bench.store.tick(Uuid::new_v4()).await.unwrap();
        let workers = bench.store.workers(true, 10).await.unwrap();
        workers.iter().any(|row| row.id == first && row.state == 3)
    })
    .await;
    proxy.line(Line::Up);
    released.notify_one();
    let ended = bench.ended(task).await;
    assert_eq!(result(&ended), json!("second"));
    let counts = worker.handle.snapshot().counts;
    assert_eq!(counts.leases_lost, 1, "{counts:?}");
    // Its successor spoke for it: no crash is charged.
    assert_eq!((ended.crashes, ended.interruptions), (0, 1));
    worker.drain().await;
}

/// A job that had been fetched ahead started after its activation had expired (camunda PR #63028).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn te_16_what_was_claimed_ahead_does_not_start_once_eligibility_has_ended() {
    let bench = Bench::new().await;
    let proxy = Proxy::before(&bench.db.url_as("aegis_engine")).await;
    let seen = Arc::new(Mutex::new(Vec::new()));
    let released = Arc::new(Notify::new());
    let handler = {
        let (seen, released) = (Arc::clone(&seen), Arc::clone(&released));
        handler_fn("mixed", move |ctx: TaskContext, n: usize| {
            let (seen, released) = (Arc::clone(&seen), Arc::clone(&released));
            async move {
                seen.lock().unwrap().push((n, ctx.epoch()));
                if n == BLOCKER && ctx.epoch() == 1 {
                    released.notified().await;
                }
                Ok(ctx.epoch())
            }
        })
    };
    let worker = Running::start(
        worker_on(store_at_unnamed(&proxy.url()).await)
            .handler(handler)
            .slots(1)
            .kill_after(BOUND),
    );
    // Measured as short, so that tasks are claimed ahead.
    for _ in 0..50 {
        let short = bench.submit("mixed", json!(0)).await;
        bench.ended(short).await;
    }
    bench.submit("mixed", json!(BLOCKER)).await;
    started(&worker, 1).await;
    let mut tasks = Vec::new();
    for n in 1..=20 {
        tasks.push((n, bench.submit("mixed", json!(n)).await));
    }
    wait_until("a local queue", BOUND, async || {
        let snapshot = worker.handle.snapshot();
        snapshot.executing == 1 && snapshot.queued > 0
    })
    .await;
    let first = worker.handle.id().unwrap();
    proxy.line(Line::Silent);
    let mut ahead = Vec::new();
    for (n, task) in &tasks {
        if bench.store.task(*task).await.unwrap().unwrap().state == 2 {
            ahead.push(*n);
        }
    }
    assert!(!ahead.is_empty(), "nothing was claimed ahead");
    wait_until("the end of eligibility", BOUND, async || {
        !worker.handle.snapshot().eligible
    })
    .await;
    released.notify_one();
    wait_until("the end of the lease", BOUND, async || {
        bench.store.tick(Uuid::new_v4()).await.unwrap();
        let workers = bench.store.workers(true, 10).await.unwrap();
        workers.iter().any(|row| row.id == first && row.state == 3)
    })
    .await;
    proxy.line(Line::Up);
    for (_, task) in &tasks {
        bench.ended(*task).await;
    }
    for (n, epoch) in seen.lock().unwrap().iter() {
        assert!(
            *epoch > 1 || !ahead.contains(n),
            "task {n} started under a claim that had ended"
        );
    }
    worker.drain().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_lost_its_lease_registers_anew_and_its_late_result_is_refused() {
    let bench = Bench::new().await;
    let release = Arc::new(Notify::new());
    let held = Arc::clone(&release);
    let handler = handler_fn("late", move |ctx: TaskContext, (): ()| {
        let held = Arc::clone(&held);
        async move {
            if ctx.epoch() == 1 {
                // Finishes although it was told that the lease is lost.
                ctx.cancelled().wait().await;
                held.notified().await;
            }
            Ok(ctx.epoch())
        }
    });
    let worker = Running::start(bench.worker().handler(handler));
    let task = bench.submit("late", json!(null)).await;
    started(&worker, 1).await;
    let first = worker.handle.id().unwrap();
    end_lease(&bench, first).await;
    wait_until("the loss", BOUND, async || {
        worker.handle.snapshot().counts.leases_lost == 1
    })
    .await;
    // While its execution has not stopped, it does not come back under a new name.
    assert_eq!(worker.handle.id(), Some(first));
    release.notify_one();
    let ended = bench.ended(task).await;
    assert!(result(&ended).as_i64().unwrap() > 1);
    let second = worker.handle.id().unwrap();
    assert_ne!(first, second);
    let rows = bench.store.workers(true, 10).await.unwrap();
    let row = rows.iter().find(|row| row.id == second).unwrap();
    assert_eq!(row.predecessor, Some(first));
    assert_eq!((ended.crashes, ended.interruptions), (0, 1));
    let causes = bench.causes(task).await;
    assert!(causes.contains(&"fenced".to_owned()), "{causes:?}");
    assert_eq!(worker.handle.snapshot().counts.fenced, 1);
    assert_eq!(worker.drain().await, Exit::Drained);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn te_24_rl_31_a_worker_ends_when_an_execution_outlives_its_lease() {
    let bench = Bench::new().await;
    let handler = handler_fn("deaf", |_: TaskContext, (): ()| async move {
        std::future::pending::<Result<(), TaskError>>().await
    });
    let worker = Running::start(
        bench
            .worker()
            .handler(handler)
            .kill_after(Duration::from_millis(300)),
    );
    bench.submit("deaf", json!(null)).await;
    started(&worker, 1).await;
    end_lease(&bench, worker.handle.id().unwrap()).await;
    assert_eq!(worker.exit().await, Exit::LeaseOutlived);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_that_its_worker_does_not_know_goes_back_to_its_lane() {
    let bench = Bench::new().await;
    let release = Arc::new(Notify::new());
    let held = Arc::clone(&release);
    let handler = handler_fn("one", move |ctx: TaskContext, first: bool| {
        let held = Arc::clone(&held);
        async move {
            if first {
                held.notified().await;
            }
            Ok(ctx.epoch())
        }
    });
    let worker = Running::start(bench.worker().handler(handler).slots(1));
    let blocker = bench.submit("one", json!(true)).await;
    started(&worker, 1).await;
    let task = bench.submit("one", json!(false)).await;
    // A claim whose answer went nowhere.
    let request = AcquireRequest {
        worker: worker.handle.id().unwrap(),
        request: Uuid::new_v4(),
        capacity: vec![KindCapacity {
            queue: "default".into(),
            kind: "one".into(),
            kind_free: 1,
            queue_free: 1,
        }],
        count: 1,
        cursor: Cursor::default(),
    };
    let acquired = bench.store.acquire(request).await.unwrap();
    assert_eq!(acquired.claims.len(), 1);
    wait_until("its return", BOUND, async || {
        worker.handle.snapshot().counts.absent_returned == 1
    })
    .await;
    release.notify_one();
    let ended = bench.ended(task).await;
    assert_eq!(result(&ended), json!(3), "the claim, its return, the claim");
    assert_eq!((ended.crashes, ended.interruptions), (0, 1));
    assert_eq!(bench.causes(task).await, ["absent"]);
    // The one that the worker does know is not touched.
    assert_eq!(result(&bench.ended(blocker).await), json!(1));
    assert_eq!(worker.drain().await, Exit::Drained);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_lost_its_newest_claims_gets_no_more_until_it_is_adopted() {
    let bench = Bench::new().await;
    let handler = handler_fn("restored", |ctx: TaskContext, wait: bool| async move {
        if wait {
            ctx.unless_cancelled(std::future::pending::<()>()).await?;
        }
        Ok(Value::Null)
    });
    let worker = Running::start(bench.worker().handler(handler));
    let old = bench.submit("restored", json!(true)).await;
    started(&worker, 1).await;
    // The row of before the claim: what a restore brings back.
    let restore = "update aegis.task set epoch = 0, state = 0, run_at = clock_timestamp() + interval '1 h', owner = null,
        claim_id = null, claimed_at = null, floor = null, timeline = null where id = $1";
    bench.db.admin.execute(restore, &[&old]).await.unwrap();
    wait_until("the closed gate", BOUND, async || {
        worker.handle.snapshot().phase == aegis_worker::WorkerPhase::Held
    })
    .await;
    let later = bench.submit("restored", json!(false)).await;
    let ticks = worker.handle.snapshot().counts.claim_ticks;
    wait_until("more looks", BOUND, async || {
        worker.handle.snapshot().counts.claim_ticks > ticks + 5
    })
    .await;
    assert_eq!(bench.store.task(later).await.unwrap().unwrap().state, 1);
    bench.store.adopt("ann", "restored").await.unwrap();
    assert_eq!(result(&bench.ended(later).await), Value::Null);
    worker.handle.cancel_now();
    worker.exit().await;
}
