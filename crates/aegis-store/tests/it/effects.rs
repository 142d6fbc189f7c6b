//! Open operations: what each end of an execution makes of them, stored outcomes, people's decisions.

use aegis_model::{Cause, Class, FenceReason, Held, OperationState, Outcome, Resolution, State};
use aegis_store::Claim;
use aegis_store::guarded::{Dispatched, OperationResult, Saved};
use aegis_store::overrides::Decided;
use uuid::Uuid;

use crate::support::{Bed, Worker, dispatch, failure, release};

const CLASSES: [Class; 4] = [
    Class::Idempotent,
    Class::Fenced,
    Class::Queryable,
    Class::Blind,
];

async fn operation_state(bed: &Bed, id: Uuid, name: &str) -> OperationState {
    let ledger = bed.store.ledger(id).await.unwrap();
    ledger.iter().find(|entry| entry.id == name).unwrap().state
}

async fn resolve(bed: &Bed, id: Uuid, name: &str, resolution: Resolution) -> Decided {
    bed.store
        .resolve_operation_early(
            id,
            name,
            resolution,
            Some(b"{\"n\": 1}"),
            "ann",
            "the bank's statement",
        )
        .await
        .unwrap()
}

async fn open_ops(bed: &Bed, id: Uuid) -> i32 {
    bed.live(id, "open_ops").await
}

async fn dispatched(bed: &Bed, worker: &Worker, class: Class) -> (Claim, Held) {
    let claim = bed.claim(worker).await;
    let held = bed.dispatch(&claim, class).await;
    (claim, held)
}

#[tokio::test]
async fn an_operation_with_its_result_holds_nothing_up() {
    let bed = Bed::new().await;
    let worker = bed.worker(&["k"]).await;
    for class in CLASSES {
        let (claim, held) = dispatched(&bed, &worker, class).await;
        assert_eq!(open_ops(&bed, held.task).await, 1);
        let held = bed.settle(held, claim.lane, class.word()).await;
        assert_eq!(open_ops(&bed, held.task).await, 0);
        assert_eq!(bed.complete(held).await.applied(), Some(State::Succeeded));
    }
}

/// Every terminal outcome beside an open operation is stored; it applies when the operation is settled: by a claim that only
/// settles, or by a person.
#[tokio::test]
async fn a_terminal_outcome_beside_an_open_operation_is_stored_and_applies_later() {
    let bed = Bed::new().await;
    let worker = bed.worker(&["k"]).await;
    for class in CLASSES {
        for outcome in ["complete", "fail", "cancel"] {
            let what = format!("{outcome}, {}", class.word());
            let (_, held) = dispatched(&bed, &worker, class).await;
            let id = held.task;
            let (after, end) = match outcome {
                "complete" => (bed.complete(held).await.applied(), State::Succeeded),
                "fail" => {
                    let mut error = failure(held);
                    error.retryable = false;
                    let mut answers = bed.store.fail(vec![error]).await.unwrap();
                    (answers.remove(0).applied(), State::Failed)
                }
                _ => {
                    bed.store.cancel(id, "ann", "why").await.unwrap();
                    (
                        bed.release(held, Cause::Cancelled).await.applied(),
                        State::Cancelled,
                    )
                }
            };
            let people = class == Class::Blind;
            let expected = if people {
                State::Reconciling
            } else {
                State::Ready
            };
            assert_eq!(after, Some(expected), "{what}");
            assert_eq!(
                bed.live::<Option<i16>>(id, "pending").await,
                Some(end.number())
            );
            if people {
                assert!(bed.acquire(&worker, 1).await.is_empty(), "{what}: claimed");
                assert_eq!(
                    resolve(&bed, id, "blind", Resolution::Happened).await,
                    Decided::Done
                );
            } else {
                let claim = bed.claim_again(&worker).await;
                assert_eq!(claim.pending, Some(end), "{what}");
                // It settles nothing yet: it stays, and comes back.
                let after = bed.complete(claim.held).await.applied();
                assert_eq!(after, Some(State::Scheduled), "{what}");
                bed.sql("update aegis.task set state = 1, run_at = null where state = 0")
                    .await;
                let claim = bed.claim_again(&worker).await;
                let held = bed.settle(claim.held, claim.lane, class.word()).await;
                let after = bed.release(held, Cause::Settled).await.applied();
                assert_eq!(after, Some(end), "{what}");
            }
            assert_eq!(bed.state(id).await, end, "{what}");
            let task = bed.store.task(id).await.unwrap().unwrap();
            assert_eq!(task.result.is_some(), end == State::Succeeded, "{what}");
            let left: i64 = bed
                .value("select count(*) from aegis.pending_outcome", &[])
                .await;
            assert_eq!(left, 0, "{what}");
        }
    }
}

#[tokio::test]
async fn no_terminal_row_can_stand_beside_an_open_operation() {
    let bed = Bed::new().await;
    let worker = bed.worker(&["k"]).await;
    let (_, held) = dispatched(&bed, &worker, Class::Blind).await;
    bed.sql(&format!(
        "do $$ begin
            insert into aegis.task_history (id, lane, tenant, state, failures, interruptions, crashes, snoozes, open_ops, epoch, rev, finished_at)
            select id, lane, tenant, 5, 0, 0, 0, 0, open_ops, epoch, rev, now() from aegis.task where id = '{}';
            raise exception 'accepted';
         exception when check_violation then null; end $$",
        held.task
    ))
    .await;
}

/// Reap, hand back, snooze and failure: a dispatched blind operation becomes unknown, and its task waits for a person; any
/// other gets its quiet period and the task goes on.
#[tokio::test]
async fn an_execution_that_ends_leaves_a_blind_operation_to_people() {
    let bed = Bed::new().await;
    let alive = bed.worker(&["other"]).await;
    for class in CLASSES {
        for end in ["drain", "snooze", "fail", "reap"] {
            let what = format!("{end}, {}", class.word());
            let worker = bed.worker(&["k"]).await;
            let (_, held) = dispatched(&bed, &worker, class).await;
            let id = held.task;
            match end {
                "drain" => drop(bed.release(held, Cause::Drain).await.applied().unwrap()),
                "snooze" => drop(bed.release(held, Cause::Snooze).await.applied().unwrap()),
                "fail" => drop(bed.fail(held).await.applied().unwrap()),
                _ => {
                    bed.expire(&worker).await;
                    assert_eq!(bed.tick(&alive).await.reaped, 1);
                }
            }
            let state = bed.state(id).await;
            let ledger = bed.store.ledger(id).await.unwrap().remove(0);
            if class == Class::Blind {
                assert_eq!(state, State::Reconciling, "{what}");
                assert_eq!(ledger.state, OperationState::Unknown, "{what}");
            } else {
                assert_ne!(state, State::Reconciling, "{what}");
                assert_eq!(ledger.state, OperationState::Dispatched, "{what}");
                // Timeout and quiet period are a second each.
                let left = ledger.quiet_left_ms.unwrap_or_default();
                assert!((1..=2000).contains(&left), "{what}: {left} ms");
            }
            assert_eq!(open_ops(&bed, id).await, 1, "{what}");
            bed.sql("delete from aegis.task").await;
        }
    }
}

#[tokio::test]
async fn each_resolution_leads_where_it_says() {
    let bed = Bed::new().await;
    let worker = bed.worker(&["k"]).await;
    for (resolution, after) in [
        (Resolution::Happened, State::Ready),
        (Resolution::DidNotHappen, State::Ready),
        (Resolution::Compensated, State::Ready),
        (Resolution::GiveUp, State::Failed),
    ] {
        let (_, held) = dispatched(&bed, &worker, Class::Blind).await;
        let id = held.task;
        assert_eq!(
            resolve(&bed, id, "blind", resolution).await,
            Decided::NotUnknown
        );
        bed.release(held, Cause::Drain).await.applied().unwrap();
        assert_eq!(
            resolve(&bed, id, "other", resolution).await,
            Decided::Missing
        );
        assert_eq!(resolve(&bed, id, "blind", resolution).await, Decided::Done);
        assert_eq!(
            resolve(&bed, id, "blind", resolution).await,
            if after == State::Failed {
                Decided::Missing
            } else {
                Decided::NotUnknown
            }
        );
        assert_eq!(bed.state(id).await, after, "{resolution:?}");
        let detail = bed.store.operation(id, "blind").await.unwrap().unwrap();
        assert_eq!(detail.resolution, Some(resolution.number()));
        assert_eq!(detail.resolved_by.as_deref(), Some("ann"));
        if after == State::Failed {
            continue;
        }
        let claim = bed.claim_again(&worker).await;
        let again = dispatch(claim.held, claim.lane, Class::Blind, "blind");
        let outcome = bed.store.dispatch(again).await.unwrap();
        if resolution == Resolution::DidNotHappen {
            let Outcome::Applied(Dispatched::Go { dispatches, saved }) = outcome else {
                panic!("what did not happen may be dispatched again: {outcome:?}");
            };
            assert_eq!((dispatches, open_ops(&bed, id).await), (2, 1));
            let held = Held {
                rev: saved.rev,
                ..claim.held
            };
            let held = bed.settle(held, claim.lane, "blind").await;
            assert_eq!(bed.complete(held).await.applied(), Some(State::Succeeded));
        } else {
            assert_eq!(
                outcome,
                Outcome::Applied(Dispatched::Refused),
                "{resolution:?}"
            );
            assert_eq!(
                bed.complete(claim.held).await.applied(),
                Some(State::Succeeded)
            );
        }
    }
}

#[tokio::test]
async fn a_resolution_needs_evidence() {
    let bed = Bed::new().await;
    let worker = bed.worker(&["k"]).await;
    let (_, held) = dispatched(&bed, &worker, Class::Blind).await;
    bed.release(held, Cause::Drain).await.applied().unwrap();
    let happened = Resolution::Happened;
    let bare = bed
        .store
        .resolve_operation(held.task, "blind", happened, None, "ann", "")
        .await;
    assert!(bare.is_err());
    assert_eq!(bed.state(held.task).await, State::Reconciling);
}

#[tokio::test]
async fn what_one_person_has_taken_another_neither_takes_nor_resolves() {
    let bed = Bed::new().await;
    let worker = bed.worker(&["k"]).await;
    let (_, held) = dispatched(&bed, &worker, Class::Blind).await;
    let id = held.task;
    let take = async |who: &str| bed.store.take_operation(id, "blind", who).await.unwrap();
    assert_eq!(take("ann").await, Decided::NotUnknown);
    bed.release(held, Cause::Drain).await.applied().unwrap();
    assert_eq!(take("bob").await, Decided::Done);
    assert_eq!(take("bob").await, Decided::Done);
    let bob = Decided::TakenBy("bob".to_owned());
    assert_eq!(take("ann").await, bob);
    assert_eq!(resolve(&bed, id, "blind", Resolution::Happened).await, bob);
    let happened = Resolution::Happened;
    let by_bob = bed
        .store
        .resolve_operation(id, "blind", happened, None, "bob", "seen")
        .await;
    assert_eq!(by_bob.unwrap(), Decided::Done);
}

/// Among several open operations only the last one that is settled lets the task go.
#[tokio::test]
async fn the_last_open_operation_decides_when_a_stored_outcome_applies() {
    let bed = Bed::new().await;
    let worker = bed.worker(&["k"]).await;
    let claim = bed.claim(&worker).await;
    let id = claim.held.task;
    let held = bed
        .dispatch_named(claim.held, claim.lane, Class::Blind, "b")
        .await;
    let held = bed
        .dispatch_named(held, claim.lane, Class::Queryable, "q")
        .await;
    assert_eq!(bed.complete(held).await.applied(), Some(State::Reconciling));
    assert_eq!(
        resolve(&bed, id, "b", Resolution::Happened).await,
        Decided::Done
    );
    assert_eq!(
        bed.state(id).await,
        State::Ready,
        "a claim settles the other one"
    );
    let claim = bed.claim_again(&worker).await;
    assert_eq!(claim.pending, Some(State::Succeeded));
    let held = bed.settle(claim.held, claim.lane, "q").await;
    assert_eq!(bed.complete(held).await.applied(), Some(State::Succeeded));
}

#[tokio::test]
async fn a_probe_that_cannot_tell_leaves_it_to_people() {
    let bed = Bed::new().await;
    let worker = bed.worker(&["k"]).await;
    let (_, held) = dispatched(&bed, &worker, Class::Queryable).await;
    let mut doubt = release(held, Cause::Unknown);
    doubt.unknown_operations = vec!["queryable".to_owned()];
    doubt.note = Some("the bank answered 500 three times".to_owned());
    let after = bed.store.release(doubt).await.unwrap();
    assert_eq!(after.applied(), Some(State::Reconciling));
    let ledger = bed.store.ledger(held.task).await.unwrap().remove(0);
    assert_eq!(ledger.state, OperationState::Unknown);
    assert_eq!(
        ledger.note.as_deref(),
        Some("the bank answered 500 three times")
    );
}

/// What a dispatch finds under its id decides whether the call may leave.
#[tokio::test]
async fn a_dispatch_repeats_only_what_its_class_allows() {
    let bed = Bed::new().await;
    let worker = bed.worker(&["k"]).await;
    for class in CLASSES {
        let (claim, held) = dispatched(&bed, &worker, class).await;
        let again = |change: fn(&mut aegis_store::guarded::Dispatch)| {
            let mut one = dispatch(held, claim.lane, class, class.word());
            change(&mut one);
            bed.store.dispatch(one)
        };
        // Another request under the same id is refused whatever the class.
        let other = again(|one| one.fingerprint = vec![2]).await.unwrap();
        assert_eq!(other, Outcome::Applied(Dispatched::Refused), "{class:?}");
        let plain = again(|_| ()).await.unwrap();
        let repeats = matches!(
            plain,
            Outcome::Applied(Dispatched::Go { dispatches: 2, .. })
        );
        assert_eq!(
            repeats,
            matches!(class, Class::Idempotent | Class::Fenced),
            "{class:?}"
        );
        if class == Class::Queryable {
            let probed = again(|one| one.probed = true).await.unwrap();
            assert!(matches!(
                probed,
                Outcome::Applied(Dispatched::Go { dispatches: 2, .. })
            ));
        }
        assert_eq!(
            open_ops(&bed, held.task).await,
            1,
            "{class:?}: counted once"
        );
    }
}

#[tokio::test]
async fn an_idempotency_key_that_the_downstream_has_forgotten_is_not_used_again() {
    let bed = Bed::new().await;
    let worker = bed.worker(&["k"]).await;
    let claim = bed.claim(&worker).await;
    let mut first = dispatch(claim.held, claim.lane, Class::Idempotent, "pay");
    first.key_valid_ms = Some(60_000);
    let Outcome::Applied(Dispatched::Go { saved, .. }) =
        bed.store.dispatch(first.clone()).await.unwrap()
    else {
        panic!("the first dispatch is refused");
    };
    first.held.rev = saved.rev;
    bed.sql("update aegis.operation set key_valid_until = clock_timestamp()")
        .await;
    let late = bed.store.dispatch(first).await.unwrap();
    assert_eq!(late, Outcome::Applied(Dispatched::Refused));
    assert_eq!(
        operation_state(&bed, claim.held.task, "pay").await,
        OperationState::Dispatched
    );
}

#[tokio::test]
async fn a_result_is_stored_once() {
    let bed = Bed::new().await;
    let worker = bed.worker(&["k"]).await;
    let (claim, held) = dispatched(&bed, &worker, Class::Fenced).await;
    let held = bed.settle(held, claim.lane, "fenced").await;
    let before = bed.store.ledger(held.task).await.unwrap();
    let again = OperationResult {
        held,
        lane: claim.lane,
        operation: "fenced".to_owned(),
        succeeded: false,
        protocol: 1,
        result: None,
        note: None,
    };
    assert!(bed.store.settle(again).await.unwrap().applied().is_none());
    let after = bed.store.ledger(held.task).await.unwrap();
    assert_eq!(after[0].state, before[0].state);
    assert_eq!(open_ops(&bed, held.task).await, 0);
}

/// The downstream said for sure that nothing was applied: nothing is open any more, and the call may leave again.
#[tokio::test]
async fn a_dispatch_that_was_taken_back_is_not_open_and_may_be_sent_again() {
    let bed = Bed::new().await;
    let worker = bed.worker(&["k"]).await;
    let (claim, held) = dispatched(&bed, &worker, Class::Blind).await;
    let take_back = async |held: Held| {
        let (operation, note) = ("blind".to_owned(), "busy \0".to_owned());
        bed.store.withdraw(held, claim.lane, operation, note).await
    };
    let saved = Saved {
        rev: held.rev + 1,
        lane: claim.lane,
    };
    assert_eq!(take_back(held).await.unwrap(), Outcome::Applied(saved));
    let current = saved.rev;
    assert_eq!(
        take_back(held).await.unwrap(),
        Outcome::Fenced(FenceReason::Rev { current })
    );
    let entry = bed.store.ledger(held.task).await.unwrap().remove(0);
    assert_eq!(entry.state, OperationState::Intended);
    assert_eq!(entry.note.as_deref(), Some("busy \u{fffd}"));
    assert_eq!((entry.result, open_ops(&bed, held.task).await), (None, 0));

    let held = Held {
        rev: saved.rev,
        ..held
    };
    let again = dispatch(held, claim.lane, Class::Blind, "blind");
    let Outcome::Applied(Dispatched::Go { saved, dispatches }) =
        bed.store.dispatch(again).await.unwrap()
    else {
        panic!("what was taken back may be sent again");
    };
    assert_eq!((dispatches, open_ops(&bed, held.task).await), (2, 1));
    // A failure is stored as one.
    let result = OperationResult {
        held: Held {
            rev: saved.rev,
            ..held
        },
        lane: saved.lane,
        operation: "blind".to_owned(),
        succeeded: false,
        protocol: 1,
        result: Some(b"{}".to_vec()),
        note: None,
    };
    bed.store.settle(result).await.unwrap().applied().unwrap();
    assert_eq!(
        operation_state(&bed, held.task, "blind").await,
        OperationState::Failed
    );
}

/// A settling claim that never gets anywhere stops at the policy's maximum: people decide.
#[tokio::test]
async fn settling_that_keeps_failing_is_left_to_people() {
    let bed = Bed::new().await;
    let worker = bed.worker(&["k"]).await;
    let claim = bed
        .claim_with(&worker, |task| task.policy.max_failures = 2)
        .await;
    let held = bed.dispatch(&claim, Class::Queryable).await;
    assert_eq!(bed.complete(held).await.applied(), Some(State::Ready));
    for after in [State::Scheduled, State::Reconciling] {
        let claim = bed.claim_again(&worker).await;
        assert_eq!(bed.fail(claim.held).await.applied(), Some(after));
        bed.sql("update aegis.task set state = 1, run_at = null where state = 0")
            .await;
    }
    assert_eq!(
        resolve(&bed, held.task, "queryable", Resolution::Happened).await,
        Decided::Done
    );
    assert_eq!(
        bed.state(held.task).await,
        State::Succeeded,
        "the first outcome stands"
    );
}

/// Found by the explored model: a late request would make "it did not happen" untrue.
#[tokio::test]
async fn what_may_still_arrive_cannot_be_said_not_to_have_happened() {
    let bed = Bed::new().await;
    let worker = bed.worker(&["k"]).await;
    let (_, held) = dispatched(&bed, &worker, Class::Blind).await;
    let id = held.task;
    bed.release(held, Cause::Drain).await.applied().unwrap();
    let decide = async |resolution| {
        bed.store
            .resolve_operation(id, "blind", resolution, None, "ann", "the provider's log")
            .await
            .unwrap()
    };
    let Decided::Early(until) = decide(Resolution::DidNotHappen).await else {
        panic!("a request may still arrive");
    };
    let detail = bed.store.operation(id, "blind").await.unwrap().unwrap();
    let quiet_until = detail.quiet_until.unwrap();
    assert_eq!(
        until,
        quiet_until.strftime("%Y-%m-%dT%H:%M:%S.%3fZ").to_string()
    );
    assert_eq!(bed.state(id).await, State::Reconciling);
    bed.sql("update aegis.operation set quiet_until = clock_timestamp() - interval '1 ms'")
        .await;
    assert_eq!(decide(Resolution::DidNotHappen).await, Decided::Done);
    assert_eq!(bed.state(id).await, State::Ready);
}

#[tokio::test]
async fn that_it_happened_can_be_said_at_once() {
    let bed = Bed::new().await;
    let worker = bed.worker(&["k"]).await;
    let (_, held) = dispatched(&bed, &worker, Class::Blind).await;
    bed.release(held, Cause::Drain).await.applied().unwrap();
    let happened = bed.store.resolve_operation(
        held.task,
        "blind",
        Resolution::Happened,
        None,
        "ann",
        "seen",
    );
    assert_eq!(happened.await.unwrap(), Decided::Done);
}

/// Found by the explored model: a claim that somebody else ends under a live worker has an execution that may still call.
#[tokio::test]
async fn the_quiet_period_counts_from_the_end_of_the_workers_belief() {
    let bed = Bed::new().await;
    let worker = bed.worker(&["k"]).await;
    for (forced, what) in [(false, "drain"), (true, "a promotion")] {
        let (_, held) = dispatched(&bed, &worker, Class::Queryable).await;
        if forced {
            bed.sql("update aegis.task set timeline = timeline - 1")
                .await;
            let alive = bed.worker(&["other"]).await;
            assert_eq!(bed.tick(&alive).await.reaped, 1);
        } else {
            bed.release(held, Cause::Drain).await.applied().unwrap();
        }
        let ledger = bed.store.ledger(held.task).await.unwrap().remove(0);
        let ttl_ms: i64 = bed
            .value("select ttl_ms from aegis.worker_lease limit 1", &[])
            .await;
        let left = ledger.quiet_left_ms.unwrap();
        // Timeout and quiet period are a second each.
        let wanted = if forced {
            ttl_ms..=ttl_ms + 1000
        } else {
            1..=2000
        };
        assert!(wanted.contains(&left), "{what}: {left} ms of {wanted:?}");
        bed.sql("delete from aegis.task").await;
    }
}
