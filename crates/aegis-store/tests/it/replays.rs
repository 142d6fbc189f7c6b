//! Public failures of other engines, replayed on the store. The numbers are those of the collections in the design's
//! reference: TE for task engines, RL for reliability.

use aegis_model::{Cause, FenceReason, Held, Outcome, State};
use aegis_store::guarded::{Completion, SaveTo, StepValue, complete_in};
use uuid::Uuid;

use crate::explain::Planning;
use crate::plans::acquire_plan;
use crate::support::{Bed, Worker, failure};

/// A claim whose worker froze and lost it, and the claim of the worker that took over.
async fn taken_over(bed: &Bed) -> (Held, Held, Worker) {
    let (frozen, next) = (bed.worker(&["k"]).await, bed.worker(&["k"]).await);
    let old = bed.claim(&frozen).await.held;
    bed.expire(&frozen).await;
    assert_eq!(bed.tick(&next).await.reaped, 1);
    let new = bed.acquire_suspect(&next).await.unwrap().held;
    assert_eq!(new.task, old.task);
    (old, new, next)
}

/// A rescuer by age took long executions from live workers (river #682, hexpm #1825, apalis #530, graphile #169).
#[tokio::test]
async fn te_18_te_38_rl_04_rl_07_rl_25_rl_30_a_long_execution_under_a_live_worker_is_never_taken() {
    let bed = Bed::new().await;
    let worker = bed.worker(&["k"]).await;
    let held = bed.claim(&worker).await.held;
    bed.sql("update aegis.task set claimed_at = now() - interval '91 days'")
        .await;
    assert_eq!(bed.tick(&worker).await.reaped, 0);
    assert_eq!(bed.complete(held).await.applied(), Some(State::Succeeded));
}

/// A thawed worker's late success ended the new run, and its late error put the live job back (River 0.51.2).
#[tokio::test]
async fn te_69_rl_32_what_a_thawed_worker_says_changes_nothing() {
    let bed = Bed::new().await;
    let (old, new, _) = taken_over(&bed).await;
    let before: String = bed.live(new.task, "to_jsonb(task)::text").await;
    let gone = FenceReason::Epoch { current: new.epoch };
    assert_eq!(bed.complete(old).await, Outcome::Fenced(gone));
    assert_eq!(bed.fail(old).await, Outcome::Fenced(gone));
    for cause in [Cause::Snooze, Cause::Drain, Cause::Cancelled] {
        assert_eq!(bed.release(old, cause).await, Outcome::Fenced(gone));
    }
    assert_eq!(
        bed.live::<String>(new.task, "to_jsonb(task)::text").await,
        before
    );
    assert_eq!(bed.complete(new).await.applied(), Some(State::Succeeded));
    // Each refusal is written down with both epochs, for an auditor to count.
    let events = bed.store.events(new.task).await.unwrap();
    let fenced: Vec<_> = events
        .iter()
        .filter(|event| event.cause == "fenced")
        .collect();
    assert_eq!(fenced.len(), 5);
    assert_eq!(fenced[0].epoch, old.epoch);
    assert_eq!(
        fenced[0].detail.as_ref().unwrap()["current_epoch"],
        new.epoch
    );
}

/// The stale worker's completion won, and the valid holder got NOT_FOUND (camunda #3757).
#[tokio::test]
async fn te_40_te_43_the_valid_holder_completes_after_a_stale_one_has_tried() {
    let bed = Bed::new().await;
    let (old, new, _) = taken_over(&bed).await;
    assert!(bed.complete(old).await.applied().is_none());
    assert_eq!(bed.complete(new).await.applied(), Some(State::Succeeded));
    assert_eq!(bed.complete(old).await, Outcome::Fenced(FenceReason::Gone));
}

/// Completing inside the handler's own transaction reported no error after a takeover: the effect happened twice (River).
#[tokio::test]
async fn te_70_a_handlers_transaction_fails_when_its_claim_was_taken_over() {
    let bed = Bed::new().await;
    bed.sql("create table public.effects (n int); grant all on public.effects to public")
        .await;
    let (old, new, _) = taken_over(&bed).await;
    for (held, writes) in [(old, false), (new, true)] {
        let mut client = bed.store.handler_pool().get().await.unwrap();
        let transaction = client.transaction().await.unwrap();
        transaction
            .batch_execute("insert into public.effects values (1)")
            .await
            .unwrap();
        let completion = Completion { held, result: None };
        assert_eq!(
            complete_in(&*transaction, &completion).await.unwrap(),
            writes
        );
        if writes {
            transaction.commit().await.unwrap();
        } else {
            transaction.rollback().await.unwrap();
        }
    }
    assert_eq!(
        bed.value::<i64>("select count(*) from public.effects", &[])
            .await,
        1
    );
}

/// A job was both finished and failed (solid_queue #589).
#[tokio::test]
async fn te_37_a_task_ends_once() {
    let bed = Bed::new().await;
    let worker = bed.worker(&["k"]).await;
    for fails_first in [true, false] {
        let held = bed
            .claim_with(&worker, |task| task.policy.max_failures = 1)
            .await
            .held;
        if fails_first {
            assert_eq!(bed.fail(held).await.applied(), Some(State::Failed));
            assert!(bed.complete(held).await.applied().is_none());
        } else {
            assert_eq!(bed.complete(held).await.applied(), Some(State::Succeeded));
            assert!(bed.fail(held).await.applied().is_none());
        }
        let ends: i64 = bed
            .value(
                "select (select count(*) from aegis.task_history where id = $1) + (select count(*) from aegis.parked where id = $1)",
                &[&held.task],
            )
            .await;
        assert_eq!(ends, 1);
    }
}

/// Two recoverers of one run stored different results of a step (dbos-transact-ts #1205); a checkpoint was written by
/// whoever came last (absurd).
#[tokio::test]
async fn rl_14_the_first_durable_value_of_a_step_stands() {
    let bed = Bed::new().await;
    let worker = bed.worker(&["k"]).await;
    let claim = bed.claim(&worker).await;
    let value = |held: Held, text: &str| StepValue {
        name: "charge".to_owned(),
        key: "1".to_owned(),
        to: SaveTo {
            held,
            lane: claim.lane,
            protocol: 1,
            data: text.as_bytes().to_vec(),
        },
    };
    let saved = bed
        .store
        .step(value(claim.held, "\"first\""))
        .await
        .unwrap()
        .applied()
        .unwrap();
    // The same rev again, as a twin of the same execution would send it.
    let twin = bed
        .store
        .step(value(claim.held, "\"second\""))
        .await
        .unwrap();
    assert_eq!(
        twin,
        Outcome::Fenced(FenceReason::Rev { current: saved.rev })
    );
    // And a second use of the name in one attempt is an error that writes nothing.
    let held = Held {
        rev: saved.rev,
        ..claim.held
    };
    assert!(bed.store.step(value(held, "\"third\"")).await.is_err());
    let stored: Vec<u8> = bed.value("select value from aegis.step", &[]).await;
    assert_eq!(stored, b"\"first\"");
    assert_eq!(bed.live::<i64>(held.task, "rev").await, saved.rev);
}

/// Recovery at start ran a live workflow again (dbos-transact-java #491).
#[tokio::test]
async fn rl_13_a_new_worker_leaves_running_tasks_alone() {
    let bed = Bed::new().await;
    let worker = bed.worker(&["k"]).await;
    let held = bed.claim(&worker).await.held;
    let new = bed.worker(&["k"]).await;
    assert_eq!(bed.tick(&new).await.reaped, 0);
    assert!(bed.acquire(&new, 10).await.is_empty());
    assert_eq!(bed.complete(held).await.applied(), Some(State::Succeeded));
}

/// An old executor, still draining, claimed what the new one had just put back (dbos-transact-py #804).
#[tokio::test]
async fn te_12_a_draining_worker_does_not_claim_what_it_handed_back() {
    let bed = Bed::new().await;
    let worker = bed.worker(&["k"]).await;
    let held = bed.claim(&worker).await.held;
    bed.store.drain(worker.id).await.unwrap();
    bed.release(held, Cause::Drain).await.applied().unwrap();
    assert!(bed.acquire(&worker, 1).await.is_empty());
    assert!(bed.acquire_suspect(&worker).await.is_none());
    assert_eq!(bed.state(held.task).await, State::Ready);
}

/// A worker's row was pruned and its jobs were orphaned (procrastinate #1518); a database restart stranded a one-shot
/// recovery (dbos-transact-py #716): what a reaper left half done, the next one finishes.
#[tokio::test]
async fn te_22_te_26_rl_20_a_reaper_that_died_between_its_steps_loses_nothing() {
    let bed = Bed::new().await;
    let (dead, other) = (bed.worker(&["k"]).await, bed.worker(&["k"]).await);
    bed.submit_many("k", 3).await;
    let claims = bed.acquire(&dead, 3).await;
    bed.expire(&dead).await;
    assert_eq!(
        bed.value::<i32>("select aegis.expire_workers()", &[]).await,
        1
    );
    assert_eq!(bed.value::<i32>("select aegis.reap(1)", &[]).await, 1);
    // It is not expired again, and its rows are found all the same; even when nobody knows the worker any more.
    bed.sql(&format!(
        "delete from aegis.worker where id = '{}'",
        dead.id
    ))
    .await;
    assert_eq!(bed.tick(&other).await.reaped, 2);
    for claim in claims {
        assert_eq!(bed.state(claim.held.task).await, State::Ready);
    }
}

/// The reaper cleared the status and not the rest, so the row was stuck (signetai #318).
#[tokio::test]
async fn te_32_rl_35_what_is_taken_back_bears_no_trace_of_its_claim() {
    let bed = Bed::new().await;
    let (dead, other) = (bed.worker(&["k"]).await, bed.worker(&["k"]).await);
    let held = bed.claim(&dead).await.held;
    bed.expire(&dead).await;
    bed.tick(&other).await;
    let clean = "owner is null and claim_id is null and claimed_at is null and floor is null and timeline is null
        and cancel_at is null and cancel_cause is null and run_at is null";
    assert!(bed.live::<bool>(held.task, clean).await);
    assert!(bed.acquire_suspect(&other).await.is_some());
}

/// Claims slowed down with many locked, failed, future, unsupported or limited rows (graphile #274, river #1145).
#[tokio::test]
async fn te_65_only_what_can_be_claimed_is_read_by_a_claim() {
    let bed = Bed::new().await;
    let worker = bed.worker(&["k"]).await;
    bed.submit("k").await;
    bed.submit("unsupported").await;
    bed.sql(
        "insert into aegis.task (id, lane, tenant, state, ord, run_at) select aegis.uuid7(), t.lane, t.tenant, 0, t.ord - n, now() + interval '1 h'
             from aegis.task t, generate_series(1, 10000) n where t.lane = (select id from aegis.lane where kind = 'k');
         insert into aegis.task (id, lane, tenant, state, ord, crashes) select aegis.uuid7(), t.lane, t.tenant, 1, t.ord - n, 1
             from aegis.task t, generate_series(1, 10000) n where t.lane = (select id from aegis.lane where kind = 'k') and t.state = 1;
         insert into aegis.task (id, lane, tenant, state, ord) select aegis.uuid7(), t.lane, t.tenant, 1, t.ord - n
             from aegis.task t, generate_series(1, 10000) n where t.lane = (select id from aegis.lane where kind = 'unsupported');
         analyze aegis.task",
    )
    .await;
    let engine = bed.engine().await;
    let plan = acquire_plan(&engine, &worker, 100, 2, Planning::Generic).await;
    assert!(
        plan.rows_of_task() < 20.0,
        "{} rows read for one task",
        plan.rows_of_task()
    );
}

/// A completion under somebody else's name.
#[tokio::test]
async fn te_41_nothing_works_by_the_tasks_id_alone() {
    let bed = Bed::new().await;
    let worker = bed.worker(&["k"]).await;
    let held = bed.claim(&worker).await.held;
    let guessed = Held {
        claim_id: Uuid::new_v4(),
        ..held
    };
    assert_eq!(
        bed.complete(guessed).await,
        Outcome::Fenced(FenceReason::Claim)
    );
    let mut error = failure(guessed);
    error.retryable = false;
    assert!(
        bed.store
            .fail(vec![error])
            .await
            .unwrap()
            .remove(0)
            .applied()
            .is_none()
    );
    assert_eq!(bed.state(held.task).await, State::Running);
}
