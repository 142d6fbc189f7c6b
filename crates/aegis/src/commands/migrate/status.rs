//! `aegis migrate status` and `check`: where a database stands beside the folder.

use std::sync::Arc;
use std::time::Duration;

use aegis_migrate::change::{Kind, PhaseOf, Problem, Problems};
use aegis_migrate::contract::floor;
use aegis_migrate::ledger::LedgerName;
use aegis_migrate::run::RunError;
use aegis_migrate::set::Set;
use aegis_migrate::standing::{Line, Standing, State, command, recorded, recorded_in, standing};
use aegis_migrate::sync;
use aegis_migrate::targets::{Each, Stop, Target, each};
use clap::Args;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::targets::{self, Aim, Manner, Resolved, TargetArguments, Told, on_each};
use super::under_way::UnderWay;
use super::{Place, connect};
use crate::exit::Exit;
use crate::failure::{Failure, chain};
use crate::output::{Progress, note};

/// How often `check --wait-s` looks again.
const LOOK_EVERY: Duration = Duration::from_secs(2);

#[derive(Debug, Args)]
pub(crate) struct CheckArguments {
    /// The phase that must be applied, such as 20261129T1030_split_name:expand.
    #[arg(long, value_name = "ID:PHASE")]
    at_least: PhaseOf,
    /// Looks again for so long before the answer is no.
    #[arg(long, value_name = "SECONDS", default_value_t = 0, value_parser = clap::value_parser!(u64).range(0..=86_400))]
    wait_s: u64,
    #[command(flatten)]
    only: TargetArguments,
}

#[derive(Debug, Args)]
pub(crate) struct StatusArguments {
    #[command(flatten)]
    only: TargetArguments,
}

pub(crate) async fn status(
    arguments: &StatusArguments,
    place: &Place<'_>,
) -> Result<Exit, Failure> {
    let set = Set::read(&place.dir)?;
    super::tell_of_line_ends(&set);
    let resolved = targets::resolve(set.files(), place, &arguments.only).await?;
    if resolved.is_many {
        return of_many(&set, resolved, place).await;
    }
    let client = connect(place.database.direct()?).await?;
    let stands = standing(&set, &recorded(&client).await?);
    let under_way = UnderWay::read(&client, LedgerName::Application, &stands).await?;
    let rows = stands.lines.iter().map(|line| row(line, &under_way));
    let documents = stands.lines.iter().map(|line| document(line, &under_way));
    place.output.list(
        &["phase", "state", "detail"],
        rows.collect(),
        documents.collect(),
    );
    note(&version(&stands));
    for at in &stands.unknown {
        note(&format!(
            "the database has {at}, which this folder does not know"
        ));
    }
    for at in set.unsealed() {
        note(&format!("{at} is not sealed"));
    }
    set.sealed()?;
    sync::whole(&client, LedgerName::Application, &set, &stands)
        .await
        .map_err(|error| told(&error))?;
    edited(&set, &stands)?;
    Ok(Exit::Done)
}

fn row(line: &Line, under_way: &UnderWay) -> Vec<String> {
    let mut words = vec![detail(line)];
    words.retain(|word| !word.is_empty());
    words.extend(under_way.words(line));
    vec![
        line.line.at.to_string(),
        word(&line.state).to_owned(),
        words.join("; "),
    ]
}

fn document(line: &Line, under_way: &UnderWay) -> Value {
    let mut document = json!(line);
    under_way.add(line, &mut document);
    document
}

fn version(stands: &Standing) -> String {
    format!(
        "version {} of {} lines{}",
        stands.version(),
        stands.lines.len(),
        if stands.is_ahead() {
            "; the database is ahead of this folder"
        } else {
            ""
        }
    )
}

/// Every target of targets.toml; one that cannot be asked hides no other.
async fn of_many(set: &Set, resolved: Resolved, place: &Place<'_>) -> Result<Exit, Failure> {
    set.sealed()?;
    let shared = Arc::new(set.clone());
    let work = |target: Target| {
        let set = Arc::clone(&shared);
        async move {
            let client = connect(&target.url).await?;
            let stands = standing(&set, &recorded_in(&client, target.ledger()).await?);
            let under_way = UnderWay::read(&client, target.ledger(), &stands).await?;
            Ok::<_, Failure>((stands, under_way))
        }
    };
    let lost = |why: String| Failure::new(Exit::Broken, why);
    let (parallel, never) = (resolved.parallel, Stop::Never);
    let answers = each(&resolved.targets, parallel, never, work, lost, |_, _| {}).await;
    let (mut rows, mut documents, mut first) = (Vec::new(), Vec::new(), None);
    for (target, answer) in resolved.targets.iter().zip(answers) {
        let name = &target.name;
        match answer {
            Each::Done((stands, under_way)) => {
                note(&format!("{name}: {}", version(&stands)));
                for line in &stands.lines {
                    let mut cells = vec![name.clone()];
                    cells.extend(row(line, &under_way));
                    rows.push(cells);
                    let mut one = document(line, &under_way);
                    one["target"] = Value::from(name.clone());
                    documents.push(one);
                }
                if let Err(failure) = edited(set, &stands) {
                    first.get_or_insert(failure.after(&format!("target {name}")));
                }
            }
            Each::Failed(failure) => {
                note(&format!("{name}: {failure}"));
                documents.push(json!({ "target": name, "error": failure.to_string() }));
                first.get_or_insert(failure.after(&format!("target {name}")));
            }
            Each::NotTried => {}
        }
    }
    place
        .output
        .list(&["target", "phase", "state", "detail"], rows, documents);
    first.map_or(Ok(Exit::Done), Err)
}

/// Lines that were applied with another hash.
pub(super) fn edited(set: &Set, stands: &Standing) -> Result<(), Failure> {
    let lines = stands.edited().map(|line| edited_line(set, &line.line.at));
    Ok(Problems::none_of(lines.collect())?)
}

fn edited_line(set: &Set, at: &PhaseOf) -> Problem {
    let problem = Problem::of_file(
        set.files().name_of(aegis_migrate::lock::LOCK_FILE),
        format!("{at} was applied to this database with another hash"),
        format!(
            "put the files back as they were applied and write a new change; an edit that was reviewed is accepted by `aegis migrate repair accept-checksum {at} --reason TEXT`"
        ),
    )
    .kind(Kind::Checksum);
    match set.lock.line(at) {
        Some(line) => problem.at(line.line),
        None => problem,
    }
}

fn word(state: &State) -> &'static str {
    match state {
        State::Applied => "applied",
        State::Squashed => "squashed",
        State::Partly { .. } => "partly",
        State::Pending => "pending",
        State::Edited { .. } => "edited",
    }
}

fn detail(line: &Line) -> String {
    match &line.state {
        State::Applied | State::Squashed => String::new(),
        State::Partly { steps_done, open } => format!(
            "{steps_done} steps done{}",
            open.as_ref()
                .map_or_else(String::new, |open| format!("; {open}"))
        ),
        State::Pending => command(&line.line.at),
        State::Edited { applied } => format!("applied with hash {applied}"),
    }
}

pub(crate) async fn check(arguments: CheckArguments, place: &Place<'_>) -> Result<Exit, Failure> {
    let set = Set::read(&place.dir)?;
    set.sealed()?;
    let at = &arguments.at_least;
    if set.lock.line(at).is_none() && set.squash_of(at).is_none() {
        let path = set.files().name_of(aegis_migrate::lock::LOCK_FILE);
        let problem = Problem::of_file(path, format!("it has no line {at}"), "name a sealed phase");
        return Err(Problems::from(problem).into());
    }
    let resolved = targets::resolve(set.files(), place, &arguments.only).await?;
    let progress =
        (arguments.wait_s > 0).then(|| Progress::new(&format!("waiting for {at}"), None));
    let until = Instant::now() + Duration::from_secs(arguments.wait_s);
    let at = at.clone();
    let checked = on_each(set, resolved, Manner::Looks, place.output, move |aim| {
        checked(aim, at.clone(), until)
    })
    .await;
    drop(progress);
    checked
}

/// Looks until a phase is applied in one target, or the time is over.
async fn checked(aim: Aim, at: PhaseOf, until: Instant) -> Result<Told, Failure> {
    let state = loop {
        match look(&aim, &at).await {
            Ok(state) if state.is_done() => break state,
            // Edited history does not become right by waiting.
            Ok(state @ State::Edited { .. }) => break state,
            Ok(state) if Instant::now() >= until => break state,
            Err(failure) if Instant::now() >= until => return Err(failure),
            Ok(_) | Err(_) => tokio::time::sleep(LOOK_EVERY.min(until - Instant::now())).await,
        }
    };
    if let State::Edited { .. } = state {
        return Err(Problems::from(edited_line(&aim.set, &at)).into());
    }
    if !state.is_done() {
        let place = match aim.ledger {
            LedgerName::Tenant(_) => "schema",
            LedgerName::Application | LedgerName::Engine => "database",
        };
        let problem = Problem::of_file(
            aim.set.root(),
            format!("{at} is {} in this {place}", word(&state)),
            format!("`{}` applies it", command(&at)),
        );
        return Err(Problems::from(problem.kind(Kind::Requires)).into());
    }
    Ok(Told {
        fields: vec![("applied", at.to_string())],
        json: json!({ "at_least": at, "state": word(&state) }),
        notes: Vec::new(),
        failure: None,
    })
}

async fn look(aim: &Aim, at: &PhaseOf) -> Result<State, Failure> {
    let (client, set) = (connect(&aim.url).await?, &*aim.set);
    // A schema of many has no contract.
    let is_whole = aim.ledger == LedgerName::Application;
    if is_whole {
        let closed = floor::too_old(&client, set).await.map_err(RunError::from);
        // Its programs would start, and then fail on what a closed contract has taken.
        if let Some(change) = closed.map_err(|error| told(&error))? {
            return Err(told(&RunError::TooOld(change)));
        }
    }
    let stands = standing(set, &recorded_in(&client, aim.ledger).await?);
    // Its programs would write one side, and nobody the other.
    sync::whole(&client, aim.ledger, set, &stands)
        .await
        .map_err(|error| told(&error))?;
    let line = match set.squash_of(at) {
        Some(squash) if set.lock.line(at).is_none() => PhaseOf {
            id: squash.id.clone(),
            phase: aegis_migrate::change::Phase::Expand,
        },
        _ => at.clone(),
    };
    Ok(stands.of(&line).cloned().unwrap_or(State::Pending))
}

fn told(error: &RunError) -> Failure {
    Failure::new(Exit::Migrate(error.exit_code()), chain(error))
}
