//! `aegis lane pause`, `resume` and `pauses`.
//!
//! Never: a pause by lane, since a new protocol makes a new lane.

use aegis_store::overrides::PauseScope;
use aegis_store::survey::LaneFilter;
use clap::Args;
use serde_json::json;

use crate::commands::find;
use crate::database::DatabaseArguments;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{Output, at, note};

/// Below `aegis lane pause --help`.
pub(super) const EXAMPLES: &str = "Examples:\n  aegis lane pause --queue mail --reason 'the provider is down, INC-7'\n  \
    aegis lane pause --release 2026.11.3 --reason 'it charges twice' --actor ada\n  aegis lane pauses\n  \
    aegis lane resume --queue mail --reason 'the provider is back'";

/// Of what.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct Scope {
    /// This queue.
    #[arg(long)]
    queue: Option<String>,
    /// This kind, in all queues.
    #[arg(long)]
    kind: Option<String>,
    /// Workers of this release claim nothing.
    #[arg(long)]
    release: Option<String>,
    /// The tasks of this tenant.
    #[arg(long)]
    tenant: Option<String>,
}

#[derive(Debug, Args)]
pub(super) struct PauseArguments {
    #[command(flatten)]
    scope: Scope,
    /// Why; kept with the pause.
    #[arg(long)]
    reason: String,
    /// Who; default: the user of the shell.
    #[arg(long)]
    actor: Option<String>,
}

#[derive(Debug, Args)]
pub(super) struct ResumeArguments {
    #[command(flatten)]
    scope: Scope,
    /// Why; kept with who, see `aegis db changes`.
    #[arg(long, default_value = NO_REASON)]
    reason: String,
    /// Who; default: the user of the shell.
    #[arg(long)]
    actor: Option<String>,
}

impl Scope {
    fn value(&self) -> Result<(PauseScope, &str), Failure> {
        let given = [
            (PauseScope::Queue, &self.queue),
            (PauseScope::Kind, &self.kind),
            (PauseScope::Release, &self.release),
            (PauseScope::Tenant, &self.tenant),
        ];
        let found = given
            .into_iter()
            .find_map(|(scope, value)| Some((scope, value.as_deref()?)));
        match found {
            Some((scope, value)) if !value.trim().is_empty() => Ok((scope, value)),
            Some((scope, _)) => Err(Failure::new(
                Exit::Refused,
                format!("--{} is empty; give the name of one", scope.word()),
            )),
            None => Err(Failure::new(
                Exit::Usage,
                "give one of --queue, --kind, --release, --tenant",
            )),
        }
    }
}

/// Where a reason is good to have and not asked for.
pub(crate) const NO_REASON: &str = "none given";

/// A reason that says something.
pub(crate) fn reason<'a>(given: &'a str, what: &str) -> Result<&'a str, Failure> {
    if given.trim().is_empty() {
        return Err(Failure::new(
            Exit::Refused,
            format!("--reason is empty; say {what}"),
        ));
    }
    Ok(given)
}

/// Pauses.
pub(super) async fn pause(
    arguments: &PauseArguments,
    database: &DatabaseArguments,
    output: Output,
) -> Result<Exit, Failure> {
    let (scope, value) = arguments.scope.value()?;
    reason(&arguments.reason, "why, for whoever finds it paused")?;
    let store = database.connect().await?;
    let who = find::actor(arguments.actor.clone());
    store.pause(scope, value, &who, &arguments.reason).await?;
    if matches!(scope, PauseScope::Queue | PauseScope::Kind) {
        let named = Some(value.to_owned());
        let filter = LaneFilter {
            queue: named.clone().filter(|_| scope == PauseScope::Queue),
            kind: named.filter(|_| scope == PauseScope::Kind),
            all: true,
            limit: 1,
        };
        if store.lanes_by(&filter).await?.is_empty() {
            note(&format!(
                "no task of {} `{value}` was ever submitted here; it is paused all the same",
                scope.word()
            ));
        }
    }
    output.one(
        &[("paused", format!("{} {value} by {who}", scope.word()))],
        &json!({ "name": value, "scope": scope.word(), "paused": true, "who": who, "why": arguments.reason }),
    );
    Ok(Exit::Done)
}

/// Resumes.
pub(super) async fn resume(
    arguments: &ResumeArguments,
    database: &DatabaseArguments,
    output: Output,
) -> Result<Exit, Failure> {
    let (scope, value) = arguments.scope.value()?;
    let reason = reason(&arguments.reason, "why it goes on")?;
    let who = find::actor(arguments.actor.clone());
    let store = database.connect().await?;
    if !store.resume(scope, value, &who, reason).await? {
        return Err(Failure::new(
            Exit::NotFound,
            format!(
                "{} `{value}` is not paused; see `aegis lane pauses`",
                scope.word()
            ),
        ));
    }
    output.one(
        &[("resumed", format!("{} {value} by {who}", scope.word()))],
        &json!({ "name": value, "scope": scope.word(), "paused": false, "who": who, "why": reason }),
    );
    Ok(Exit::Done)
}

/// Lists pauses.
pub(super) async fn list(database: &DatabaseArguments, output: Output) -> Result<Exit, Failure> {
    let found = database.connect().await?.pauses().await?;
    let rows = found.iter().map(|p| {
        vec![
            p.value.clone(),
            p.scope.clone(),
            p.who.clone(),
            at(p.at),
            p.why.clone(),
        ]
    });
    let documents = found.iter().map(|p| {
        json!({ "name": p.value, "scope": p.scope, "who": p.who, "why": p.why, "at": p.at.to_string() })
    });
    output.list(
        &["value", "scope", "who", "since", "why"],
        rows.collect(),
        documents.collect(),
    );
    Ok(Exit::Done)
}
