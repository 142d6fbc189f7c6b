//! What a person may change: cancel, redrive, discard, pause, take and resolve an operation, adopt a database.
//!
//! Invariants: each names its actor and reason; one that ends an execution bumps the epoch first; none moves `rev` of a
//! running task.

use aegis_model::Resolution;
use uuid::Uuid;

use crate::error::StoreError;
use crate::generated::operation::ResolveParams;
use crate::generated::{database, operation, task, worker};
use crate::store::Store;

/// What became of a cancel request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cancelled {
    /// It had not started: ended now.
    Now,
    /// It runs: its worker is told, and after `kill_after` it is ended for it.
    Requested,
    /// An operation is open: the outcome is stored and applies when that is settled.
    Pending,
    /// It has ended already.
    Ended,
    /// It is parked already.
    Parked,
    /// There is no such task.
    Missing,
}

/// What became of taking or resolving an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decided {
    /// Done.
    Done,
    /// There is no such operation, or its task has ended.
    Missing,
    /// It is not unknown.
    NotUnknown,
    /// Somebody else has taken it.
    TakenBy(String),
    /// It cannot be said yet that it did not happen: a request may still arrive until this moment (RFC 3339, UTC).
    Early(String),
}

/// What can be paused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PauseScope {
    /// A queue.
    Queue,
    /// A kind.
    Kind,
    /// A release.
    Release,
    /// A tenant.
    Tenant,
}

impl PauseScope {
    /// The stored word.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Queue => "queue",
            Self::Kind => "kind",
            Self::Release => "release",
            Self::Tenant => "tenant",
        }
    }
}

impl Store {
    /// Asks for a task's end.
    ///
    /// # Errors
    /// A database error.
    pub async fn cancel(
        &self,
        id: Uuid,
        actor: &str,
        reason: &str,
    ) -> Result<Cancelled, StoreError> {
        let conn = self.conn().await?;
        let row = task::cancel(&conn.conn(), id, actor, reason).await?;
        Ok(match row.answer.as_str() {
            "cancelled" => Cancelled::Now,
            "requested" => Cancelled::Requested,
            "pending" => Cancelled::Pending,
            "ended" => Cancelled::Ended,
            "parked" => Cancelled::Parked,
            _ => Cancelled::Missing,
        })
    }

    /// Sends a parked task again. False: it is not parked.
    ///
    /// # Errors
    /// A database error.
    pub async fn redrive(&self, id: Uuid, actor: &str, reason: &str) -> Result<bool, StoreError> {
        let conn = self.conn().await?;
        Ok(task::redrive(&conn.conn(), id, actor, reason).await?.done)
    }

    /// Gives a parked task up for good. False: it is not parked.
    ///
    /// # Errors
    /// A database error.
    pub async fn discard(&self, id: Uuid, actor: &str, reason: &str) -> Result<bool, StoreError> {
        let conn = self.conn().await?;
        Ok(task::discard(&conn.conn(), id, actor, reason).await?.done)
    }

    /// Takes an unknown operation, so that two people do not look into the same one.
    ///
    /// # Errors
    /// A database error.
    pub async fn take_operation(
        &self,
        task: Uuid,
        id: &str,
        actor: &str,
    ) -> Result<Decided, StoreError> {
        let conn = self.conn().await?;
        Ok(decided(
            operation::take(&conn.conn(), task, id, actor).await?.answer,
        ))
    }

    /// Decides an unknown operation with evidence; `result` (JSON) is what its handler gets when it happened. That it did not
    /// happen can be said once no request can arrive any more ([`Decided::Early`] until then).
    ///
    /// # Errors
    /// A database error.
    pub async fn resolve_operation(
        &self,
        task: Uuid,
        id: &str,
        resolution: Resolution,
        result: Option<&[u8]>,
        actor: &str,
        evidence: &str,
    ) -> Result<Decided, StoreError> {
        self.decide(task, id, resolution, result, actor, evidence, false)
            .await
    }

    /// The same for somebody who knows by other means that no request is under way any more.
    ///
    /// # Errors
    /// A database error.
    pub async fn resolve_operation_early(
        &self,
        task: Uuid,
        id: &str,
        resolution: Resolution,
        result: Option<&[u8]>,
        actor: &str,
        evidence: &str,
    ) -> Result<Decided, StoreError> {
        self.decide(task, id, resolution, result, actor, evidence, true)
            .await
    }

    #[expect(clippy::too_many_arguments, reason = "what a decision consists of")]
    async fn decide(
        &self,
        task: Uuid,
        id: &str,
        resolution: Resolution,
        result: Option<&[u8]>,
        actor: &str,
        evidence: &str,
        early: bool,
    ) -> Result<Decided, StoreError> {
        let conn = self.conn().await?;
        let row = operation::resolve(
            &conn.conn(),
            &ResolveParams {
                task,
                id,
                resolution: resolution.number(),
                result,
                actor,
                evidence,
                early,
            },
        )
        .await?;
        Ok(match row.answer.as_str() {
            "resolved" => Decided::Done,
            "missing" => Decided::Missing,
            "not_unknown" => Decided::NotUnknown,
            "early" => Decided::Early(row.detail),
            _ => Decided::TakenBy(row.detail),
        })
    }

    /// Pauses from the next claim on.
    ///
    /// # Errors
    /// A database error.
    pub async fn pause(
        &self,
        scope: PauseScope,
        value: &str,
        who: &str,
        why: &str,
    ) -> Result<(), StoreError> {
        let conn = self.conn().await?;
        database::pause(&conn.conn(), scope.word(), value, who, why).await?;
        Ok(())
    }

    /// Ends a pause. False: there was none.
    ///
    /// # Errors
    /// A database error.
    pub async fn resume(
        &self,
        scope: PauseScope,
        value: &str,
        actor: &str,
        reason: &str,
    ) -> Result<bool, StoreError> {
        let conn = self.conn().await?;
        Ok(database::resume(&conn.conn(), scope.word(), value, actor, reason).await? > 0)
    }

    /// Closes a worker's gate on a person's word. True when it was open.
    ///
    /// # Errors
    /// A database error.
    pub async fn drain_by(
        &self,
        worker: Uuid,
        actor: &str,
        reason: &str,
    ) -> Result<bool, StoreError> {
        let conn = self.conn().await?;
        Ok(worker::drain_by(&conn.conn(), worker, actor, reason).await? > 0)
    }

    /// Accepts this database as the truth after a restore, an upgrade or a copy. Every claim of before is fenced. Answers
    /// the new floor.
    ///
    /// # Errors
    /// A database error.
    pub async fn adopt(&self, actor: &str, reason: &str) -> Result<i32, StoreError> {
        let conn = self.conn().await?;
        Ok(database::adopt(&conn.conn(), actor, reason).await?.floor)
    }
}

fn decided(answer: String) -> Decided {
    match answer.as_str() {
        "taken" => Decided::Done,
        "missing" => Decided::Missing,
        "not_unknown" => Decided::NotUnknown,
        _ => Decided::TakenBy(answer),
    }
}
