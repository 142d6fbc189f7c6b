//! `aegis migrate seal`: what was written becomes what is executed.

use std::path::PathBuf;

use aegis_catalog::Structure;
use aegis_migrate::change::{PhaseOf, Problem, Problems};
use aegis_migrate::seal;
use aegis_migrate::set::Set;
use aegis_migrate::shadow::{self, Private, ServerOptions, ShadowError};
use clap::Args;
use serde_json::json;

use super::{Place, connect};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{Progress, note};

/// Below its help.
pub(crate) const AFTER: &str = "It replays the whole lock on a private PostgreSQL, from nothing, and writes what came of it into \
    schema.MAJOR.json; nothing is written when a statement fails. Roles and extensions that the platform gives stand in \
    shadow.sql beside migrations.lock.";

#[derive(Debug, Args)]
pub(crate) struct SealArguments {
    /// A sealed phase whose files were edited, when only databases marked dev have applied it. May be repeated.
    #[arg(long, value_name = "ID:PHASE")]
    edited: Vec<PhaseOf>,
    /// Writes nothing; exit code 11 when something is not sealed, or schema.MAJOR.json is not what the lock makes.
    #[arg(long)]
    check: bool,
    #[command(flatten)]
    replay: ReplayArguments,
}

/// Where a lock is replayed.
#[derive(Debug, Args)]
pub(crate) struct ReplayArguments {
    /// The folder with PostgreSQL's programs, one for each major version that is in use; default: the newest of the machine.
    #[arg(long, value_name = "FOLDER")]
    postgres: Vec<PathBuf>,
    /// Fetches pinned PostgreSQL binaries when the machine has none.
    #[arg(long)]
    fetch_postgres: bool,
    /// An empty database to replay into instead, for extensions that a private server has not. What is made in it stays.
    #[arg(long, env = "AEGIS_MIGRATE_CLONE_URL", hide_env_values = true, value_name = "URL", conflicts_with_all = ["postgres", "fetch_postgres"])]
    clone_url: Option<String>,
}

impl ReplayArguments {
    /// What the lock of a set makes, once for each server.
    pub(crate) async fn structures(&self, set: &Set) -> Result<Vec<Structure>, Failure> {
        let progress = Progress::new("replaying the lock on a private PostgreSQL", None);
        if let Some(url) = &self.clone_url {
            let client = connect(url).await?;
            shadow::replay(&client, set).await?;
            let mut structure = shadow::structure(&client, set, None).await?;
            shadow::forget_given_owners(set, &mut structure);
            return Ok(vec![structure]);
        }
        let mut folders: Vec<Option<PathBuf>> = self.postgres.iter().cloned().map(Some).collect();
        if folders.is_empty() {
            folders.push(None);
        }
        let mut made = Vec::new();
        for binaries in folders {
            let fetch = self.fetch_postgres;
            let server = Private::start(&ServerOptions { binaries, fetch }).await?;
            let client = server.database("replayed").await?;
            shadow::replay(&client, set).await?;
            let mut structure = shadow::structure(&client, set, Some(server.superuser())).await?;
            shadow::forget_given_owners(set, &mut structure);
            made.push(structure);
            drop(client);
            server.stop().await;
        }
        drop(progress);
        Ok(made)
    }
}

pub(crate) async fn run(arguments: &SealArguments, place: &Place<'_>) -> Result<Exit, Failure> {
    let set = Set::read(&place.dir)?;
    super::tell_of_line_ends(&set);
    let sealed = seal::prepare(&set, &arguments.edited)?;
    if arguments.check && !sealed.is_nothing() {
        let open: Vec<String> = sealed
            .added
            .iter()
            .chain(&sealed.edited)
            .map(ToString::to_string)
            .collect();
        return Err(Failure::new(
            Exit::Migrate(11),
            format!(
                "{} is not sealed; run `aegis migrate seal`",
                open.join(", ")
            ),
        ));
    }
    let meant: Vec<PhaseOf> = sealed.added.iter().chain(&sealed.edited).cloned().collect();
    fit(&set, &meant, true)?;
    let mut after = set.clone();
    after.lock = sealed.lock.clone();
    let structures = arguments.replay.structures(&after).await?;
    let mut files = Vec::new();
    for structure in &structures {
        let text = structure
            .to_json()
            .map_err(|error| Failure::new(Exit::Broken, error.to_string()))?;
        files.push((shadow::schema_file(structure.server_major), text));
    }
    stale(&set, &files, sealed.is_nothing())?;
    let differs: Vec<&str> = files
        .iter()
        .filter(|(name, text)| set.files().get(name) != Some(text.as_bytes()))
        .map(|(name, _)| name.as_str())
        .collect();
    if arguments.check {
        if !differs.is_empty() {
            return Err(Failure::new(
                Exit::Migrate(11),
                format!(
                    "{} is not what the lock makes; run `aegis migrate seal`",
                    differs.join(", ")
                ),
            ));
        }
    } else {
        for (name, text) in &files {
            seal::write_file(&place.dir.join(name), text).map_err(Problems::from)?;
        }
        if !sealed.is_nothing() {
            seal::write(&place.dir, &sealed.lock).map_err(Problems::from)?;
        }
    }
    let outcome = if sealed.is_nothing() && differs.is_empty() {
        "nothing"
    } else {
        "sealed"
    };
    let list = |phases: &[PhaseOf]| phases.iter().map(ToString::to_string).collect::<Vec<_>>();
    let (added, edited) = (list(&sealed.added), list(&sealed.edited));
    let names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
    place.output.one(
        &[
            ("outcome", outcome.to_owned()),
            ("lines added", added.join(" ")),
            ("lines edited", edited.join(" ")),
            ("structure", names.join(" ")),
        ],
        &json!({
            "outcome": outcome, "added": added, "edited": edited,
            "structures": structures.iter().map(|one| json!({ "major": one.server_major, "fingerprint": one.fingerprint() })).collect::<Vec<_>>(),
        }),
    );
    if !sealed.edited.is_empty() {
        note(
            "a database outside of dev that has applied an edited line will refuse it (exit code 11)",
        );
    }
    Ok(Exit::Done)
}

/// These phases hold nothing that no run would take; where they are sealed, each does something.
pub(super) fn fit(set: &Set, phases: &[PhaseOf], is_sealing: bool) -> Result<(), Failure> {
    let mut unfit = aegis_migrate::lint::unfit(set, phases)?;
    let of_unfinished = ["empty-file", "unused-override"];
    unfit.retain(|one| is_sealing || !one.rules.iter().any(|rule| of_unfinished.contains(rule)));
    if unfit.is_empty() {
        return Ok(());
    }
    let lines = unfit.iter().flat_map(|one| {
        let of_finding = |finding: &aegis_migrate::lint::Finding| {
            format!(
                "{}:{}: [{}] {}; {}",
                one.file, one.line, finding.rule, finding.message, finding.safe
            )
        };
        one.findings
            .iter()
            .map(of_finding)
            .chain(one.shown.iter().cloned())
    });
    let told = lines.collect::<Vec<_>>().join("\n");
    Err(ShadowError::Unfit { told }.into())
}

/// A structure of another major version that would be of before.
fn stale(set: &Set, made: &[(String, String)], nothing_new: bool) -> Result<(), Failure> {
    let left: Vec<&str> = set
        .files()
        .names()
        .filter(|name| {
            name.strip_prefix("schema.")
                .is_some_and(|rest| rest.strip_suffix(".json").is_some())
        })
        .filter(|name| made.iter().all(|(of_now, _)| of_now != name))
        .collect();
    if left.is_empty() || nothing_new {
        return Ok(());
    }
    let problem = Problem::of_file(
        set.root(),
        format!("{} would be of the lock of before", left.join(", ")),
        "seal with the PostgreSQL of that major version too (--postgres FOLDER, once for each), or remove the file",
    );
    Err(Problems::from(problem).into())
}
