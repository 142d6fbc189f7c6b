//! How an operation is described: class, request, timeout, retention, probe, and then the call.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use aegis_model::Class;
use aegis_model::limits::{DURATION_MS_MAX, QUIET_MS};
use futures_util::future::BoxFuture;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::execution::Execution;
use crate::http::HttpCall;
use crate::operation::call::{CallError, OperationCall, OperationError, Probe};
use crate::operation::flow::perform;
use crate::task_error::TaskError;

/// What is known about an operation before it is performed.
pub(crate) struct Plan {
    pub(crate) name: String,
    pub(crate) key: String,
    pub(crate) version: u32,
    pub(crate) class: Class,
    pub(crate) key_retention: Option<Duration>,
    pub(crate) margin: Duration,
    pub(crate) timeout: Duration,
    pub(crate) quiet: Duration,
    pub(crate) repeats: u32,
    pub(crate) request: Value,
}

/// A probe with its types of calling forgotten.
pub(crate) type ProbeFn<'a, T> =
    Box<dyn Fn(OperationCall) -> BoxFuture<'a, Result<Probe<T>, TaskError>> + Send + Sync + 'a>;

/// An operation that is being described; made by [`TaskContext::operation`](crate::TaskContext::operation).
///
/// The default is the careful one: `blind`, 30 s timeout.
///
/// ```no_run
/// # use std::time::Duration;
/// # use aegis_worker::{CallError, Class, TaskContext, TaskError};
/// # async fn call(_: String) -> Result<u64, CallError> { Ok(1) }
/// # async fn example(ctx: TaskContext, order: u64) -> Result<(), TaskError> {
/// let receipt: u64 = ctx
///     .operation("charge", order)
///     .class(Class::Idempotent)
///     .key_retention(Duration::from_secs(24 * 3600))
///     .request(&serde_json::json!({ "order": order, "cents": 1999 }))
///     .execute(|op| async move { call(op.id).await })
///     .await?;
/// # Ok(())
/// # }
/// ```
#[must_use = "an operation does nothing until it is executed"]
pub struct OperationBuilder<'a> {
    execution: &'a Arc<Execution>,
    plan: Plan,
}

/// A queryable operation with its probe.
#[must_use = "an operation does nothing until it is executed"]
pub struct ProbedOperation<'a, T> {
    execution: &'a Arc<Execution>,
    plan: Plan,
    probe: ProbeFn<'a, T>,
}

impl<'a> OperationBuilder<'a> {
    pub(crate) fn new(execution: &'a Arc<Execution>, name: String, key: String) -> Self {
        Self {
            execution,
            plan: Plan {
                name,
                key,
                version: 1,
                class: Class::Blind,
                key_retention: None,
                margin: Duration::from_mins(1),
                timeout: Duration::from_secs(30),
                quiet: Duration::from_millis(QUIET_MS.unsigned_abs()),
                repeats: 3,
                request: Value::Null,
            },
        }
    }

    /// How it can be recovered after its answer was lost.
    pub fn class(mut self, class: Class) -> Self {
        self.plan.class = class;
        self
    }

    /// For `idempotent`: how long the downstream remembers the key. Past it, minus the timeout of a call that may be under
    /// way and a margin, a person decides. Without it
    /// the downstream is believed to remember for ever.
    pub fn key_retention(mut self, retention: Duration) -> Self {
        self.plan.key_retention = Some(storable(retention));
        self
    }

    /// How much earlier than its retention a key counts as forgotten; a minute unless said otherwise.
    pub fn margin(mut self, margin: Duration) -> Self {
        self.plan.margin = storable(margin);
        self
    }

    /// How long one call may take; 30 s unless said otherwise. Then its answer counts as lost.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.plan.timeout = storable(timeout).max(Duration::from_millis(1));
        self
    }

    /// For `queryable`: how long after the timeout a request may still arrive; 30 s unless said otherwise. It must be longer
    /// than any request can live.
    pub fn quiet(mut self, quiet: Duration) -> Self {
        self.plan.quiet = storable(quiet);
        self
    }

    /// For `idempotent` and `fenced`: how many times a doubtful call is repeated within one attempt; 3 unless said
    /// otherwise. After that the attempt fails, and the next one repeats.
    pub fn repeats(mut self, repeats: u32) -> Self {
        self.plan.repeats = repeats;
        self
    }

    /// The operation's version, part of its id: raise it to do the same thing once more on purpose.
    pub fn version(mut self, version: u32) -> Self {
        self.plan.version = version;
        self
    }

    /// What is asked of the downstream, for people, and what the operation is recognised by: the same id with another
    /// request is an error. It must not change between attempts (no timestamps).
    pub fn request(mut self, request: &(impl Serialize + ?Sized)) -> Self {
        // What cannot be encoded is found out by `perform`, which refuses a request that is not JSON.
        self.plan.request = serde_json::to_value(request)
            .unwrap_or_else(|error| Value::String(format!("not JSON: {error}")));
        self
    }

    /// Makes it `queryable`, with the question to ask after a lost answer. An `Err` of the probe is the attempt's.
    pub fn probe<T, F, Fut>(self, probe: F) -> ProbedOperation<'a, T>
    where
        F: Fn(OperationCall) -> Fut + Send + Sync + 'a,
        Fut: Future<Output = Result<Probe<T>, TaskError>> + Send + 'a,
    {
        let Self {
            execution,
            mut plan,
        } = self;
        plan.class = Class::Queryable;
        ProbedOperation {
            execution,
            plan,
            probe: Box::new(move |call| Box::pin(probe(call))),
        }
    }

    /// Performs it, or answers from the ledger what was found out before.
    ///
    /// `call` may be called several times (`idempotent`, `fenced`), each time after a dispatch commit of its own.
    ///
    /// # Errors
    /// [`OperationError::Failed`] and what a person decided; everything else with `?`.
    pub async fn execute<T, F, Fut>(self, call: F) -> Result<T, OperationError>
    where
        T: Serialize + DeserializeOwned + Send,
        F: Fn(OperationCall) -> Fut + Send + Sync,
        Fut: Future<Output = Result<T, CallError>> + Send,
    {
        perform(self.execution, self.plan, None, call).await
    }

    /// The built-in HTTP call; see [`HttpCall`]. Its request is the operation's request unless one was given.
    ///
    /// # Errors
    /// As [`OperationBuilder::execute`].
    pub async fn http<T>(mut self, http: HttpCall) -> Result<T, OperationError>
    where
        T: DeserializeOwned,
    {
        if self.plan.request.is_null() {
            self.plan.request = http.as_request();
        }
        let client = &self.execution.shared.http;
        let (http, timeout) = (&http, self.plan.timeout);
        let answer: Value = perform(self.execution, self.plan, None, |call| {
            client.send(http, call, timeout)
        })
        .await?;
        decoded(answer)
    }
}

/// At most ten years, so that sums of durations stay within every clock.
fn storable(duration: Duration) -> Duration {
    duration.min(Duration::from_millis(DURATION_MS_MAX.unsigned_abs()))
}

/// The ledger keeps what the downstream said; whether the handler can read it is another question.
fn decoded<T: DeserializeOwned>(answer: Value) -> Result<T, OperationError> {
    serde_json::from_value(answer)
        .map_err(|error| TaskError::terminal("operation_result_invalid", error.to_string()).into())
}

impl<T: Serialize + DeserializeOwned + Send> ProbedOperation<'_, T> {
    /// Performs it, or answers from the ledger what was found out before.
    ///
    /// # Errors
    /// As [`OperationBuilder::execute`].
    pub async fn execute<F, Fut>(self, call: F) -> Result<T, OperationError>
    where
        F: Fn(OperationCall) -> Fut + Send + Sync,
        Fut: Future<Output = Result<T, CallError>> + Send,
    {
        perform(self.execution, self.plan, Some(self.probe), call).await
    }
}

impl ProbedOperation<'_, Value> {
    /// The built-in HTTP call with this probe.
    ///
    /// # Errors
    /// As [`OperationBuilder::execute`].
    pub async fn http(mut self, http: HttpCall) -> Result<Value, OperationError> {
        if self.plan.request.is_null() {
            self.plan.request = http.as_request();
        }
        let client = &self.execution.shared.http;
        let (http, timeout) = (&http, self.plan.timeout);
        perform(self.execution, self.plan, Some(self.probe), |call| {
            client.send(http, call, timeout)
        })
        .await
    }
}
