//! `aegis worker`: runs one; lists and drains them.

use clap::Args;

use crate::database::DatabaseArguments;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Output;

#[derive(Debug, Args)]
pub(crate) struct WorkerArguments {}

/// Runs a worker.
#[expect(clippy::unused_async, reason = "it is being written")]
pub(crate) async fn run(_arguments: WorkerArguments, _database: &DatabaseArguments, _output: Output) -> Result<Exit, Failure> {
    Err(Failure::new(Exit::Refused, "the worker is not written yet"))
}
