//! What is shown of the database to whoever watches a worker, and of the attempt before one.

use std::time::Duration;

use aegis_model::{Cause, Class, Outcome};
use aegis_store::generated::worker;
use uuid::Uuid;

use crate::explain::{Planning, explain};
use crate::support::Bed;

#[tokio::test]
async fn a_worker_sees_what_waits_for_it_and_what_nobody_like_it_can_read() {
    let bed = Bed::new().await;
    assert_eq!(bed.store.observe(Uuid::new_v4()).await.unwrap(), None);
    let worker = bed.worker(&["k", "other"]).await;
    let empty = bed.store.observe(worker.id).await.unwrap().unwrap();
    assert_eq!(empty.kinds.len(), 2);
    for kind in &empty.kinds {
        assert_eq!((kind.ready, kind.unreadable, kind.next_waits), (0, 0, None));
    }
    assert_eq!(
        (empty.unknown_operations, empty.running_without_lease),
        (0, 0)
    );
    assert!(empty.partition_days_ahead >= 1);

    // Two tenants: the one that comes second in the index has waited longer, and is of the lowest priority.
    bed.submit_with("k", |task| task.tenant = "young".to_owned())
        .await;
    let old = bed.submit_with("k", |task| {
        task.tenant = "z-old".to_owned();
        task.priority = 9;
    });
    let old = old.await;
    bed.submit_with("k", |task| task.protocol = 7).await;
    bed.sql(&format!(
        "update aegis.task set ord = ord - 3600 * 1000000::bigint where id = '{old}'"
    ))
    .await;
    let seen = bed.store.observe(worker.id).await.unwrap().unwrap();
    let k = seen.kinds.iter().find(|one| one.kind == "k").unwrap();
    assert_eq!((k.ready, k.unreadable), (2, 1));
    let waits = k.next_waits.unwrap();
    let hour = Duration::from_hours(1);
    assert!(
        waits >= hour && waits < hour + Duration::from_mins(5),
        "{waits:?}"
    );
    let other = seen.kinds.iter().find(|one| one.kind == "other").unwrap();
    assert_eq!((other.ready, other.next_waits), (0, None));
}

#[tokio::test]
async fn te_19_rl_05_unknown_operations_and_rows_without_a_lease_are_counted() {
    let bed = Bed::new().await;
    let worker = bed.worker(&["k"]).await;
    let claim = bed.claim(&worker).await;
    let held = bed.dispatch(&claim, Class::Blind).await;
    let released = bed.release(held, Cause::Unknown).await;
    assert!(matches!(released, Outcome::Applied(_)), "{released:?}");
    bed.claim(&worker).await;
    let seen = bed.store.observe(worker.id).await.unwrap().unwrap();
    assert_eq!(
        (seen.unknown_operations, seen.running_without_lease),
        (1, 0)
    );
    bed.sql("update aegis.worker_lease set lease_until = clock_timestamp() - interval '1 s'")
        .await;
    let seen = bed.store.observe(worker.id).await.unwrap().unwrap();
    assert_eq!(seen.running_without_lease, 1);
}

#[tokio::test]
async fn the_attempt_before_is_the_last_one_that_ended_with_its_cause_and_owner() {
    let bed = Bed::new().await;
    let worker = bed.worker(&["k"]).await;
    let first = bed.claim(&worker).await.held;
    assert_eq!(
        bed.store
            .last_attempt(first.task, first.epoch)
            .await
            .unwrap(),
        None
    );
    let released = bed.release(first, Cause::Snooze).await;
    assert!(matches!(released, Outcome::Applied(_)), "{released:?}");
    let second = bed.claim_again(&worker).await.held;
    let before = bed
        .store
        .last_attempt(first.task, second.epoch)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        (before.epoch, before.cause.as_str()),
        (first.epoch, "snooze")
    );
    assert_eq!(before.owner, Some(worker.id));
    assert!(before.claimed_at.unwrap() <= before.ended_at);
}

#[tokio::test]
async fn a_look_is_bounded_however_much_waits() {
    let bed = Bed::new().await;
    let id = bed.worker(&["k"]).await.id;
    let lane: i32 = bed
        .value("select aegis.lane_id('default', 'k', 1, 1)", &[])
        .await;
    bed.sql("alter table aegis.task set (autovacuum_enabled = off)")
        .await;
    bed.sql(&format!(
        "insert into aegis.task (id, lane, tenant, state, ord) select aegis.uuid7(), {lane}, n % 20, 1, n from generate_series(1, 60000) n"
    ))
    .await;
    let engine = bed.engine().await;
    for analyzed in [false, true] {
        if analyzed {
            bed.sql("analyze aegis.task").await;
        }
        for planning in [Planning::Generic, Planning::Custom] {
            let plan = explain(&engine, &worker::OBSERVE, 0, &[format!("'{id}'")], planning).await;
            let what = format!(
                "{planning:?}, analyzed {analyzed}: {:?}",
                plan.reads_of_task()
            );
            assert!(
                !plan.reads_of_task().contains(&"Seq Scan".to_owned()),
                "{what}"
            );
            let read = plan.rows_of_task();
            assert!(read < 12_000.0, "{what}: {read} rows of 60,000");
        }
    }
    let seen = bed.store.observe(id).await.unwrap().unwrap();
    assert_eq!(seen.kinds[0].ready, 10_000);
}
