//! What the author of a handler writes: the trait and its closure form.

use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::context::TaskContext;
use crate::execution::Execution;
use crate::protocols::{Part, Protocols};
use crate::task_error::TaskError;

/// Executes the tasks of one kind.
///
/// **After a takeover `run` starts again from its top**, with the latest checkpoint; steps and operations that are done
/// answer from the store. So it must not do outside of [`TaskContext::step`] and [`TaskContext::operation`] what must not
/// happen twice, and it gives each of them an explicit name and key.
///
/// Blocking work belongs on blocking threads (`tokio::task::spawn_blocking`); an execution counts as running until `run`
/// has returned. Look at [`TaskContext::cancelled`] in long loops.
///
/// ```
/// use aegis_worker::{TaskContext, TaskError, TaskHandler};
///
/// struct Resize;
///
/// #[derive(serde::Deserialize)]
/// struct Picture {
///     path: String,
/// }
///
/// impl TaskHandler for Resize {
///     const KIND: &'static str = "resize";
///     type Input = Picture;
///     type Output = u64;
///     type Checkpoint = ();
///
///     async fn run(&self, ctx: TaskContext<()>, input: Picture) -> Result<u64, TaskError> {
///         ctx.step("measure", &input.path, || async { Ok(42) }).await
///     }
/// }
/// ```
pub trait TaskHandler: Send + Sync + 'static {
    /// The kind of task; at most 200 characters.
    const KIND: &'static str;
    /// The input, in the protocol that this handler writes.
    type Input: DeserializeOwned + Send;
    /// The result; at most 256 KiB as JSON.
    type Output: Serialize + Send;
    /// The saved progress; at most 1 MiB as JSON. `()` for none.
    type Checkpoint: Serialize + DeserializeOwned + Send;

    /// The kind that this value executes: [`Self::KIND`], except for closures.
    fn kind(&self) -> &str {
        Self::KIND
    }

    /// What it reads and writes; protocol 1 unless it says otherwise.
    fn protocols(&self) -> Protocols {
        Protocols::default()
    }

    /// One attempt.
    fn run(
        &self,
        ctx: TaskContext<Self::Checkpoint>,
        input: Self::Input,
    ) -> impl Future<Output = Result<Self::Output, TaskError>> + Send;
}

/// A handler made of a closure.
pub struct FnHandler<F, I> {
    kind: String,
    protocols: Protocols,
    run: F,
    input: PhantomData<fn(I)>,
}

/// A handler for small things: a kind and a closure. Its checkpoint is any JSON.
///
/// ```
/// use aegis_worker::{TaskContext, handler_fn};
///
/// let double = handler_fn("double", |_ctx: TaskContext, n: u32| async move { Ok(n * 2) });
/// # let _ = double;
/// ```
pub fn handler_fn<F, I, O, Fut>(kind: impl Into<String>, run: F) -> FnHandler<F, I>
where
    F: Fn(TaskContext, I) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<O, TaskError>> + Send,
    I: DeserializeOwned + Send + 'static,
    O: Serialize + Send,
{
    FnHandler {
        kind: kind.into(),
        protocols: Protocols::default(),
        run,
        input: PhantomData,
    }
}

impl<F, I> FnHandler<F, I> {
    /// What it reads and writes.
    #[must_use]
    pub fn protocols(mut self, protocols: Protocols) -> Self {
        self.protocols = protocols;
        self
    }
}

impl<F, I, O, Fut> TaskHandler for FnHandler<F, I>
where
    F: Fn(TaskContext, I) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<O, TaskError>> + Send,
    I: DeserializeOwned + Send + 'static,
    O: Serialize + Send,
{
    const KIND: &'static str = "closure";
    type Input = I;
    type Output = O;
    type Checkpoint = Value;

    fn kind(&self) -> &str {
        &self.kind
    }

    fn protocols(&self) -> Protocols {
        self.protocols.clone()
    }

    fn run(&self, ctx: TaskContext, input: I) -> impl Future<Output = Result<O, TaskError>> + Send {
        (self.run)(ctx, input)
    }
}

/// A future that borrows its handler.
pub(crate) type Running<'a> = Pin<Box<dyn Future<Output = Result<Vec<u8>, TaskError>> + Send + 'a>>;

/// A handler with its types forgotten: bytes in, bytes out.
pub(crate) trait Erased: Send + Sync {
    fn kind(&self) -> &str;
    fn protocols(&self) -> Protocols;
    fn run(&self, execution: Arc<Execution>, input: Vec<u8>) -> Running<'_>;
}

impl<H: TaskHandler> Erased for H {
    fn kind(&self) -> &str {
        TaskHandler::kind(self)
    }

    fn protocols(&self) -> Protocols {
        TaskHandler::protocols(self)
    }

    fn run(&self, execution: Arc<Execution>, input: Vec<u8>) -> Running<'_> {
        Box::pin(async move {
            let claim = &execution.claim;
            let decoded = execution
                .kind
                .protocols
                .decode(Part::Input, claim.protocol, &input)
                .map_err(|error| TaskError::terminal("input_invalid", error))?;
            drop(input);
            let output = TaskHandler::run(self, TaskContext::new(execution), decoded).await?;
            serde_json::to_vec(&output)
                .map_err(|error| TaskError::terminal("result_invalid", error.to_string()))
        })
    }
}
