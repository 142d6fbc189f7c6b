//! `aegis migrate abandon`: back, before any release used it.

use std::sync::Arc;

use aegis_migrate::abandon::abandon;
use aegis_migrate::change::ChangeId;
use aegis_migrate::run::Ladder;
use aegis_migrate::set::Set;
use clap::Args;
use serde_json::json;

use super::Place;
use super::repair::{WhyArguments, held, told};
use super::targets::{self, Aim, Manner, Told, on_each};
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

pub(crate) async fn run(arguments: AbandonArguments, place: &Place<'_>) -> Result<Exit, Failure> {
    let set = Set::read(&place.dir)?;
    let resolved = targets::resolve(set.files(), place, &arguments.why.only).await?;
    let arguments = Arc::new(arguments);
    on_each(set, resolved, Manner::Writes, place.output, move |aim| {
        abandoned(aim, Arc::clone(&arguments))
    })
    .await
}

async fn abandoned(aim: Aim, arguments: Arc<AbandonArguments>) -> Result<Told, Failure> {
    let mut held = held(&arguments.why, &aim).await?;
    let done = abandon(
        &mut held,
        &aim.set,
        &arguments.change,
        &Ladder::default(),
        arguments.force_loss,
        &arguments.why.reason,
    )
    .await;
    held.release().await;
    let statements = done.map_err(told)?;
    let id = arguments.change.to_string();
    Ok(Told {
        json: json!({ "abandoned": id, "statements": statements }),
        fields: vec![("abandoned", id), ("statements", statements.join("; "))],
        notes: Vec::new(),
        failure: None,
    })
}
