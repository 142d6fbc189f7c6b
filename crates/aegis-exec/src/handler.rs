//! A handler whose code is another program: one child per attempt.

use aegis_worker::{ProtocolRange, Protocols, TaskContext, TaskError, TaskHandler};
use serde_json::Value;

#[cfg(not(target_os = "linux"))]
use crate::elsewhere::{check, run};
use crate::error::ExecError;
use crate::options::ExecOptions;
use crate::program::Program;
#[cfg(target_os = "linux")]
use crate::{check::check, session::run};

/// Executes the tasks of one kind by a program that speaks the exec protocol.
///
/// ```no_run
/// # async fn example(store: aegis_store::Store) -> Result<(), Box<dyn std::error::Error>> {
/// use aegis_exec::{ExecHandler, ExecOptions, Program};
/// use aegis_worker::Worker;
///
/// let resize = ExecHandler::new("resize", "1..2".parse()?, Program::find("./resize.py")?, ExecOptions::default());
/// resize.check().await?;
/// let worker = Worker::builder(store).handler(resize).build()?;
/// # Ok(())
/// # }
/// ```
///
/// The program that does this also calls [`supervise_if_asked`](crate::supervise_if_asked) first, or names another
/// supervisor in [`ExecOptions::supervisor`].
#[derive(Debug, Clone)]
pub struct ExecHandler {
    kind: String,
    range: ProtocolRange,
    program: Program,
    options: ExecOptions,
}

impl ExecHandler {
    /// A handler of one kind. `range`: which protocols of data the program reads, and which it writes; it brings older ones
    /// to its own by itself.
    pub fn new(
        kind: impl Into<String>,
        range: ProtocolRange,
        program: Program,
        options: ExecOptions,
    ) -> Self {
        Self {
            kind: kind.into(),
            range,
            program,
            options,
        }
    }

    /// Starts the program once, without a task: does it run, and does it speak the protocol?
    ///
    /// # Errors
    /// [`ExecError::Handshake`] with what it did instead.
    pub async fn check(&self) -> Result<(), ExecError> {
        check(&self.program, &self.options).await
    }
}

impl TaskHandler for ExecHandler {
    const KIND: &'static str = "exec";
    type Input = Value;
    type Output = Value;
    type Checkpoint = Value;

    fn kind(&self) -> &str {
        &self.kind
    }

    fn protocols(&self) -> Protocols {
        Protocols::new(self.range)
    }

    async fn run(&self, ctx: TaskContext<Value>, input: Value) -> Result<Value, TaskError> {
        Box::pin(run(&self.program, &self.options, ctx, input)).await
    }
}
