//! What a handler's program did wrong. Each fault ends the attempt and is charged as the handler's failure; the worker and
//! its other executions are untouched.

use std::time::Duration;

use aegis_protocol::{BadLine, NoCommonVersion};

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Fault {
    #[error("the handler could not be started: {0}")]
    NotStarted(String),
    #[error("the handler did not say hello within {} ms", .0.as_millis())]
    NoHello(Duration),
    #[error("the handler speaks another version: {0}")]
    Version(NoCommonVersion),
    #[error("the handler wrote what is {0}")]
    BadLine(BadLine),
    #[error("the handler wrote a line of more than {0} bytes")]
    LongLine(usize),
    #[error("the handler's output ended within a line: `{0}`")]
    HalfLine(String),
    #[error("the handler said `{said}` {why}")]
    OutOfTurn { said: &'static str, why: String },
    #[error("the handler has more than {0} requests open")]
    TooManyRequests(usize),
    #[error("the handler closed its standard output without a last message, and went on")]
    OutputClosed,
    #[error("the handler closed its standard input, and went on")]
    InputClosed,
    #[error("the handler left its standard input unread for {} ms", .0.as_millis())]
    InputUnread(Duration),
    #[error("the supervisor of the handler is gone; what it watched over was ended")]
    SupervisorGone,
}

impl Fault {
    /// The stable word that stands in the attempt's error.
    pub(crate) fn code(&self) -> &'static str {
        match self {
            Self::NotStarted(_) => "exec_start",
            Self::NoHello(_) => "exec_no_hello",
            Self::Version(_) => "exec_version",
            Self::BadLine(_)
            | Self::HalfLine(_)
            | Self::OutOfTurn { .. }
            | Self::TooManyRequests(_) => "exec_protocol",
            Self::LongLine(_) => "exec_line_too_long",
            Self::OutputClosed => "exec_output_closed",
            Self::InputClosed => "exec_input_closed",
            Self::InputUnread(_) => "exec_input_unread",
            Self::SupervisorGone => "exec_supervisor_gone",
        }
    }
}
