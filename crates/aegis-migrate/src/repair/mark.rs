//! `repair mark-applied`: what a phase should have made is there, by whatever way it came there.

use std::collections::BTreeSet;

use aegis_catalog::{Delta, Key, Structure};

use super::{Kept, RepairError, keep, shown, steps};
use crate::baseline;
use crate::change::PhaseOf;
use crate::ledger::{self, StepState};
use crate::mutex::Held;
use crate::run::RunError;
use crate::set::Set;
use crate::standing::{State, recorded_in, standing};
use crate::structure::{Reach, expected, record_as_is};

/// The set whose replay shows a line: the lines that are done here, in any version of their text, and this one.
///
/// # Errors
/// When another line is only begun, so that no replay can be like this database.
pub async fn replayed_with(held: &Held, set: &Set, at: &PhaseOf) -> Result<Set, RepairError> {
    let recorded = recorded_in(&held.session.client, held.who.ledger)
        .await
        .map_err(crate::run::baseline)?;
    let stands = standing(set, &recorded);
    let mut part = set.clone();
    let mut begun = None;
    part.lock.lines.retain(|line| {
        line.at == *at
            || match stands.of(&line.at) {
                Some(State::Partly { .. }) => {
                    begun = Some(line.at.clone());
                    false
                }
                Some(State::Applied | State::Squashed | State::Edited { .. }) => true,
                Some(State::Pending) | None => false,
            }
    });
    match begun {
        Some(other) => Err(RepairError::NotShown(format!(
            "{other} is begun and not ended, so no replay is like this database; end it first"
        ))),
        None => Ok(part),
    }
}

/// Records the open steps of a phase as done. `replayed`: what the lines of [`replayed_with`] make.
///
/// # Errors
/// [`RepairError::NotShown`] when the structure is another, or an open statement's work is in no structure.
pub async fn mark_applied(
    held: &mut Held,
    set: &Set,
    at: &PhaseOf,
    replayed: &Structure,
    reason: &str,
) -> Result<u32, RepairError> {
    crate::run::aside::nobody_builds_for(held, &at.id).await?;
    let client = &held.session.client;
    let recorded = recorded_in(client, held.who.ledger)
        .await
        .map_err(crate::run::baseline)?;
    match standing(set, &recorded).of(at) {
        Some(State::Pending | State::Partly { .. }) => {}
        Some(_) => {
            return Err(RepairError::NotThere(format!(
                "{at} is not open here: there is nothing to mark"
            )));
        }
        None => {
            return Err(RepairError::NotThere(format!(
                "the lock has no line {at}; name one of its lines as ID:PHASE"
            )));
        }
    }
    let Some((line, change)) = set.lines().find(|(line, _)| line.at == *at) else {
        return Err(RepairError::NotThere(format!("the lock has no line {at}")));
    };
    let now = steps::of(line, change)?;
    if let Some(other) = now.others.first() {
        return Err(RepairError::NotShown(format!(
            "{at} has {other}, which no structure shows to be done: `run` does it, and finds what is there"
        )));
    }
    let rows = ledger::steps(client, held.who.ledger).await?;
    let is_done = |ordinal: i32| {
        rows.iter()
            .any(|row| row.at == *at && row.ordinal == ordinal && row.state.is_done())
    };
    let open: Vec<_> = now
        .sql
        .iter()
        .filter(|(step, _)| !is_done(step.ordinal))
        .collect();
    if let Some((step, _)) = open
        .iter()
        .find(|(_, statement)| !steps::is_structure(&statement.form))
    {
        return Err(RepairError::NotShown(format!(
            "{}:{}: no structure shows that this statement ran",
            step.file, step.line
        )));
    }
    let compared = baseline::compare(client, set, replayed)
        .await
        .map_err(|error| RepairError::NotShown(error.to_string()))?;
    shown(compared)?;
    let keys = new_to_the_account(held, replayed).await?;
    let who = held.who.clone();
    let transaction = held.session.client.transaction().await?;
    ledger::fence(&transaction, &who).await?;
    let said = format!("marked applied: {reason}");
    for (step, _) in &open {
        let state = StepState::Reconciled;
        ledger::write(&transaction, step, state, &who, None, Some(&said)).await?;
    }
    let name = format!("{at}#marked");
    let nothing = BTreeSet::new();
    record_as_is(
        &transaction,
        who.ledger,
        &name,
        &Reach::Everything,
        &keys,
        &nothing,
    )
    .await
    .map_err(RunError::from)?;
    let steps = i32::try_from(now.sql.len()).unwrap_or(i32::MAX);
    ledger::phase_done(&transaction, at, &line.sha256, steps, &who).await?;
    let was = format!("{} of {} steps open", open.len(), now.sql.len());
    let kept = Kept {
        verb: "mark-applied",
        was: &was,
        becomes: "applied",
        proof: "a replay of the lock made what is there",
    };
    keep(&transaction, &who, at, &kept, reason).await?;
    transaction.commit().await?;
    Ok(u32::try_from(open.len()).unwrap_or(u32::MAX))
}

/// What the replay has and the steps of this database have not made.
async fn new_to_the_account(held: &Held, replayed: &Structure) -> Result<Vec<Key>, RepairError> {
    let client = &held.session.client;
    let account = expected(client, held.who.ledger, held.session.major())
        .await
        .map_err(RunError::from)?;
    let before = account.map_or_else(
        || Structure::empty(held.session.major()),
        |account| account.structure,
    );
    let delta = Delta::between(&before, replayed);
    // A table from before the first step is in the account only in part: what the replay does not make is not this phase's.
    let gone = delta.gone.into_iter().filter(|key| {
        let holder = key.holder();
        replayed
            .elements
            .keys()
            .any(|other| other.holder() == holder)
    });
    Ok(delta.set.into_keys().chain(gone).collect())
}
