//! The handler's own SQL in the same transaction as the fence: with a checkpoint, or with the completion itself.
//!
//! Invariants: the handler's statements first, the fence last, the commit checked; when the fence refuses, everything rolls
//! back. A lost answer to the commit is read back: the row says whether all of it happened or none.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use aegis_model::limits::{CHECKPOINT_BYTES_MAX, PAYLOAD_BYTES_MAX};
use aegis_store::StoreError;
use aegis_store::guarded::{self, Completion, SaveTo};
use aegis_store::transaction::commit_checked;
use futures_util::future::BoxFuture;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::task::JoinHandle;
use tokio_postgres::Transaction;

use crate::context::TaskContext;
use crate::execution::{Execution, raised};
use crate::metrics::Ended;
use crate::points::{Cut, Subject};
use crate::task_error::{EngineStop, TaskError};
use crate::writer::{Pause, Position, Resolved};

/// What the roles say, too.
const IDLE_IN_TRANSACTION_MAX: Duration = Duration::from_secs(10);

impl<C: Serialize + DeserializeOwned> TaskContext<C> {
    /// Runs the handler's own SQL and saves a checkpoint in one fenced transaction. Gives what `sql` gave.
    ///
    /// The transaction comes from a pool of its own, over the engine's connection settings and role: name the schema of your
    /// tables (the role's `search_path` is `aegis, pg_catalog`) and grant them to it. Never end it inside `sql`, and keep it
    /// short: it ends by `idle_in_transaction_session_timeout` (10 s).
    ///
    /// ```no_run
    /// # async fn example(ctx: aegis_worker::TaskContext<u64>) -> Result<(), aegis_worker::TaskError> {
    /// let row = 7_i64;
    /// ctx.commit(&8, move |tx| {
    ///     Box::pin(async move {
    ///         tx.execute("update public.price set amount = amount * 2 where id = $1", &[&row]).await?;
    ///         Ok(())
    ///     })
    /// })
    /// .await
    /// # }
    /// ```
    ///
    /// # Errors
    /// What `sql` returned; what the database said; what the engine raises. Nothing was written then.
    pub async fn commit<T, F>(&self, checkpoint: &C, sql: F) -> Result<T, TaskError>
    where
        T: Send + 'static,
        F: for<'t> FnOnce(&'t Transaction<'t>) -> BoxFuture<'t, Result<T, TaskError>>
            + Send
            + 'static,
    {
        self.execution.not_while_settling()?;
        let data = serde_json::to_vec(checkpoint)?;
        check_size("the checkpoint", data.len(), CHECKPOINT_BYTES_MAX)?;
        let protocol = self.execution.kind.protocols.writes();
        let execution = Arc::clone(&self.execution);
        joined(tokio::spawn(async move {
            let mut position = execution.writer.turn().await;
            commit_checkpoint(&execution, &mut position, protocol, data, sql).await
        }))
        .await
    }

    /// Runs the handler's own SQL and completes the task in one fenced transaction: what `sql` gives is the task's result.
    /// Return it: `return ctx.complete_in(…).await`.
    ///
    /// # Errors
    /// What `sql` returned; what the database said; what the engine raises. Nothing was written then.
    pub async fn complete_in<T, F>(&self, sql: F) -> Result<T, TaskError>
    where
        T: Serialize + Send + 'static,
        F: for<'t> FnOnce(&'t Transaction<'t>) -> BoxFuture<'t, Result<T, TaskError>>
            + Send
            + 'static,
    {
        self.execution.not_while_settling()?;
        if let Some(poison) = self.execution.poisoned() {
            return Err(raised(poison).into());
        }
        let execution = Arc::clone(&self.execution);
        joined(tokio::spawn(async move {
            let mut position = execution.writer.turn().await;
            complete(&execution, &mut position, sql).await
        }))
        .await
    }
}

/// Dropping the waiter does not drop the call: the position after it has to be known.
async fn joined<T>(call: JoinHandle<Result<T, TaskError>>) -> Result<T, TaskError> {
    call.await.unwrap_or_else(|_| {
        Err(TaskError::retryable(
            "panic",
            "the handler's own SQL panicked",
        ))
    })
}

async fn commit_checkpoint<T, F>(
    execution: &Execution,
    position: &mut Position,
    protocol: i32,
    data: Vec<u8>,
    sql: F,
) -> Result<T, TaskError>
where
    F: for<'t> FnOnce(&'t Transaction<'t>) -> BoxFuture<'t, Result<T, TaskError>> + Send + 'static,
{
    still_open(position)?;
    execution.at(Cut::Before, || Subject::Commit).await;
    let store = &execution.shared.store;
    let lane = store.lane_after(position.lane, protocol).await?;
    let to = SaveTo {
        held: position.held,
        lane: position.lane,
        protocol,
        data,
    };
    let lent = Lent::new(execution);
    let mut client = lent.take().await?;
    let begun = lent.answered(1, begin(execution, client.client()));
    let transaction = begun.await??;
    let asked = lent.answered(HANDLER_CALLS, sql(&transaction));
    let value = asked.await??;
    execution.at(Cut::Ran, || Subject::Commit).await;
    let fenced = lent.answered(1, guarded::fence_in(&*transaction, &to, lane));
    let Some(saved) = fenced.await?? else {
        transaction.rollback().await.ok();
        return Err(refused(execution, position, "commit").await.into());
    };
    let committed = lent.answered(1, commit_checked(transaction));
    // An answer that does not come is one that was lost.
    match committed.await.flatten() {
        Ok(()) => {}
        Err(error) if error.lost_answer() => match execution.read_back(position.held, None).await {
            Resolved::Applied { .. } => {}
            Resolved::NotApplied => return Err(not_applied()),
            Resolved::Fenced(_) => return Err(execution.lose().into()),
        },
        Err(error) => return Err(error.into()),
    }
    position.held.rev = saved.rev;
    position.lane = saved.lane;
    execution.progress();
    execution.at(Cut::Stored, || Subject::Commit).await;
    Ok(value)
}

async fn complete<T, F>(
    execution: &Execution,
    position: &mut Position,
    sql: F,
) -> Result<T, TaskError>
where
    T: Serialize,
    F: for<'t> FnOnce(&'t Transaction<'t>) -> BoxFuture<'t, Result<T, TaskError>> + Send + 'static,
{
    still_open(position)?;
    execution.at(Cut::Before, || Subject::CompleteIn).await;
    let lent = Lent::new(execution);
    let mut client = lent.take().await?;
    let begun = lent.answered(1, begin(execution, client.client()));
    let transaction = begun.await??;
    let asked = lent.answered(HANDLER_CALLS, sql(&transaction));
    let value = asked.await??;
    let result = serde_json::to_vec(&value)?;
    check_size("the result", result.len(), PAYLOAD_BYTES_MAX)?;
    let completion = Completion {
        held: position.held,
        result: Some(result),
    };
    execution.at(Cut::Ran, || Subject::CompleteIn).await;
    let fenced = lent.answered(1, guarded::complete_in(&*transaction, &completion));
    if !fenced.await?? {
        transaction.rollback().await.ok();
        return Err(refused(execution, position, "complete_in").await.into());
    }
    let committed = lent.answered(1, commit_checked(transaction));
    // An answer that does not come is one that was lost.
    match committed.await.flatten() {
        Ok(()) => {}
        Err(error) if error.lost_answer() => {
            let digest = Some(completion.digest());
            match execution.read_back(position.held, digest).await {
                Resolved::Applied { .. } => {}
                Resolved::NotApplied => return Err(not_applied()),
                Resolved::Fenced(_) => return Err(execution.lose().into()),
            }
        }
        Err(error) => return Err(error.into()),
    }
    position.ended = true;
    execution.completed.store(true, Ordering::SeqCst);
    execution.count(Ended::Completed);
    execution.at(Cut::Stored, || Subject::CompleteIn).await;
    Ok(value)
}

/// How many deadlines the handler's own SQL may take. A single statement ends after the role's `statement_timeout`, which is
/// shorter than one; a connection that never answers would hold the task for ever, while its lease is renewed.
const HANDLER_CALLS: u32 = 4;

/// A connection that is lent to the handler's own SQL. One that did not answer in time may never answer: it does not go back.
struct Lent<'e> {
    execution: &'e Execution,
    is_silent: AtomicBool,
}

struct LentObject<'l> {
    object: Option<deadpool_postgres::Object>,
    is_silent: &'l AtomicBool,
}

impl<'e> Lent<'e> {
    const fn new(execution: &'e Execution) -> Self {
        Self {
            execution,
            is_silent: AtomicBool::new(false),
        }
    }

    async fn take(&self) -> Result<LentObject<'_>, TaskError> {
        Ok(LentObject {
            object: Some(connection(self.execution).await?),
            is_silent: &self.is_silent,
        })
    }

    async fn answered<T>(
        &self,
        calls: u32,
        answer: impl Future<Output = T>,
    ) -> Result<T, StoreError> {
        let answered = self.execution.shared.store.answered(calls, answer).await;
        if answered.is_err() {
            self.is_silent.store(true, Ordering::SeqCst);
        }
        answered
    }
}

impl LentObject<'_> {
    fn client(&mut self) -> &mut deadpool_postgres::Object {
        match &mut self.object {
            Some(object) => object,
            None => unreachable!("it is taken only when it is dropped"),
        }
    }
}

impl Drop for LentObject<'_> {
    fn drop(&mut self) {
        if self.is_silent.load(Ordering::SeqCst)
            && let Some(object) = self.object.take()
        {
            drop(deadpool_postgres::Object::take(object));
        }
    }
}

async fn begin<'c>(
    execution: &Execution,
    client: &'c mut deadpool_postgres::Object,
) -> Result<deadpool_postgres::Transaction<'c>, TaskError> {
    let transaction = client.transaction().await?;
    limit_idling(execution, &transaction).await?;
    Ok(transaction)
}

fn still_open(position: &Position) -> Result<(), TaskError> {
    if position.ended {
        return Err(EngineStop::Ended.into());
    }
    Ok(())
}

/// A refused fence: counted, written down, and the end of this execution.
async fn refused(execution: &Execution, position: &Position, verb: &str) -> EngineStop {
    let noted = async {
        let conn = execution.shared.store.conn().await?;
        execution
            .shared
            .store
            .fenced(&conn.conn(), &position.held, verb)
            .await
    };
    let reason = noted.await;
    if let Err(error) = &reason {
        tracing::warn!(task = %position.held.task, verb, error = %error, "a refused write could not be written down");
    }
    execution.refused(reason.ok())
}

fn not_applied() -> TaskError {
    TaskError::retryable(
        "commit_lost",
        "the connection was lost and nothing was committed; the attempt starts again",
    )
}

fn check_size(what: &str, bytes: usize, limit: usize) -> Result<(), TaskError> {
    if bytes > limit {
        return Err(TaskError::terminal(
            aegis_model::ErrorCode::PAYLOAD_TOO_LARGE.as_str(),
            format!(
                "{what} has {bytes} bytes; the limit is {limit}; store large data elsewhere and pass a reference"
            ),
        ));
    }
    Ok(())
}

/// A connection for the handler's own SQL. None free is no fault of the handler's: it waits, while it may go on at all.
async fn connection(execution: &Execution) -> Result<deadpool_postgres::Object, TaskError> {
    let mut pause = Pause::new();
    loop {
        match execution.shared.store.handler_pool().get().await {
            Ok(client) => return Ok(client),
            Err(error) => {
                tracing::warn!(task = %execution.claim.held.task, error = %error, "no connection for the handler's own SQL yet");
                execution
                    .try_again(StoreError::from(error), &mut pause)
                    .await?;
                execution.may_begin()?;
            }
        }
    }
}

/// A transaction that outlived its lease would hold locks for nobody.
async fn limit_idling(
    execution: &Execution,
    transaction: &Transaction<'_>,
) -> Result<(), TaskError> {
    let limit_ms = execution
        .shared
        .options
        .lease_ttl
        .min(IDLE_IN_TRANSACTION_MAX)
        .as_millis();
    let sql = format!("SET LOCAL idle_in_transaction_session_timeout = {limit_ms}");
    Ok(transaction.batch_execute(&sql).await?)
}
