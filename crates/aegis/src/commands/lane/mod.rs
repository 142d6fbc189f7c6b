//! `aegis lane`: what waits where, who reads it, and what is paused.

mod check;
mod list;
pub(crate) mod pause;

use clap::{Args, Subcommand};

use crate::database::DatabaseArguments;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Output;

#[derive(Debug, Args)]
pub(crate) struct LaneArguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Lists lanes: one (queue, kind, lowest and highest protocol of what is stored) each.
    List(list::ListArguments),
    /// Lists what is paused, by whom, why and since when.
    Pauses,
    /// Pauses a queue, kind, release or tenant: nothing of it is claimed from now on. What runs goes on.
    #[command(after_help = pause::EXAMPLES)]
    Pause(pause::PauseArguments),
    /// Ends a pause.
    Resume(pause::ResumeArguments),
    /// May it retire, may we roll back, what is stranded: the reasons task by task, and an exit code.
    #[command(after_help = check::EXAMPLES)]
    Check(check::CheckArguments),
}

/// Looks at lanes, pauses and resumes.
pub(crate) async fn run(
    arguments: LaneArguments,
    database: &DatabaseArguments,
    output: Output,
) -> Result<Exit, Failure> {
    match arguments.verb {
        Verb::List(list) => list::run(list, database, output).await,
        Verb::Pauses => pause::list(database, output).await,
        Verb::Pause(pause) => pause::pause(&pause, database, output).await,
        Verb::Resume(resume) => pause::resume(&resume, database, output).await,
        Verb::Check(check) => check::run(check, database, output).await,
    }
}
