//! `contract close` and `contract reopen`: the door.

use std::path::Path;

use aegis_migrate::change::ChangeId;
use aegis_migrate::contract::verbs::{self, Moved};
use aegis_migrate::run::Outcome;
use aegis_migrate::set::Set;
use clap::Args;
use serde_json::json;

use super::{failure, keyring};
use crate::commands::migrate::by::ByArguments;
use crate::commands::migrate::{Place, reason};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::note;

#[derive(Debug, Args)]
pub(super) struct CloseArguments {
    /// The change.
    #[arg(value_name = "ID")]
    id: ChangeId,
    #[command(flatten)]
    by: ByArguments,
}

#[derive(Debug, Args)]
pub(super) struct ReopenArguments {
    /// The change.
    #[arg(value_name = "ID")]
    id: ChangeId,
    /// Why, for the record.
    #[arg(long, value_name = "TEXT", value_parser = reason::read)]
    reason: String,
    #[command(flatten)]
    by: ByArguments,
}

pub(super) async fn close(
    arguments: &CloseArguments,
    place: &Place<'_>,
    approvers: &Path,
) -> Result<Exit, Failure> {
    let set = Set::read(&place.dir)?;
    let subject = super::subject(&set, &arguments.id)?;
    // Without it nothing after the door could go on.
    let keyring = keyring(approvers)?;
    let mut held = arguments.by.held(place).await?;
    let closed = verbs::close(&mut held, &set, &arguments.id, &keyring).await;
    held.release().await;
    tell(
        place,
        &arguments.id,
        &closed.map_err(|error| failure(&error))?,
    );
    if subject.contract.revoke_from.is_empty() {
        note(
            "[contract] revoke_from names no role, so nobody has lost the old side: only the floor is raised, which programs must ask for",
        );
    }
    note(&format!(
        "next: `aegis migrate contract status {}` tells what is still missing",
        arguments.id
    ));
    Ok(Exit::Done)
}

pub(super) async fn reopen(
    arguments: &ReopenArguments,
    place: &Place<'_>,
) -> Result<Exit, Failure> {
    let mut held = arguments.by.held(place).await?;
    let opened = verbs::reopen(&mut held, &arguments.id, &arguments.reason).await;
    held.release().await;
    tell(
        place,
        &arguments.id,
        &opened.map_err(|error| failure(&error))?,
    );
    Ok(Exit::Done)
}

fn tell(place: &Place<'_>, id: &ChangeId, moved: &Moved) {
    let outcome = match moved.outcome {
        Outcome::Nothing => "nothing",
        Outcome::Applied | Outcome::Ahead => "applied",
    };
    place.output.one(
        &[
            ("outcome", outcome.to_owned()),
            ("attempt", moved.attempt.to_string()),
            ("closed at", moved.closed_at.to_string()),
            ("privileges", moved.privileges.to_string()),
            ("min_schema", moved.min_schema.to_string()),
        ],
        &json!({ "change": id, "moved": moved }),
    );
}
