//! Commits that tell the truth, the fence inside a handler's own transaction, and answers that were lost.

use std::time::Duration;

use aegis_model::limits::CHECKPOINT_BYTES_MAX;
use aegis_model::{Held, Outcome, State};
use aegis_store::StoreError;
use aegis_store::guarded::{Completion, ReadBack, SaveTo, Saved, StepValue, complete_in, fence_in};
use aegis_store::transaction::commit_checked;
use aegis_testkit::{Stepper, wait_until};

use crate::support::Bed;

async fn own_rows(bed: &Bed) -> i64 {
    bed.value("select count(*) from public.own", &[]).await
}

async fn with_own_table() -> Bed {
    let bed = Bed::new().await;
    bed.sql("create table public.own (n int check (n < 10)); grant all on public.own to public")
        .await;
    bed
}

/// A COMMIT of an aborted transaction answers ROLLBACK, and the driver says Ok.
#[tokio::test]
async fn rl_12_a_commit_that_rolls_back_is_an_error() {
    let bed = with_own_table().await;
    let pool = bed.store.handler_pool();
    for checked in [false, true] {
        let mut client = pool.get().await.unwrap();
        let transaction = client.transaction().await.unwrap();
        transaction
            .batch_execute("insert into public.own values (1)")
            .await
            .unwrap();
        // A handler that swallows an error of its own.
        transaction
            .batch_execute("insert into public.own values (99)")
            .await
            .unwrap_err();
        if checked {
            let error = commit_checked(transaction).await.unwrap_err();
            let StoreError::Database { source } = error else {
                panic!("{error:?}");
            };
            assert_eq!(source.code().unwrap().code(), "25P02");
        } else {
            transaction
                .commit()
                .await
                .expect("the driver has learned to tell: commit_checked can go");
        }
        assert_eq!(own_rows(&bed).await, 0);
    }
}

#[tokio::test]
async fn a_constraint_that_fails_at_the_commit_is_an_error() {
    let bed = with_own_table().await;
    bed.sql("alter table public.own add constraint once unique (n) deferrable initially deferred")
        .await;
    let mut client = bed.store.handler_pool().get().await.unwrap();
    let transaction = client.transaction().await.unwrap();
    transaction
        .batch_execute("insert into public.own values (1), (1)")
        .await
        .unwrap();
    assert!(commit_checked(transaction).await.is_err());
    assert_eq!(own_rows(&bed).await, 0);
}

/// The handler's rows, its checkpoint and the fence are one: all or nothing.
#[tokio::test]
async fn what_a_handler_writes_beside_its_checkpoint_stands_and_falls_with_the_fence() {
    let bed = with_own_table().await;
    let worker = bed.worker(&["k"]).await;
    for stale in [false, true] {
        let claim = bed.claim(&worker).await;
        let mut to = SaveTo {
            held: claim.held,
            lane: claim.lane,
            protocol: 1,
            data: b"{\"at\": 7}".to_vec(),
        };
        if stale {
            to.held.epoch -= 1;
        }
        let mut client = bed.store.handler_pool().get().await.unwrap();
        let transaction = client.transaction().await.unwrap();
        transaction
            .batch_execute("insert into public.own values (1)")
            .await
            .unwrap();
        let lane = bed.store.lane_after(to.lane, to.protocol).await.unwrap();
        let saved = fence_in(&*transaction, &to, lane).await.unwrap();
        if stale {
            assert!(saved.is_none());
            transaction.rollback().await.unwrap();
        } else {
            assert_eq!(saved.unwrap().rev, claim.held.rev + 1);
            commit_checked(transaction).await.unwrap();
        }
        assert_eq!(own_rows(&bed).await, 1);
        let checkpoints: i64 = bed
            .value(
                "select count(*) from aegis.checkpoint where task = $1",
                &[&claim.held.task],
            )
            .await;
        assert_eq!(checkpoints, i64::from(!stale));
    }
}

/// A checkpoint and a step's value of just the limit are stored; of one byte more nothing is sent.
#[tokio::test]
async fn what_is_saved_may_fill_its_limit_and_not_pass_it() {
    let bed = Bed::new().await;
    let worker = bed.worker(&["k"]).await;
    let claim = bed.claim(&worker).await;
    let mut held = claim.held;
    for what in ["the checkpoint", "the step value"] {
        let save = async |held: Held, bytes: usize| {
            let to = SaveTo {
                held,
                lane: claim.lane,
                protocol: 1,
                data: vec![b'1'; bytes],
            };
            if what == "the checkpoint" {
                return bed.store.checkpoint(to).await;
            }
            let (name, key) = ("s".to_owned(), "1".to_owned());
            bed.store.step(StepValue { name, key, to }).await
        };
        let before = bed.rows().await;
        let error = save(held, CHECKPOINT_BYTES_MAX + 1).await.unwrap_err();
        let StoreError::TooLarge { bytes, limit, .. } = error else {
            panic!("{what}: {error:?}");
        };
        assert_eq!((bytes, limit), (1_048_577, 1_048_576), "{what}");
        assert!(error.to_string().starts_with(what), "{error}");
        assert_eq!(bed.rows().await, before, "{what}");
        let saved = save(held, CHECKPOINT_BYTES_MAX).await.unwrap();
        let rev = held.rev + 1;
        let lane = claim.lane;
        assert_eq!(saved, Outcome::Applied(Saved { rev, lane }), "{what}");
        held.rev = rev;
    }
}

#[tokio::test]
async fn what_a_handler_writes_beside_its_completion_stands_and_falls_with_it() {
    let bed = with_own_table().await;
    let worker = bed.worker(&["k"]).await;
    for stale in [false, true] {
        let mut held = bed.claim(&worker).await.held;
        held.rev += i64::from(stale);
        let completion = Completion { held, result: None };
        let mut client = bed.store.handler_pool().get().await.unwrap();
        let transaction = client.transaction().await.unwrap();
        transaction
            .batch_execute("insert into public.own values (2)")
            .await
            .unwrap();
        let written = complete_in(&*transaction, &completion).await.unwrap();
        assert_eq!(written, !stale);
        if stale {
            transaction.rollback().await.unwrap();
        } else {
            commit_checked(transaction).await.unwrap();
        }
        let expected = if stale {
            State::Running
        } else {
            State::Succeeded
        };
        assert_eq!(bed.state(held.task).await, expected);
        assert_eq!(own_rows(&bed).await, 1);
    }
}

/// The connection ends while the write waits: nobody knows, and the read-back tells.
#[tokio::test]
async fn a_lost_answer_is_unknown_until_it_was_read_back() {
    let bed = Bed::new().await;
    let stepper = Stepper::new(&bed.db).await;
    let holder = stepper.conn("holder").await;
    let worker = bed.worker(&["k"]).await;
    let held = bed.claim(&worker).await.held;
    holder.run("begin").await;
    holder.run("select from aegis.task for update").await;
    let store = bed.store.clone();
    let one = Completion { held, result: None };
    let waiting = tokio::spawn({
        let one = one.clone();
        async move { store.complete(vec![one]).await }
    });
    let blocked = "select pid from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'";
    wait_until(
        "the blocked completion",
        Duration::from_secs(20),
        async || bed.db.admin.query(blocked, &[]).await.unwrap().len() == 1,
    )
    .await;
    let pid: i32 = bed.value(blocked, &[]).await;
    let ended: bool = bed.value("select pg_terminate_backend($1)", &[&pid]).await;
    assert!(ended);
    let answers = waiting.await.unwrap().unwrap();
    assert_eq!(answers, [Outcome::Unknown]);
    holder.run("rollback").await;
    let digest = Some(one.digest());
    assert_eq!(
        bed.store.read_back(held, digest).await.unwrap(),
        ReadBack::NotApplied
    );
    assert_eq!(bed.complete(held).await.applied(), Some(State::Succeeded));
}

/// A waiter that is dropped does not drop the call that was sent.
#[tokio::test]
async fn rl_11_a_call_that_was_sent_is_not_dropped_with_its_waiter() {
    let bed = Bed::new().await;
    let stepper = Stepper::new(&bed.db).await;
    let holder = stepper.conn("holder").await;
    let worker = bed.worker(&["k"]).await;
    let held = bed.claim(&worker).await.held;
    holder.run("begin").await;
    holder.run("select from aegis.task for update").await;
    let call = bed.store.complete(vec![Completion { held, result: None }]);
    let waited = tokio::time::timeout(Duration::from_millis(200), call).await;
    assert!(waited.is_err(), "it did not wait");
    holder.run("rollback").await;
    wait_until("the completion", Duration::from_secs(20), async || {
        bed.state(held.task).await == State::Succeeded
    })
    .await;
}
