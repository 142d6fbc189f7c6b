//! A snapshot held for long (a dump): what is finished meanwhile cannot leave the indexes, and a claim starts behind it.

use std::time::Duration;

use aegis_store::generated::task;
use aegis_store::guarded::Completion;
use aegis_testkit::wait_until;
use tokio_postgres::Client;
use uuid::Uuid;

use crate::explain::{Plan, Planning, explain};
use crate::support::{Bed, Worker, request};

/// The plan of a claim of 100 from the only head, hinted to start at `from`.
async fn claim_plan(client: &Client, worker: &Worker, from: Option<i64>) -> Plan {
    let one =
        |value: Option<i64>| value.map_or("'{}'".to_owned(), |value| format!("'{{{value}}}'"));
    let id = from.map(|_| 1);
    let arguments = [
        format!("'{}'", worker.id),
        format!("'{}'", Uuid::new_v4()),
        "'{default}'".to_owned(),
        "'{k}'".to_owned(),
        "'{1000}'".to_owned(),
        "'{1000}'".to_owned(),
        "0".to_owned(),
        "0".to_owned(),
        one(id),
        one(id),
        one(from),
        "100".to_owned(),
    ];
    explain(client, &task::ACQUIRE, 2, &arguments, Planning::Generic).await
}

#[tokio::test]
async fn m21_a_claim_beside_a_pinned_snapshot_starts_behind_what_is_finished() {
    let bed = Bed::new().await;
    let worker = bed.worker(&["k"]).await;
    for count in [10_000, 10_000, 1_000] {
        bed.submit_many("k", count).await;
    }
    let engine = bed.engine().await;
    let dump = bed.db.connect().await;
    dump.batch_execute("begin isolation level repeatable read; select count(*) from aegis.task")
        .await
        .unwrap();
    let lowest = "select min(ord) from aegis.task where state = 1";
    let at_first = claim_plan(&engine, &worker, Some(bed.value(lowest, &[]).await))
        .await
        .blocks();
    for _ in 0..40 {
        let acquired = bed.store.acquire(request(&worker, 500)).await.unwrap();
        assert_eq!(acquired.claims.len(), 500);
        let done = acquired.claims.iter().map(|claim| Completion {
            held: claim.held,
            result: None,
        });
        bed.store.complete(done.collect()).await.unwrap();
    }
    let from = bed.value(lowest, &[]).await;
    let hinted = claim_plan(&engine, &worker, Some(from)).await.blocks();
    let unhinted = claim_plan(&engine, &worker, None).await.blocks();
    assert!(
        hinted < at_first + at_first / 5,
        "{at_first} blocks at first, {hinted} after 20,000 completions"
    );
    assert!(
        unhinted > hinted + 300,
        "the fact has changed: {unhinted} blocks without the hint, {hinted} with it"
    );
}

/// Hints are only hints: what lies before them, or in a head that is new, is found.
#[tokio::test]
async fn what_a_hint_leaves_out_is_claimed_within_a_second() {
    let bed = Bed::new().await;
    let worker = bed.worker(&["k"]).await;
    bed.submit_many("k", 2000).await;
    assert_eq!(bed.acquire(&worker, 10).await.len(), 10);
    let first = bed.submit_with("k", |task| task.priority = 0).await;
    let new_head = bed
        .submit_with("k", |task| task.tenant = "new".to_owned())
        .await;
    let mut claimed = Vec::new();
    wait_until(
        "the task with a head start and the new tenant's",
        Duration::from_secs(5),
        async || {
            let claims = bed.acquire(&worker, 10).await;
            claimed.extend(claims.iter().map(|claim| claim.held.task));
            claimed.contains(&first) && claimed.contains(&new_head)
        },
    )
    .await;
}

/// When the hinted heads do not fill the batch everything is looked at in the same call.
#[tokio::test]
async fn what_hints_do_not_fill_is_looked_for_at_once() {
    let bed = Bed::new().await;
    let worker = bed.worker(&["k"]).await;
    bed.submit_many("k", 12).await;
    assert_eq!(bed.acquire(&worker, 10).await.len(), 10);
    bed.submit_with("k", |task| task.tenant = "new".to_owned())
        .await;
    assert_eq!(bed.acquire(&worker, 10).await.len(), 3);
    // And a paused tenant is not served by its hint.
    bed.submit_many("k", 20).await;
    assert_eq!(bed.acquire(&worker, 1).await.len(), 1);
    bed.sql("insert into aegis.pause (scope, value, who, why) values ('tenant', 'default', 'ann', 'why')").await;
    assert!(bed.acquire(&worker, 1).await.is_empty());
}

/// A kind whose slot has just become free is looked for at once, however well the hints of the others fill the batch.
#[tokio::test]
async fn a_kind_that_had_no_room_does_not_wait_for_the_next_full_look() {
    let bed = Bed::new().await;
    let worker = bed.worker(&["short", "long"]).await;
    bed.submit_many("short", 100).await;
    let long = bed.submit_with("long", |task| task.priority = 0).await;
    let mut call = request(&worker, 5);
    call.capacity[1].kind_free = 0;
    assert_eq!(bed.store.acquire(call).await.unwrap().claims.len(), 5);
    let claims = bed.acquire(&worker, 5).await;
    assert!(claims.iter().any(|claim| claim.held.task == long));
}
