//! A worker process for the process tests: its handler makes a file beside its input's, waits until that one exists, and
//! stops when it is asked to.
//!
//! `patient URL LEASE_MS` ends with the worker's exit code.

use std::path::PathBuf;
use std::time::Duration;

use aegis_store::{Config, Store};
use aegis_worker::{Budgets, TaskContext, Worker, handler_fn};

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .init();
    let mut args = std::env::args().skip(1);
    let (Some(url), Some(lease_ms)) = (args.next(), args.next()) else {
        return Err("usage: patient URL LEASE_MS".into());
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
    let worker = Worker::builder(store)
        .name("patient")
        .handler(wait)
        .lease_ttl(Duration::from_millis(lease_ms.parse()?))
        .budgets(Budgets {
            stop_acquiring: Duration::from_secs(5),
            drain: Duration::from_mins(1),
            cancel_and_save: Duration::from_secs(5),
            exit_margin: Duration::from_secs(10),
        })
        .build()?;
    let exit = worker.run_until_signal().await?;
    std::process::exit(exit.code().into());
}
