//! `aegis migrate baseline`: a database that has the structure already takes part from one line of the lock on.

use aegis_migrate::baseline::{self, BaselineError, Compared, How};
use aegis_migrate::change::{PhaseOf, Problems};
use aegis_migrate::set::Set;
use clap::Args;
use serde_json::json;

use super::seal::ReplayArguments;
use super::{Place, connect_to_write, reason};
use crate::commands::find;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::note;

#[derive(Debug, Args)]
pub(crate) struct BaselineArguments {
    /// The last line of the lock whose structure the database has.
    #[arg(long, value_name = "ID:PHASE")]
    through: PhaseOf,
    /// How the structure came there; kept with who.
    #[arg(long, value_parser = reason::read)]
    reason: String,
    /// Who; default: the user of the shell.
    #[arg(long)]
    actor: Option<String>,
    #[command(flatten)]
    replay: ReplayArguments,
}

pub(crate) async fn run(arguments: BaselineArguments, place: &Place<'_>) -> Result<Exit, Failure> {
    let set = Set::read(&place.dir)?;
    set.sealed()?;
    let lines = baseline::through(&set, &arguments.through).map_err(Problems::from)?;
    let mut client = connect_to_write(place.database.direct()?).await?;
    let mut part = set.clone();
    part.lock = set.lock.through(lines.len());
    let structures = arguments.replay.structures(&part).await?;
    let mut told = None;
    for structure in &structures {
        match baseline::compare(&client, &part, structure).await? {
            Compared::Equal(more) => told = Some(more),
            Compared::Differs(wrong) => return Err(differs(&arguments.through, &wrong)),
            Compared::NotCompared(why) => {
                // Another server of the list may be of its major version.
                note(&why.to_string());
            }
        }
    }
    let told = told.ok_or_else(|| {
        Failure::new(
            Exit::Migrate(12),
            "not compared, so nothing was recorded; replay on a PostgreSQL of the database's major version (--postgres FOLDER, --fetch-postgres, --clone-url)",
        )
    })?;
    for difference in &told {
        note(&difference.to_string());
    }
    let transaction = client.transaction().await.map_err(BaselineError::Sql)?;
    let actor = find::actor(arguments.actor);
    let mutex = baseline::take(&transaction, &actor).await?;
    baseline::record(
        &transaction,
        &mutex,
        &lines,
        How::Compared,
        &actor,
        &arguments.reason,
    )
    .await?;
    transaction.commit().await.map_err(BaselineError::Sql)?;
    let recorded: Vec<String> = lines.iter().map(|line| line.at.to_string()).collect();
    place.output.one(
        &[("recorded", recorded.join(" "))],
        &json!({ "recorded": recorded }),
    );
    Ok(Exit::Done)
}

fn differs(through: &PhaseOf, wrong: &[aegis_catalog::Difference]) -> Failure {
    let lines: Vec<String> = wrong.iter().map(|one| format!("  {one}")).collect();
    Failure::new(
        Exit::Migrate(12),
        format!(
            "the database is not what the lock makes through {through}; nothing was recorded:\n{}",
            lines.join("\n")
        ),
    )
}
