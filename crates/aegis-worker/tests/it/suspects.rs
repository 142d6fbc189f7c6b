//! Suspects: tasks that were running when a worker crashed.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use aegis_worker::{Exit, TaskContext, handler_fn};
use serde_json::json;

use crate::support::{Bench, Running};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn te_61_each_suspect_runs_alone() {
    let bench = Bench::new().await;
    let mut tasks = Vec::new();
    for n in 0..12 {
        tasks.push(bench.submit("perhaps deadly", json!(n)).await);
    }
    let sql = "update aegis.task set crashes = 1 where id = any($1)";
    let suspects = &tasks[..3];
    bench.db.admin.execute(sql, &[&suspects]).await.unwrap();

    let running = Arc::new(AtomicUsize::new(0));
    // (is a suspect, how many ran when it began, how many when it ended)
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (counted, noted) = (Arc::clone(&running), Arc::clone(&seen));
    let handler = handler_fn("perhaps deadly", move |ctx: TaskContext, _: u32| {
        let (running, seen) = (Arc::clone(&counted), Arc::clone(&noted));
        async move {
            let began = running.fetch_add(1, Ordering::SeqCst) + 1;
            // Long enough for the others to be claimed beside it.
            tokio::time::sleep(Duration::from_millis(150)).await;
            let ended = running.fetch_sub(1, Ordering::SeqCst);
            seen.lock().unwrap().push((ctx.crashes() > 0, began, ended));
            Ok(())
        }
    });
    let worker = Running::start(bench.worker().handler(handler).slots(4));
    for task in &tasks {
        bench.ended(*task).await;
    }
    assert_eq!(worker.drain().await, Exit::Drained);
    let seen = seen.lock().unwrap();
    let alone: Vec<_> = seen.iter().filter(|(suspect, ..)| *suspect).collect();
    assert_eq!(alone, [&(true, 1, 1); 3], "{seen:?}");
    let together = seen.iter().any(|(_, began, _)| *began > 1);
    assert!(together, "the others do not: {seen:?}");
}
