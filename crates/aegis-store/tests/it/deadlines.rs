//! Cancel in every state, and each deadline: what is asked, when it is enforced, who is charged.

use std::time::Duration;

use aegis_model::{CancelCause, Cause, Class, State};
use aegis_store::overrides::Cancelled;
use aegis_store::worker::{LeaseConn, Order};
use aegis_store::{Claim, NewTask};
use uuid::Uuid;

use crate::support::Bed;

async fn cancel(bed: &Bed, id: Uuid) -> Cancelled {
    bed.store
        .cancel(id, "ann", "no longer wanted")
        .await
        .unwrap()
}

/// Lets the time of the next deadline of a task come.
async fn let_deadline_pass(bed: &Bed, id: Uuid) {
    bed.sql(&format!(
        "update aegis.task set next_deadline = clock_timestamp(),
             deadline_at = case when deadline_at = next_deadline then clock_timestamp() else deadline_at end
         where id = '{id}' and next_deadline is not null"
    ))
    .await;
}

async fn error_code(bed: &Bed, id: Uuid) -> String {
    let task = bed.store.task(id).await.unwrap().unwrap();
    task.error.unwrap()["code"].as_str().unwrap().to_owned()
}

fn in_an_hour() -> jiff::Timestamp {
    jiff::Timestamp::now() + jiff::SignedDuration::from_hours(1)
}

#[tokio::test]
async fn a_cancel_is_answered_by_where_the_task_stands() {
    let bed = Bed::new().await;
    let worker = bed.worker(&["k"]).await;
    assert_eq!(cancel(&bed, Uuid::now_v7()).await, Cancelled::Missing);

    let scheduled = bed
        .submit_with("k", |task| task.run_at = Some(in_an_hour()))
        .await;
    let ready = bed.submit("k").await;
    for id in [scheduled, ready] {
        assert_eq!(cancel(&bed, id).await, Cancelled::Now);
        assert_eq!(bed.state(id).await, State::Cancelled);
        assert_eq!(error_code(&bed, id).await, "cancelled");
        assert_eq!(cancel(&bed, id).await, Cancelled::Ended);
    }

    let running = bed.claim(&worker).await;
    assert_eq!(cancel(&bed, running.held.task).await, Cancelled::Requested);
    assert_eq!(bed.state(running.held.task).await, State::Running);
    // A request moves no rev: what the execution saves on its way out is still accepted.
    let held = bed.dispatch(&running, Class::Fenced).await;
    let held = bed.settle(held, running.lane, "fenced").await;
    let after = bed.release(held, Cause::Cancelled).await;
    assert_eq!(after.applied(), Some(State::Cancelled));

    let reconciling = bed.claim(&worker).await;
    let held = bed.dispatch(&reconciling, Class::Blind).await;
    let after = bed.release(held, Cause::Drain).await;
    assert_eq!(after.applied(), Some(State::Reconciling));
    assert_eq!(cancel(&bed, held.task).await, Cancelled::Pending);
    assert_eq!(bed.state(held.task).await, State::Reconciling);
    assert_eq!(cancel(&bed, held.task).await, Cancelled::Pending);

    let parked = bed
        .claim_with(&worker, |task| task.policy.max_failures = 1)
        .await;
    assert_eq!(bed.fail(parked.held).await.applied(), Some(State::Failed));
    assert_eq!(cancel(&bed, parked.held.task).await, Cancelled::Parked);
}

/// A cancelled task whose handler fails, is handed back, snoozes or crashes is cancelled; one that completes has completed.
#[tokio::test]
async fn a_requested_cancel_applies_however_the_execution_ends() {
    let bed = Bed::new().await;
    let alive = bed.worker(&["other"]).await;
    for end in ["fail", "drain", "snooze", "crash", "complete"] {
        let worker = bed.worker(&["k"]).await;
        let held = bed.claim(&worker).await.held;
        assert_eq!(cancel(&bed, held.task).await, Cancelled::Requested);
        let after = match end {
            "fail" => bed.fail(held).await.applied(),
            "drain" => bed.release(held, Cause::Drain).await.applied(),
            "snooze" => bed.release(held, Cause::Snooze).await.applied(),
            "complete" => bed.complete(held).await.applied(),
            _ => {
                bed.expire(&worker).await;
                assert_eq!(bed.tick(&alive).await.reaped, 1);
                Some(bed.state(held.task).await)
            }
        };
        let expected = if end == "complete" {
            State::Succeeded
        } else {
            State::Cancelled
        };
        assert_eq!(after, Some(expected), "{end}");
    }
}

#[tokio::test]
async fn an_execution_that_does_not_stop_is_ended_for_it_after_kill_after_and_not_before() {
    let bed = Bed::new().await;
    let worker = bed.worker(&["k"]).await;
    let claim = bed
        .claim_with(&worker, |task| {
            task.policy.kill_after_ms = 60_000;
            task.policy.start_to_close_ms = Some(5_000);
        })
        .await;
    let id = claim.held.task;
    assert_eq!(cancel(&bed, id).await, Cancelled::Requested);
    // The attempt's own deadline comes first and changes nothing, nor does a second request.
    let first: String = bed.live(id, "next_deadline::text").await;
    let full = "next_deadline = cancel_at + interval '60 s'";
    assert!(bed.live::<bool>(id, full).await, "kill_after is cut short");
    assert_eq!(cancel(&bed, id).await, Cancelled::Requested);
    assert_eq!(bed.live::<String>(id, "next_deadline::text").await, first);
    bed.tick(&worker).await;
    assert_eq!(bed.state(id).await, State::Running);
    let_deadline_pass(&bed, id).await;
    bed.tick(&worker).await;
    assert_eq!(bed.state(id).await, State::Cancelled);
    let task = bed.store.task(id).await.unwrap().unwrap();
    assert_eq!(
        task.epoch,
        claim.held.epoch + 1,
        "an override bumps the epoch"
    );
    assert!(bed.complete(claim.held).await.applied().is_none());
    assert_eq!(
        bed.causes(id).await,
        ["cancel_requested", "cancel_requested", "kill", "fenced"]
    );
}

async fn orders(bed: &Bed, claim: &Claim) -> Vec<Order> {
    let conn = LeaseConn::connect(bed.store.config()).await.unwrap();
    let orders = conn.orders(claim.held.owner, &[claim.held]).await.unwrap();
    orders.into_iter().map(|(_, _, order)| order).collect()
}

#[tokio::test]
async fn the_total_deadline_fails_a_waiting_task_and_stops_a_running_one() {
    let bed = Bed::new().await;
    let worker = bed.worker(&["k"]).await;
    let waiting = bed
        .submit_with("k", |task| task.deadline_at = Some(in_an_hour()))
        .await;
    let_deadline_pass(&bed, waiting).await;
    bed.tick(&worker).await;
    assert_eq!(bed.state(waiting).await, State::Failed);
    assert_eq!(error_code(&bed, waiting).await, "deadline_exceeded");

    let claim = bed
        .claim_with(&worker, |task| task.deadline_at = Some(in_an_hour()))
        .await;
    let id = claim.held.task;
    let_deadline_pass(&bed, id).await;
    bed.tick(&worker).await;
    assert_eq!(bed.state(id).await, State::Running, "asked first");
    assert_eq!(
        orders(&bed, &claim).await,
        [Order::Cancel(CancelCause::Deadline)]
    );
    let_deadline_pass(&bed, id).await;
    bed.tick(&worker).await;
    assert_eq!(bed.state(id).await, State::Failed);
    assert_eq!(error_code(&bed, id).await, "deadline_exceeded");
    assert!(bed.complete(claim.held).await.applied().is_none());
}

#[tokio::test]
async fn an_attempt_that_takes_too_long_is_charged_as_a_failure_and_retried() {
    let bed = Bed::new().await;
    let worker = bed.worker(&["k"]).await;
    for stops_itself in [true, false] {
        let claim = bed
            .claim_with(&worker, |task| {
                task.policy.start_to_close_ms = Some(60_000);
                task.policy.max_failures = 2;
            })
            .await;
        let id = claim.held.task;
        let_deadline_pass(&bed, id).await;
        bed.tick(&worker).await;
        assert_eq!(
            orders(&bed, &claim).await,
            [Order::Cancel(CancelCause::StartToClose)]
        );
        if stops_itself {
            let after = bed.release(claim.held, Cause::Cancelled).await;
            assert_eq!(after.applied(), Some(State::Scheduled));
        } else {
            let_deadline_pass(&bed, id).await;
            bed.tick(&worker).await;
            assert_eq!(bed.state(id).await, State::Scheduled);
        }
        assert_eq!(bed.live::<i32>(id, "failures").await, 1);
        let errors = bed.store.attempt_errors(id).await.unwrap();
        assert_eq!(errors.len(), 1);
        assert_eq!(errors[0].code, "start_to_close_exceeded");
        assert_eq!(
            errors[0].epoch, claim.held.epoch,
            "charged to the attempt that it was"
        );
        let events = bed.store.events(id).await.unwrap();
        assert_eq!(events[0].epoch, claim.held.epoch);
        let epoch: i64 = bed.live(id, "epoch").await;
        assert_eq!(epoch - claim.held.epoch, i64::from(!stops_itself));
        // The second time it has no attempt left.
        bed.sql("update aegis.task set state = 1, run_at = null where state = 0")
            .await;
        let claim = bed.claim_again(&worker).await;
        let_deadline_pass(&bed, id).await;
        bed.tick(&worker).await;
        if stops_itself {
            bed.release(claim.held, Cause::Cancelled)
                .await
                .applied()
                .unwrap();
        } else {
            let_deadline_pass(&bed, id).await;
            bed.tick(&worker).await;
        }
        assert_eq!(bed.state(id).await, State::Failed);
        assert_eq!(error_code(&bed, id).await, "start_to_close_exceeded");
    }
}

#[tokio::test]
async fn schedule_to_start_counts_until_the_first_start_only() {
    let bed = Bed::new().await;
    let worker = bed.worker(&["k"]).await;
    let soon = |task: &mut NewTask| task.policy.schedule_to_start_ms = Some(60_000);
    let never = bed.submit_with("k", soon).await;
    let_deadline_pass(&bed, never).await;
    bed.tick(&worker).await;
    assert_eq!(bed.state(never).await, State::Failed);

    let claim = bed.claim_with(&worker, soon).await;
    let none = "next_deadline is null";
    assert!(bed.live::<bool>(claim.held.task, none).await);
    bed.release(claim.held, Cause::Drain)
        .await
        .applied()
        .unwrap();
    assert!(bed.live::<bool>(claim.held.task, none).await);

    // A task that may not start before an hour has passed has its minute from then on.
    let later = bed
        .submit_with("k", |task| {
            soon(task);
            task.run_at = Some(in_an_hour());
        })
        .await;
    let from_then = "next_deadline = run_at + interval '60 s'";
    assert!(bed.live::<bool>(later, from_then).await);
}

/// The total deadline survives a time in which people had to decide.
#[tokio::test]
async fn a_reconciled_task_still_has_its_deadline() {
    let bed = Bed::new().await;
    let worker = bed.worker(&["k"]).await;
    let claim = bed
        .claim_with(&worker, |task| task.deadline_at = Some(in_an_hour()))
        .await;
    let held = bed.dispatch(&claim, Class::Blind).await;
    bed.release(held, Cause::Drain).await.applied().unwrap();
    assert!(bed.live::<bool>(held.task, "next_deadline is null").await);
    let happened = aegis_model::Resolution::Happened;
    bed.store
        .resolve_operation(held.task, "blind", happened, None, "ann", "seen")
        .await
        .unwrap();
    assert_eq!(bed.state(held.task).await, State::Ready);
    assert!(
        bed.live::<bool>(held.task, "next_deadline = deadline_at")
            .await
    );
}

#[tokio::test]
async fn waiting_for_a_task_ends_with_it_or_with_the_time() {
    let bed = Bed::new().await;
    let worker = bed.worker(&["k"]).await;
    let claim = bed.claim(&worker).await;
    let id = claim.held.task;
    let short = Duration::from_millis(50);
    assert!(bed.store.wait(id, short).await.unwrap().is_none());
    let store = bed.store.clone();
    let waiting = tokio::spawn(async move { store.wait(id, Duration::from_secs(30)).await });
    bed.complete(claim.held).await.applied().unwrap();
    let ended = waiting.await.unwrap().unwrap().unwrap();
    assert_eq!(State::from_number(ended.state), State::Succeeded);
    assert_eq!(ended.result.as_deref(), Some(b"{}".as_slice()));
    assert!(
        bed.store
            .wait(Uuid::now_v7(), short)
            .await
            .unwrap()
            .is_none()
    );
}
