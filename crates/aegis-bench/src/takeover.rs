//! Takeover after SIGKILL: from the end of the dead worker's lease to the next claim of its task, by the database's clock.

use std::process::Stdio;
use std::time::Duration;

use aegis_store::{Config, NewTask, Store};
use aegis_worker::{TaskContext, Worker, handler_fn};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use uuid::Uuid;

use crate::setting::Setting;
use crate::{Figures, figure, quantile};

const ROUNDS: usize = 5;
const TTL_MS: u64 = 3000;

/// The worst of a few rounds: it is a bound.
pub(crate) async fn measure(setting: &Setting) -> anyhow::Result<Figures> {
    let mut samples_s = Vec::new();
    for _ in 0..ROUNDS {
        samples_s.push(round(setting).await?);
    }
    Ok(vec![
        figure("takeover_after_lease_s", quantile(&mut samples_s, 1.0)),
        figure("takeover_after_lease_p50_s", quantile(&mut samples_s, 0.5)),
    ])
}

async fn round(setting: &Setting) -> anyhow::Result<f64> {
    let store = setting.store(2).await?;
    let url = setting.engine_url();
    let mut first = start(&url)?;
    let task = store
        .submit(NewTask::new("bench.forever", "{}"))
        .await?
        .task;
    let victim = owner(setting, task, None).await?;
    let mut second = start(&url)?;
    // Both must be there: the second one takes over.
    while setting
        .client()
        .query_one(
            "SELECT count(*) FROM aegis.worker WHERE state = 0 AND name = 'bench-takeover'",
            &[],
        )
        .await?
        .try_get::<_, i64>(0)?
        < 2
    {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    kill(Pid::from_raw(i32::try_from(first.id())?), Signal::SIGKILL)?;
    first.wait()?;
    let next = owner(setting, task, Some(victim)).await?;
    let sql = "SELECT extract(epoch FROM t.claimed_at - l.lease_until)::float8 FROM aegis.task t, aegis.worker_lease l WHERE t.id = $1 AND t.owner = $2 AND l.worker = $3";
    let seconds: f64 = setting
        .client()
        .query_one(sql, &[&task, &next, &victim])
        .await?
        .try_get(0)?;
    kill(Pid::from_raw(i32::try_from(second.id())?), Signal::SIGKILL)?;
    second.wait()?;
    setting
        .client()
        .execute(
            "SELECT aegis.cancel_task($1, 'bench', 'measured')",
            &[&task],
        )
        .await?;
    setting
        .client()
        .execute(
            "UPDATE aegis.worker_lease SET lease_until = clock_timestamp() WHERE worker = $1",
            &[&next],
        )
        .await?;
    Ok(seconds)
}

fn start(url: &str) -> anyhow::Result<std::process::Child> {
    let mut command = std::process::Command::new(std::env::current_exe()?);
    command
        .args(["worker", url, &TTL_MS.to_string()])
        .stdin(Stdio::null());
    Ok(command.spawn()?)
}

/// Waits for an owner of the task, other than the given one.
async fn owner(setting: &Setting, task: Uuid, not: Option<Uuid>) -> anyhow::Result<Uuid> {
    let waiting = async {
        loop {
            let row = setting
                .client()
                .query_opt("SELECT owner FROM aegis.task WHERE id = $1", &[&task])
                .await?;
            let owner: Option<Uuid> = row.map(|row| row.try_get(0)).transpose()?.flatten();
            if owner.is_some() && owner != not {
                return anyhow::Ok(owner);
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let owner = tokio::time::timeout(Duration::from_mins(1), waiting).await??;
    owner.ok_or_else(|| anyhow::anyhow!("no owner"))
}

/// What the hidden subcommand runs: one handler that never ends.
pub(crate) async fn worker_process(url: &str, ttl_ms: u64) -> anyhow::Result<()> {
    let forever = handler_fn(
        "bench.forever",
        |ctx: TaskContext, _: serde_json::Value| async move {
            ctx.cancelled().wait().await;
            Ok(())
        },
    );
    let store = Store::connect(Config::from_url(url)?.with_pool_size(4)).await?;
    let worker = Worker::builder(store)
        .name("bench-takeover")
        .handler(forever)
        .slots(2)
        .lease_ttl(Duration::from_millis(ttl_ms))
        .build()?;
    worker.run_until_signal().await?;
    Ok(())
}
