//! The `aegis` binary: wiring, subcommands, exit codes.
//!
//! Invariants: what a command prints for programs goes to stdout, everything else to stderr; every exit code is one of
//! [`exit::Exit`]'s; an error says what happened, where, why, and what to do.
//!
//! Never: a rule of the engine; those stand in `aegis-model`, `aegis-store` and `aegis-worker`.

mod arguments;
mod commands;
mod confirm;
mod database;
mod exit;
mod failure;
mod output;

use std::process::ExitCode;

use clap::Parser;

use crate::arguments::{Arguments, Command};
use crate::exit::Exit;
use crate::failure::Failure;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    output::set_colour(arguments.color);
    start_logging(&arguments.log);
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => {
            return report(&Failure::new(
                Exit::Broken,
                format!("no runtime could be started: {error}"),
            ));
        }
    };
    let outcome = runtime.block_on(run(arguments));
    // A handler that ignores its end must not keep the process: what it held is fenced.
    runtime.shutdown_background();
    match outcome {
        Ok(exit) => exit.into(),
        Err(failure) => report(&failure),
    }
}

async fn run(arguments: Arguments) -> Result<Exit, Failure> {
    let database = arguments.database;
    let output = arguments.output;
    match arguments.command {
        Command::Demo(demo) => commands::demo::run(demo, &database, output).await,
        Command::Worker(worker) => commands::worker::run(*worker, &database, output).await,
        Command::Task(task) => commands::task::run(task, &database, output).await,
        Command::Operation(operation) => {
            commands::operation::run(operation, &database, output).await
        }
        Command::Lane(lane) => commands::lane::run(lane, &database, output).await,
        Command::Doctor(doctor) => commands::doctor::run(doctor, &database, output).await,
        Command::Db(db) => commands::db::run(db, &database, output).await,
        Command::Version => commands::version::run(output),
    }
}

#[expect(clippy::print_stderr, reason = "the one place where an error is shown")]
fn report(failure: &Failure) -> ExitCode {
    if output::error_look().colour {
        eprintln!("{}", failure.coloured());
    } else {
        eprintln!("{failure}");
    }
    failure.exit.into()
}

fn start_logging(filter: &str) {
    use tracing_subscriber::EnvFilter;
    let filter = EnvFilter::try_new(filter).unwrap_or_else(|_| EnvFilter::new("warn"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .init();
}
