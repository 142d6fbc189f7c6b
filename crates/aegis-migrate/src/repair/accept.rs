//! `repair accept-checksum`: a line of the lock was edited after it was applied here, and the edit was reviewed.
//!
//! Of a phase that is whole it must be shown that the new text made what is there: by a replay, and, for statements whose work no
//! structure shows, by their hash among those that ran. Of a phase that is begun, that the edit touches no step that is done.

use aegis_catalog::Structure;

use super::{Kept, RepairError, keep, shown, steps};
use crate::baseline;
use crate::change::{Change, Phase, PhaseOf};
use crate::ledger;
use crate::mutex::Held;
use crate::set::Set;
use crate::standing::{State, recorded_in, standing};
use crate::sync::made_otherwise;

/// What was accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Accepted {
    /// The hash that was applied here.
    pub was: String,
    /// The hash of the lock.
    pub becomes: String,
    /// How it was shown.
    pub proof: &'static str,
}

/// Whether a replay is needed: the phase is whole here, with another hash.
///
/// # Errors
/// When there is nothing to accept.
pub async fn needs_replay(held: &Held, set: &Set, at: &PhaseOf) -> Result<bool, RepairError> {
    Ok(is_whole(held, set, at).await?.0)
}

async fn is_whole(held: &Held, set: &Set, at: &PhaseOf) -> Result<(bool, String), RepairError> {
    if at.phase == Phase::Contract {
        return Err(RepairError::NotThere(
            "the line of a contract was approved as it was: give the edit to a change of its own"
                .to_owned(),
        ));
    }
    let client = &held.session.client;
    let recorded = recorded_in(client, held.who.ledger)
        .await
        .map_err(crate::run::baseline)?;
    match standing(set, &recorded).of(at) {
        None => Err(RepairError::NotThere(format!(
            "the lock has no line {at}; name one of its lines as ID:PHASE"
        ))),
        Some(State::Edited { applied }) => {
            let whole = recorded.iter().any(|row| row.at == *at && row.whole);
            Ok((whole, applied.clone()))
        }
        Some(_) => Err(RepairError::NotThere(format!(
            "{at} was not edited after it was applied here; there is nothing to accept"
        ))),
    }
}

/// Refuses while the trigger is made of other expressions than the edited ones: what is counted with these would say nothing of it.
async fn is_made_of_the_edit(
    held: &mut Held,
    set: &Set,
    change: &Change,
) -> Result<(), RepairError> {
    let Some(rule) = change.sync_rule() else {
        return Ok(());
    };
    let ledger = held.who.ledger;
    let client = &mut held.session.client;
    let recorded = recorded_in(client, ledger)
        .await
        .map_err(crate::run::baseline)?;
    let stands = standing(set, &recorded);
    match made_otherwise(client, ledger, change, &rule, &stands).await? {
        None => Ok(()),
        Some(how) => Err(RepairError::NotShown(format!(
            "the trigger of [sync] on {}: {how}; `aegis migrate repair sync {} --reason TEXT` makes it of what the folder says, then this again, and count the rows again",
            rule.table, change.id
        ))),
    }
}

/// Accepts the hash of the lock for a line that was applied with another. `replayed`: what the lines of [`super::replayed_with`]
/// make; not needed for a phase that is only begun.
///
/// # Errors
/// [`RepairError::NotShown`] when the structure is another, or a statement of the new text never ran here.
pub async fn accept_checksum(
    held: &mut Held,
    set: &Set,
    at: &PhaseOf,
    replayed: Option<&Structure>,
    reason: &str,
) -> Result<Accepted, RepairError> {
    crate::run::aside::nobody_builds_for(held, &at.id).await?;
    let (whole, was) = is_whole(held, set, at).await?;
    let Some((line, change)) = set.lines().find(|(line, _)| line.at == *at) else {
        return Err(RepairError::NotThere(format!("the lock has no line {at}")));
    };
    let now = steps::of(line, change)?;
    let done: Vec<ledger::StepRow> = ledger::steps(&held.session.client, held.who.ledger)
        .await?
        .into_iter()
        .filter(|row| row.at == *at && row.state.is_done())
        .collect();
    is_made_of_the_edit(held, set, change).await?;
    let proof = if whole {
        let never_ran = now.sql.iter().find(|(step, statement)| {
            !steps::is_structure(&statement.form)
                && !done.iter().any(|row| row.sha256 == step.sha256)
        });
        if let Some((step, _)) = never_ran {
            return Err(RepairError::NotShown(format!(
                "{}:{}: this statement never ran here, and no structure shows its work: give it to a change of its own",
                step.file, step.line
            )));
        }
        let replayed = replayed.ok_or_else(|| {
            RepairError::NotShown("nothing was replayed to compare with".to_owned())
        })?;
        let compared = baseline::compare(&held.session.client, set, replayed)
            .await
            .map_err(|error| RepairError::NotShown(error.to_string()))?;
        shown(compared)?;
        "a replay of the lock made what is there"
    } else {
        let touched = done.iter().find(|row| {
            !now.sql
                .iter()
                .any(|(step, _)| step.ordinal == row.ordinal && step.sha256 == row.sha256)
        });
        if let Some(row) = touched {
            return Err(RepairError::NotShown(format!(
                "step {} is applied here, and the edit changes it or its place: only what is not applied yet can be edited",
                row.ordinal
            )));
        }
        "every step that is done is unchanged in the edited text"
    };
    let who = held.who.clone();
    let transaction = held.session.client.transaction().await?;
    ledger::fence(&transaction, &who).await?;
    let (change, phase) = (at.id.as_str(), at.phase.word());
    let mut rows = 0;
    for sql in [
        include_str!("../../sql/repair/accept_phase.sql"),
        include_str!("../../sql/repair/accept_steps.sql"),
    ] {
        rows += transaction
            .execute(&*who.ledger.sql(sql), &[&change, &phase, &line.sha256])
            .await?;
    }
    if rows == 0 {
        return Err(RepairError::NotThere(format!(
            "{at} was recorded by `baseline` or `adopt`, without a step: put the files back as they were"
        )));
    }
    let kept = Kept {
        verb: "accept-checksum",
        was: &was,
        becomes: &line.sha256,
        proof,
    };
    keep(&transaction, &who, at, &kept, reason).await?;
    transaction.commit().await?;
    Ok(Accepted {
        was,
        becomes: line.sha256.clone(),
        proof,
    })
}
