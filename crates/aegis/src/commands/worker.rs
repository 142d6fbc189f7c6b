//! `aegis worker`: runs one; lists, shows and drains them.
//!
//! A worker ends with a code of its own: 0 drained; 2 its arguments make no sense, the budgets and the grace period among
//! them; 5 the database; 10 executions were handed back; 11 executions were left to their lease; 12 no slot was left that
//! stops when asked; 13 an execution outlived its lease; 14 handlers blocked every thread; 19 its program is older than the schema of its application admits.

mod drain;
pub(crate) mod examples;
mod floor;
mod kinds;
mod list;
mod moves;
mod programs;
mod run;
mod show;

use aegis_model::WorkerState;
use clap::{Args, Subcommand};

use crate::database::DatabaseArguments;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Output;

const EXIT_CODES: &str = "Examples:\n  aegis worker --queue pictures --slots 20 --release 2026.11.3\n  \
    aegis worker --kind resize --protocol 1..2 --exec ./resize.py\n  aegis worker --print-config\n\nExit codes of a worker: 0 drained; 2 its arguments make no sense, or its budgets do not fit into the \
    grace period; 5 the database; 10 executions were handed back, uncharged; 11 executions were left to their lease; 12 no \
    slot was left that stops when asked; 13 an execution outlived its lease; 14 handlers blocked every thread; 19 its program is older than the \
    schema of its application admits (--migrations). A second SIGTERM goes straight to the cancel phase.";

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, after_help = EXIT_CODES)]
pub(crate) struct WorkerArguments {
    #[command(subcommand)]
    verb: Option<Verb>,
    #[command(flatten)]
    run: run::RunArguments,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Lists workers, the newest first.
    List(list::ListArguments),
    /// Shows one: its gate and lease, what it can, what it holds.
    Show(show::ShowArguments),
    /// Asks workers to drain: no more claims from now on; each ends when what it executes has ended.
    Drain(drain::DrainArguments),
}

/// Runs a worker, or looks after those that run.
pub(crate) async fn run(
    arguments: WorkerArguments,
    database: &DatabaseArguments,
    output: Output,
) -> Result<Exit, Failure> {
    match arguments.verb {
        None => run::work(arguments.run, database).await,
        Some(Verb::List(list)) => list::run(list, database, output).await,
        Some(Verb::Show(show)) => show::run(&show, database, output).await,
        Some(Verb::Drain(drain)) => drain::run(drain, database, output).await,
    }
}

/// What its row says, and whether its lease bears it out.
fn state(number: i16, alive: bool) -> &'static str {
    match WorkerState::from_number(number) {
        WorkerState::Accepting if alive => "accepting",
        WorkerState::Draining if alive => "draining",
        WorkerState::Accepting | WorkerState::Draining => "silent",
        WorkerState::Stopped => "stopped",
        WorkerState::Lost => "lost",
    }
}
