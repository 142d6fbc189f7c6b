//! `aegis migrate squash`: old changes become one baseline.

use aegis_migrate::change::{ChangeId, Problems};
use aegis_migrate::lock::LockFile;
use aegis_migrate::seal;
use aegis_migrate::set::Set;
use aegis_migrate::shadow;
use aegis_migrate::squash;
use aegis_migrate::standing::{Recorded, recorded_in};
use aegis_migrate::targets::{Each, Stop, each};
use clap::Args;
use serde_json::json;

use super::seal::ReplayArguments;
use super::targets::{self, TargetArguments};
use super::{Place, connect};
use crate::exit::Exit;
use crate::failure::Failure;

#[derive(Debug, Args)]
pub(crate) struct SquashArguments {
    /// The last change that goes into it.
    #[arg(long, value_name = "ID")]
    through: ChangeId,
    #[command(flatten)]
    replay: ReplayArguments,
}

pub(crate) async fn run(arguments: &SquashArguments, place: &Place<'_>) -> Result<Exit, Failure> {
    let set = Set::read(&place.dir)?;
    let squash = squash::prepare(&set, &arguments.through)?;
    nobody_behind(&set, &squash.lines, place).await?;
    let after = squash.set(&set)?;
    let before = arguments.replay.structures(&set).await?;
    let made = arguments.replay.structures(&after).await?;
    for (old, new) in before.iter().zip(&made) {
        if old.fingerprint() != new.fingerprint() {
            let differences = old
                .compare(new)
                .map_err(|error| Failure::new(Exit::Migrate(12), error.to_string()))?;
            let told: Vec<String> = differences.iter().map(|one| format!("  {one}")).collect();
            return Err(Failure::new(
                Exit::Migrate(12),
                format!(
                    "the baseline would make another structure than the changes; nothing was written:\n{}",
                    told.join("\n")
                ),
            ));
        }
    }
    squash.write(&place.dir).map_err(Problems::from)?;
    let mut files = Vec::new();
    for structure in &made {
        let name = shadow::schema_file(structure.server_major);
        let text = structure
            .to_json()
            .map_err(|error| Failure::new(Exit::Broken, error.to_string()))?;
        seal::write_file(&place.dir.join(&name), &text).map_err(Problems::from)?;
        files.push(name);
    }
    let gone: Vec<String> = squash.gone.iter().map(ToString::to_string).collect();
    place.output.one(
        &[
            ("baseline", squash.id.to_string()),
            ("instead of", gone.join(" ")),
            ("structure", files.join(" ")),
        ],
        &json!({ "baseline": squash.id, "instead_of": gone, "structures": made.iter().map(aegis_catalog::Structure::fingerprint).collect::<Vec<_>>() }),
    );
    Ok(Exit::Done)
}

/// Every database has all that goes.
async fn nobody_behind(set: &Set, lines: &LockFile, place: &Place<'_>) -> Result<(), Failure> {
    let resolved = targets::resolve(set.files(), place, &TargetArguments::default()).await?;
    let work = |target: aegis_migrate::targets::Target| async move {
        let client = connect(&target.url).await?;
        Ok::<_, Failure>(recorded_in(&client, target.ledger()).await?)
    };
    let lost = |why: String| Failure::new(Exit::Broken, why);
    let answers = each(
        &resolved.targets,
        resolved.parallel,
        Stop::Never,
        work,
        lost,
        |_, _| {},
    )
    .await;
    let mut behind = Vec::new();
    for (target, answer) in resolved.targets.iter().zip(answers) {
        match answer {
            Each::Done(rows) => {
                let missing = missing(lines, &rows);
                if !missing.is_empty() {
                    behind.push(format!(
                        "{} has not applied {}",
                        target.name,
                        missing.join(", ")
                    ));
                }
            }
            Each::Failed(failure) => behind.push(format!("{}: not known: {failure}", target.name)),
            Each::NotTried => behind.push(format!("{}: not known", target.name)),
        }
    }
    if behind.is_empty() {
        return Ok(());
    }
    Err(Failure::new(
        Exit::Migrate(21),
        format!(
            "a database is behind, so nothing was squashed: {}; bring it up to date, or take it out of targets.toml",
            behind.join("; ")
        ),
    )
    .with_code(aegis_model::ErrorCode::REQUIRED_FIRST))
}

fn missing(lines: &LockFile, rows: &[Recorded]) -> Vec<String> {
    let has = |line: &aegis_migrate::lock::LockLine| {
        rows.iter()
            .any(|row| row.at == line.at && row.whole && row.sha256 == line.sha256)
    };
    lines
        .lines
        .iter()
        .filter(|line| !has(line))
        .map(|line| line.at.to_string())
        .collect()
}
