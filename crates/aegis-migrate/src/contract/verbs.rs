//! `close` and `reopen`: each one transaction under the mutex.
//!
//! Invariants: the door shuts only when nobody is told to use the old side any more, and everything before the contract is applied;
//! what closing raised and took, reopening gives back; both may be called again and change nothing then.

use jiff::Timestamp;
use serde::Serialize;
use serde_json::json;

use super::attempt::{self, Attempt, AttemptError};
use super::error::ContractError;
use super::floor;
use super::keyring::Keyring;
use super::ready;
use super::subject::Subject;
use crate::change::{ChangeId, Phase, PhaseOf};
use crate::ledger;
use crate::mutex::Held;
use crate::run::{Outcome, RunError};
use crate::set::Set;
use crate::standing::{recorded, standing};

/// What closing or reopening did.
#[derive(Debug, Clone, Serialize)]
pub struct Moved {
    /// `applied`, or `nothing` when it stood so.
    pub outcome: Outcome,
    /// The attempt.
    pub attempt: i32,
    /// When the door was shut.
    pub closed_at: Timestamp,
    /// Privileges that were taken, or given back.
    pub privileges: usize,
    /// Lines of the lock that a program must know from now on.
    pub min_schema: i32,
}

/// Shuts the door of a change and raises the floor, when nothing that a contract needs later is known to be lacking.
///
/// # Errors
/// See [`ContractError`]; nothing was changed.
pub async fn close(
    held: &mut Held,
    set: &Set,
    id: &ChangeId,
    keyring: &Keyring,
) -> Result<Moved, ContractError> {
    set.sealed().map_err(RunError::from)?;
    let none = || ContractError::None(id.to_string());
    let change = set.changes.get(id).ok_or_else(none)?;
    let subject = Subject::of(change).ok_or_else(none)?;
    let who = held.who.clone();
    let dev = held.ledger.dev;
    let client = &mut held.session.client;
    let recorded = recorded(client)
        .await
        .map_err(|error| ContractError::Unsafe(error.to_string()))?;
    let stands = standing(set, &recorded);
    crate::run::contract::unedited(&stands, dev)?;
    if let Some(found) = Attempt::find(client, &subject.id).await? {
        if let Some(at) = found.done_at {
            let change = subject.id;
            return Err(AttemptError::Done { change, at }.into());
        }
        return Ok(Moved {
            outcome: Outcome::Nothing,
            attempt: found.number,
            closed_at: found.closed_at,
            privileges: found.taken.len(),
            min_schema: held.ledger.min_schema,
        });
    }
    let at = PhaseOf {
        id: id.clone(),
        phase: Phase::Contract,
    };
    if let Some(missing) = stands
        .missing(Phase::Contract)
        .find(|missing| missing.for_line == at)
    {
        return Err(RunError::Requires(Box::new(missing.clone())).into());
    }
    let lacks = ready::lacks(client, &subject, Ok(keyring)).await?;
    if !lacks.is_empty() {
        let change = subject.id;
        return Err(ContractError::NotReady { change, lacks });
    }
    crate::run::contract::in_order(client, set, change).await?;
    let transaction = client.transaction().await?;
    transaction
        .batch_execute("SET LOCAL lock_timeout = '5s'; SET LOCAL statement_timeout = '30s'")
        .await?;
    ledger::fence(&transaction, &who).await?;
    let closed = attempt::close(
        &transaction,
        &subject.id,
        subject.door().as_ref(),
        &who.by,
        &who.release,
    )
    .await?;
    let min_schema = floor::raise(&transaction, &closed, floor::of(&set.lock, id)).await?;
    let event = json!({ "event": "closed", "change": subject.id, "attempt": closed.number, "by": who.by, "min_schema": min_schema });
    ledger::event(&transaction, &who, &event).await?;
    transaction.commit().await?;
    Ok(Moved {
        outcome: Outcome::Applied,
        attempt: closed.number,
        closed_at: closed.closed_at,
        privileges: closed.taken.len(),
        min_schema,
    })
}

/// Opens the door again, as long as nothing was dropped.
///
/// # Errors
/// See [`ContractError`]; nothing was changed.
pub async fn reopen(held: &mut Held, id: &ChangeId, reason: &str) -> Result<Moved, ContractError> {
    let who = held.who.clone();
    let client = &mut held.session.client;
    let transaction = client.transaction().await?;
    transaction
        .batch_execute("SET LOCAL lock_timeout = '5s'; SET LOCAL statement_timeout = '30s'")
        .await?;
    ledger::fence(&transaction, &who).await?;
    let opened = attempt::reopen(&transaction, &id.to_string(), &who.by, reason).await?;
    let min_schema = floor::settle(&transaction).await?;
    let event = json!({ "event": "reopened", "change": opened.change, "attempt": opened.number, "by": who.by, "reason": reason, "min_schema": min_schema });
    ledger::event(&transaction, &who, &event).await?;
    transaction.commit().await?;
    Ok(Moved {
        outcome: Outcome::Applied,
        attempt: opened.number,
        closed_at: opened.closed_at,
        privileges: opened.taken.len(),
        min_schema,
    })
}
