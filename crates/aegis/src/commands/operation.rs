//! `aegis operation`: the ledger of side effects, and reconciliation by people.

mod decide;
mod list;
mod show;
mod words;

use aegis_model::ErrorCode;
use clap::{Args, Subcommand};

use crate::database::DatabaseArguments;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Output;

#[derive(Debug, Args)]
pub(crate) struct OperationArguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Lists operations; without --state those that are unknown and wait for a person.
    List(list::ListArguments),
    /// Shows one: what was going to be called, when, by which epoch and release, and what is known since.
    Show {
        /// TASK/NAME/KEY/vN, as listed, or the beginning of it.
        id: String,
    },
    /// Takes unknown operations, so that two people do not look into the same one.
    #[command(after_help = decide::TAKE_EXAMPLES)]
    Take(decide::TakeArguments),
    /// Decides unknown operations, with evidence.
    #[command(after_help = decide::RESOLVE_EXAMPLES)]
    Resolve(decide::ResolveArguments),
}

/// Looks at operations, takes and resolves them.
pub(crate) async fn run(
    arguments: OperationArguments,
    database: &DatabaseArguments,
    output: Output,
) -> Result<Exit, Failure> {
    match arguments.verb {
        Verb::List(list) => list::run(list, database, output).await,
        Verb::Show { id } => show::run(&id, database, output).await,
        Verb::Take(take) => decide::take(take, database, output).await,
        Verb::Resolve(resolve) => decide::resolve(resolve, database, output).await,
    }
}

fn missing(id: &str) -> Failure {
    Failure::new(
        Exit::NotFound,
        format!("there is no operation `{id}`, or its task has ended; see `aegis operation list`"),
    )
    .with_code(ErrorCode::NOT_FOUND)
}
