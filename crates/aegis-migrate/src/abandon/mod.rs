//! `abandon`: an expand is taken back, before any release used it.
//!
//! Invariants: only what its own steps have surely made goes, in one transaction, all locks first; refused when a later step of
//! another change touched it, when another phase of the change or a change that requires it is applied, when a program was seen
//! with the new form, and when rows would be lost that nobody has given up; what went is recorded like a step's work.
//!
//! Never: a way back that its author wrote. There are no down files.

mod undo;

use std::time::{Duration, Instant};

use aegis_backfill::{Pause, STANDSTILL};
use aegis_catalog::{Name, quote};
use tokio_postgres::Transaction;
use tokio_postgres::error::SqlState;

use crate::change::{Change, ChangeId, Phase, PhaseOf};
use crate::ledger::{self, LedgerName, Who};
use crate::mutex::Held;
use crate::repair::{Kept, RepairError, keep};
use crate::run::{Ladder, RunError, Wanted};
use crate::set::Set;
use crate::standing::{recorded_in, standing};
use crate::structure::{Reach, before};
use undo::Undo;

/// How long it may take to show that no row is lost, under the locks.
const LOOK_MS: u32 = 1000;
/// Between two tries, for those who waited behind it.
const PAUSE: Duration = Duration::from_millis(200);

/// Takes the expand of a change back. The statements that did it, in order.
///
/// # Errors
/// [`RepairError::NotThere`] and [`RepairError::NotShown`] change nothing.
pub async fn abandon(
    held: &mut Held,
    set: &Set,
    id: &ChangeId,
    ladder: &Ladder,
    rows_may_go: bool,
    reason: &str,
) -> Result<Vec<String>, RepairError> {
    let at = PhaseOf {
        id: id.clone(),
        phase: Phase::Expand,
    };
    let change = set
        .changes
        .get(id)
        .ok_or_else(|| RepairError::NotThere(format!("the folder has no change {id}")))?;
    unused(held, set, id).await?;
    let undos = undos(held, change).await?;
    let mut wanted = Wanted::default();
    for undo in &undos {
        for statement in read(&undo.sql)?.statements {
            wanted.and(&statement, &[], &change.schema);
        }
    }
    let who = held.who.clone();
    let started = Instant::now();
    let (mut tries, mut pause) = (0, Pause::of(PAUSE));
    loop {
        tries += 1;
        let transaction = held.session.client.transaction().await?;
        let tried = inside(
            &transaction,
            change,
            &undos,
            &wanted,
            ladder,
            &who,
            rows_may_go,
        )
        .await;
        let said = match tried {
            Ok(()) => {
                let statements: Vec<String> = undos.into_iter().map(|undo| undo.sql).collect();
                let was = statements.join(";\n");
                let kept = Kept {
                    verb: "abandon",
                    was: "applied",
                    becomes: &was,
                    proof: "made by the steps of this change and by nobody else",
                };
                keep(&transaction, &who, &at, &kept, reason).await?;
                transaction.commit().await?;
                return Ok(statements);
            }
            Err(Tried::Locked(said)) => said,
            Err(Tried::Repair(error)) => return Err(error),
        };
        transaction.rollback().await?;
        if tries >= ladder.tries || started.elapsed() >= ladder.budget {
            return Err(RepairError::Run(RunError::LockBudget {
                file: format!("{id}/change.toml"),
                line: 1,
                tries,
                said,
            }));
        }
        pause.wait().await;
    }
}

enum Tried {
    Locked(String),
    Repair(RepairError),
}

impl<E: Into<RepairError>> From<E> for Tried {
    fn from(error: E) -> Self {
        let error: RepairError = error.into();
        let said = match &error {
            RepairError::Run(RunError::Database(error)) => error.as_db_error(),
            _ => None,
        };
        match said {
            Some(db)
                if *db.code() == SqlState::LOCK_NOT_AVAILABLE
                    || *db.code() == SqlState::T_R_DEADLOCK_DETECTED =>
            {
                Self::Locked(db.message().to_owned())
            }
            _ => Self::Repair(error),
        }
    }
}

fn read(sql: &str) -> Result<aegis_ddl::Script, RepairError> {
    aegis_ddl::read(sql)
        .map_err(|error| RepairError::NotShown(format!("`{sql}` cannot be read: {error}")))
}

async fn inside(
    transaction: &Transaction<'_>,
    change: &Change,
    undos: &[Undo],
    wanted: &Wanted,
    ladder: &Ladder,
    who: &Who,
    rows_may_go: bool,
) -> Result<(), Tried> {
    ledger::fence(transaction, who).await?;
    let role = change.run_as.as_deref().map_or_else(String::new, |role| {
        format!("; SET LOCAL ROLE {}", quote(role))
    });
    let settings = format!(
        "SET LOCAL lock_timeout = {}; SET LOCAL search_path = {}, pg_catalog; SET LOCAL {STANDSTILL}; SET LOCAL row_security = off",
        ladder.lock_timeout.as_millis(),
        quote(&change.schema)
    );
    transaction
        .batch_execute(&format!("{settings}{role}"))
        .await?;
    wanted.take(transaction).await?;
    if !rows_may_go {
        for undo in undos {
            if let Some((table, column)) = &undo.loses {
                lossless(transaction, table, column.as_deref()).await?;
            }
        }
    }
    for undo in undos {
        transaction.batch_execute("RESET ROLE").await?;
        for statement in read(&undo.sql)?.statements {
            let looked = before(transaction, &Reach::of(&statement, &change.schema))
                .await
                .map_err(RunError::from)?;
            let limit = ladder.statement_timeout.as_millis();
            let set = format!("SET LOCAL statement_timeout = {limit}{role}");
            transaction.batch_execute(&set).await?;
            transaction.batch_execute(&statement.text).await?;
            let reset = "RESET ROLE; SET LOCAL statement_timeout = 0";
            transaction.batch_execute(reset).await?;
            let step = format!("{}:expand#abandoned", change.id);
            looked
                .record(transaction, who.ledger, &step)
                .await
                .map_err(RunError::from)?;
        }
    }
    let id = change.id.as_str();
    for sql in [
        include_str!("../../sql/abandon/forget.sql"),
        include_str!("../../sql/abandon/forget_phase.sql"),
    ] {
        transaction.execute(&*who.ledger.sql(sql), &[&id]).await?;
    }
    Ok(())
}

/// Shows that nothing is lost: no row, or no value that is not the column's default.
async fn lossless(
    transaction: &Transaction<'_>,
    table: &Name,
    column: Option<&str>,
) -> Result<(), Tried> {
    let (what, condition) = match column {
        None => (table.to_string(), String::new()),
        Some(column) => {
            let default: Option<String> = transaction
                .query_one(
                    include_str!("../../sql/abandon/default.sql"),
                    &[&table.schema, &table.name, &column],
                )
                .await?
                .try_get(0)?;
            let default = default.unwrap_or_else(|| "NULL".to_owned());
            (
                format!("{table}.{column}"),
                format!(" WHERE {} IS DISTINCT FROM ({default})", quote(column)),
            )
        }
    };
    transaction
        .batch_execute(&format!("SET LOCAL statement_timeout = {LOOK_MS}"))
        .await?;
    let sql = format!("SELECT EXISTS (SELECT FROM {}{condition})", table.sql());
    let lost: Result<bool, tokio_postgres::Error> = transaction
        .query_one(&sql, &[])
        .await
        .and_then(|row| row.try_get(0));
    match lost {
        Ok(false) => {
            transaction
                .batch_execute("SET LOCAL statement_timeout = 0")
                .await?;
            Ok(())
        }
        Ok(true) => Err(Tried::Repair(RepairError::NotShown(format!(
            "{what} has rows that would be lost; --force-loss gives them up"
        )))),
        Err(error) if error.code() == Some(&SqlState::QUERY_CANCELED) => {
            Err(Tried::Repair(RepairError::NotShown(format!(
                "it could not be shown in 1 s that {what} has nothing to lose; --force-loss gives it up"
            ))))
        }
        // With row_security off, what a policy would hide is an error and no empty table.
        Err(error) if error.code() == Some(&SqlState::INSUFFICIENT_PRIVILEGE) => {
            Err(Tried::Repair(RepairError::NotShown(format!(
                "the role that works may not see every row of {what} (row level security, or no SELECT); --force-loss gives them up"
            ))))
        }
        Err(error) => Err(error.into()),
    }
}

/// Shows that nobody rests on it.
async fn unused(held: &Held, set: &Set, id: &ChangeId) -> Result<(), RepairError> {
    let client = &held.session.client;
    let recorded = recorded_in(client, held.who.ledger)
        .await
        .map_err(crate::run::baseline)?;
    let stands = standing(set, &recorded);
    let other = recorded
        .iter()
        .find(|row| row.at.id == *id && row.at.phase != Phase::Expand);
    if let Some(other) = other {
        return Err(RepairError::NotShown(format!(
            "{} is applied or begun: take it back by a change of its own",
            other.at
        )));
    }
    if !recorded.iter().any(|row| row.at.id == *id) {
        return Err(RepairError::NotThere(format!(
            "nothing of {id} is applied here"
        )));
    }
    for (line, other) in set.lines() {
        let requires = other.requires.iter().any(|at| at.id == *id);
        let begun = stands
            .of(&line.at)
            .is_some_and(|state| !matches!(state, crate::standing::State::Pending));
        if requires && begun {
            return Err(RepairError::NotShown(format!(
                "{} requires it and is applied",
                line.at
            )));
        }
    }
    let sql = held
        .who
        .ledger
        .sql(include_str!("../../sql/abandon/later.sql"));
    if let Some(row) = client
        .query_opt(&format!("{sql} LIMIT 1"), &[&id.as_str()])
        .await?
    {
        let step: String = row.try_get(0)?;
        return Err(RepairError::NotShown(format!(
            "{step} came later and touched what it made"
        )));
    }
    if held.who.ledger != LedgerName::Application {
        // Their changes keep no two sides alike and tell programs nothing: see `Set::in_schema`.
        return Ok(());
    }
    let row = client
        .query_one(include_str!("../../sql/abandon/used.sql"), &[&id.as_str()])
        .await?;
    let (sightings, moves): (i64, i64) = (row.try_get(0)?, row.try_get(1)?);
    if sightings + moves > 0 {
        return Err(RepairError::NotShown(format!(
            "a program has used its new side ({sightings} sightings, {moves} moves of the switch)"
        )));
    }
    Ok(())
}

/// The way back, newest first.
async fn undos(held: &Held, change: &Change) -> Result<Vec<Undo>, RepairError> {
    let sql = held
        .who
        .ledger
        .sql(include_str!("../../sql/abandon/steps.sql"));
    let rows = held
        .session
        .client
        .query(&*sql, &[&change.id.as_str()])
        .await?;
    let mut all = Vec::new();
    let mut sync = change.sync_rule();
    for row in rows {
        let (ordinal, text, state): (i32, String, String) =
            (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
        match ledger::StepState::from_name(&state) {
            Some(state) if state.is_done() => {}
            // Nothing of it is there.
            Some(ledger::StepState::Failed) => continue,
            _ => {
                return Err(RepairError::NotShown(format!(
                    "step {ordinal} is {state}: run again first, so that it is known what it left"
                )));
            }
        }
        if row.try_get::<_, String>(3)?.ends_with(crate::run::SYNC) {
            // The generated trigger is the last of an expand, and has a way back of its own.
            if let Some(rule) = sync.take() {
                let drops = rule.drop_statements().into_iter();
                all.extend(drops.map(|sql| Undo { sql, loses: None }));
            }
            continue;
        }
        for statement in read(&text)?.statements {
            let Some(undos) = undo::undo(&statement, &change.schema) else {
                return Err(RepairError::NotShown(format!(
                    "step {ordinal} has no way back that can be derived ({}): take it back by a change of its own",
                    text.lines().next().unwrap_or_default()
                )));
            };
            all.extend(undos);
        }
    }
    Ok(all)
}
