//! Why a handler's program cannot be used, before any task is claimed for it.

use aegis_model::ErrorCode;

/// An error of a program that is to be a handler.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExecError {
    /// It cannot be run.
    #[error("the handler {program} cannot be run: {why}")]
    Program {
        /// As given.
        program: String,
        /// Why.
        why: String,
    },
    /// It runs, and does not speak the protocol.
    #[error(
        "the handler {program} does not answer the first line of the exec protocol: {why}; see docs/guides/exec-handlers.md"
    )]
    Handshake {
        /// As given.
        program: String,
        /// What it did instead.
        why: String,
    },
}

impl ExecError {
    /// The stable code.
    pub fn code(&self) -> ErrorCode {
        ErrorCode::HANDLER_PROGRAM
    }
}
