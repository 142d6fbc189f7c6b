//! Where there is no Linux: a program is refused, with the reason, before any task is claimed for it.

use std::ffi::OsString;
use std::process::ExitCode;

use aegis_worker::{TaskContext, TaskError};
use serde_json::Value;

use crate::error::ExecError;
use crate::options::ExecOptions;
use crate::program::Program;

const WHY: &str = "handlers that are programs need Linux: elsewhere nothing would end them when their worker is killed";

/// Refuses.
pub(crate) async fn check(program: &Program, _options: &ExecOptions) -> Result<(), ExecError> {
    std::future::ready(Err(ExecError::Program {
        program: program.path().display().to_string(),
        why: WHY.to_owned(),
    }))
    .await
}

/// For a worker that did not check.
pub(crate) async fn run(
    program: &Program,
    _options: &ExecOptions,
    _ctx: TaskContext<Value>,
    _input: Value,
) -> Result<Value, TaskError> {
    let command = program.command();
    let why = format!("{}: {WHY}", command.join(&OsString::from(" ")).display());
    std::future::ready(Err(TaskError::retryable("exec_start", why))).await
}

/// Never: nobody starts a supervisor here.
pub fn supervise_if_asked(_arguments: impl IntoIterator<Item = OsString>) -> Option<ExitCode> {
    None
}
