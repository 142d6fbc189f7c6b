//! Checkpoints over workers and protocols.

use std::time::Duration;

use aegis_testkit::wait_until;
use aegis_worker::{
    Exit, ProtocolRange, Protocols, TaskContext, TaskError, TaskHandler, handler_fn,
};
use serde_json::{Value, json};

use crate::support::{BOUND, Bench, Running, result};

#[derive(serde::Serialize, serde::Deserialize)]
struct Cursor {
    next: u64,
}

/// Counts to its input, a checkpoint a step; stops half-way when told to.
struct Count {
    stop_at: Option<u64>,
}

impl TaskHandler for Count {
    const KIND: &'static str = "count";
    type Input = u64;
    type Output = Value;
    type Checkpoint = Cursor;

    async fn run(&self, ctx: TaskContext<Cursor>, upto: u64) -> Result<Value, TaskError> {
        let started_at = ctx.checkpoint().await?.map_or(0, |cursor| cursor.next);
        for n in started_at..upto {
            if self.stop_at == Some(n) {
                return Err(TaskError::snooze(Duration::ZERO));
            }
            ctx.save_checkpoint(&Cursor { next: n + 1 }).await?;
        }
        Ok(json!({ "from": started_at }))
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_next_attempt_starts_from_the_checkpoint() {
    let bench = Bench::new().await;
    let first = Running::start(bench.worker().handler(Count { stop_at: Some(3) }));
    let task = bench.submit("count", json!(5)).await;
    wait_until("the checkpoint", BOUND, async || {
        let detail = bench.store.task(task).await.unwrap().unwrap();
        detail.checkpoint_seq == Some(3)
    })
    .await;
    first.drain().await;
    let second = Running::start(bench.worker().handler(Count { stop_at: None }));
    let ended = bench.ended(task).await;
    assert_eq!(result(&ended), json!({ "from": 3 }));
    assert!(ended.snoozes >= 1);
    assert_eq!(second.drain().await, Exit::Drained);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_newer_checkpoint_is_kept_from_an_older_worker_and_an_older_one_is_upcast() {
    let bench = Bench::new().await;
    let handler = |writes: i32, reads: ProtocolRange, finish: bool| {
        let protocols = Protocols::new(reads)
            .upcast_input(1, |input| Ok(json!({ "name": input })))
            .upcast_checkpoint(1, |value| Ok(json!({ "v": 2, "was": value })));
        handler_fn("evolve", move |ctx: TaskContext, input: Value| async move {
            let found = ctx.checkpoint().await?;
            if finish {
                return Ok(json!({ "input": input, "checkpoint": found }));
            }
            ctx.save_checkpoint(&json!({ "v": writes })).await?;
            Err(TaskError::snooze(Duration::ZERO))
        })
        .protocols(protocols)
    };
    let range = |min, max, writes| ProtocolRange::new(min, max, writes).unwrap();
    let task = bench.submit("evolve", json!("ann")).await;
    let checkpoint_protocol = async |wanted: i32| {
        wait_until("the checkpoint's protocol", BOUND, async || {
            let detail = bench.store.task(task).await.unwrap().unwrap();
            detail.checkpoint_protocol == Some(wanted)
        })
        .await;
    };

    // Version 1 saves in protocol 1; version 2 reads it upcast.
    let v1 = Running::start(bench.worker().handler(handler(1, range(1, 1, 1), false)));
    checkpoint_protocol(1).await;
    v1.drain().await;
    // Version 2 saves in protocol 2: the task moves to another lane.
    let v2 = Running::start(bench.worker().handler(handler(2, range(1, 2, 2), false)));
    checkpoint_protocol(2).await;
    v2.drain().await;

    // An older worker looks often and is never given it.
    let v1 = Running::start(bench.worker().handler(handler(1, range(1, 1, 1), true)));
    wait_until("many looks", BOUND, async || {
        v1.handle.snapshot().counts.claim_ticks > 10
    })
    .await;
    let counts = v1.handle.snapshot().counts;
    assert_eq!(counts.claimed, 0, "{counts:?}");
    v1.drain().await;

    let v2 = Running::start(bench.worker().handler(handler(2, range(1, 2, 2), true)));
    let ended = bench.ended(task).await;
    assert_eq!(
        result(&ended),
        json!({ "input": { "name": "ann" }, "checkpoint": { "v": 2 } })
    );
    v2.drain().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_older_checkpoint_is_upcast() {
    let bench = Bench::new().await;
    let first = Running::start(bench.worker().handler(Count { stop_at: Some(2) }));
    let task = bench.submit("count", json!(4)).await;
    wait_until("the checkpoint", BOUND, async || {
        let detail = bench.store.task(task).await.unwrap().unwrap();
        detail.checkpoint_seq == Some(2)
    })
    .await;
    first.drain().await;
    let protocols = Protocols::new(ProtocolRange::new(1, 2, 2).unwrap())
        .upcast_checkpoint(1, |value| Ok(json!({ "position": value["next"] })));
    let second = handler_fn("count", |ctx: TaskContext, _: u64| async move {
        let protocol = ctx.checkpoint_protocol().await?;
        Ok(json!([protocol, ctx.checkpoint().await?]))
    });
    let worker = Running::start(bench.worker().handler(second.protocols(protocols)));
    assert_eq!(
        result(&bench.ended(task).await),
        json!([1, { "position": 2 }])
    );
    worker.drain().await;
}

struct Odd;
impl TaskHandler for Odd {
    const KIND: &'static str = "odd";
    type Input = ();
    type Output = ();
    type Checkpoint = Cursor;
    async fn run(&self, ctx: TaskContext<Cursor>, (): ()) -> Result<(), TaskError> {
        ctx.checkpoint().await.map(|_| ())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_checkpoint_that_cannot_be_decoded_is_kept_and_the_attempt_is_retried() {
    let bench = Bench::new().await;
    let write = handler_fn("odd", |ctx: TaskContext, (): ()| async move {
        ctx.save_checkpoint(&json!("not a cursor")).await?;
        Err::<(), _>(TaskError::snooze(Duration::ZERO))
    });
    let first = Running::start(bench.worker().handler(write));
    let task = bench.submit("odd", json!(null)).await;
    wait_until("the checkpoint", BOUND, async || {
        let detail = bench.store.task(task).await.unwrap().unwrap();
        detail.checkpoint_seq.is_some()
    })
    .await;
    first.drain().await;
    let second = Running::start(bench.worker().handler(Odd));
    wait_until("the error", BOUND, async || {
        let errors = bench.store.attempt_errors(task).await.unwrap();
        errors
            .iter()
            .any(|error| error.code == "checkpoint_invalid" && error.retryable)
    })
    .await;
    let detail = bench.store.task(task).await.unwrap().unwrap();
    assert!(detail.checkpoint_seq.is_some());
    second.drain().await;
}
