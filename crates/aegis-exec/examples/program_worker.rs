//! A worker whose handlers are programs, in the fewest lines; the process tests run it, and its supervisors are its own.
//!
//! With `PROGRAM_WORKER_CGROUP` in its environment each program gets a cgroup, where that is possible.
//!
//! `program_worker URL LEASE_MS KIND PROTOCOLS PROGRAM [ARGUMENT…]` ends with the worker's exit code.

use std::process::ExitCode;
use std::time::Duration;

use aegis_exec::{ExecHandler, ExecOptions, Program, supervise_if_asked};
use aegis_store::{Config, Store};
use aegis_worker::{Budgets, Worker};

fn main() -> Result<ExitCode, Box<dyn std::error::Error>> {
    if let Some(code) = supervise_if_asked(std::env::args_os()) {
        return Ok(code);
    }
    let runtime = tokio::runtime::Runtime::new()?;
    runtime.block_on(work())
}

async fn work() -> Result<ExitCode, Box<dyn std::error::Error>> {
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .init();
    let mut args = std::env::args().skip(1);
    let (Some(url), Some(lease_ms), Some(kind), Some(protocols), Some(program)) = (
        args.next(),
        args.next(),
        args.next(),
        args.next(),
        args.next(),
    ) else {
        return Err("usage: program_worker URL LEASE_MS KIND PROTOCOLS PROGRAM [ARGUMENT…]".into());
    };
    let program = Program::find(program)?.with_arguments(args);
    let mut options = ExecOptions::default();
    options.kill_after = Duration::from_secs(3);
    options.cgroup = std::env::var_os("PROGRAM_WORKER_CGROUP").is_some();
    let handler = ExecHandler::new(kind, protocols.parse()?, program, options);
    handler.check().await?;
    let store = Store::connect(Config::from_url(&url)?).await?;
    let worker = Worker::builder(store)
        .name("programs")
        .handler(handler)
        .lease_ttl(Duration::from_millis(lease_ms.parse()?))
        .budgets(Budgets {
            stop_acquiring: Duration::from_secs(5),
            drain: Duration::from_secs(1),
            cancel_and_save: Duration::from_secs(5),
            exit_margin: Duration::from_secs(10),
        })
        .build()?;
    let exit = worker.run_until_signal().await?;
    Ok(ExitCode::from(exit.code()))
}
