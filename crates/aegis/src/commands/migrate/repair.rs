//! `aegis migrate repair`: one verb a kind of repair, each with its reason, each with its proof.

use std::sync::Arc;
use std::time::Duration;

use aegis_migrate::change::{ChangeId, PhaseOf};
use aegis_migrate::mutex::{Held, RunName};
use aegis_migrate::repair::{self as library, RepairError};
use aegis_migrate::run::{Ladder, RunError, data};
use aegis_migrate::set::Set;
use clap::{Args, Subcommand};
use serde_json::json;

use super::seal::ReplayArguments;
use super::targets::{self, Aim, Manner, TargetArguments, Told, on_each};
use super::{Place, on_target, reason};
use crate::commands::find;
use crate::exit::Exit;
use crate::failure::{Failure, chain};

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

impl RepairArguments {
    fn only(&self) -> &TargetArguments {
        let why = match &self.verb {
            Verb::AcceptChecksum(proven) | Verb::MarkApplied(proven) => &proven.why,
            Verb::Retry(retry) => &retry.why,
            Verb::Sync(sync) => &sync.why,
        };
        &why.only
    }
}

#[derive(Debug, Args)]
pub(super) struct WhyArguments {
    /// Why; kept with who.
    #[arg(long, value_parser = reason::read)]
    pub(super) reason: String,
    /// Who; default: the user of the shell.
    #[arg(long)]
    actor: Option<String>,
    #[command(flatten)]
    pub(super) only: TargetArguments,
}

pub(crate) async fn run(arguments: RepairArguments, place: &Place<'_>) -> Result<Exit, Failure> {
    let set = Set::read(&place.dir)?;
    set.sealed()?;
    let resolved = targets::resolve(set.files(), place, arguments.only()).await?;
    let manner = match &arguments.verb {
        Verb::AcceptChecksum(_) | Verb::MarkApplied(_) => Manner::WritesInTurn,
        Verb::Sync(_) => Manner::Writes,
        Verb::Retry(_) => {
            // A person has looked, and has looked at one.
            resolved.one("repair retry")?;
            Manner::Writes
        }
    };
    let arguments = Arc::new(arguments);
    on_each(set, resolved, manner, place.output, move |aim| {
        repaired(aim, Arc::clone(&arguments))
    })
    .await
}

async fn repaired(aim: Aim, arguments: Arc<RepairArguments>) -> Result<Told, Failure> {
    match &arguments.verb {
        Verb::AcceptChecksum(proven) => accept(proven, &aim).await,
        Verb::MarkApplied(proven) => mark(proven, &aim).await,
        Verb::Retry(retry) => again(retry, &aim).await,
        Verb::Sync(sync) => made_again(sync, &aim).await,
    }
}

async fn accept(arguments: &ProvenArguments, aim: &Aim) -> Result<Told, Failure> {
    let why = &arguments.why.reason;
    let (set, at) = (&aim.set, &arguments.line);
    let mut held = held(&arguments.why, aim).await?;
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
    Ok(Told {
        json: json!({ "accepted": at.to_string(), "was": accepted.was, "is": accepted.becomes, "proof": accepted.proof }),
        fields: vec![
            ("accepted", at.to_string()),
            ("was", accepted.was),
            ("is", accepted.becomes),
            ("shown by", accepted.proof.to_owned()),
        ],
        notes: Vec::new(),
        failure: None,
    })
}

async fn mark(arguments: &ProvenArguments, aim: &Aim) -> Result<Told, Failure> {
    let why = &arguments.why.reason;
    let (set, at) = (&aim.set, &arguments.line);
    let mut held = held(&arguments.why, aim).await?;
    let part = library::replayed_with(&held, set, at).await.map_err(told)?;
    let structures = arguments.replay.structures(&part).await?;
    let Some(structure) = of_this_server(&structures, &held) else {
        return Err(Failure::new(Exit::Migrate(12), "nothing was replayed"));
    };
    let marked = library::mark_applied(&mut held, set, at, structure, why).await;
    held.release().await;
    let steps = marked.map_err(told)?;
    Ok(Told {
        fields: vec![("marked", at.to_string()), ("steps", steps.to_string())],
        json: json!({ "marked": at.to_string(), "steps": steps }),
        notes: Vec::new(),
        failure: None,
    })
}

async fn again(arguments: &RetryArguments, aim: &Aim) -> Result<Told, Failure> {
    let why = &arguments.why.reason;
    let mut held = held(&arguments.why, aim).await?;
    let done = library::retry(&mut held, &arguments.line, arguments.step, why).await;
    held.release().await;
    done.map_err(told)?;
    let step = format!("{}#{}", arguments.line, arguments.step);
    Ok(Told {
        json: json!({ "retry": step }),
        fields: vec![("retry", step)],
        notes: Vec::new(),
        failure: None,
    })
}

async fn made_again(arguments: &SyncArguments, aim: &Aim) -> Result<Told, Failure> {
    let why = &arguments.why.reason;
    let id = &arguments.change;
    let mut held = held(&arguments.why, aim).await?;
    let done = library::sync(&mut held, &aim.set, id, &Ladder::default(), why).await;
    let new_side = match &done {
        Ok(_) => data::new_side_counts(&held.session.client, id.as_str()).await,
        Err(_) => Ok(None),
    };
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
    Ok(Told {
        json: json!({ "made_again": id, "was": was, "next": next }),
        fields: vec![("made again", id.to_string()), ("it was", was)],
        notes: vec![next],
        failure: None,
    })
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

pub(super) async fn held(why: &WhyArguments, aim: &Aim) -> Result<Held, Failure> {
    let name = RunName {
        run: uuid::Uuid::now_v7().simple().to_string()[20..].to_owned(),
        by: find::actor(why.actor.clone()),
        release: "repair".to_owned(),
    };
    let taken = async {
        let config = on_target::config(&aim.url).map_err(|e| refused(&e))?;
        let session = on_target::session(&config, &name.application_name())
            .await
            .map_err(|e| refused(&e))?;
        Held::take_in(session, aim.ledger, &name, WAIT)
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
