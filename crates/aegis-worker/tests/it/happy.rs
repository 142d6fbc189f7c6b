//! Tasks that go well.

use aegis_worker::{Exit, TaskContext, handler_fn};
use serde_json::json;

use crate::support::{Bench, Running, result};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_is_claimed_executed_and_its_result_stored() {
    let bench = Bench::new().await;
    let greet = handler_fn("greet", |ctx: TaskContext, name: String| async move {
        Ok(format!("hello {name} at epoch {}", ctx.epoch()))
    });
    let worker = Running::start(bench.worker().handler(greet));
    let task = bench.submit("greet", json!("world")).await;
    let ended = bench.ended(task).await;
    assert_eq!(result(&ended), json!("hello world at epoch 1"));
    assert_eq!(worker.drain().await, Exit::Drained);
    assert_eq!(bench.causes(task).await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_short_tasks_go_through_few_slots() {
    let bench = Bench::new().await;
    let double = handler_fn(
        "double",
        |_ctx: TaskContext, n: u64| async move { Ok(n * 2) },
    );
    let worker = Running::start(bench.worker().handler(double).slots(4));
    let tasks: Vec<_> = (0..2000_u64)
        .map(|n| aegis_store::NewTask::new("double", n.to_string()))
        .collect();
    let submitted = bench.store.submit_batch(tasks).await.unwrap();
    for (n, one) in submitted.iter().enumerate() {
        let ended = bench.ended(one.task).await;
        assert_eq!(result(&ended), json!(n * 2));
    }
    assert_eq!(worker.drain().await, Exit::Drained);
}
