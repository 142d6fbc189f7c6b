//! `aegis migrate repair`: one verb a kind of repair, each with its reason, each with its proof.

use std::time::Duration;

use aegis_migrate::change::{ChangeId, PhaseOf};
use aegis_migrate::mutex::{Held, RunName};
use aegis_migrate::repair::{self as library, RepairError};
use aegis_migrate::run::{Ladder, RunError, data};
use aegis_migrate::set::Set;
use clap::{Args, Subcommand};
use serde_json::json;

use super::seal::ReplayArguments;
use super::{Place, on_target};
use crate::commands::find;
use crate::commands::lane::pause::reason;
use crate::exit::Exit;
use crate::failure::{Failure, chain};
use crate::output::note;

/// Below its help.
pub(crate) const AFTER: &str = "Each repair is a row of aegis_migrate.repair, with who, why and how it was shown. What cannot be shown ends with exit code \
    12 and changes nothing.";

/// How long another run is waited for.
const WAIT: Duration = Duration::from_secs(30);

#[derive(Debug, Args)]
pub(crate) struct RepairArguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// An edit of a line that was applied here was reviewed: its new text made what is there, or touches only what is not applied.
    AcceptChecksum(ProvenArguments),
    /// The work of a phase was done by hand: a replay makes exactly what is there.
    MarkApplied(ProvenArguments),
    /// A step whose end nobody can tell is begun anew by the next run: you have looked, and nothing of it is there.
    Retry(RetryArguments),
    /// The trigger of a change is made again, after somebody has taken it away, disabled it or put another in its place.
    Sync(SyncArguments),
}

#[derive(Debug, Args)]
struct ProvenArguments {
    /// The line of the lock.
    #[arg(value_name = "ID:PHASE")]
    line: PhaseOf,
    #[command(flatten)]
    why: WhyArguments,
    #[command(flatten)]
    replay: ReplayArguments,
}

#[derive(Debug, Args)]
struct SyncArguments {
    /// The change.
    change: ChangeId,
    #[command(flatten)]
    why: WhyArguments,
}

#[derive(Debug, Args)]
struct RetryArguments {
    /// The line of the lock.
    #[arg(value_name = "ID:PHASE")]
    line: PhaseOf,
    /// The step's number, as the run has told it after #.
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(i32).range(1..))]
    step: i32,
    #[command(flatten)]
    why: WhyArguments,
}

#[derive(Debug, Args)]
pub(super) struct WhyArguments {
    /// Why; kept with who.
    #[arg(long)]
    pub(super) reason: String,
    /// Who; default: the user of the shell.
    #[arg(long)]
    actor: Option<String>,
}

pub(crate) async fn run(arguments: &RepairArguments, place: &Place<'_>) -> Result<Exit, Failure> {
    let set = Set::read(&place.dir)?;
    set.sealed()?;
    match &arguments.verb {
        Verb::AcceptChecksum(proven) => accept(proven, &set, place).await,
        Verb::MarkApplied(proven) => mark(proven, &set, place).await,
        Verb::Retry(retry) => again(retry, place).await,
        Verb::Sync(sync) => made_again(sync, &set, place).await,
    }
}

async fn accept(
    arguments: &ProvenArguments,
    set: &Set,
    place: &Place<'_>,
) -> Result<Exit, Failure> {
    let why = reason(&arguments.why.reason, "why the edit is right")?;
    let at = &arguments.line;
    let mut held = held(&arguments.why, place).await?;
    let structures = if library::needs_replay(&held, set, at).await.map_err(told)? {
        let part = library::replayed_with(&held, set, at).await.map_err(told)?;
        arguments.replay.structures(&part).await?
    } else {
        Vec::new()
    };
    let structure = of_this_server(&structures, &held);
    let accepted = library::accept_checksum(&mut held, set, at, structure, why).await;
    held.release().await;
    let accepted = accepted.map_err(told)?;
    place.output.one(
        &[
            ("accepted", at.to_string()),
            ("was", accepted.was.clone()),
            ("is", accepted.becomes.clone()),
            ("shown by", accepted.proof.to_owned()),
        ],
        &json!({ "accepted": at.to_string(), "was": accepted.was, "is": accepted.becomes, "proof": accepted.proof }),
    );
    Ok(Exit::Done)
}

async fn mark(arguments: &ProvenArguments, set: &Set, place: &Place<'_>) -> Result<Exit, Failure> {
    let why = reason(&arguments.why.reason, "how it came there")?;
    let at = &arguments.line;
    let mut held = held(&arguments.why, place).await?;
    let part = library::replayed_with(&held, set, at).await.map_err(told)?;
    let structures = arguments.replay.structures(&part).await?;
    let Some(structure) = of_this_server(&structures, &held) else {
        return Err(Failure::new(Exit::Migrate(12), "nothing was replayed"));
    };
    let marked = library::mark_applied(&mut held, set, at, structure, why).await;
    held.release().await;
    let steps = marked.map_err(told)?;
    place.output.one(
        &[("marked", at.to_string()), ("steps", steps.to_string())],
        &json!({ "marked": at.to_string(), "steps": steps }),
    );
    Ok(Exit::Done)
}

async fn again(arguments: &RetryArguments, place: &Place<'_>) -> Result<Exit, Failure> {
    let why = reason(&arguments.why.reason, "what you have seen there")?;
    let mut held = held(&arguments.why, place).await?;
    let done = library::retry(&mut held, &arguments.line, arguments.step, why).await;
    held.release().await;
    done.map_err(told)?;
    let step = format!("{}#{}", arguments.line, arguments.step);
    place
        .output
        .one(&[("retry", step.clone())], &json!({ "retry": step }));
    Ok(Exit::Done)
}

async fn made_again(
    arguments: &SyncArguments,
    set: &Set,
    place: &Place<'_>,
) -> Result<Exit, Failure> {
    let why = reason(&arguments.why.reason, "what happened to it")?;
    let id = &arguments.change;
    let mut held = held(&arguments.why, place).await?;
    let done = library::sync(&mut held, set, id, &Ladder::default(), why).await;
    let new_side = data::new_side_counts(&held.session.client, id.as_str()).await;
    held.release().await;
    let was = done.map_err(told)?;
    let new_side = new_side.map_err(|error| refused(&error))?;
    let old_over = format!(
        "rows that were written meanwhile may have one side only, and what was counted before is no evidence any more: \
         `aegis migrate reconcile {id}`; when it is not zero, `aegis migrate backfill retry --restart {id} --reason TEXT` and \
         `aegis migrate backfill run {id}`, which carry the old side over, then reconcile again"
    );
    let next = new_side.map_or(old_over, |why| {
        format!(
            "rows that were written meanwhile may have one side only, and what was counted before is no evidence any more: {why}"
        )
    });
    place.output.one(
        &[("made again", id.to_string()), ("it was", was.clone())],
        &json!({ "made_again": id, "was": was, "next": next }),
    );
    note(&next);
    Ok(Exit::Done)
}

/// Of several replays the one by the database's major version, else the first, which is told not to be comparable.
fn of_this_server<'a>(
    structures: &'a [aegis_catalog::Structure],
    held: &Held,
) -> Option<&'a aegis_catalog::Structure> {
    let major = held.session.major();
    let same = structures.iter().find(|one| one.server_major == major);
    same.or_else(|| structures.first())
}

pub(super) async fn held(why: &WhyArguments, place: &Place<'_>) -> Result<Held, Failure> {
    let name = RunName {
        run: uuid::Uuid::now_v7().simple().to_string()[20..].to_owned(),
        by: find::actor(why.actor.clone()),
        release: "repair".to_owned(),
    };
    let taken = async {
        let config = on_target::config(place.database.direct()?).map_err(|e| refused(&e))?;
        let session = on_target::session(&config, &name.application_name())
            .await
            .map_err(|e| refused(&e))?;
        Held::take(session, &name, WAIT)
            .await
            .map_err(|error| refused(&RunError::from(error)))
    };
    taken.await
}

fn refused(error: &RunError) -> Failure {
    on_target::failure(error)
}

pub(super) fn told(error: RepairError) -> Failure {
    match error {
        RepairError::Run(error) => refused(&error),
        error => Failure::new(Exit::Migrate(error.exit_code()), chain(&error)),
    }
}
