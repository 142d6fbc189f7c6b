//! One statement, one transaction: locks first, the class decided again under them, then DDL, structure and verdict in one commit.

use std::time::{Duration, Instant};

use aegis_catalog::{Scope, quote, read_within};
use aegis_ddl::{Class, Context, SourceFile, Statement, judge};
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Transaction};

use super::{Ladder, RunError, Work};
use crate::contract::gate::{Gate, GateError};
use crate::ledger::{self, StepState, Who};
use crate::structure::{Reach, before};

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
    let mut pause = Duration::from_millis(100);
    loop {
        tries += 1;
        let said = match attempt(client, works, who, fresh, ladder, gate).await? {
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
        let jitter = u64::from(started.elapsed().subsec_nanos()) % 100;
        tokio::time::sleep(pause + Duration::from_millis(jitter)).await;
        pause = (pause * 2).min(Duration::from_secs(5));
    }
}

async fn attempt(
    client: &mut Client,
    works: &[Work<'_>],
    who: &Who,
    fresh: bool,
    ladder: &Ladder,
    gate: Option<&Gate<'_>>,
) -> Result<Try, RunError> {
    let transaction = client.transaction().await?;
    match inside(&transaction, works, who, fresh, ladder, gate).await {
        Ok(()) => {}
        Err(Refused::Run(error)) => {
            transaction.rollback().await?;
            return Err(error);
        }
        Err(Refused::Server(at, error)) => {
            transaction.rollback().await?;
            let Some(db) = error.as_db_error() else {
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
            let (said, code) = (db.message().to_owned(), db.code().code().to_owned());
            failed(client, work, who, StepState::Failed, &code, &said).await?;
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
    match error.as_db_error() {
        // A deferred constraint, for example: definitely nothing of it is there.
        Some(db) => {
            let (said, code) = (db.message().to_owned(), db.code().code().to_owned());
            failed(client, work, who, StepState::Failed, &code, &said).await?;
            Err(RunError::Sql {
                file: work.step.file.clone(),
                line: work.statement.line,
                said,
                sqlstate: code,
            })
        }
        None => Err(RunError::Unknown {
            file: work.step.file.clone(),
            line: work.statement.line,
            why: format!(
                "the answer to COMMIT did not arrive ({error}); run again: the ledger, which is in the same commit, tells"
            ),
        }),
    }
}

enum Refused {
    Run(RunError),
    /// By the server, at this statement.
    Server(usize, tokio_postgres::Error),
}

impl<E: Into<RunError>> From<E> for Refused {
    fn from(error: E) -> Self {
        Self::Run(error.into())
    }
}

async fn inside(
    transaction: &Transaction<'_>,
    works: &[Work<'_>],
    who: &Who,
    fresh: bool,
    ladder: &Ladder,
    gate: Option<&Gate<'_>>,
) -> Result<(), Refused> {
    let at = |index| move |error| Refused::Server(index, error);
    ledger::fence(transaction, who.epoch).await?;
    for (index, work) in works.iter().enumerate() {
        let timeout = if work.is_long || fresh {
            0
        } else {
            ladder.statement_timeout.as_millis()
        };
        // A rollback takes settings back with it: each try sets them again.
        let settings = format!(
            "SET LOCAL lock_timeout = {}; SET LOCAL statement_timeout = {timeout}; SET LOCAL search_path = {}, pg_catalog",
            ladder.lock_timeout.as_millis(),
            quote(work.schema)
        );
        transaction
            .batch_execute(&settings)
            .await
            .map_err(at(index))?;
        lock(transaction, work, index == 0)
            .await
            .map_err(at(index))?;
        if index == 0
            && let Some(gate) = gate
        {
            gate.holds(transaction)
                .await
                .map_err(|shut| refused(shut, index))?;
            transaction
                .batch_execute(&settings)
                .await
                .map_err(at(index))?;
        }
        let class = decide(transaction, work, fresh).await?;
        let reach = Reach::of(work.statement, work.schema);
        let before = before(transaction, &reach).await?;
        if let Some(role) = work.run_as {
            let set = format!("SET LOCAL ROLE {}", quote(role));
            transaction.batch_execute(&set).await.map_err(at(index))?;
        }
        transaction
            .batch_execute(&work.statement.text)
            .await
            .map_err(at(index))?;
        transaction
            .batch_execute("RESET ROLE")
            .await
            .map_err(at(index))?;
        before.record(transaction, &work.name()).await?;
        ledger::write(
            transaction,
            &work.step_of(class),
            StepState::Applied,
            who,
            None,
            None,
        )
        .await?;
    }
    if let Some(gate) = gate {
        gate.end(transaction)
            .await
            .map_err(|shut| refused(shut, works.len().saturating_sub(1)))?;
    }
    Ok(())
}

/// A lock that is not had is tried again, like those of the statements.
fn refused(shut: GateError, at: usize) -> Refused {
    match shut {
        GateError::Database(error) => Refused::Server(at, error),
        GateError::Evidence(why) => Refused::Run(RunError::Evidence(why)),
    }
}

/// All locks in name order, in their final mode: the first waits, the others do not.
async fn lock(
    transaction: &Transaction<'_>,
    work: &Work<'_>,
    may_wait: bool,
) -> Result<(), tokio_postgres::Error> {
    let mut first = may_wait;
    for lock in work.statement.locks() {
        let name = lock.relation.resolve(work.schema);
        let is_table: bool = transaction
            .query_one(
                include_str!("../../sql/run/is_table.sql"),
                &[&name.schema, &name.name],
            )
            .await?
            .try_get(0)?;
        if !is_table {
            continue;
        }
        let nowait = if first { "" } else { " NOWAIT" };
        first = false;
        let sql = format!(
            "LOCK TABLE {} IN {} MODE{nowait}",
            name.sql(),
            lock.mode.sql()
        );
        transaction.batch_execute(&sql).await?;
    }
    Ok(())
}

/// The class again, with the catalog as it is now: in a transaction, its tables are locked. On a fresh database nothing is live,
/// so only what is refused everywhere is.
pub(super) async fn decide(
    transaction: &Transaction<'_>,
    work: &Work<'_>,
    fresh: bool,
) -> Result<Class, RunError> {
    if let Some(class) = work.generated {
        return Ok(class);
    }
    let names = work
        .statement
        .touches()
        .into_iter()
        .flat_map(|one| std::iter::once(one.name).chain(one.on))
        .chain(work.statement.locks().into_iter().map(|lock| lock.relation))
        .map(|name| name.resolve(work.schema));
    let catalog = read_within(transaction, &Scope::objects(names)).await?;
    let mut file: SourceFile = work.source.clone();
    file.script.statements = before_and(work);
    let context = Context {
        server: work.server,
        catalog: Some(&catalog),
        schema: work.schema,
        fresh,
        compatible: work.compatible,
    };
    let report = judge(&[file], &context);
    let Some(last) = report.verdicts.last() else {
        return Ok(Class::E);
    };
    if last.passes || fresh && last.class == Class::C {
        return Ok(last.class);
    }
    let why: Vec<String> = last
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
    Err(RunError::Class {
        file: work.step.file.clone(),
        line: work.statement.line,
        class: last.class.to_string(),
        phase: work.step.at.phase.to_string(),
        why: if why.is_empty() {
            "it is long, or cannot run in a transaction: it belongs to phase migrate".to_owned()
        } else {
            why.join("; ")
        },
    })
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
    sqlstate: &str,
    said: &str,
) -> Result<(), RunError> {
    let transaction = client.transaction().await?;
    ledger::fence(&transaction, who.epoch).await?;
    ledger::write(
        &transaction,
        &work.step,
        state,
        who,
        Some(sqlstate),
        Some(said),
    )
    .await?;
    transaction.commit().await?;
    Ok(())
}
