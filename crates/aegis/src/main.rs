//! The `aegis` binary: wiring, subcommands, exit codes.
//!
//! Invariants: what a command prints for programs goes to stdout, everything else to stderr; every exit code is one of
//! [`exit::Exit`]'s; an error says what happened, where, why, and what to do.
//!
//! Never: a rule of the engine; those stand in `aegis-model`, `aegis-store` and `aegis-worker`.

mod arguments;
#[cfg(test)]
mod changed_tests;
mod commands;
mod config;
mod confirm;
mod database;
mod exit;
mod failure;
mod output;
mod traced;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{ColorChoice, CommandFactory, FromArgMatches};

use crate::arguments::{Arguments, Command, LogFormat};
use crate::exit::Exit;
use crate::failure::{Failure, chain};

fn main() -> ExitCode {
    // Started by a worker beside each of its programs: no person's command, and quick.
    if let Some(code) = aegis_exec::supervise_if_asked(std::env::args_os()) {
        return code;
    }
    let words: Vec<OsString> = std::env::args_os().collect();
    let configured = match config::load(Arguments::command(), &words) {
        Ok(configured) => configured,
        Err(failure) => return report(&failure),
    };
    let command = configured.command.clone();
    let matches = match command.try_get_matches_from(&words) {
        Ok(matches) => matches,
        Err(error) => error.exit(),
    };
    if matches.get_flag("print_config") {
        let (output, colour) = (matches.get_one("output"), matches.get_one("color"));
        output::set_colour(colour.copied().unwrap_or(ColorChoice::Auto));
        configured.print(&matches, output.copied().unwrap_or_default());
        return whole(Exit::Done);
    }
    let arguments = match Arguments::from_arg_matches(&matches) {
        Ok(arguments) => arguments,
        Err(error) => error.exit(),
    };
    output::set_colour(arguments.color);
    if let Err(failure) = start_logging(&arguments.log, arguments.log_format) {
        return report(&failure);
    }
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
        Ok(exit) => whole(exit),
        Err(failure) => report(&failure),
    }
}

async fn run(arguments: Arguments) -> Result<Exit, Failure> {
    let database = arguments.database;
    let output = arguments.output;
    match arguments.command {
        Command::Demo(demo) => commands::demo::run(demo, &database, output).await,
        Command::Dev(dev) => commands::dev::run(dev, output).await,
        Command::Worker(worker) => commands::worker::run(*worker, &database, output).await,
        Command::Task(task) => commands::task::run(task, &database, output).await,
        Command::Operation(operation) => {
            commands::operation::run(operation, &database, output).await
        }
        Command::Lane(lane) => commands::lane::run(lane, &database, output).await,
        Command::Doctor(doctor) => commands::doctor::run(doctor, &database, output).await,
        Command::Drill(drill) => Box::pin(commands::drill::run(drill, output)).await,
        Command::Db(db) => commands::db::run(db, &database, output).await,
        Command::Migrate(migrate) => {
            Box::pin(commands::migrate::run(*migrate, &database, output)).await
        }
        Command::Completion(completion) => commands::completion::run(&completion),
        Command::Version => commands::version::run(output),
    }
}

/// What was printed has to have arrived before an end is a good one.
fn whole(exit: Exit) -> ExitCode {
    match output::unwritten() {
        Some(why) if exit == Exit::Done => report(&Failure::new(
            Exit::Broken,
            format!(
                "standard output cannot be written: {why}; what was asked for was done, its answer is not whole"
            ),
        )),
        _ => exit.into(),
    }
}

fn report(failure: &Failure) -> ExitCode {
    failure.tell();
    failure.exit.into()
}

fn start_logging(filter: &str, format: LogFormat) -> Result<(), Failure> {
    let format = match format {
        LogFormat::Text => aegis_telemetry::LogFormat::Text,
        LogFormat::Json => aegis_telemetry::LogFormat::Json,
    };
    aegis_telemetry::start_logs(filter, format)
        .map_err(|error| Failure::new(Exit::Usage, format!("--log: {}", chain(&error))))
}
