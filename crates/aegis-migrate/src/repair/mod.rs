//! `repair`: what a person may say of the ledger, and what has to be shown first.
//!
//! Invariants: under the mutex, in one fenced transaction with its row in `aegis_migrate.repair`; nothing becomes "applied" without
//! the structure that shows it; a statement whose work no structure shows is never taken for done.
//!
//! Never: an edit of a hash for its own sake. A repair that is followed by "nothing to do" must be true.

mod accept;
mod mark;
mod steps;
mod sync;

use aegis_catalog::{Difference, NotCompared};

use crate::change::{PhaseOf, Problem};
use crate::ledger::{self, LedgerError, StepState, Who};
use crate::mutex::Held;
use crate::run::RunError;

pub use accept::{Accepted, accept_checksum, needs_replay};
pub use mark::{mark_applied, replayed_with};
pub use sync::sync;

/// Why nothing was repaired.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RepairError {
    /// There is nothing to repair, or not by this verb.
    #[error("{0}")]
    NotThere(String),
    /// It was not shown.
    #[error("{0}; nothing was changed in the ledger")]
    NotShown(String),
    /// The runner's own.
    #[error(transparent)]
    Run(#[from] RunError),
}

impl RepairError {
    /// The exit code of the design page.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::NotThere(_) => 2,
            Self::NotShown(_) => 12,
            Self::Run(error) => error.exit_code(),
        }
    }
}

impl From<LedgerError> for RepairError {
    fn from(error: LedgerError) -> Self {
        Self::Run(error.into())
    }
}

impl From<tokio_postgres::Error> for RepairError {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Run(error.into())
    }
}

impl From<Problem> for RepairError {
    fn from(problem: Problem) -> Self {
        Self::Run(RunError::Folder(problem.into()))
    }
}

/// Whether the database is what a replay made, in words. Only equal is a proof.
fn shown(compared: crate::baseline::Compared) -> Result<(), RepairError> {
    use crate::baseline::Compared;
    match compared {
        Compared::Equal(_) => Ok(()),
        Compared::Differs(wrong) => {
            let lines: Vec<String> = wrong.iter().map(Difference::to_string).collect();
            Err(RepairError::NotShown(format!(
                "the database is not what the lock makes: {}",
                lines.join("; ")
            )))
        }
        Compared::NotCompared(why) => Err(not_compared(&why)),
    }
}

fn not_compared(why: &NotCompared) -> RepairError {
    RepairError::NotShown(format!(
        "it was not compared ({why}): replay on a PostgreSQL of the database's major version"
    ))
}

/// Says that a step is to be begun anew: somebody has looked, and nothing of it is there.
///
/// # Errors
/// When it is not a step whose end nobody knows: a failed one is tried again by the next run anyway.
pub async fn retry(
    held: &mut Held,
    at: &PhaseOf,
    ordinal: i32,
    reason: &str,
) -> Result<(), RepairError> {
    crate::run::aside::nobody_builds_for(held, &at.id).await?;
    let client = &mut held.session.client;
    let steps = ledger::steps(client, held.who.ledger).await?;
    let Some(step) = steps
        .iter()
        .find(|step| step.at == *at && step.ordinal == ordinal)
    else {
        return Err(RepairError::NotThere(format!(
            "the ledger has no step {at}#{ordinal}; `aegis migrate status` shows what it has"
        )));
    };
    if !step.state.is_begun() {
        return Err(RepairError::NotThere(format!(
            "{at}#{ordinal} is {}: the next run does what is right with it",
            step.state.name()
        )));
    }
    let transaction = client.transaction().await?;
    ledger::fence(&transaction, &held.who).await?;
    let said = format!("to be begun anew: {reason}");
    let (change, phase) = (at.id.as_str(), at.phase.word());
    let sql = held
        .who
        .ledger
        .sql(include_str!("../../sql/repair/retry.sql"));
    transaction
        .execute(&*sql, &[&change, &phase, &ordinal, &said])
        .await?;
    let kept = Kept {
        verb: "retry",
        was: &format!("step {ordinal}: {}", step.state.name()),
        becomes: &format!("step {ordinal}: {}", StepState::Failed.name()),
        proof: "a person has looked",
    };
    keep(&transaction, &held.who, at, &kept, reason).await?;
    transaction.commit().await?;
    Ok(())
}

/// A row of `aegis_migrate.repair`.
pub(crate) struct Kept<'a> {
    pub(crate) verb: &'static str,
    pub(crate) was: &'a str,
    pub(crate) becomes: &'a str,
    pub(crate) proof: &'a str,
}

pub(crate) async fn keep(
    transaction: &tokio_postgres::Transaction<'_>,
    who: &Who,
    at: &PhaseOf,
    kept: &Kept<'_>,
    reason: &str,
) -> Result<(), tokio_postgres::Error> {
    let (change, phase) = (at.id.as_str(), at.phase.word());
    let sql = who.ledger.sql(include_str!("../../sql/repair/keep.sql"));
    transaction
        .execute(
            &*sql,
            &[
                &kept.verb,
                &change,
                &phase,
                &kept.was,
                &kept.becomes,
                &kept.proof,
                &who.by,
                &reason,
                &who.run,
                &who.epoch,
            ],
        )
        .await?;
    Ok(())
}
