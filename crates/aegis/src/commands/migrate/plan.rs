//! `aegis migrate plan`: what each phase would do.

use std::path::PathBuf;

use aegis_catalog::{Catalog, Scope};
use aegis_migrate::change::{Change, ChangeId, Phase, PhaseOf};
use aegis_migrate::plan::{Item, What, locks_in_words, markdown, plan, words};
use aegis_migrate::set::Set;
use aegis_migrate::shadow;
use aegis_migrate::standing::{recorded, standing};
use clap::{Args, ValueEnum};
use serde_json::json;

use super::{Place, connect};
use crate::exit::Exit;
use crate::failure::{Failure, chain};
use crate::output::{self, note};

/// The server whose rules hold where nobody says which one it is.
const NEWEST_MAJOR: u32 = 18;

#[derive(Debug, Args)]
pub(crate) struct PlanArguments {
    /// Only this phase; default: all.
    #[arg(long, value_name = "PHASE")]
    phase: Option<Phase>,
    /// Only this change; default: all of the folder.
    #[arg(value_name = "ID")]
    id: Option<ChangeId>,
    /// A file of `aegis migrate snapshot`, for sizes and classes; default: the database, where one is given.
    #[arg(long, value_name = "FILE")]
    catalog: Option<PathBuf>,
    /// The major version whose rules hold, where neither a catalog nor a database says it; default: 18.
    #[arg(long, value_name = "MAJOR", value_parser = clap::value_parser!(u32).range(14..=19))]
    server_version: Option<u32>,
    /// With a database: also what is applied there.
    #[arg(long)]
    all: bool,
    /// `markdown` is for a pull request.
    #[arg(long, value_enum, value_name = "FORMAT")]
    format: Option<Format>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Markdown,
}

pub(crate) async fn run(arguments: &PlanArguments, place: &Place<'_>) -> Result<Exit, Failure> {
    let set = Set::read(&place.dir)?;
    set.sealed()?;
    let catalog = catalog(arguments, &set, place).await?;
    let server = catalog
        .as_ref()
        .map(Catalog::server_major)
        .or(arguments.server_version)
        .unwrap_or(NEWEST_MAJOR);
    let mut wanted = wanted(arguments, &set)?;
    let (before, done) = (wanted.len(), done(arguments, &set, place).await?);
    wanted.retain(|(change, phase)| {
        !done
            .iter()
            .any(|at| at.id == change.id && at.phase == *phase)
    });
    if wanted.len() < before {
        note(&format!(
            "{} phases are applied in this database and left out (--all shows them)",
            before - wanted.len()
        ));
    }
    let items = plan(&wanted, catalog.as_ref(), server)?;
    if arguments.format == Some(Format::Markdown) {
        output::raw(markdown(&items, catalog.is_some()).as_bytes());
    } else {
        print(&items, place);
        if catalog.is_none() {
            note(
                "without a catalog (--catalog, or a database): sizes are unknown, and each class is the worst it can be",
            );
        }
    }
    let refused = items.iter().filter(|item| {
        matches!(
            item.what,
            What::Statement { passes: false, .. }
                | What::Override { .. }
                | What::Backfill {
                    key_fault: Some(_),
                    ..
                }
        )
    });
    match refused.count() {
        0 => Ok(Exit::Done),
        _ => Ok(Exit::Migrate(3)),
    }
}

/// Sealed phases in the order of the lock, then those that are not sealed.
fn wanted<'a>(
    arguments: &PlanArguments,
    set: &'a Set,
) -> Result<Vec<(&'a Change, Phase)>, Failure> {
    if let Some(id) = &arguments.id
        && !set.changes.contains_key(id)
    {
        return Err(Failure::new(
            Exit::Usage,
            format!("there is no change {id} in {}", set.root()),
        ));
    }
    let unsealed = set.unsealed();
    let sealed = set.lock.lines.iter().map(|line| &line.at);
    let keep = |at: &&PhaseOf| {
        arguments.phase.is_none_or(|phase| phase == at.phase)
            && arguments.id.as_ref().is_none_or(|id| *id == at.id)
    };
    Ok(sealed
        .chain(&unsealed)
        .filter(keep)
        .filter_map(|at| Some((set.changes.get(&at.id)?, at.phase)))
        .collect())
}

/// What is applied in the database, where one was given and it matters.
async fn done(
    arguments: &PlanArguments,
    set: &Set,
    place: &Place<'_>,
) -> Result<Vec<PhaseOf>, Failure> {
    if arguments.all || arguments.catalog.is_some() || place.database.given().is_none() {
        return Ok(Vec::new());
    }
    let client = connect(place.database.direct()?).await?;
    let stands = standing(set, &recorded(&client).await?);
    let done = stands.lines.iter().filter(|line| line.state.is_done());
    Ok(done.map(|line| line.line.at.clone()).collect())
}

async fn catalog(
    arguments: &PlanArguments,
    set: &Set,
    place: &Place<'_>,
) -> Result<Option<Catalog>, Failure> {
    if let Some(path) = &arguments.catalog {
        let refuse = |why: String| {
            Failure::new(
                Exit::Usage,
                format!(
                    "the catalog {} cannot be read: {why}; `aegis migrate snapshot --out FILE` writes one",
                    path.display()
                ),
            )
        };
        let text = std::fs::read_to_string(path).map_err(|error| refuse(error.to_string()))?;
        return Catalog::from_json(&text)
            .map(Some)
            .map_err(|error| refuse(chain(&error)));
    }
    if place.database.given().is_none() {
        return Ok(None);
    }
    let client = connect(place.database.direct()?).await?;
    let catalog = aegis_catalog::read(&client, &Scope::schemas(shadow::schemas(set))).await;
    catalog
        .map(Some)
        .map_err(|error| Failure::new(Exit::Migrate(17), chain(&error)))
}

fn print(items: &[Item], place: &Place<'_>) {
    let rows = items.iter().map(|item| {
        let [at, class, what, why] = words(&item.what);
        vec![
            item.phase_of.to_string(),
            at,
            class,
            what,
            locks_in_words(&item.locks),
            why,
        ]
    });
    place.output.list(
        &["phase", "where", "class", "what", "locks", "why"],
        rows.collect(),
        items.iter().map(|item| json!(item)).collect(),
    );
}
