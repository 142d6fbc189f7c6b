//! A crash is a real loss for the engine: no drain, nothing handed back, the lease expires, another worker takes over.

use aegis_harness::{Cut, Fault, NewTask, Outcome, Point, RetryPolicy};
use aegis_worker::{Class, TaskContext, handler_fn};
use serde_json::json;

use crate::support::{Charge, harness};

#[tokio::test]
async fn the_engine_sees_a_crash_and_a_takeover_after_the_lease() {
    let mut harness = harness!(|bank| Charge {
        class: Class::Idempotent,
        bank: bank.clone()
    });
    let dies = Fault::crash(Point::operation("charge", 7, Cut::Ran));
    let run = harness
        .run_with(NewTask::new("charge", "7"), &[dies])
        .await
        .unwrap();
    assert_eq!(run.outcome, Outcome::Succeeded);
    assert_eq!(run.executions, 2);
    assert!(
        run.passed >= std::time::Duration::from_secs(30),
        "{:?}",
        run.passed
    );
    let task = harness.store().task(run.task).await.unwrap().unwrap();
    assert_eq!((task.crashes, task.failures, task.interruptions), (1, 0, 0));
    let causes: Vec<_> = harness.store().events(run.task).await.unwrap();
    let causes: Vec<_> = causes.iter().map(|event| event.cause.as_str()).collect();
    assert_eq!(causes, ["crash"]);
    // 3 lost, 0 accepting.
    let mut states: Vec<_> = harness.store().workers(true, 10).await.unwrap();
    states.sort_by_key(|worker| worker.state);
    let states: Vec<_> = states.iter().map(|worker| worker.state).collect();
    assert_eq!(states, [0, 3]);
}

#[tokio::test]
async fn what_kills_every_worker_is_quarantined() {
    let mut harness =
        harness!(|_world| handler_fn("poison", |_ctx: TaskContext, (): ()| async move { Ok(()) }));
    let policy = RetryPolicy {
        max_crashes: 2,
        ..RetryPolicy::default()
    };
    let task = NewTask {
        policy,
        ..NewTask::new("poison", "null")
    };
    let faults = [Cut::Before, Cut::Ran, Cut::Before].map(Fault::crash_of_handler);
    let run = harness.run_with(task, &faults).await.unwrap();
    assert_eq!(run.outcome, Outcome::Quarantined);
    assert_eq!(run.executions, 3);
}

#[tokio::test]
async fn a_frozen_worker_that_wakes_up_changes_nothing() {
    let mut harness = harness!(|bank| Charge {
        class: Class::Fenced,
        bank: bank.clone()
    });
    for cut in [Cut::Before, Cut::Dispatched, Cut::Ran, Cut::Stored] {
        let freezes = Fault::freeze(Point::operation("charge", 7, cut));
        let run = harness
            .run_with(NewTask::new("charge", "7"), &[freezes])
            .await
            .unwrap();
        assert_eq!(run.outcome, Outcome::Succeeded);
        assert_eq!(
            run.effects.get("charge/7/v1"),
            Some(&1),
            "frozen at {cut:?}"
        );
        assert!(run.late.is_empty());
        assert_eq!(run.result, Some(json!("order 7: receipt")));
    }
}

#[tokio::test]
async fn what_a_handler_keeps_in_memory_is_gone_after_a_crash() {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};
    let mut harness = harness!(|_world| {
        let memory = Arc::new(AtomicU32::new(0));
        handler_fn("remember", move |_ctx: TaskContext, (): ()| {
            let seen = memory.fetch_add(1, Ordering::SeqCst);
            async move { Ok(seen) }
        })
    });
    let task = NewTask::new("remember", "null");
    let run = harness.run(task.clone()).await.unwrap();
    assert_eq!(run.result, Some(json!(0)));
    let dies = Fault::crash_of_handler(Cut::Ran);
    let run = harness.run_with(task.clone(), &[dies]).await.unwrap();
    assert_eq!(run.result, Some(json!(0)), "a new process knows nothing");
    let run = harness.run(task).await.unwrap();
    assert_eq!(
        run.result,
        Some(json!(1)),
        "without a crash it is the same worker"
    );
}

#[tokio::test]
async fn two_harnesses_do_not_disturb_each_other() {
    let one = async {
        let mut harness = harness!(|bank| Charge {
            class: Class::Queryable,
            bank: bank.clone()
        });
        let dies = Fault::crash(Point::operation("charge", 7, Cut::Dispatched));
        harness
            .run_with(NewTask::new("charge", "7"), &[dies])
            .await
            .unwrap()
    };
    let other = async {
        let mut harness = harness!(|bank| Charge {
            class: Class::Queryable,
            bank: bank.clone()
        });
        harness.run(NewTask::new("charge", "7")).await.unwrap()
    };
    let (one, other) = tokio::join!(one, other);
    // The takeover comes within the quiet period, and once more after it.
    assert_eq!((one.executions, one.effects), (3, other.effects));
    // Its quiet period has passed for one and not for the other.
    assert!(one.passed > other.passed);
}
