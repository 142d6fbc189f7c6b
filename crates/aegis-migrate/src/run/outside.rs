//! Steps that cannot run in a transaction: concurrent builds and drops, detaching, VACUUM.
//!
//! The intent is committed before the step begins and the verdict after it; between them anything may die. So a step that is met
//! again is judged by what is there, never by what somebody remembers.

use aegis_catalog::{Name, quote};
use aegis_ddl::Form;
use tokio_postgres::Client;

use super::{RunError, Work};
use crate::ledger::{self, StepState, Who};
use crate::structure::{IndexStanding, Reach, before, expected_index, standing};

/// What is there already.
enum Found {
    /// Nothing of it.
    Nothing,
    /// All of it.
    Whole,
}

/// Runs one step outside of a transaction. `begun`: the ledger has an intent of an earlier run.
pub(super) async fn run(
    client: &mut Client,
    work: &Work<'_>,
    who: &Who,
    begun: bool,
    fresh: bool,
) -> Result<StepState, RunError> {
    let search_path = format!("SET search_path = {}, pg_catalog", quote(work.schema));
    client.batch_execute(&search_path).await?;
    let ran = guarded(client, work, who, begun, fresh).await;
    // The first error is what is told.
    let reset = client
        .batch_execute("RESET ROLE; SET search_path = pg_catalog, pg_temp; SET lock_timeout = 0; SET statement_timeout = 0")
        .await;
    let state = ran?;
    reset?;
    Ok(state)
}

async fn guarded(
    client: &mut Client,
    work: &Work<'_>,
    who: &Who,
    begun: bool,
    fresh: bool,
) -> Result<StepState, RunError> {
    let transaction = client.transaction().await?;
    let class = super::step::decide(&transaction, work, fresh).await?;
    transaction.rollback().await?;
    let step = work.step_of(class);
    if let Found::Whole = found(client, work, begun).await? {
        if !begun && !is_drop(work) {
            // Equal, and no row: somebody else's, or a ledger that was lost. Taken for done, and said so.
            tracing::warn!(step = %work.name(), "it is there already, as it should be");
        }
        let transaction = client.transaction().await?;
        ledger::fence(&transaction, who.epoch).await?;
        ledger::write(
            &transaction,
            &step,
            StepState::Reconciled,
            who,
            None,
            Some("found as it should be"),
        )
        .await?;
        transaction.commit().await?;
        return Ok(StepState::Reconciled);
    }
    let reach = Reach::of(work.statement, work.schema);
    let transaction = client.transaction().await?;
    ledger::fence(&transaction, who.epoch).await?;
    let looked = before(&transaction, &reach).await?;
    ledger::write(&transaction, &step, StepState::Intent, who, None, None).await?;
    transaction.commit().await?;

    if let Some(role) = work.run_as {
        client
            .batch_execute(&format!("SET ROLE {}", quote(role)))
            .await?;
    }
    // A lock time-out would cut a concurrent build short for any old snapshot, and leave an invalid index.
    let made = client.batch_execute(&work.statement.text).await;
    if let Err(error) = made {
        let Some(db) = error.as_db_error() else {
            return Err(RunError::Unknown {
                file: work.step.file.clone(),
                line: work.statement.line,
                why: format!(
                    "the session was lost ({error}); run again: what is there tells how far it came"
                ),
            });
        };
        let (said, code) = (db.message().to_owned(), db.code().code().to_owned());
        if work.run_as.is_some() {
            client.batch_execute("RESET ROLE").await?;
        }
        // What our build left is ours; what appears later is not.
        let left = left_behind(client, work).await?;
        let state = if left {
            StepState::Unknown
        } else {
            StepState::Failed
        };
        super::step::failed(client, work, who, state, &code, &said).await?;
        return Err(RunError::Sql {
            file: work.step.file.clone(),
            line: work.statement.line,
            said,
            sqlstate: code,
        });
    }
    if work.run_as.is_some() {
        client.batch_execute("RESET ROLE").await?;
    }
    let transaction = client.transaction().await?;
    ledger::fence(&transaction, who.epoch).await?;
    looked.record(&transaction, &work.name()).await?;
    ledger::write(&transaction, &step, StepState::Applied, who, None, None).await?;
    transaction.commit().await?;
    Ok(StepState::Applied)
}

/// Whether a refused build left its index.
async fn left_behind(client: &Client, work: &Work<'_>) -> Result<bool, RunError> {
    let Form::CreateIndex(create) = &work.statement.form else {
        return Ok(true);
    };
    let Some(index) = &create.index else {
        return Ok(true);
    };
    let table = create.table.resolve(work.schema);
    let name = Name::new(&*table.schema, &*index.name);
    let there = standing(client, &name, None, Some(&table)).await?;
    Ok(matches!(there, IndexStanding::Invalid { .. }))
}

fn is_drop(work: &Work<'_>) -> bool {
    matches!(work.statement.form, Form::DropIndex { .. })
}

/// What is there of the step, with leftovers of our own taken away.
async fn found(client: &mut Client, work: &Work<'_>, begun: bool) -> Result<Found, RunError> {
    match &work.statement.form {
        Form::CreateIndex(create) => {
            let Some(index) = &create.index else {
                return if begun {
                    Err(unknown(
                        work,
                        "an index without a name was begun, and nobody can tell which it is; name the index in the file of a new change, and drop the leftover",
                    ))
                } else {
                    Ok(Found::Nothing)
                };
            };
            let table = create.table.resolve(work.schema);
            let name = Name::new(&*table.schema, &*index.name);
            of_index(client, work, &name, &table, begun).await
        }
        Form::DropIndex { indexes, .. } => {
            let mut all_gone = true;
            for index in indexes {
                let name = index.resolve(work.schema);
                let there = standing(client, &name, None, None).await?;
                all_gone &= there == IndexStanding::Absent;
            }
            Ok(if begun && all_gone {
                Found::Whole
            } else {
                Found::Nothing
            })
        }
        // REINDEX, VACUUM and ANALYZE may run again; DETACH says by itself what is lacking.
        _ => Ok(Found::Nothing),
    }
}

async fn of_index(
    client: &mut Client,
    work: &Work<'_>,
    name: &Name,
    table: &Name,
    begun: bool,
) -> Result<Found, RunError> {
    let transaction = client.transaction().await?;
    let search_path = format!("SET LOCAL search_path = {}, pg_catalog", quote(work.schema));
    transaction.batch_execute(&search_path).await?;
    let there = standing(&transaction, name, None, Some(table)).await?;
    if there == IndexStanding::Absent {
        transaction.rollback().await?;
        return Ok(Found::Nothing);
    }
    let expected = expected_index(&transaction, &work.statement.text, table).await?;
    let there = standing(&transaction, name, Some(&expected), Some(table)).await?;
    transaction.rollback().await?;
    match there {
        IndexStanding::Absent => Ok(Found::Nothing),
        IndexStanding::Equal => Ok(Found::Whole),
        IndexStanding::Wrong { expected, found } => Err(RunError::Shape {
            file: work.step.file.clone(),
            line: work.statement.line,
            why: format!(
                "{name} is there and is something else: {found}; it should be: {expected}. Drop or rename what is there, or give the new one another name"
            ),
        }),
        IndexStanding::Invalid { .. } if begun => {
            client
                .batch_execute(&format!("DROP INDEX CONCURRENTLY IF EXISTS {}", name.sql()))
                .await?;
            tracing::info!(index = %name, "the leftover of our own build was dropped; it is built again");
            Ok(Found::Nothing)
        }
        IndexStanding::Invalid { .. } => Err(unknown(
            work,
            &format!(
                "{name} is an invalid leftover, and this ledger has no trace that it made it: nobody's work is dropped here. Look who made it, drop it (DROP INDEX CONCURRENTLY {}), and run again",
                name.sql()
            ),
        )),
    }
}

fn unknown(work: &Work<'_>, why: &str) -> RunError {
    RunError::Unknown {
        file: work.step.file.clone(),
        line: work.statement.line,
        why: why.to_owned(),
    }
}
