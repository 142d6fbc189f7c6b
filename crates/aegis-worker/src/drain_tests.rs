//! The drain and the gate over executions that never ran, without a database: what each phase waits for, and what is said then.
//! Budgets are nothing or an hour, so that a phase that waits for the wrong thing does not end by its own budget.

use std::time::Duration;

use aegis_model::{Held, Lineage};
use aegis_store::{Claim, Config, Store};
use tokio::net::TcpListener;
use uuid::Uuid;

use super::*;
use crate::incarnation::Incarnation;
use crate::{Budgets, TaskContext, Worker, handler_fn};

const HOUR: Duration = Duration::from_hours(1);
const NOTHING: Budgets = Budgets {
    stop_acquiring: HOUR,
    drain: Duration::ZERO,
    cancel_and_save: Duration::ZERO,
    exit_margin: Duration::ZERO,
};

/// A worker that was never started, on a database that is not there.
fn idle(budgets: Budgets) -> Arc<Shared> {
    idle_at(1, budgets)
}

fn idle_at(port: u16, budgets: Budgets) -> Arc<Shared> {
    let url = format!("postgresql://nobody@127.0.0.1:{port}/none");
    let store = Store::connect_unverified(Config::from_url(&url).unwrap()).unwrap();
    let never = handler_fn("never", async |_: TaskContext, (): ()| Ok(()));
    let worker = Worker::builder(store)
        .handler(never)
        .budgets(budgets)
        .grace_period(None)
        .listen(None)
        .build()
        .unwrap();
    worker.shared.gate.set(GateState::Accepting);
    worker.shared
}

fn eligible() -> Arc<Incarnation> {
    let now = crate::self_fence::boot_ns();
    Arc::new(Incarnation::new(Uuid::now_v7(), now, HOUR))
}

/// A claimed task that is in flight.
fn in_flight(shared: &Arc<Shared>, incarnation: &Arc<Incarnation>) -> Arc<Execution> {
    let held = Held {
        task: Uuid::now_v7(),
        owner: incarnation.id,
        claim_id: Uuid::now_v7(),
        epoch: 1,
        rev: 1,
        lineage: Lineage {
            floor: 0,
            timeline: 1,
        },
    };
    let claim = Claim {
        held,
        lane: 1,
        tenant: 1,
        failures: 0,
        interruptions: 0,
        crashes: 0,
        snoozes: 0,
        has_parts: false,
        pending: None,
        cancel: None,
        protocol: 1,
        content_type: 0,
        input: Vec::new(),
        trace: None,
    };
    let execution = Execution::new(shared, incarnation, &shared.kinds.all[0], claim);
    let permit = shared.gate.permit().unwrap();
    assert!(permit.register(&[Arc::clone(&execution)]));
    execution
}

/// Lets everything go on that can go on by itself.
async fn others() {
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn the_gate_finds_what_is_in_flight_until_it_is_removed() {
    let shared = idle(NOTHING);
    let execution = in_flight(&shared, &eligible());
    let found = shared.gate.find(execution.key()).unwrap();
    assert!(Arc::ptr_eq(&found, &execution));
    let other = (execution.key().0, 2);
    assert!(shared.gate.find(other).is_none(), "another epoch");
    let waiter = tokio::spawn({
        let gate = Arc::clone(&shared.gate);
        async move { gate.until(Word::is_empty).await }
    });
    others().await;
    assert!(!waiter.is_finished());
    assert_eq!((shared.gate.count(), shared.gate.in_flight().len()), (1, 1));
    shared.gate.remove(execution.key());
    others().await;
    assert!(waiter.is_finished(), "nobody told it");
    assert_eq!((shared.gate.count(), shared.gate.in_flight().len()), (0, 0));
}

#[tokio::test]
async fn with_nothing_in_flight_a_drain_is_over_and_the_gate_stays_shut() {
    let shared = idle(Budgets {
        drain: HOUR,
        ..NOTHING
    });
    assert_eq!(drain(&shared).await, Exit::Drained);
    assert_eq!(shared.gate.state(), GateState::Draining);
}

#[tokio::test]
async fn what_ends_within_the_budget_is_not_cancelled() {
    let shared = idle(Budgets {
        drain: HOUR,
        ..NOTHING
    });
    let execution = in_flight(&shared, &eligible());
    let draining = tokio::spawn({
        let shared = Arc::clone(&shared);
        async move { drain(&shared).await }
    });
    others().await;
    assert!(!draining.is_finished(), "it waits for what it has");
    assert_eq!(execution.canceller.reason(), None);
    shared.gate.remove(execution.key());
    assert_eq!(draining.await.unwrap(), Exit::Drained);
}

#[tokio::test]
async fn who_asks_to_stop_now_is_obeyed_and_what_has_stopped_is_waited_for() {
    let shared = idle(Budgets {
        drain: HOUR,
        cancel_and_save: HOUR,
        exit_margin: HOUR,
        ..NOTHING
    });
    let incarnation = eligible();
    let first = in_flight(&shared, &incarnation);
    let second = in_flight(&shared, &incarnation);
    let draining = tokio::spawn({
        let shared = Arc::clone(&shared);
        async move { drain(&shared).await }
    });
    others().await;
    shared.cancel_now.cancel();
    others().await;
    for execution in [&first, &second] {
        assert_eq!(execution.canceller.reason(), Some(CancelReason::Drain));
        execution.set_stage(Stage::Running);
    }
    first.set_stage(Stage::Stopped);
    shared.gate.remove(first.key());
    others().await;
    assert!(!draining.is_finished(), "the second still runs");
    second.set_stage(Stage::Stopped);
    shared.gate.touch();
    others().await;
    assert!(!draining.is_finished(), "its end is not reported yet");
    shared.counters.cut_short.add(2);
    shared.gate.remove(second.key());
    assert_eq!(draining.await.unwrap(), Exit::HandedBack { tasks: 2 });
}

#[tokio::test]
async fn what_does_not_stop_is_left_and_is_no_reason_to_wait_for_reports() {
    let shared = idle(Budgets {
        exit_margin: HOUR,
        ..NOTHING
    });
    let execution = in_flight(&shared, &eligible());
    execution.set_stage(Stage::Running);
    assert_eq!(drain(&shared).await, Exit::LeftToExpiry { tasks: 1 });
    assert_eq!(execution.canceller.reason(), Some(CancelReason::Drain));
}

#[tokio::test]
async fn a_claim_on_its_way_holds_a_drain_up_until_it_is_back() {
    let shared = idle(NOTHING);
    let permit = shared.gate.permit().unwrap();
    let closing = tokio::spawn({
        let shared = Arc::clone(&shared);
        async move { close(&shared).await }
    });
    others().await;
    assert!(!closing.is_finished());
    drop(permit);
    closing.await.unwrap();
}

#[tokio::test]
async fn a_claim_that_never_comes_back_holds_it_up_for_its_budget_only() {
    let shared = idle(Budgets {
        stop_acquiring: Duration::ZERO,
        ..NOTHING
    });
    let permit = shared.gate.permit().unwrap();
    assert_eq!(drain(&shared).await, Exit::Drained);
    drop(permit);
}

#[test]
fn what_a_drain_says_at_its_end() {
    assert_eq!(said(0, 0, 0), Exit::Drained);
    assert_eq!(said(0, 0, 3), Exit::HandedBack { tasks: 3 });
    assert_eq!(said(2, 1, 3), Exit::LeftToExpiry { tasks: 3 });
    assert_eq!(said(0, 1, 0), Exit::LeftToExpiry { tasks: 1 });
    assert_eq!(said(4, 0, 0), Exit::LeftToExpiry { tasks: 4 });
}

#[tokio::test]
async fn only_what_is_lost_in_a_drain_is_left_by_it() {
    let shared = idle(NOTHING);
    shared.counters.lost.add(2);
    assert_eq!(finished(&shared, 2), Exit::Drained);
    assert_eq!(finished(&shared, 1), Exit::LeftToExpiry { tasks: 1 });
}

/// Nobody answers: tried again as long as it means something, and never longer.
#[tokio::test]
async fn what_cannot_be_handed_back_is_let_go_when_the_worker_has_ended_or_lost_its_lease() {
    let database = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let shared = idle_at(database.local_addr().unwrap().port(), NOTHING);
    let (one, two) = (eligible(), eligible());
    let queued = vec![in_flight(&shared, &one), in_flight(&shared, &two)];
    let mut trying = tokio::spawn({
        let shared = Arc::clone(&shared);
        async move { hand_back(&shared, queued).await }
    });
    for _ in 0..5 {
        tokio::select! {
            // Hung up at once.
            call = database.accept() => drop(call.unwrap()),
            _ = &mut trying => panic!("an eligible worker goes on"),
        }
    }
    assert_eq!(shared.gate.count(), 2);
    drop(database);
    shared.ended.cancel();
    trying.await.unwrap();
    assert_eq!(shared.gate.count(), 0);

    let shared = idle(NOTHING);
    let lost = eligible();
    lost.fence.lose();
    let queued = vec![in_flight(&shared, &lost)];
    hand_back(&shared, queued).await;
    assert_eq!(shared.gate.count(), 0);
}
