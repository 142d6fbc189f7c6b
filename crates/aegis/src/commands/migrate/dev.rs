//! `aegis migrate dev`: a developer's own database follows the folder.

use aegis_migrate::dev;
use aegis_migrate::set::Set;
use clap::Args;
use serde_json::json;

use super::{Place, connect_to_write};
use crate::commands::find;
use crate::exit::Exit;
use crate::failure::Failure;

/// Below its help.
pub(crate) const AFTER: &str = "What is not sealed is applied too. When a change that was applied is edited, everything in the \
    schemas of the changes is dropped and made again, with its rows; so the database has to be marked by its name, once.\n\n\
    Example:\n  aegis migrate dev --database-url postgresql:///orders_dev --mark orders_dev";

#[derive(Debug, Args)]
pub(crate) struct DevArguments {
    /// The name of this database: yes, what is in the schemas of the changes may be dropped in it.
    #[arg(long, value_name = "DATABASE")]
    mark: Option<String>,
}

pub(crate) async fn run(arguments: &DevArguments, place: &Place<'_>) -> Result<Exit, Failure> {
    let set = Set::read(&place.dir)?;
    // What no run would take is not for a developer's server either: it would act on all of it, or leave a transaction open.
    let mut phases: Vec<_> = set.lock.lines.iter().map(|line| line.at.clone()).collect();
    phases.extend(set.unsealed());
    super::seal::fit(&set, &phases, false)?;
    let mut client = connect_to_write(place.database.direct()?).await?;
    let actor = find::actor(None);
    let done = dev::follow(&mut client, &set, arguments.mark.as_deref(), &actor).await?;
    let applied: Vec<String> = done.applied.iter().map(ToString::to_string).collect();
    let outcome = if applied.is_empty() {
        "nothing"
    } else {
        "applied"
    };
    place.output.one(
        &[
            ("outcome", outcome.to_owned()),
            ("applied", applied.join(" ")),
            (
                "made again because",
                done.redone.clone().unwrap_or_default(),
            ),
        ],
        &json!({ "outcome": outcome, "applied": applied, "made_again_because": done.redone }),
    );
    Ok(Exit::Done)
}
