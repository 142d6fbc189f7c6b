//! One task's life on one time line: everything that is stored, once each, in order.

use aegis_model::{Cause, Class, Resolution, State};
use aegis_store::change::Change;
use aegis_store::guarded::{SaveTo, StepValue};
use aegis_store::life::Moment;

use crate::support::{Bed, failure};
use crate::verbs::{applied, by};

fn whats(moments: &[Moment]) -> Vec<&str> {
    moments.iter().map(|moment| moment.what.as_str()).collect()
}

#[tokio::test]
async fn a_life_is_told_from_submit_to_its_end() {
    let bed = Bed::new().await;
    let worker = bed
        .worker_with(&["k"], |registration| {
            registration.name = "w-1".to_owned();
            registration.release = "r7".to_owned();
        })
        .await;
    let claim = bed.claim(&worker).await;
    let id = claim.held.task;
    let mut failed = failure(claim.held);
    failed.retry_after_ms = Some(600_000);
    bed.store.fail(vec![failed]).await.unwrap();
    bed.store
        .change(&[id], Change::Retry, &by("mended"), false)
        .await
        .unwrap();

    let claim = bed.claim_again(&worker).await;
    let to = |held| SaveTo {
        held,
        lane: claim.lane,
        protocol: 1,
        data: b"1".to_vec(),
    };
    let saved = bed
        .store
        .checkpoint(to(claim.held))
        .await
        .unwrap()
        .applied()
        .unwrap();
    let mut held = claim.held;
    held.rev = saved.rev;
    let step = StepValue {
        name: "fetch".to_owned(),
        key: "7".to_owned(),
        to: to(held),
    };
    held.rev = bed.store.step(step).await.unwrap().applied().unwrap().rev;
    let held = bed
        .dispatch_named(held, claim.lane, Class::Blind, "notify")
        .await;
    applied(bed.release(held, Cause::Drain).await);

    let life = bed.store.life(id).await.unwrap().unwrap();
    let moments = life.moments();
    assert_eq!(
        whats(&moments),
        [
            "submitted",
            "claimed",
            "failure",
            "retried",
            "claimed",
            "checkpoint",
            "step",
            "operation_dispatched",
            "drain",
            "operation_unknown"
        ]
    );
    assert!(moments.is_sorted_by_key(|moment| moment.at));
    assert_eq!(moments[1].epoch, Some(1));
    assert!(moments[1].text.contains("w-1 on localhost") && moments[1].text.contains("release r7"));
    assert_eq!(moments[1].worker, Some(worker.id));
    assert!(
        moments[2].text.contains("broken: it broke") && moments[2].text.contains("tried again at")
    );
    assert_eq!(moments[3].actor.as_deref(), Some("ann"));
    assert!(moments[3].text.ends_with(": mended"));
    assert_eq!(moments[4].epoch, Some(2));
    assert!(moments[6].text.contains("fetch 7"));

    bed.store
        .resolve_operation(
            id,
            "notify",
            Resolution::Happened,
            None,
            "bob",
            "seen in the log",
        )
        .await
        .unwrap();
    let held = bed.claim_again(&worker).await.held;
    applied(bed.complete(held).await);
    let life = bed.store.life(id).await.unwrap().unwrap();
    let moments = life.moments();
    assert_eq!(
        whats(&moments)[8..],
        ["drain", "operation_resolved", "claimed", "succeeded"]
    );
    let decided = moments
        .iter()
        .find(|m| m.what == "operation_resolved")
        .unwrap();
    assert_eq!(decided.actor.as_deref(), Some("bob"));
    assert!(decided.text.contains("happened") && decided.text.contains("seen in the log"));
    assert!(!life.is_cut());
}

#[tokio::test]
async fn a_fatal_failure_a_redrive_a_discard_and_a_stale_write_are_told() {
    let bed = Bed::new().await;
    let worker = bed.worker(&["k"]).await;
    let claim = bed.claim(&worker).await;
    let id = claim.held.task;
    let mut fatal = failure(claim.held);
    fatal.retryable = false;
    bed.store.fail(vec![fatal]).await.unwrap();
    let parked = bed.store.life(id).await.unwrap().unwrap().moments();
    assert_eq!(whats(&parked), ["submitted", "failure", "failed"]);
    assert_eq!(parked[1].worker, Some(worker.id));
    bed.store.redrive(id, "ann", "once more").await.unwrap();
    let held = bed.claim_again(&worker).await.held;
    applied(bed.release(held, Cause::Drain).await);
    // The execution that handed it back writes once more.
    assert!(
        bed.store
            .complete(vec![aegis_store::guarded::Completion {
                held,
                result: None
            }])
            .await
            .is_ok()
    );
    bed.store.cancel(id, "ann", "enough").await.unwrap();
    assert_eq!(bed.state(id).await, State::Cancelled);
    let told = bed.store.life(id).await.unwrap().unwrap().moments();
    let words = whats(&told);
    for what in [
        "failure",
        "redriven",
        "claimed",
        "drain",
        "fenced",
        "cancel_requested",
        "cancelled",
    ] {
        assert!(words.contains(&what), "{what} is missing: {words:?}");
    }
    assert!(
        bed.store
            .life(uuid::Uuid::now_v7())
            .await
            .unwrap()
            .is_none()
    );
}

#[tokio::test]
async fn a_worker_that_is_forgotten_is_told_by_its_id() {
    let bed = Bed::new().await;
    let worker = bed.worker(&["k"]).await;
    let held = bed.claim(&worker).await.held;
    applied(bed.release(held, Cause::Drain).await);
    bed.sql("delete from aegis.worker").await;
    let moments = bed.store.life(held.task).await.unwrap().unwrap().moments();
    assert!(moments[1].text.contains("forgotten"), "{moments:?}");
    assert!(moments[1].text.contains(&worker.id.to_string()));
}
