//! `run`: what is open of a phase, step by step, each with its verdict in the ledger.
//!
//! Invariants: the ledger is read after the mutex is had; one statement, one transaction, unless `atomic`; DDL, verdict and epoch
//! check are one commit; a step that cannot run in a transaction has its intent first; a fresh database has no gates until its
//! first run has ended whole.

pub(crate) mod aside;
pub mod contract;
pub mod data;
mod error;
mod fresh;
mod locks;
pub(crate) mod lost;
mod outside;
mod proof;
mod ready;
mod step;
mod sync;
mod under_way;
mod watch;

use std::time::Duration;

use aegis_ddl::{Class, Compatible, SourceFile, Statement};
use serde::Serialize;
use serde_json::json;
use tokio_postgres::Client;

use crate::change::{Change, Part, Phase, PhaseOf, sha256};
use crate::contract::floor;
use crate::ledger::{self, LedgerName, Step, StepRow, StepState, Who};
use crate::lock::LockLine;
use crate::mutex::Held;
use crate::plan::{Verify, source, verify};
use crate::set::Set;
use crate::standing::{Standing, recorded_in, standing};
use crate::switch;

use outside::Outside;
use watch::{Keeper, Watch};

pub use error::RunError;
pub(crate) use locks::Wanted;
pub(crate) use sync::{PLACE as SYNC, begin as begin_sync};
pub use under_way::builds;

/// How patiently locks are asked for.
#[derive(Debug, Clone, Copy)]
pub struct Ladder {
    /// How long one lock is waited for. Everybody behind it waits too.
    pub lock_timeout: Duration,
    /// How long a short statement may take.
    pub statement_timeout: Duration,
    /// How often the whole transaction is tried.
    pub tries: u32,
    /// For how long it is tried.
    pub budget: Duration,
}

impl Default for Ladder {
    fn default() -> Self {
        Self {
            lock_timeout: Duration::from_millis(300),
            statement_timeout: Duration::from_secs(2),
            tries: 30,
            budget: Duration::from_mins(2),
        }
    }
}

/// How a run ended well.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Something was applied.
    Applied,
    /// Everything was there.
    Nothing,
    /// The database is newer than the folder, and has all of it.
    Ahead,
}

/// What a run did.
#[derive(Debug, Clone, Serialize)]
pub struct Summary {
    /// How it ended.
    pub outcome: Outcome,
    /// Steps applied now.
    pub applied: u32,
    /// Steps found as they should be.
    pub reconciled: u32,
    /// The schema's version: lines of the lock that are done without a gap.
    pub version: usize,
    /// Whether the database was fresh.
    pub fresh: bool,
    /// The fence of this run.
    pub epoch: i64,
}

/// A statement with everything that its run needs.
struct Work<'a> {
    step: Step,
    statement: &'a Statement,
    source: &'a SourceFile,
    schema: &'a str,
    run_as: Option<&'a str>,
    compatible: &'a [Compatible],
    server: u32,
    /// What proves it, where it is opaque.
    verify: Option<&'a Verify>,
    /// Made by this tool, with the class that it has: there is no author to judge.
    generated: Option<Class>,
}

impl Work<'_> {
    /// As the ledger names it.
    fn name(&self) -> String {
        format!("{}#{}", self.step.at, self.step.ordinal)
    }

    /// The step with the class that was found when it ran.
    fn step_of(&self, class: Class) -> Step {
        Step {
            class: class.to_string(),
            ..self.step.clone()
        }
    }
}

/// Runs what is open of `phase`. `told` hears of each step, and its events are kept in the ledger. The last one is `ended`, however
/// it ended.
///
/// # Errors
/// See [`RunError`]; what was applied before stays, and the ledger says so.
pub async fn run(
    held: &mut Held,
    set: &Set,
    phase: Phase,
    ladder: &Ladder,
    told: &mut (dyn FnMut(&serde_json::Value) + Send),
) -> Result<Summary, RunError> {
    let (mut applied, mut reconciled) = (0_u32, 0_u32);
    let mut counting = |event: &serde_json::Value| {
        match event.get("state").and_then(serde_json::Value::as_str) {
            Some("applied") => applied += 1,
            Some("reconciled") => reconciled += 1,
            _ => {}
        }
        told(event);
    };
    let ended = open_lines(held, set, phase, ladder, &mut counting).await;
    if let Err(error) = &ended {
        let who = held.who.clone();
        let event = json!({ "event": "ended", "summary": {
            "outcome": "failed", "phase": phase, "applied": applied, "reconciled": reconciled,
            "exit_code": error.exit_code(), "error": error.whole(), "epoch": who.epoch,
        } });
        // The first error is what is told; a lost or overtaken session cannot keep it.
        if let Err(lost) = tell(&mut held.session.client, &who, told, event).await {
            tracing::warn!(error = %lost.whole(), "the end of this run is not in the ledger");
        }
    }
    ended
}

/// After a signal, and after what the server was doing has been cancelled: the ledger says what was interrupted. The session can be
/// given back then.
///
/// # Errors
/// When the session is lost, or somebody has taken over.
pub async fn interrupted(held: &mut Held) -> Result<(), RunError> {
    let before = held.who.epoch;
    let client = &held.session.client;
    // Whatever the run had set when it was dropped.
    client
        .batch_execute("ROLLBACK; RESET ROLE; SET search_path = pg_catalog, pg_temp")
        .await?;
    if held.is_aside() {
        held.step_back().await?;
        aside::carry(held, before).await?;
    }
    let who = held.who.clone();
    let transaction = held.session.client.transaction().await?;
    ledger::fence(&transaction, &who).await?;
    let steps = ledger::interrupted(&transaction, &who).await?;
    let event = json!({ "event": "ended", "summary": {
        "outcome": "interrupted", "interrupted": steps, "exit_code": RunError::Interrupted.exit_code(), "epoch": who.epoch,
    } });
    ledger::event(&transaction, &who, &event).await?;
    lost::commit(transaction, "the end of an interrupted run").await
}

async fn open_lines(
    held: &mut Held,
    set: &Set,
    phase: Phase,
    ladder: &Ladder,
    told: &mut (dyn FnMut(&serde_json::Value) + Send),
) -> Result<Summary, RunError> {
    set.sealed()?;
    let fresh = held.ledger.fresh;
    // The engine's own are built in, and their lock is checked where they are made.
    if !held.ledger.dev && held.who.ledger != LedgerName::Engine {
        ready::all_sealed(set)?;
    }
    let mut stands = stands(held, set).await?;
    if held.who.ledger == LedgerName::Application
        && let Some(change) = floor::too_old(&held.session.client, set).await?
    {
        return Err(RunError::TooOld(change));
    }
    if !fresh {
        crate::sync::whole(&held.session.client, held.who.ledger, set, &stands).await?;
    }
    if let Some(done) = refused(&stands, phase, held.ledger.dev, fresh)? {
        let summary = Summary {
            outcome: done,
            applied: 0,
            reconciled: 0,
            version: stands.version(),
            fresh,
            epoch: held.who.epoch,
        };
        ended(held, &summary, told).await?;
        return Ok(summary);
    }
    if !fresh && phase == Phase::Expand && held.who.ledger == LedgerName::Application {
        ready::keys(&held.session.client, set, &stands).await?;
    }
    let mut steps = ledger::steps(&held.session.client, held.who.ledger).await?;
    let mut epoch = held.who.epoch;
    let (mut applied, mut reconciled) = (0, 0);
    let mut done_lines = 0;
    for (line, change) in set.lines() {
        loop {
            // The mutex was somebody else's while rows were moved, or an index was built.
            if held.who.epoch != epoch {
                epoch = held.who.epoch;
                stands = self::stands(held, set).await?;
                steps = ledger::steps(&held.session.client, held.who.ledger).await?;
            }
            let is_open = stands.of(&line.at).is_some_and(|state| !state.is_done());
            if !is_open || !(fresh || line.at.phase == phase) {
                break;
            }
            let mut running = Running {
                server: u32::try_from(held.session.version_num / 10_000).unwrap_or(0),
                held,
                fresh,
                ladder,
                told,
                applied: &mut applied,
                reconciled: &mut reconciled,
            };
            if of_line(&mut running, line, change, &mut steps).await? == Line::Whole {
                done_lines += 1;
                break;
            }
        }
    }
    if fresh {
        let transaction = held.session.client.transaction().await?;
        ledger::fence(&transaction, &held.who).await?;
        ledger::settled(&transaction, &held.who).await?;
        let who = &held.who;
        let gone = set
            .lines()
            .filter(|(line, _)| line.at.phase == Phase::Contract);
        for (_, change) in gone.filter(|_| who.ledger == LedgerName::Application) {
            switch::born(&transaction, change, &who.release, &who.by).await?;
        }
        lost::commit(transaction, "the end of a fresh database").await?;
    }
    let summary = Summary {
        outcome: if done_lines > 0 {
            Outcome::Applied
        } else {
            Outcome::Nothing
        },
        applied,
        reconciled,
        version: self::stands(held, set).await?.version(),
        fresh,
        epoch: held.who.epoch,
    };
    ended(held, &summary, told).await?;
    Ok(summary)
}

/// The last event, also of a run that had nothing to do.
async fn ended(
    held: &mut Held,
    summary: &Summary,
    told: &mut (dyn FnMut(&serde_json::Value) + Send),
) -> Result<(), RunError> {
    let event = json!({ "event": "ended", "summary": summary });
    tell(&mut held.session.client, &held.who, told, event).await
}

async fn stands(held: &Held, set: &Set) -> Result<Standing, RunError> {
    let recorded = recorded_in(&held.session.client, held.who.ledger)
        .await
        .map_err(baseline)?;
    Ok(standing(set, &recorded))
}

pub(crate) fn baseline(error: crate::baseline::BaselineError) -> RunError {
    match error {
        crate::baseline::BaselineError::Sql(error) => RunError::Database(error),
        other => RunError::Ledger(ledger::LedgerError::Unreadable {
            what: other.to_string(),
        }),
    }
}

/// Why nothing may run; or that nothing has to.
fn refused(
    stands: &Standing,
    phase: Phase,
    dev: bool,
    fresh: bool,
) -> Result<Option<Outcome>, RunError> {
    let words = |lines: Vec<String>| lines.join(", ");
    let edited: Vec<String> = stands
        .edited()
        .map(|line| line.line.at.to_string())
        .collect();
    if !edited.is_empty() && !dev {
        return Err(RunError::Edited(words(edited)));
    }
    let open: Vec<String> = stands
        .open(phase)
        .map(|line| line.line.at.to_string())
        .collect();
    if let Some((unknown, after)) = stands.split()
        && !dev
    {
        return Err(RunError::TwoHistories {
            unknown: unknown.to_string(),
            after: after.to_string(),
        });
    }
    if !stands.unknown.is_empty() && !dev {
        if open.is_empty() || stands.is_ahead() {
            return Ok(Some(Outcome::Ahead));
        }
        let unknown = stands.unknown.iter().map(PhaseOf::to_string).collect();
        return Err(RunError::AheadRefused {
            unknown: words(unknown),
            lacks: words(open),
        });
    }
    if let Some(line) = stands.out_of_order(phase).first()
        && !dev
    {
        return Err(RunError::OutOfOrder(line.line.at.to_string()));
    }
    if !fresh && let Some(missing) = stands.missing(phase).next() {
        return Err(RunError::Requires(Box::new(missing.clone())));
    }
    Ok(None)
}

/// A run under way.
struct Running<'a> {
    held: &'a mut Held,
    server: u32,
    fresh: bool,
    ladder: &'a Ladder,
    told: &'a mut (dyn FnMut(&serde_json::Value) + Send),
    applied: &'a mut u32,
    reconciled: &'a mut u32,
}

/// How far a line came.
#[derive(Debug, PartialEq, Eq)]
enum Line {
    /// It is whole.
    Whole,
    /// Somebody else was at it, and is not any more.
    Again,
}

async fn of_line(
    running: &mut Running<'_>,
    line: &LockLine,
    change: &Change,
    steps: &mut Vec<StepRow>,
) -> Result<Line, RunError> {
    let Running {
        held,
        server,
        fresh,
        ladder,
        told,
        applied,
        reconciled,
    } = running;
    let (server, fresh) = (*server, *fresh);
    let phase = line.at.phase;
    if phase == Phase::Contract && !fresh {
        return Err(RunError::NotRun {
            change: change.id.to_string(),
            what: "[contract]",
        });
    }
    let compatible = change.overrides(phase);
    let verify = verify(change, phase).map_err(|problem| RunError::Folder(problem.into()))?;
    // Whoever takes an application or a tenant in makes its schema, or an earlier line does, which has run by now.
    let is_first = steps.is_empty() && **applied == 0;
    ready::reachable(held, change, phase, fresh, is_first).await?;
    if !fresh && !steps.iter().any(|step| step.at == line.at) {
        ready::beforehand(held, change, phase, server).await?;
    }
    let mut ordinal = 0;
    for part in change.parts(phase) {
        if let Some(rows) = data::Rows::of(part) {
            // A fresh database has no rows to move.
            if !fresh {
                data::run(held, change, rows, told).await?;
                // Somebody else may have run meanwhile.
                *steps = ledger::steps(&held.session.client, held.who.ledger).await?;
            }
            continue;
        }
        // Part by part: what is generated asks the catalog for what the part before has made.
        let client = &mut held.session.client;
        let Some((source, generated)) = source_of(client, change, part).await? else {
            continue;
        };
        if !fresh
            && matches!(part, Part::Sync(_))
            && let Some(event) = sync::loses(client, change).await?
        {
            tell(client, &held.who, told, event).await?;
        }
        let mut works = Vec::new();
        // Nobody waits in a fresh database, so nothing has to be built beside them.
        let plain: Vec<Option<Statement>> = if fresh {
            let statements = source.script.statements.iter();
            statements.map(fresh::in_a_transaction).collect()
        } else {
            Vec::new()
        };
        for (number, statement) in source.script.statements.iter().enumerate() {
            ordinal += 1;
            let before = steps
                .iter()
                .find(|row| row.at == line.at && row.ordinal == ordinal);
            // A failed step has looked at what it left: nothing.
            let begun = before
                .filter(|row| row.state.is_begun())
                .map(|row| outside::Begun {
                    said: row.said.as_deref(),
                });
            let plain = plain.get(number).and_then(Option::as_ref);
            let work = Work {
                step: of_statement(line, &source, statement, ordinal),
                statement: plain.filter(|_| begun.is_none()).unwrap_or(statement),
                source: &source,
                schema: &change.schema,
                run_as: change.run_as.as_deref(),
                compatible: &compatible,
                server,
                verify: verify.as_ref(),
                generated,
            };
            if before.is_some_and(|row| row.state.is_done() && row.sha256 == work.step.sha256) {
                continue;
            }
            works.push((work, begun));
        }
        if source.atomic == Some(true) {
            let all: Vec<Work<'_>> = works.into_iter().map(|(work, _)| work).collect();
            step::run(&mut held.session.client, &all, &held.who, fresh, ladder).await?;
            let events: Vec<serde_json::Value> = all
                .iter()
                .map(|work| json!({ "event": "step", "step": work.name(), "state": "applied", "file": work.step.file, "line": work.step.line }))
                .collect();
            **applied += u32::try_from(events.len()).unwrap_or(u32::MAX);
            tell_all(&mut held.session.client, &held.who, told, &events).await?;
            continue;
        }
        for (work, begun) in works {
            let state = if work.statement.transactional() {
                let one = std::slice::from_ref(&work);
                step::run(&mut held.session.client, one, &held.who, fresh, ladder).await?;
                StepState::Applied
            } else if phase == Phase::Migrate && !fresh {
                match aside::run(held, &work, begun, told).await? {
                    aside::Came::Done(state) => state,
                    aside::Came::Again => return Ok(Line::Again),
                }
            } else {
                let pid = held.session.pid;
                let outside = Outside {
                    who: &held.who,
                    begun,
                    fresh,
                    watch: held.watch.as_mut().map(|client| Watch {
                        client,
                        pid,
                        keeper: Keeper::Mutex,
                    }),
                };
                outside::run(&mut held.session.client, &work, outside, told).await?
            };
            if state == StepState::Reconciled {
                **reconciled += 1;
            } else {
                **applied += 1;
            }
            tell(&mut held.session.client, &held.who, told, json!({ "event": "step", "step": work.name(), "state": state.name(), "file": work.step.file, "line": work.step.line })).await?;
        }
    }
    let transaction = held.session.client.transaction().await?;
    ledger::fence(&transaction, &held.who).await?;
    ledger::phase_done(&transaction, &line.at, &line.sha256, ordinal, &held.who).await?;
    lost::commit(transaction, "a phase that is whole").await?;
    tell(
        &mut held.session.client,
        &held.who,
        told,
        json!({ "event": "phase", "phase": line.at.to_string(), "steps": ordinal }),
    )
    .await?;
    Ok(Line::Whole)
}

/// The statements of a part, and their class when this tool has made them; `None`: it has none.
async fn source_of(
    client: &mut Client,
    change: &Change,
    part: Part<'_>,
) -> Result<Option<(SourceFile, Option<Class>)>, RunError> {
    match part {
        Part::Sql { key, file } => {
            let read =
                source(change, key, file).map_err(|problem| RunError::Folder(problem.into()))?;
            Ok(Some((read, None)))
        }
        Part::Sync(_) => Ok(Some((sync::begin(client, change).await?, Some(Class::A)))),
        Part::EndSync(_) => Ok(Some((sync::end(change)?, Some(Class::D)))),
        Part::Backfill(_) | Part::Reconcile(_) => Ok(None),
    }
}

pub(crate) fn of_statement(
    line: &LockLine,
    source: &SourceFile,
    statement: &Statement,
    ordinal: i32,
) -> Step {
    Step {
        at: line.at.clone(),
        ordinal,
        line_sha256: line.sha256.clone(),
        raw_sha256: sha256(statement.text.as_bytes()),
        sha256: sha256(statement.normalised().as_bytes()),
        file: source.path.clone(),
        line: i32::try_from(statement.line).unwrap_or(i32::MAX),
        statement: statement.text.clone(),
        // Decided when it runs.
        class: "undecided".to_owned(),
    }
}

/// [`tell`] for several.
async fn tell_all(
    client: &mut Client,
    who: &Who,
    told: &mut (dyn FnMut(&serde_json::Value) + Send),
    events: &[serde_json::Value],
) -> Result<(), RunError> {
    events.iter().for_each(told);
    let transaction = client.transaction().await?;
    ledger::fence(&transaction, who).await?;
    ledger::events(&transaction, who, events).await?;
    lost::commit(transaction, "events").await
}

async fn tell(
    client: &mut Client,
    who: &Who,
    told: &mut (dyn FnMut(&serde_json::Value) + Send),
    event: serde_json::Value,
) -> Result<(), RunError> {
    told(&event);
    let transaction = client.transaction().await?;
    ledger::fence(&transaction, who).await?;
    ledger::event(&transaction, who, &event).await?;
    lost::commit(transaction, "an event").await
}
