//! One statement, one transaction: locks first, the class decided again under them, then DDL, structure and verdict in one commit.

use std::time::{Duration, Instant};

use aegis_backfill::{Pause, STANDSTILL};
use aegis_catalog::{Catalog, Name, Scope, quote, read, read_within};
use aegis_ddl::{Class, Context, Form, SourceFile, Statement, Verdict, judge};
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Transaction};

use super::locks::Wanted;
use super::lost::{self, answer, is_lost};
use super::{Ladder, RunError, Work, aside, proof};
use crate::change::Phase;
use crate::contract::gate::{Gate, GateError};
use crate::ledger::{self, LedgerName, StepState, Who};
use crate::structure::{Before, Reach, before};

/// How long a scan may take that is short only because its table is small (16 MiB, measured under the lock).
const SMALL: Duration = Duration::from_secs(1);

/// What one try came to.
enum Try {
    /// Committed.
    Done,
    /// The locks were not had.
    Locked(String),
}

/// Runs a statement, or several of an `atomic` file, in one transaction.
pub(super) async fn run(
    client: &mut Client,
    works: &[Work<'_>],
    who: &Who,
    fresh: bool,
    ladder: &Ladder,
) -> Result<(), RunError> {
    behind(client, works, who, fresh, ladder, None).await
}

/// As [`run`], behind the assertions of a contract: they are made under the first lock, and what they end is in the same commit.
pub(super) async fn behind(
    client: &mut Client,
    works: &[Work<'_>],
    who: &Who,
    fresh: bool,
    ladder: &Ladder,
    gate: Option<&Gate<'_>>,
) -> Result<(), RunError> {
    let Some(first) = works.first() else {
        return Ok(());
    };
    let started = Instant::now();
    let mut tries = 0;
    let mut pause = Pause::growing(Duration::from_millis(100), Duration::from_secs(5));
    let wanted = wanted(client, works, fresh).await?;
    if !fresh {
        aside::nobody_builds(client, &wanted, ladder.budget).await?;
    }
    loop {
        tries += 1;
        let said = match attempt(client, works, &wanted, who, fresh, ladder, gate).await? {
            Try::Done => return Ok(()),
            Try::Locked(said) => said,
        };
        if tries >= ladder.tries || started.elapsed() >= ladder.budget {
            return Err(RunError::LockBudget {
                file: first.step.file.clone(),
                line: first.statement.line,
                tries,
                said,
            });
        }
        tracing::info!(tries, %said, statement = %first.step.file, "the locks were not had; the whole transaction is tried again");
        pause.wait().await;
    }
}

async fn attempt(
    client: &mut Client,
    works: &[Work<'_>],
    wanted: &Wanted,
    who: &Who,
    fresh: bool,
    ladder: &Ladder,
    gate: Option<&Gate<'_>>,
) -> Result<Try, RunError> {
    let transaction = client.transaction().await?;
    match inside(&transaction, works, wanted, who, fresh, ladder, gate).await {
        Ok(()) => {}
        Err(Refused::Run(error)) => {
            // The first error is what is told, and a lost session needs no end.
            transaction.rollback().await.ok();
            return Err(error);
        }
        Err(Refused::Locked(said)) => {
            transaction.rollback().await?;
            return Ok(Try::Locked(said));
        }
        Err(Refused::Unproven(at, why)) => {
            transaction.rollback().await?;
            let Some(work) = works.get(at) else {
                return Ok(Try::Locked(why));
            };
            failed(client, work, who, StepState::Failed, None, &why).await?;
            return Err(proof::unproven(work, why));
        }
        Err(Refused::Server(_, error, _)) if is_lost(&error) => return Err(error.into()),
        Err(Refused::Server(at, error, limit)) => {
            transaction.rollback().await?;
            let Some(db) = answer(&error) else {
                return Err(error.into());
            };
            let waits = [
                SqlState::LOCK_NOT_AVAILABLE,
                SqlState::T_R_DEADLOCK_DETECTED,
            ];
            if waits.contains(db.code()) {
                return Ok(Try::Locked(db.message().to_owned()));
            }
            let Some(work) = works.get(at) else {
                return Err(error.into());
            };
            let (mut said, code) = (db.message().to_owned(), db.code().code().to_owned());
            if *db.code() == SqlState::QUERY_CANCELED && !limit.is_zero() {
                said = format!(
                    "{said}: it holds its locks for at most {} ms, and was rolled back. What is long belongs to phase migrate",
                    limit.as_millis()
                );
            }
            failed(client, work, who, StepState::Failed, Some(&code), &said).await?;
            return Err(RunError::Sql {
                file: work.step.file.clone(),
                line: work.statement.line,
                said,
                sqlstate: code,
            });
        }
    }
    // The verdict is in the same commit: after a lost answer the ledger tells the next run which it was.
    let Err(error) = transaction.commit().await else {
        return Ok(Try::Done);
    };
    let Some(work) = works.last() else {
        return Err(error.into());
    };
    match answer(&error) {
        // A deferred constraint, for example: definitely nothing of it is there.
        Some(db) => {
            let (said, code) = (db.message().to_owned(), db.code().code().to_owned());
            failed(client, work, who, StepState::Failed, Some(&code), &said).await?;
            Err(RunError::Sql {
                file: work.step.file.clone(),
                line: work.statement.line,
                said,
                sqlstate: code,
            })
        }
        None => Err(lost::at_commit(work, &error)),
    }
}

enum Refused {
    Run(RunError),
    /// The locks were not had.
    Locked(String),
    /// By the server, at this statement, which had so long. Zero: for ever.
    Server(usize, tokio_postgres::Error, Duration),
    /// What this statement has left is not what its proof asks for.
    Unproven(usize, String),
}

impl Refused {
    /// What came of a statement of a file.
    fn statement(
        work: &Work<'_>,
        at: usize,
        error: tokio_postgres::Error,
        limit: Duration,
    ) -> Self {
        if is_lost(&error) {
            return Self::Run(lost::at_work(work, &error));
        }
        Self::Server(at, error, limit)
    }
}

impl<E: Into<RunError>> From<E> for Refused {
    fn from(error: E) -> Self {
        Self::Run(error.into())
    }
}

async fn inside(
    transaction: &Transaction<'_>,
    works: &[Work<'_>],
    wanted: &Wanted,
    who: &Who,
    fresh: bool,
    ladder: &Ladder,
    gate: Option<&Gate<'_>>,
) -> Result<(), Refused> {
    let at = |index| move |error| Refused::Server(index, error, Duration::ZERO);
    ledger::fence(transaction, who).await?;
    let Some(first) = works.first() else {
        return Ok(());
    };
    // A rollback takes settings back with it: each try sets them again. What is read under the locks is bounded like a statement.
    let bound = if fresh || first.step.at.phase != Phase::Expand {
        Duration::ZERO
    } else {
        ladder.lock_timeout + ladder.statement_timeout
    };
    let settings = format!(
        "SET LOCAL lock_timeout = {}; SET LOCAL statement_timeout = {}; SET LOCAL search_path = {}, pg_catalog",
        ladder.lock_timeout.as_millis(),
        bound.as_millis(),
        quote(first.schema)
    );
    let settings = if fresh {
        settings
    } else {
        format!("{settings}; SET LOCAL {STANDSTILL}")
    };
    let role = first
        .run_as
        .map(|role| format!("SET LOCAL ROLE {}", quote(role)));
    transaction.batch_execute(&settings).await.map_err(at(0))?;
    if let Some(role) = &role {
        transaction.batch_execute(role).await.map_err(at(0))?;
    }
    if fresh && works.len() > 1 && role.is_none() && gate.is_none() {
        return in_one_go(transaction, works, who).await;
    }
    wanted.take(transaction).await.map_err(not_locked)?;
    transaction
        .batch_execute("RESET ROLE")
        .await
        .map_err(at(0))?;
    if let Some(gate) = gate {
        gate.holds(transaction)
            .await
            .map_err(|shut| refused(shut, 0))?;
        transaction.batch_execute(&settings).await.map_err(at(0))?;
    }
    let mut opaque = None;
    for (index, work) in works.iter().enumerate() {
        let (decided, before) = looked(transaction, work, fresh).await?;
        let limit = if fresh {
            Duration::ZERO
        } else {
            decided.limit(ladder)
        };
        let set = format!(
            "SET LOCAL statement_timeout = {}; {}",
            limit.as_millis(),
            role.as_deref().unwrap_or_default()
        );
        opaque = decided.is_opaque.then_some(index).or(opaque);
        transaction.batch_execute(&set).await.map_err(at(index))?;
        transaction
            .batch_execute(&work.statement.text)
            .await
            .map_err(|error| Refused::statement(work, index, error, limit))?;
        let reset = format!(
            "RESET ROLE; SET LOCAL statement_timeout = {}",
            bound.as_millis()
        );
        transaction.batch_execute(&reset).await.map_err(at(index))?;
        before.record(transaction, who.ledger, &work.name()).await?;
        ledger::write(
            transaction,
            &work.step_of(decided.class),
            StepState::Applied,
            who,
            None,
            None,
        )
        .await?;
    }
    proven(transaction, works, opaque).await?;
    if let Some(gate) = gate {
        gate.end(transaction)
            .await
            .map_err(|shut| refused(shut, works.len().saturating_sub(1)))?;
    }
    Ok(())
}

/// All statements of an `atomic` file on a fresh database, where nobody else has or wants a lock: one look before the first and one
/// after the last tell what all of them did, which is written beside the last. Nothing is live, so the catalog moves no class.
async fn in_one_go(
    transaction: &Transaction<'_>,
    works: &[Work<'_>],
    who: &Who,
) -> Result<(), Refused> {
    let reach = works
        .iter()
        .map(|work| Reach::of(work.statement, work.schema))
        .reduce(Reach::and);
    let (Some(reach), Some(last)) = (reach, works.last()) else {
        return Ok(());
    };
    let before = before(transaction, &reach).await?;
    let mut opaque = None;
    for (index, work) in works.iter().enumerate() {
        let class = match work.generated {
            Some(class) => class,
            // The engine's own first changes make the roles of its servers, which nobody else's may: told, not refused.
            None if who.ledger == LedgerName::Engine => {
                judged(work, None, true).map_or(Class::E, |verdict| verdict.class)
            }
            None => {
                let decided = decided(work, None, true)?;
                opaque = decided.is_opaque.then_some(index).or(opaque);
                decided.class
            }
        };
        transaction
            .batch_execute(&work.statement.text)
            .await
            .map_err(|error| Refused::statement(work, index, error, Duration::ZERO))?;
        let step = work.step_of(class);
        ledger::write(transaction, &step, StepState::Applied, who, None, None).await?;
    }
    before.record(transaction, who.ledger, &last.name()).await?;
    proven(transaction, works, opaque).await
}

/// Asks for the proof at the end of the transaction, when something opaque ran in it; the last of it is told.
async fn proven(
    transaction: &Transaction<'_>,
    works: &[Work<'_>],
    opaque: Option<usize>,
) -> Result<(), Refused> {
    let Some((at, work)) = opaque.and_then(|at| Some((at, works.get(at)?))) else {
        return Ok(());
    };
    match proof::doubt(transaction, work).await? {
        None => Ok(()),
        Some(why) => Err(Refused::Unproven(at, why)),
    }
}

/// Whatever ends the wait for the locks is a try that failed; the rest is an error of the first statement.
fn not_locked(error: tokio_postgres::Error) -> Refused {
    if error.code() == Some(&SqlState::QUERY_CANCELED) {
        return Refused::Locked("the locks took longer than a statement may".to_owned());
    }
    Refused::Server(0, error, Duration::ZERO)
}

/// A lock that is not had is tried again, like those of the statements.
fn refused(shut: GateError, at: usize) -> Refused {
    match shut {
        GateError::Database(error) => Refused::Server(at, error, Duration::ZERO),
        GateError::Evidence(why) => Refused::Run(RunError::Evidence(why)),
    }
}

/// What a statement is, with the catalog as it is now.
pub(super) struct Decided {
    /// Its class.
    pub(super) class: Class,
    /// It is short only because what it scans is small now.
    is_small: bool,
    /// A part of it could not be read.
    pub(super) is_opaque: bool,
}

impl Decided {
    /// How long it may take: what is short holds its locks no longer than that, what is long takes none that matter.
    fn limit(&self, ladder: &Ladder) -> Duration {
        match self.class {
            Class::C => Duration::ZERO,
            _ if self.is_small => ladder.statement_timeout.min(SMALL),
            _ => ladder.statement_timeout,
        }
    }
}

/// What a statement names in the catalog.
fn named(work: &Work<'_>) -> Vec<Name> {
    let touched = work.statement.touches().into_iter();
    let touched = touched.flat_map(|one| std::iter::once(one.name).chain(one.on));
    let locked = work.statement.locks().into_iter().map(|lock| lock.relation);
    touched
        .chain(locked)
        .map(|name| name.resolve(work.schema))
        .collect()
}

fn scope(work: &Work<'_>) -> Scope {
    Scope::objects(named(work))
}

fn judged(work: &Work<'_>, catalog: Option<&Catalog>, fresh: bool) -> Option<Verdict> {
    let mut file: SourceFile = work.source.clone();
    file.script.statements = before_and(work);
    let context = Context {
        server: work.server,
        catalog,
        schema: work.schema,
        fresh,
        compatible: work.compatible,
    };
    judge(&[file], &context).verdicts.pop()
}

/// The locks of all, with those that only the catalog knows: the other side of a foreign key, a default partition. Read before the
/// transaction, which must hold nothing when it asks for its first lock; what changes meanwhile costs a try.
async fn wanted(client: &Client, works: &[Work<'_>], fresh: bool) -> Result<Wanted, RunError> {
    let mut wanted = Wanted::default();
    for work in works {
        let more = match &work.statement.form {
            Form::AlterTable { .. } | Form::Drop { .. } if !fresh && work.generated.is_none() => {
                let catalog = read(client, &scope(work)).await?;
                judged(work, Some(&catalog), fresh).map(|verdict| verdict.locks)
            }
            _ => None,
        };
        wanted.and(work.statement, &more.unwrap_or_default(), work.schema);
    }
    Ok(wanted)
}

/// The class again, with the catalog as it is now: in a transaction, its tables are locked. On a fresh database nothing is live,
/// so only what is refused everywhere is.
pub(super) async fn decide(
    transaction: &Transaction<'_>,
    work: &Work<'_>,
    fresh: bool,
) -> Result<Decided, RunError> {
    if let Some(class) = work.generated {
        return Ok(Decided {
            class,
            is_small: false,
            is_opaque: false,
        });
    }
    let catalog = read_within(transaction, &scope(work)).await?;
    decided(work, Some(catalog), fresh)
}

/// [`decide`], and what the statement will touch as it is before it: one reading for both where it is known what that is.
async fn looked(
    transaction: &Transaction<'_>,
    work: &Work<'_>,
    fresh: bool,
) -> Result<(Decided, Before), RunError> {
    let reach = Reach::of(work.statement, work.schema);
    let (Reach::Objects(names), None) = (&reach, work.generated) else {
        let decided = decide(transaction, work, fresh).await?;
        return Ok((decided, before(transaction, &reach).await?));
    };
    let names: Vec<Name> = named(work)
        .into_iter()
        .chain(names.iter().cloned())
        .collect();
    let catalog = read_within(transaction, &Scope::objects(names.iter().cloned())).await?;
    let before = Before::seen(Reach::Objects(names), catalog.structure());
    Ok((decided(work, Some(catalog), fresh)?, before))
}

/// The class, with what was read.
fn decided(work: &Work<'_>, catalog: Option<Catalog>, fresh: bool) -> Result<Decided, RunError> {
    let Some(last) = judged(work, catalog.as_ref(), fresh) else {
        return Ok(Decided {
            class: Class::E,
            is_small: false,
            is_opaque: false,
        });
    };
    let is_opaque = last
        .findings
        .iter()
        .any(|finding| finding.rule == "opaque-sql");
    if last.passes || fresh && last.class == Class::C {
        // Of what nobody has measured nothing is small.
        let is_small = catalog.is_some_and(|mut catalog| {
            for relation in &mut catalog.relations {
                relation.size = None;
            }
            judged(work, Some(&catalog), fresh).is_none_or(|other| other.class != last.class)
        });
        return Ok(Decided {
            class: last.class,
            is_small,
            is_opaque,
        });
    }
    Err(refused_class(&last, work.step.at.phase))
}

/// A statement that may not run in a phase, with why.
pub(super) fn refused_class(verdict: &Verdict, phase: Phase) -> RunError {
    let why: Vec<String> = verdict
        .findings
        .iter()
        .filter(|finding| finding.overridden.is_none() && finding.level > aegis_ddl::Level::Notice)
        .map(|finding| {
            format!(
                "{} ({}; instead: {})",
                finding.message, finding.rule, finding.safe
            )
        })
        .collect();
    RunError::Class {
        file: verdict.file.clone(),
        line: verdict.line,
        class: verdict.class.to_string(),
        phase: phase.to_string(),
        why: if why.is_empty() {
            "it is long, or cannot run in a transaction: it belongs to phase migrate".to_owned()
        } else {
            why.join("; ")
        },
    }
}

/// The statements of the file up to this one: what they made is not live.
fn before_and(work: &Work<'_>) -> Vec<Statement> {
    work.source
        .script
        .statements
        .iter()
        .take_while(|other| other.span.start <= work.statement.span.start)
        .cloned()
        .collect()
}

/// Keeps that the server refused it, in a transaction of its own.
pub(super) async fn failed(
    client: &mut Client,
    work: &Work<'_>,
    who: &Who,
    state: StepState,
    sqlstate: Option<&str>,
    said: &str,
) -> Result<(), RunError> {
    let transaction = client.transaction().await?;
    ledger::fence(&transaction, who).await?;
    ledger::write(&transaction, &work.step, state, who, sqlstate, Some(said)).await?;
    lost::commit(transaction, "a step's failure in the ledger").await
}
