//! What a worker costs that has nothing to do, and what a beat costs that holds 500 tasks.

use std::sync::Arc;
use std::time::Duration;

use aegis_store::NewTask;
use aegis_worker::{TaskContext, Worker, handler_fn};
use tokio::sync::Semaphore;

use crate::setting::Setting;
use crate::{Figures, figure};

const IDLE_SECONDS: u64 = 30;
const HELD: usize = 500;

/// Both figures, from the server's own counts.
pub(crate) async fn measure(setting: &Setting) -> anyhow::Result<Figures> {
    let mut figures = vec![figure("idle_queries_per_second", idle(setting).await?)];
    figures.push(figure("renewals_per_beat", beats(setting).await?));
    Ok(figures)
}

#[expect(clippy::cast_precision_loss, reason = "seconds")]
async fn idle(setting: &Setting) -> anyhow::Result<f64> {
    let noop = handler_fn("bench.idle", |_: TaskContext, _: serde_json::Value| async {
        Ok(())
    });
    let worker = Worker::builder(setting.store(4).await?)
        .name("idle")
        .handler(noop)
        .slots(10)
        // Watched, as `aegis worker` is: its looks at the database are queries too.
        .listen(Some((std::net::Ipv4Addr::LOCALHOST, 0).into()))
        .build()?;
    let handle = worker.handle();
    let running = tokio::spawn(worker.run(std::future::pending()));
    // Autovacuum's transactions are counted in the same place.
    setting.autovacuum(false).await?;
    // Registration, first connections and the first comparisons of what is held are not idling: a lease and a half later.
    tokio::time::sleep(Duration::from_mins(1)).await;
    // What the measuring itself costs: the same two readings with nothing in between.
    let before = setting.transactions().await?;
    let between = setting.transactions().await?;
    tokio::time::sleep(Duration::from_secs(IDLE_SECONDS)).await;
    let after = setting.transactions().await?;
    setting.autovacuum(true).await?;
    let own = between - before;
    let seconds = IDLE_SECONDS as f64 + 1.5;
    handle.drain();
    running.await??;
    // The reading before contained 1.5 s of the worker too.
    let rate_with_own = (after - between) / seconds;
    Ok((rate_with_own - (own / seconds).min(3.0 / seconds)).max(0.0))
}

/// Statements of renewal that the server saw, for each beat, while 500 tasks run.
#[expect(clippy::cast_precision_loss, reason = "counts")]
async fn beats(setting: &Setting) -> anyhow::Result<f64> {
    let release = Arc::new(Semaphore::new(0));
    let gate = release.clone();
    let hold = handler_fn("bench.hold", move |_: TaskContext, _: serde_json::Value| {
        let gate = gate.clone();
        async move {
            // Closed never, so acquiring only fails at the end of the process.
            drop(gate.acquire().await);
            Ok(())
        }
    });
    let client = setting.store(2).await?;
    client
        .submit_batch(
            (0..HELD)
                .map(|_| NewTask::new("bench.hold", "{}"))
                .collect(),
        )
        .await?;
    let worker = Worker::builder(setting.store(6).await?)
        .name("hold")
        .handler(hold)
        .slots(HELD)
        .lease_ttl(Duration::from_secs(4))
        .build()?;
    let handle = worker.handle();
    let running = tokio::spawn(worker.run(std::future::pending()));
    let id = loop {
        match handle.id() {
            Some(id) => break id,
            None => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    };
    let beat = "SELECT beat, executing FROM aegis.worker_lease WHERE worker = $1";
    loop {
        let row = setting.client().query_opt(beat, &[&id]).await?;
        if row.is_some_and(|row| usize::try_from(row.get::<_, i32>(1)) == Ok(HELD)) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let writes =
        "SELECT n_tup_upd FROM pg_stat_user_tables WHERE relid = 'aegis.worker_lease'::regclass";
    setting.transactions().await?;
    let before_beats: i64 = setting.client().query_one(beat, &[&id]).await?.try_get(0)?;
    let before: i64 = setting.client().query_one(writes, &[]).await?.try_get(0)?;
    tokio::time::sleep(Duration::from_secs(10)).await;
    setting.transactions().await?;
    let after_beats: i64 = setting.client().query_one(beat, &[&id]).await?.try_get(0)?;
    let after: i64 = setting.client().query_one(writes, &[]).await?.try_get(0)?;
    release.add_permits(HELD);
    handle.drain();
    running.await??;
    Ok((after - before) as f64 / (after_beats - before_beats).max(1) as f64)
}
