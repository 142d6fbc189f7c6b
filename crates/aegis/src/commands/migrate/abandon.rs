//! `aegis migrate abandon`: back, before any release used it.

use aegis_migrate::abandon::abandon;
use aegis_migrate::change::ChangeId;
use aegis_migrate::run::Ladder;
use aegis_migrate::set::Set;
use clap::Args;
use serde_json::json;

use super::Place;
use super::repair::{WhyArguments, held, told};
use crate::commands::lane::pause::reason;
use crate::exit::Exit;
use crate::failure::Failure;

/// Below its help.
pub(crate) const AFTER: &str = "Only what the change's own steps have surely made goes, in one transaction. Exit code 12, and nothing is changed, when \
    another phase of it or a change that requires it is applied, a later step touched the same tables, a program was seen with its new side, \
    or a statement has no way back. Its line stays in migrations.lock: take it out with the folder, or seal the edit, before the next run.";

#[derive(Debug, Args)]
pub(crate) struct AbandonArguments {
    /// The change.
    #[arg(value_name = "ID")]
    change: ChangeId,
    /// Rows and values that are in what goes may be lost.
    #[arg(long)]
    force_loss: bool,
    #[command(flatten)]
    why: WhyArguments,
}

pub(crate) async fn run(arguments: &AbandonArguments, place: &Place<'_>) -> Result<Exit, Failure> {
    let why = reason(&arguments.why.reason, "why it goes")?;
    let set = Set::read(&place.dir)?;
    let mut held = held(&arguments.why, place).await?;
    let done = abandon(
        &mut held,
        &set,
        &arguments.change,
        &Ladder::default(),
        arguments.force_loss,
        why,
    )
    .await;
    held.release().await;
    let statements = done.map_err(told)?;
    place.output.one(
        &[
            ("abandoned", arguments.change.to_string()),
            ("statements", statements.join("; ")),
        ],
        &json!({ "abandoned": arguments.change.to_string(), "statements": statements }),
    );
    Ok(Exit::Done)
}
