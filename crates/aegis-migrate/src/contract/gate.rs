//! What must still hold in the very transaction that drops, and what that transaction keeps.
//!
//! Invariants: only probes of the catalog and of this tool's own tables, each by an index or over a handful of rows and bounded to
//! 1 s, since they run under the locks of the drop; the approval is used up, bound to this attempt, before the first step, so that one
//! approval is one run, also of one that was killed; the attempt ends in the same commit as the drop.

use aegis_backfill::sync::Rule;
use tokio_postgres::GenericClient;
use tokio_postgres::error::SqlState;

use super::approval::Approved;
use super::attempt::Attempt;
use super::door::{self, Door, DoorError};
use super::{ready, reconciled};
use crate::change::Change;

/// How long one probe may take.
pub const PROBE: &str = "SET LOCAL statement_timeout = 1000";

/// What a contract's steps are run behind.
#[derive(Debug)]
pub struct Gate<'a> {
    /// The attempt, as it was when the facts were judged.
    pub attempt: &'a Attempt,
    /// The change: nobody is told its old side.
    pub change: &'a Change,
    /// What must be shut; none without old columns or runtime roles.
    pub door: Option<Door<'a>>,
    /// The sync trigger, and its definition while the last pass counted; none without `[sync]`.
    pub sync: Option<(&'a Rule, &'a str)>,
    /// The approval that this run uses.
    pub approved: &'a Approved,
}

/// Why the gate stays shut.
#[derive(Debug, thiserror::Error)]
pub enum GateError {
    /// Something holds no more, or could not be shown in its time.
    #[error("{0}")]
    Evidence(String),
    /// The database.
    #[error(transparent)]
    Database(tokio_postgres::Error),
}

impl From<tokio_postgres::Error> for GateError {
    fn from(error: tokio_postgres::Error) -> Self {
        if error.code() == Some(&SqlState::QUERY_CANCELED) {
            return Self::Evidence(
                "an assertion could not be shown within 1 s, under the locks of the drop"
                    .to_owned(),
            );
        }
        Self::Database(error)
    }
}

impl Gate<'_> {
    /// Asserts, in the caller's transaction. The attempt cannot be reopened until that ends.
    pub async fn holds(&self, client: &impl GenericClient) -> Result<(), GateError> {
        client.batch_execute(PROBE).await?;
        let attempt = client
            .query_opt(
                include_str!("../../sql/contract/hold.sql"),
                &[&self.attempt.change, &self.attempt.number],
            )
            .await?;
        let Some(attempt) = attempt else {
            return Err(GateError::Evidence(format!(
                "attempt {} of {} was reopened meanwhile",
                self.attempt.number, self.attempt.change
            )));
        };
        let done: Option<jiff::Timestamp> = attempt.try_get(0)?;
        if let Some(at) = done {
            return Err(GateError::Evidence(format!(
                "attempt {} of {} was done at {at} by somebody else",
                self.attempt.number, self.attempt.change
            )));
        }
        self.unused(client).await?;
        if let Some(lack) = ready::told_the_old_side(client, self.change).await? {
            return Err(GateError::Evidence(format!(
                "the switch was moved back: {}; {}",
                lack.said(),
                lack.way_out
            )));
        }
        if let Some(door) = &self.door {
            let open = door::still_open(client, door).await.map_err(of_door)?;
            if !open.is_empty() {
                return Err(GateError::Evidence(format!(
                    "the door is open again: {}",
                    open.join(", ")
                )));
            }
        }
        if let Some((rule, then)) = self.sync
            && let Some(why) = reconciled::other_trigger(rule.state(client).await?, Some(then))
        {
            return Err(GateError::Evidence(why.to_owned()));
        }
        Ok(())
    }

    /// Uses the approval up: it is bound to this attempt, in the caller's transaction, which has seen [`Self::holds`]. A run of this
    /// attempt that was cut short goes on with it; nothing else does.
    pub async fn bind(&self, client: &impl GenericClient) -> Result<(), GateError> {
        client
            .execute(
                include_str!("../../sql/contract/bind_approval.sql"),
                &[
                    &self.approved.digest,
                    &self.attempt.change,
                    &self.attempt.number,
                    &self.approved.by,
                ],
            )
            .await?;
        // Somebody else's, or another attempt's, was in the way.
        self.bound(client).await?.ok_or_else(|| {
            GateError::Evidence("the approval was used a moment ago by somebody else".to_owned())
        })
    }

    /// Ends the attempt and gives the tables' grants back, in the caller's transaction, which has seen [`Self::holds`].
    pub async fn end(&self, client: &impl GenericClient) -> Result<(), GateError> {
        if self.bound(client).await?.is_none() {
            return Err(GateError::Evidence(
                "the approval is not bound to this attempt any more: somebody edited aegis_migrate by hand".to_owned(),
            ));
        }
        if let Some(door) = &self.door {
            door::settle(client, &self.attempt.taken, door.old)
                .await
                .map_err(of_door)?;
        }
        client
            .query_opt(
                include_str!("../../sql/contract/done.sql"),
                &[
                    &self.attempt.change,
                    &self.attempt.number,
                    &self.approved.digest,
                ],
            )
            .await?
            .map(|_| ())
            .ok_or_else(|| {
                GateError::Evidence(format!(
                    "attempt {} of {} was ended meanwhile",
                    self.attempt.number, self.attempt.change
                ))
            })
    }

    /// Whether the approval still counts: nobody has used it, or this attempt has.
    async fn unused(&self, client: &impl GenericClient) -> Result<(), GateError> {
        let used = client
            .query_opt(
                include_str!("../../sql/contract/approval_used.sql"),
                &[&self.approved.digest],
            )
            .await?;
        let Some(used) = used else { return Ok(()) };
        if self.bound(client).await?.is_some() {
            return Ok(());
        }
        let (change, at): (String, jiff::Timestamp) = (used.try_get(0)?, used.try_get(1)?);
        Err(GateError::Evidence(format!(
            "the approval was used at {at} for {change}; it counts once"
        )))
    }

    /// Whether it is bound to this attempt.
    async fn bound(&self, client: &impl GenericClient) -> Result<Option<()>, GateError> {
        let found = client
            .query_opt(
                include_str!("../../sql/contract/approval_bound.sql"),
                &[
                    &self.approved.digest,
                    &self.attempt.change,
                    &self.attempt.number,
                ],
            )
            .await?;
        Ok(found.map(|_| ()))
    }
}

pub(super) fn of_door(error: DoorError) -> GateError {
    match error {
        DoorError::Database(error) => error.into(),
        other => GateError::Evidence(other.to_string()),
    }
}
