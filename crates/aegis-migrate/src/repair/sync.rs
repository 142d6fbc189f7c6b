//! `repair sync`: the trigger of a change made again, when somebody has taken it away, disabled it or put another in its place; or when
//! it was made of other expressions than the change has now.
//!
//! Invariants: under the mutex; the statements, the account of the structure, the row of the repair and the event are one commit; what
//! was counted before says nothing after it, since the trigger is another one then.

use std::time::{Duration, Instant};

use aegis_backfill::sync::Rule;
use aegis_backfill::{Pause, STANDSTILL};
use aegis_catalog::quote;
use aegis_ddl::SourceFile;
use serde_json::json;
use tokio_postgres::Transaction;
use tokio_postgres::error::SqlState;

use super::{Kept, RepairError, keep};
use crate::change::{Change, ChangeId, Phase, PhaseOf};
use crate::ledger;
use crate::mutex::Held;
use crate::run::{Ladder, RunError, baseline, begin_sync};
use crate::set::Set;
use crate::standing::{recorded_in, standing};
use crate::structure::{Reach, before};
use crate::sync::{Wrong, made_otherwise, wrong_with};

const PAUSE: Duration = Duration::from_millis(200);

/// Makes the trigger of a change again. Answers what was wrong with it.
///
/// # Errors
/// [`RepairError::NotThere`] when it is as it should be, or none should be there.
pub async fn sync(
    held: &mut Held,
    set: &Set,
    id: &ChangeId,
    ladder: &Ladder,
    reason: &str,
) -> Result<String, RepairError> {
    let none = |what: &str| RepairError::NotThere(format!("{id} {what}"));
    let change = set
        .changes
        .get(id)
        .ok_or_else(|| none("is no change of this folder"))?;
    let rule = change.sync_rule().ok_or_else(|| none("has no [sync]"))?;
    let recorded = recorded_in(&held.session.client, held.who.ledger)
        .await
        .map_err(baseline)?;
    let stands = standing(set, &recorded);
    let ledger = held.who.ledger;
    let client = &mut held.session.client;
    let otherwise = made_otherwise(client, ledger, change, &rule, &stands).await?;
    let was = match wrong_with(client, ledger, change, &rule, &stands).await? {
        Some(Wrong::Trigger(was)) => Some(was),
        Some(ground) => return Err(ground.problem(change, &rule).into()),
        None => otherwise.map(str::to_owned),
    };
    let Some(was) = was else {
        return Err(none(
            "has nothing to repair: its trigger is as its steps made it, or no step has made one that is not ended",
        ));
    };
    let source = begin_sync(&mut held.session.client, change).await?;
    let (started, mut tries, mut pause) = (Instant::now(), 0, Pause::of(PAUSE));
    loop {
        tries += 1;
        match attempt(
            held,
            change,
            &rule,
            &source,
            ladder,
            (&was, otherwise.is_some()),
            reason,
        )
        .await
        {
            Err(RepairError::Run(RunError::Database(error)))
                if error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE) =>
            {
                if tries >= ladder.tries || started.elapsed() >= ladder.budget {
                    return Err(RepairError::Run(RunError::LockBudget {
                        file: source.path.clone(),
                        line: 1,
                        tries,
                        said: format!("{} is locked", rule.table),
                    }));
                }
                pause.wait().await;
            }
            done => {
                done?;
                return Ok(was);
            }
        }
    }
}

async fn attempt(
    held: &mut Held,
    change: &Change,
    rule: &Rule,
    source: &SourceFile,
    ladder: &Ladder,
    (was, is_other): (&str, bool),
    reason: &str,
) -> Result<(), RepairError> {
    let who = held.who.clone();
    let transaction = held.session.client.transaction().await?;
    ledger::fence(&transaction, &who).await?;
    let settings = format!(
        "SET LOCAL lock_timeout = {}; SET LOCAL statement_timeout = {}; SET LOCAL search_path = {}, pg_catalog; SET LOCAL {STANDSTILL}",
        ladder.lock_timeout.as_millis(),
        ladder.statement_timeout.as_millis(),
        quote(&change.schema)
    );
    transaction.batch_execute(&settings).await?;
    become_owner(&transaction, change).await?;
    let table = rule.table.sql();
    transaction
        .batch_execute(&format!("LOCK TABLE {table} IN SHARE ROW EXCLUSIVE MODE"))
        .await?;
    transaction.batch_execute("RESET ROLE").await?;
    let reach = Reach::Objects(vec![rule.table.clone(), rule.function()]);
    let before = before(&transaction, &reach).await.map_err(RunError::from)?;
    become_owner(&transaction, change).await?;
    for statement in &source.script.statements {
        refused(source, transaction.batch_execute(&statement.text).await)?;
    }
    // A part of a partition that somebody has disabled stays so when its parent's trigger is made again.
    for part in ["insert", "update"] {
        let name = quote(&format!("{}{part}", rule.trigger_prefix()));
        let sql = format!("ALTER TABLE {table} ENABLE TRIGGER {name}");
        refused(source, transaction.batch_execute(&sql).await)?;
    }
    transaction.batch_execute("RESET ROLE").await?;
    if is_other {
        let id = change.id.to_string();
        let sql = include_str!("../../sql/repair/fence_backfill.sql");
        transaction.execute(sql, &[&id]).await?;
    }
    let at = PhaseOf {
        id: change.id.clone(),
        phase: Phase::Expand,
    };
    before
        .record(&transaction, who.ledger, &format!("{at}#sync"))
        .await
        .map_err(RunError::from)?;
    let kept = Kept {
        verb: "sync",
        was,
        becomes: "made again",
        proof: "the same statements as the steps of [sync], executed",
    };
    keep(&transaction, &who, &at, &kept, reason).await?;
    let event = json!({ "event": "sync_again", "change": change.id.to_string(), "was": was, "reason": reason, "by": who.by });
    ledger::event(&transaction, &who, &event).await?;
    transaction.commit().await?;
    Ok(())
}

async fn become_owner(
    transaction: &Transaction<'_>,
    change: &Change,
) -> Result<(), tokio_postgres::Error> {
    match &change.run_as {
        Some(role) => {
            let sql = format!("SET LOCAL ROLE {}", quote(role));
            transaction.batch_execute(&sql).await
        }
        None => Ok(()),
    }
}

/// What the server said of a statement, with where it stands; a lock that was not had is tried again.
fn refused(
    source: &SourceFile,
    done: Result<(), tokio_postgres::Error>,
) -> Result<(), RepairError> {
    let Err(error) = done else { return Ok(()) };
    match error.as_db_error() {
        Some(said) if *said.code() != SqlState::LOCK_NOT_AVAILABLE => {
            Err(RepairError::Run(RunError::Sql {
                file: source.path.clone(),
                line: 1,
                said: said.message().to_owned(),
                sqlstate: said.code().code().to_owned(),
            }))
        }
        _ => Err(error.into()),
    }
}
