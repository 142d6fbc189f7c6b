//! The handler's own SQL in the fenced transaction.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use aegis_worker::{EngineStop, TaskContext, TaskError, handler_fn};
use serde_json::json;
use uuid::Uuid;

use crate::support::proxy::{Cut, Proxy};
use crate::support::{Bench, Running, quick_task, result, store_at_unnamed, worker_on};

async fn with_table() -> Bench {
    let bench = Bench::new().await;
    bench
        .db
        .admin
        .batch_execute(
            "create table public.ledger (task uuid, note text); grant all on public.ledger to aegis_engine",
        )
        .await
        .unwrap();
    bench
}

async fn notes(bench: &Bench, task: Uuid) -> i64 {
    bench
        .count("select count(*) from public.ledger where task = $1", task)
        .await
}

/// Inserts a note and saves a checkpoint, together.
async fn note(ctx: &TaskContext) -> Result<(), TaskError> {
    let task = ctx.task_id();
    ctx.commit(&json!("noted"), move |tx| {
        Box::pin(async move {
            tx.execute("insert into public.ledger values ($1, 'commit')", &[&task])
                .await?;
            Ok(())
        })
    })
    .await
}

/// Inserts a note and completes, together.
async fn note_last(ctx: &TaskContext) -> Result<i64, TaskError> {
    let task = ctx.task_id();
    ctx.complete_in(move |tx| {
        Box::pin(async move {
            tx.execute(
                "insert into public.ledger values ($1, 'completion')",
                &[&task],
            )
            .await?;
            let row = tx
                .query_one(
                    "select count(*) from public.ledger where task = $1",
                    &[&task],
                )
                .await?;
            Ok(row.get(0))
        })
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn own_sql_is_committed_with_the_checkpoint_and_with_the_completion() {
    let bench = with_table().await;
    let handler = handler_fn("note", |ctx: TaskContext, (): ()| async move {
        note(&ctx).await?;
        note_last(&ctx).await
    });
    let worker = Running::start(bench.worker().handler(handler));
    let task = bench.submit("note", json!(null)).await;
    assert_eq!(result(&bench.ended(task).await), json!(2));
    assert_eq!(notes(&bench, task).await, 2);
    worker.drain().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn own_sql_rolls_back_when_it_fails_and_nothing_is_saved() {
    let bench = with_table().await;
    let handler = handler_fn("note", |ctx: TaskContext, (): ()| async move {
        let task = ctx.task_id();
        let failed = ctx
            .commit(&json!(1), move |tx| {
                Box::pin(async move {
                    tx.execute("insert into public.ledger values ($1, 'a')", &[&task])
                        .await?;
                    tx.execute("select 1 / 0", &[]).await?;
                    Ok(())
                })
            })
            .await;
        assert!(failed.is_err());
        // The execution goes on.
        note_last(&ctx).await
    });
    let worker = Running::start(bench.worker().handler(handler));
    let task = bench.submit("note", json!(null)).await;
    let ended = bench.ended(task).await;
    assert_eq!(result(&ended), json!(1));
    assert_eq!(ended.checkpoint_seq, None);
    worker.drain().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn own_sql_rolls_back_when_the_execution_was_overtaken() {
    let bench = with_table().await;
    let admin = Arc::new(bench.db.connect().await);
    for complete in [false, true] {
        let admin = Arc::clone(&admin);
        let stops = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&stops);
        let handler = handler_fn("overtaken", move |ctx: TaskContext, (): ()| {
            let (admin, stops) = (Arc::clone(&admin), Arc::clone(&counted));
            async move {
                if ctx.epoch() > 2 {
                    return Ok(());
                }
                // What a takeover does to the row, while this handler does not know.
                let take = "update aegis.task set epoch = epoch + 1 where id = $1";
                admin.execute(take, &[&ctx.task_id()]).await?;
                let refused = if complete {
                    note_last(&ctx).await.map(|_| ())
                } else {
                    note(&ctx).await
                };
                if matches!(refused, Err(TaskError::Engine(EngineStop::LeaseLost))) {
                    stops.fetch_add(1, Ordering::SeqCst);
                }
                // It cannot be swallowed: the completion of this handler is refused.
                Ok(())
            }
        });
        let worker = Running::start(bench.worker().handler(handler));
        let task = bench.submit("overtaken", json!(null)).await;
        // Two beats do not name it at its new epoch, so it goes back to its lane.
        let ended = bench.ended(task).await;
        assert_eq!(ended.state, 5);
        assert_eq!(stops.load(Ordering::SeqCst), 1);
        assert_eq!(notes(&bench, task).await, 0);
        let causes = bench.causes(task).await;
        assert!(causes.contains(&"fenced".to_owned()), "{causes:?}");
        assert!(ended.epoch > 2, "{}", ended.epoch);
        worker.drain().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_whose_answer_is_lost_is_read_back() {
    let bench = with_table().await;
    let proxy = Proxy::before(&bench.db.url_as("aegis_engine")).await;
    for (cut, attempts) in [(Cut::Answer("COMMIT"), 1), (Cut::Request("COMMIT"), 2)] {
        let runs = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&runs);
        let handler = handler_fn("note", move |ctx: TaskContext, (): ()| {
            counted.fetch_add(1, Ordering::SeqCst);
            async move {
                note(&ctx).await?;
                note_last(&ctx).await
            }
        });
        let store = store_at_unnamed(&proxy.url()).await;
        let worker = Running::start(worker_on(store).handler(handler));
        proxy.cut(cut);
        let task = bench.submit_task(quick_task("note")).await;
        let ended = bench.ended(task).await;
        assert!(proxy.was_cut());
        assert_eq!(result(&ended), json!(2));
        assert_eq!(notes(&bench, task).await, 2);
        assert_eq!(runs.load(Ordering::SeqCst), attempts);
        let counts = worker.handle.snapshot().counts;
        assert_eq!(counts.unknown_resolved, 1, "{counts:?}");
        worker.drain().await;
    }
}
