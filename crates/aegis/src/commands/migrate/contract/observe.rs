//! `contract observe`: looks at who still needs the old side, again and again; or takes in what was seen elsewhere.
//!
//! Invariants: each look is kept by itself, so it can be ended and begun again at any time; a lost connection is a hole and not an
//! end; it holds no mutex, and ends by itself when the time is full.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use aegis_migrate::change::ChangeId;
use aegis_migrate::contract::attempt::{Attempt, AttemptError};
use aegis_migrate::contract::bundle::open_bundle;
use aegis_migrate::contract::envelope::Envelope;
use aegis_migrate::contract::error::ContractError;
use aegis_migrate::contract::fact::Fact;
use aegis_migrate::contract::keyring::Keyring;
use aegis_migrate::contract::look::{self, Seen};
use aegis_migrate::contract::need::Need;
use aegis_migrate::contract::subject::Subject;
use aegis_migrate::contract::{judge, observe};
use aegis_migrate::set::Set;
use clap::Args;
use serde_json::json;
use tokio::time::{Instant, MissedTickBehavior, interval};
use tokio_postgres::Client;

use super::{failure, keyring, ledger_of, of_run, subject};
use crate::commands::migrate::run::signalled;
use crate::commands::migrate::{Place, connect_to_write};
use crate::exit::Exit;
use crate::failure::{Failure, chain};
use crate::output::{Progress, note};

/// Below its help.
pub(super) const AFTER: &str = "It can be ended and begun again: looks stay. Two looks that are more than 25 s apart leave a hole, and the time begins anew \
    after it. Pods, ReplicaSets and CronJobs are not seen from here: a collector's signed bundle tells of them (--bundle).";

/// How many times the whole is judged during one observation.
const JUDGED: u64 = 360;

#[derive(Debug, Args)]
pub(super) struct ObserveArguments {
    /// The change.
    #[arg(value_name = "ID")]
    id: ChangeId,
    /// One look, then the end: 18 when something did not hold.
    #[arg(long)]
    once: bool,
    /// Takes in a signed bundle of what was seen elsewhere, and looks at nothing.
    #[arg(long, value_name = "FILE", conflicts_with = "once")]
    bundle: Vec<PathBuf>,
    /// Ends after so long with 18 when the time is not full.
    #[arg(long, value_name = "SECONDS", conflicts_with_all = ["once", "bundle"], value_parser = clap::value_parser!(u64).range(1..=31_536_000))]
    for_s: Option<u64>,
}

/// How an observation ended.
enum Ended {
    Full,
    OutOfTime,
    Signal,
}

pub(super) async fn run(
    arguments: &ObserveArguments,
    place: &Place<'_>,
    approvers: &Path,
) -> Result<Exit, Failure> {
    let set = Set::read(&place.dir)?;
    let subject = subject(&set, &arguments.id)?;
    let mut client = session(place).await?;
    if ledger_of(&client, &set).await?.is_none() {
        let change = subject.id.clone();
        return Err(failure(&AttemptError::NotClosed { change }.into()));
    }
    let attempt = under_way(&client, &subject).await?;
    if !arguments.bundle.is_empty() {
        return bundles(&client, &attempt, arguments, place, &keyring(approvers)?).await;
    }
    if arguments.once {
        let seen = observe::sample(&mut client, &subject)
            .await
            .map_err(|error| failure(&error.into()))?;
        let holds = seen.iter().all(|(_, one)| one.holds == Some(true));
        show(place, &seen);
        return Ok(if holds { Exit::Done } else { Exit::Migrate(18) });
    }
    let keyring = keyring(approvers)?;
    let ended = tokio::select! {
        ended = watch(client, &subject, &keyring, arguments.for_s, place) => ended?,
        signal = signalled() => {
            signal?;
            Ended::Signal
        }
    };
    let client = match ended {
        Ended::Signal => {
            return Err(Failure::new(
                Exit::Migrate(22),
                "interrupted; what was seen is kept",
            ));
        }
        Ended::Full | Ended::OutOfTime => session(place).await?,
    };
    let now = under_way(&client, &subject).await?;
    let facts = watched(&client, &subject, &now, &keyring)
        .await
        .map_err(of_run)?;
    super::status::show(place, &facts, now.now);
    Ok(if matches!(ended, Ended::Full) {
        Exit::Done
    } else {
        Exit::Migrate(18)
    })
}

async fn session(place: &Place<'_>) -> Result<Client, Failure> {
    let client = connect_to_write(place.database.direct()?).await?;
    client.batch_execute(observe::BOUND).await.map_err(of_run)?;
    Ok(client)
}

async fn under_way(client: &Client, subject: &Subject<'_>) -> Result<Attempt, Failure> {
    Attempt::under_way(client, &subject.id)
        .await
        .map_err(|error| failure(&error.into()))
}

/// The facts that an observation is about.
async fn watched(
    client: &Client,
    subject: &Subject<'_>,
    attempt: &Attempt,
    keyring: &Keyring,
) -> Result<Vec<Fact>, tokio_postgres::Error> {
    let here: Vec<Need> = observe::watched(subject).collect();
    let mut facts = judge::facts(client, subject, attempt, keyring).await?;
    facts.retain(|fact| here.contains(&fact.need));
    Ok(facts)
}

/// Looks until every fact that is watched here carries.
async fn watch(
    client: Client,
    subject: &Subject<'_>,
    keyring: &Keyring,
    for_s: Option<u64>,
    place: &Place<'_>,
) -> Result<Ended, Failure> {
    let every = Duration::try_from(judge::EVERY).unwrap_or(Duration::from_secs(10));
    let judge_every =
        (subject.contract.observe.0.as_secs() / every.as_secs().max(1) / JUDGED).max(1);
    let until = for_s.map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let progress = Progress::new("looks", None);
    let mut ticks = interval(every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let mut client = Some(client);
    let mut last: BTreeMap<Need, Option<bool>> = BTreeMap::new();
    let mut taken = 0_u64;
    loop {
        ticks.tick().await;
        if until.is_some_and(|until| Instant::now() >= until) {
            return Ok(Ended::OutOfTime);
        }
        let mut session = match client.take() {
            Some(session) => session,
            None => match session(place).await {
                Ok(session) => session,
                Err(error) => {
                    note(&format!("{error}; nobody looks until it is back"));
                    continue;
                }
            },
        };
        let judged = taken.is_multiple_of(judge_every);
        let (seen, is_full) = match look_and_judge(&mut session, subject, keyring, judged).await {
            Ok(seen) => seen,
            Err(AttemptError::Database(error)) => {
                note(&format!(
                    "a look failed ({}); the next one is tried in its time",
                    chain(&error)
                ));
                client = Some(session).filter(|session| !session.is_closed());
                continue;
            }
            Err(error) => return Err(failure(&error.into())),
        };
        progress.more(1);
        for (need, one) in &seen {
            if last.insert(*need, one.holds) != Some(one.holds) {
                note(&format!("{need}: {}", one.detail));
            }
        }
        if is_full {
            return Ok(Ended::Full);
        }
        taken += 1;
        client = Some(session);
    }
}

/// One look, and whether the time is full by now.
async fn look_and_judge(
    session: &mut Client,
    subject: &Subject<'_>,
    keyring: &Keyring,
    judged: bool,
) -> Result<(Vec<(Need, Seen)>, bool), AttemptError> {
    let seen = observe::sample(session, subject).await?;
    if !judged {
        return Ok((seen, false));
    }
    let now = Attempt::under_way(session, &subject.id).await?;
    let facts = watched(session, subject, &now, keyring).await?;
    let is_full = facts.iter().all(|fact| fact.blocks(now.now).is_none());
    Ok((seen, is_full))
}

/// Takes in what collectors elsewhere have signed.
async fn bundles(
    client: &Client,
    attempt: &Attempt,
    arguments: &ObserveArguments,
    place: &Place<'_>,
    keyring: &Keyring,
) -> Result<Exit, Failure> {
    let mut rows = Vec::new();
    let mut documents = Vec::new();
    for file in &arguments.bundle {
        let named = file.display().to_string();
        let text = super::read(file, "hand in what the collector has signed")?;
        let refuse = |error: ContractError| failure(&error);
        let envelope = Envelope::read(&text, &named).map_err(|error| refuse(error.into()))?;
        let since = Some(attempt.closed_at);
        let change = &attempt.change;
        let (bundle, by) = open_bundle(&envelope, keyring, change, since, attempt.now, &named)
            .map_err(|error| refuse(error.into()))?;
        look::keep_bundle(client, attempt, &bundle, &by)
            .await
            .map_err(of_run)?;
        for seen in &bundle.facts {
            rows.push(vec![
                seen.need.to_string(),
                holds(seen.holds).to_owned(),
                format!("{} by {by}", bundle.source),
                bundle.at.to_string(),
                seen.detail.clone(),
            ]);
            documents.push(json!({ "need": seen.need, "holds": seen.holds, "source": bundle.source, "by": by, "at": bundle.at, "detail": seen.detail }));
        }
    }
    let columns = ["fact", "holds", "source", "at", "detail"];
    place.output.list(&columns, rows, documents);
    Ok(Exit::Done)
}

fn show(place: &Place<'_>, seen: &[(Need, Seen)]) {
    let rows = seen.iter().map(|(need, one)| {
        vec![
            need.to_string(),
            holds(one.holds).to_owned(),
            one.detail.clone(),
        ]
    });
    let documents = seen
        .iter()
        .map(|(need, one)| json!({ "need": need, "holds": one.holds, "detail": one.detail }));
    place.output.list(
        &["fact", "holds", "detail"],
        rows.collect(),
        documents.collect(),
    );
}

pub(super) const fn holds(holds: Option<bool>) -> &'static str {
    match holds {
        Some(true) => "yes",
        Some(false) => "no",
        None => "unknown",
    }
}
