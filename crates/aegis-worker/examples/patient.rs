//! A worker process for the process tests: its handler makes a file beside its input's, waits until that one exists, and
//! stops when it is asked to.
//!
//! Tasks of kind `pay` have a step and an operation behind them by then, and a line of their own in the log. Tasks of kind `block` block the thread that they run on, for ever, once they have made their file.
//!
//! `patient URL LEASE_MS STUCK_AFTER_MS BUDGET_MS` ends with the worker's exit code; each part of a drain may take
//! `BUDGET_MS`.

use std::path::PathBuf;
use std::time::Duration;

use aegis_store::{Config, Store};
use aegis_worker::{Budgets, Class, TaskContext, Tracer, Worker, handler_fn};

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    aegis_telemetry::start_logs("info", aegis_telemetry::LogFormat::Json)?;
    let mut args = std::env::args().skip(1);
    let (Some(url), Some(lease_ms), Some(stuck_ms), Some(budget_ms)) =
        (args.next(), args.next(), args.next(), args.next())
    else {
        return Err("usage: patient URL LEASE_MS STUCK_AFTER_MS BUDGET_MS".into());
    };
    let store = Store::connect(Config::from_url(&url)?).await?;
    let wait = handler_fn("wait", |ctx: TaskContext, file: PathBuf| async move {
        std::fs::write(file.with_extension("started"), "")?;
        while !file.exists() {
            ctx.unless_cancelled(tokio::time::sleep(Duration::from_millis(10)))
                .await?;
        }
        Ok(ctx.epoch())
    });
    let pay = handler_fn("pay", |ctx: TaskContext, file: PathBuf| async move {
        ctx.step("prepare", "all", || async { Ok(1) }).await?;
        ctx.operation("charge", "once")
            .class(Class::Idempotent)
            .key_retention(Duration::from_hours(1))
            .execute(|_| async { Ok(2) })
            .await?;
        tracing::info!("charged");
        std::fs::write(file.with_extension("started"), "")?;
        while !file.exists() {
            ctx.unless_cancelled(tokio::time::sleep(Duration::from_millis(10)))
                .await?;
        }
        Ok(ctx.epoch())
    });
    let block = handler_fn("block", |_: TaskContext, file: PathBuf| async move {
        std::fs::write(file.with_extension("started"), "")?;
        loop {
            std::thread::sleep(Duration::from_secs(1));
            if file.exists() {
                return Ok(());
            }
        }
    });
    let budget = Duration::from_millis(budget_ms.parse()?);
    let worker = Worker::builder(store)
        .name("patient")
        .handler(wait)
        .handler(pay)
        .release("r1")
        .listen(Some("127.0.0.1:0".parse()?))
        .tracer(Tracer::from_env("patient", Vec::new())?)
        .handler(block)
        .stuck_after(Duration::from_millis(stuck_ms.parse()?))
        .lease_ttl(Duration::from_millis(lease_ms.parse()?))
        .budgets(Budgets {
            stop_acquiring: budget,
            drain: budget,
            cancel_and_save: budget,
            exit_margin: budget,
        })
        .build()?;
    let exit = worker.run_until_signal().await?;
    std::process::exit(exit.code().into());
}
