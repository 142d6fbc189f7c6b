//! `aegis demo`: the main job, told while it happens; `verify` judges it, `payments` is the stranger that it pays with.

use clap::Args;

use crate::database::DatabaseArguments;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Output;

#[derive(Debug, Args)]
pub(crate) struct DemoArguments {}

/// Runs the demo.
#[expect(clippy::unused_async, reason = "the acts are being written")]
pub(crate) async fn run(_arguments: DemoArguments, _database: &DatabaseArguments, _output: Output) -> Result<Exit, Failure> {
    Err(Failure::new(Exit::Refused, "the demo is not written yet"))
}
