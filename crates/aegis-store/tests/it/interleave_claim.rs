//! Acquire beside drain, expiry, another claimer and itself; renewal beside expiry; submit beside its twin.

use std::collections::BTreeSet;
use std::time::Duration;

use aegis_model::State;
use aegis_store::NewTask;
use aegis_testkit::{StepConn, Stepper, wait_until};
use uuid::Uuid;

use crate::raw;
use crate::support::{Bed, request};

async fn begin(conn: &StepConn) {
    conn.run("begin").await;
}

async fn commit(conn: &StepConn) {
    conn.run("commit").await;
}

async fn running(bed: &Bed) -> i64 {
    bed.value("select count(*) from aegis.task where state = 2", &[])
        .await
}

#[tokio::test]
async fn te_08_no_claim_commits_after_the_gate_has_closed() {
    let bed = Bed::new().await;
    let stepper = Stepper::new(&bed.db).await;
    let (taker, drainer) = (stepper.conn("taker").await, stepper.conn("drainer").await);
    let worker = bed.worker(&["k"]).await;
    bed.submit_many("k", 3).await;

    // The claim came first: the gate closes only when it has committed.
    begin(&taker).await;
    let claimed = raw::acquire(&taker, &worker, Uuid::new_v4(), 1);
    assert_eq!(claimed.done().await.len(), 1);
    let pending = raw::drain(&drainer, &worker);
    assert_eq!(pending.blocked().await, ["taker"]);
    commit(&taker).await;
    assert!(pending.done().await);
    assert_eq!(running(&bed).await, 1);

    // The gate came first: the claim waits for it and gets nothing.
    let worker = bed.worker(&["k"]).await;
    begin(&drainer).await;
    assert!(raw::drain(&drainer, &worker).done().await);
    let pending = raw::acquire(&taker, &worker, Uuid::new_v4(), 1);
    assert_eq!(pending.blocked().await, ["drainer"]);
    commit(&drainer).await;
    assert!(
        pending.done().await.is_empty(),
        "claimed through a closed gate"
    );
    assert!(bed.acquire(&worker, 1).await.is_empty());
    assert_eq!(running(&bed).await, 1);
}

#[tokio::test]
async fn te_39_a_worker_that_is_being_declared_lost_claims_nothing() {
    let bed = Bed::new().await;
    let stepper = Stepper::new(&bed.db).await;
    let (taker, reaper) = (stepper.conn("taker").await, stepper.conn("reaper").await);
    let worker = bed.worker(&["k"]).await;
    bed.submit("k").await;
    bed.expire(&worker).await;
    begin(&reaper).await;
    assert_eq!(
        raw::number(&reaper, "aegis.expire_workers()").done().await,
        1
    );
    let pending = raw::acquire(&taker, &worker, Uuid::new_v4(), 1);
    assert_eq!(pending.blocked().await, ["reaper"]);
    commit(&reaper).await;
    assert!(pending.done().await.is_empty());
    assert_eq!(running(&bed).await, 0);
}

/// The reaper does not wait for a claim under way, and takes its tasks back once it has committed.
#[tokio::test]
async fn a_claim_under_way_is_passed_over_by_the_reaper_and_reaped_later() {
    let bed = Bed::new().await;
    let stepper = Stepper::new(&bed.db).await;
    let (taker, reaper) = (stepper.conn("taker").await, stepper.conn("reaper").await);
    let worker = bed.worker(&["k"]).await;
    let id = bed.submit("k").await;
    begin(&taker).await;
    let claimed = raw::acquire(&taker, &worker, Uuid::new_v4(), 1);
    assert_eq!(claimed.done().await, [id]);
    bed.expire(&worker).await;
    assert_eq!(
        raw::number(&reaper, "aegis.expire_workers()").done().await,
        0
    );
    assert_eq!(raw::number(&reaper, "aegis.reap(10)").done().await, 0);
    commit(&taker).await;
    assert_eq!(
        raw::number(&reaper, "aegis.expire_workers()").done().await,
        1
    );
    assert_eq!(raw::number(&reaper, "aegis.reap(10)").done().await, 1);
    assert_eq!(bed.state(id).await, State::Ready);
}

#[tokio::test]
async fn a_renewal_under_way_keeps_its_worker() {
    let bed = Bed::new().await;
    let stepper = Stepper::new(&bed.db).await;
    let (beater, reaper) = (stepper.conn("beater").await, stepper.conn("reaper").await);
    let worker = bed.worker(&["k"]).await;
    bed.sql("update aegis.worker_lease set lease_until = clock_timestamp() + interval '300 ms'")
        .await;
    begin(&beater).await;
    assert!(raw::renew(&beater, &worker, 1).done().await);
    wait_until("the old lease's end", Duration::from_secs(10), async || {
        let sql = "select lease_until < clock_timestamp() from aegis.worker_lease";
        bed.value::<bool>(sql, &[]).await
    })
    .await;
    assert_eq!(
        raw::number(&reaper, "aegis.expire_workers()").done().await,
        0
    );
    commit(&beater).await;
    assert_eq!(
        raw::number(&reaper, "aegis.expire_workers()").done().await,
        0
    );
    assert!(raw::renew(&beater, &worker, 2).done().await);
}

#[tokio::test]
async fn rl_36_a_renewal_that_waits_for_expiry_does_not_steal_the_lease_back() {
    let bed = Bed::new().await;
    let stepper = Stepper::new(&bed.db).await;
    let (beater, reaper) = (stepper.conn("beater").await, stepper.conn("reaper").await);
    let worker = bed.worker(&["k"]).await;
    bed.expire(&worker).await;
    begin(&reaper).await;
    assert_eq!(
        raw::number(&reaper, "aegis.expire_workers()").done().await,
        1
    );
    let pending = raw::renew(&beater, &worker, 1);
    assert_eq!(pending.blocked().await, ["reaper"]);
    // The clock goes back, say: the lease itself would hold again. Lost is for ever all the same.
    commit(&reaper).await;
    bed.sql("update aegis.worker_lease set lease_until = clock_timestamp() + interval '1 min'")
        .await;
    assert!(!pending.done().await);
    assert!(!raw::renew(&beater, &worker, 2).done().await);
}

#[tokio::test]
async fn renewal_does_not_wait_for_a_claim() {
    let bed = Bed::new().await;
    let stepper = Stepper::new(&bed.db).await;
    let (taker, beater) = (stepper.conn("taker").await, stepper.conn("beater").await);
    let worker = bed.worker(&["k"]).await;
    bed.submit("k").await;
    begin(&taker).await;
    let claimed = raw::acquire(&taker, &worker, Uuid::new_v4(), 1);
    assert_eq!(claimed.done().await.len(), 1);
    assert!(raw::renew(&beater, &worker, 1).done().await);
    commit(&taker).await;
}

#[tokio::test]
async fn te_46_rl_24_two_claimers_get_a_full_batch_each_and_no_task_twice() {
    let bed = Bed::new().await;
    let stepper = Stepper::new(&bed.db).await;
    let (one, two) = (stepper.conn("one").await, stepper.conn("two").await);
    let (first, second) = (bed.worker(&["k"]).await, bed.worker(&["k"]).await);
    bed.submit_many("k", 100).await;
    begin(&one).await;
    let a = raw::acquire(&one, &first, Uuid::new_v4(), 50).done().await;
    // Not blocked: done while the first is still open.
    let b = raw::acquire(&two, &second, Uuid::new_v4(), 50).done().await;
    commit(&one).await;
    assert_eq!((a.len(), b.len()), (50, 50));
    let all: BTreeSet<Uuid> = a.into_iter().chain(b).collect();
    assert_eq!(all.len(), 100, "a task was claimed twice");
    assert_eq!(running(&bed).await, 100);
}

/// A repeat of a call that is still under way waits for it, claims nothing more, and gets its answer.
#[tokio::test]
async fn te_33_a_repeated_request_beside_the_first_gets_the_first_answer() {
    let bed = Bed::new().await;
    let stepper = Stepper::new(&bed.db).await;
    let first = stepper.conn("first").await;
    let worker = bed.worker(&["k"]).await;
    bed.submit_many("k", 10).await;
    let call = request(&worker, 2);
    begin(&first).await;
    let claimed = raw::acquire(&first, &worker, call.request, 2).done().await;
    let store = bed.store.clone();
    let repeat = tokio::spawn({
        let call = call.clone();
        async move { store.acquire(call).await }
    });
    wait_blocked(&bed, 1).await;
    commit(&first).await;
    let repeated = repeat.await.unwrap().unwrap();
    let again = bed.store.acquire(call).await.unwrap();
    for answer in [repeated, again] {
        let ids: BTreeSet<Uuid> = answer.claims.iter().map(|c| c.held.task).collect();
        assert_eq!(ids, claimed.iter().copied().collect());
    }
    assert_eq!(running(&bed).await, 2);
}

/// Waits until so many backends of the test's database wait for a lock.
async fn wait_blocked(bed: &Bed, count: i64) {
    wait_until("a blocked backend", Duration::from_secs(20), async || {
        let sql = "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'";
        bed.value::<i64>(sql, &[]).await == count
    })
    .await;
}

#[tokio::test]
async fn m14_the_second_of_two_submits_with_a_key_waits_and_gets_the_firsts_task() {
    let bed = Bed::new().await;
    let stepper = Stepper::new(&bed.db).await;
    let (one, two) = (stepper.conn("one").await, stepper.conn("two").await);
    bed.value::<i32>("select aegis.tenant_id('default')", &[])
        .await;

    let mut client = bed.engine().await;
    let transaction = client.transaction().await.unwrap();
    let keyed = || {
        let mut task = NewTask::new("k", r#"{"a": 1, "b": 2}"#);
        task.key = Some("x".to_owned());
        task
    };
    let first = bed.store.submit_in(&transaction, vec![keyed()]).await;
    let first = first.unwrap().remove(0);
    assert!(first.is_new);
    let store = bed.store.clone();
    // The same document written otherwise.
    let mut twin = keyed();
    twin.input = br#"{ "b":2,"a":1 }"#.to_vec();
    let second = tokio::spawn(async move { store.submit(twin).await });
    wait_blocked(&bed, 1).await;
    transaction.commit().await.unwrap();
    let second = second.await.unwrap().unwrap();
    assert_eq!((second.task, second.is_new), (first.task, false));

    // When the first rolls back, the key is the second's.
    begin(&one).await;
    assert!(raw::reserve(&one, &["y"]).done().await.len() == 1);
    let pending = raw::reserve(&two, &["y"]);
    assert_eq!(pending.blocked().await, ["one"]);
    one.run("rollback").await;
    assert_eq!(pending.done().await.len(), 1);

    // The fact: one statement that inserts or reads gives no row beside an uncommitted twin.
    begin(&one).await;
    assert!(raw::reserve(&one, &["z"]).done().await.len() == 1);
    let pending = two.spawn(
        "with i as (insert into aegis.idempotency (tenant, kind, key, task, payload_hash, expires_at)
            values (1, 'k', 'z', gen_random_uuid(), '', now()) on conflict do nothing returning task)
         select task from i union all select task from aegis.idempotency where tenant = 1 and kind = 'k' and key = 'z'",
    );
    assert_eq!(pending.blocked().await, ["one"]);
    commit(&one).await;
    let rows = pending.done().await.unwrap();
    assert!(rows.is_empty(), "the fact has changed: the twin is seen");
}

/// Keys are reserved in their order whatever the order of the batch, so that two batches cannot wait for each other.
#[tokio::test]
async fn keys_are_reserved_in_their_order() {
    let bed = Bed::new().await;
    let stepper = Stepper::new(&bed.db).await;
    let (holder, batch) = (stepper.conn("holder").await, stepper.conn("batch").await);
    let other = stepper.conn("other").await;
    bed.value::<i32>("select aegis.tenant_id('default')", &[])
        .await;
    begin(&holder).await;
    raw::reserve(&holder, &["a"]).done().await;
    let pending = raw::reserve(&batch, &["z", "a"]);
    assert_eq!(pending.blocked().await, ["holder"]);
    // It waits for the first key with no other in its hands.
    assert_eq!(raw::reserve(&other, &["z"]).done().await.len(), 1);
    commit(&holder).await;
    assert!(pending.done().await.is_empty());
}

/// Under REPEATABLE READ the second gets a serialization failure, as documented.
#[tokio::test]
async fn a_keyed_submit_under_repeatable_read_fails_with_40001_beside_a_twin() {
    let bed = Bed::new().await;
    let stepper = Stepper::new(&bed.db).await;
    let (one, two) = (stepper.conn("one").await, stepper.conn("two").await);
    let sql = "select aegis.submit('k', '{}', key => 'x')";
    two.run("begin isolation level repeatable read").await;
    two.run("select count(*) from aegis.task").await;
    one.run(sql).await;
    let error = two.spawn(sql).done().await.unwrap_err();
    assert_eq!(error.code().unwrap().code(), "40001");
}
