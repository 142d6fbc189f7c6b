//! Answers that never come: nothing is lost, nothing is done twice.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use aegis_store::NewTask;
use aegis_worker::{Exit, TaskContext, TaskError, handler_fn};
use serde_json::json;

use crate::support::proxy::{Cut, Proxy};
use crate::support::{Bench, Running, quick_task, result, store_at_unnamed, worker_on};

/// Runs one task through a line that is cut once; answers (result, handler runs, the worker's counts, causes).
async fn through(
    cut: Cut,
) -> (
    serde_json::Value,
    usize,
    aegis_worker::Counts,
    Vec<String>,
    i32,
) {
    let bench = Bench::new().await;
    let proxy = Proxy::before(&bench.db.url_as("aegis_engine")).await;
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&runs);
    let handler = handler_fn("work", move |ctx: TaskContext, (): ()| {
        let run = counted.fetch_add(1, Ordering::SeqCst);
        async move {
            ctx.step("one", "", || async { Ok(1) }).await?;
            ctx.save_checkpoint(&json!(run)).await?;
            match ctx.failures() {
                0 => Err(TaskError::retryable("first", "the first attempt fails")),
                _ => Ok("done"),
            }
        }
    });
    let store = store_at_unnamed(&proxy.url()).await;
    // The task first: an acquisition that finds nothing would be the one that is cut.
    let task = bench.submit_task(quick_task("work")).await;
    proxy.cut(cut);
    let worker = Running::start(worker_on(store).handler(handler));
    let ended = bench.ended(task).await;
    assert!(proxy.was_cut(), "the statement was never sent");
    let counts = worker.handle.snapshot().counts;
    assert_eq!(worker.drain().await, Exit::Drained);
    (
        result(&ended),
        runs.load(Ordering::SeqCst),
        counts,
        bench.causes(task).await,
        ended.failures,
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_whose_answer_is_lost_is_read_back_and_not_repeated() {
    for text in [
        "INSERT INTO aegis.step",
        "INSERT INTO aegis.checkpoint",
        "INSERT INTO aegis.task_history",
        "aegis.fail_attempt",
    ] {
        for cut in [Cut::Answer(text), Cut::Request(text)] {
            let shown = format!("{cut:?}");
            let (result, runs, counts, causes, failures) = through(cut).await;
            assert_eq!(result, json!("done"), "{shown}");
            assert_eq!((runs, failures), (2, 1), "{shown}");
            assert_eq!(counts.fenced, 0, "{shown} {counts:?}");
            assert_eq!(causes, ["failure"], "{shown}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn te_21_rl_06_an_acquisition_whose_answer_is_lost_is_asked_for_again() {
    for cut in [Cut::Request("RECURSIVE"), Cut::Answer("RECURSIVE")] {
        let shown = format!("{cut:?}");
        let (result, runs, counts, causes, _) = through(cut).await;
        assert_eq!(result, json!("done"), "{shown}");
        assert_eq!(runs, 2, "{shown}");
        assert!(counts.acquire_repeated >= 1, "{shown} {counts:?}");
        assert_eq!(counts.absent_returned, 0, "{shown} {counts:?}");
        assert_eq!(causes, ["failure"], "{shown}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handler_that_drops_its_write_leaves_none_in_doubt() {
    let bench = Bench::new().await;
    let handler = handler_fn("hasty", |ctx: TaskContext, (): ()| async move {
        for n in 0..50_u64 {
            let state = json!(n);
            tokio::select! {
                biased;
                () = tokio::time::sleep(Duration::from_micros(n * 40)) => {}
                saved = ctx.save_checkpoint(&state) => saved?,
            }
        }
        ctx.save_checkpoint(&json!("last")).await?;
        Ok(())
    });
    let worker = Running::start(bench.worker().handler(handler));
    let task = bench.submit_task(NewTask::new("hasty", "null")).await;
    let ended = bench.ended(task).await;
    assert_eq!(result(&ended), json!(null));
    assert_eq!(bench.causes(task).await, Vec::<String>::new());
    assert_eq!(worker.handle.snapshot().counts.fenced, 0);
    worker.drain().await;
}
