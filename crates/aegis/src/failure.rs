//! An error as a person sees it: what, with its chain, its code and its page.

use std::error::Error;
use std::fmt;

use aegis_model::ErrorCode;
use aegis_schema::SchemaError;
use aegis_store::StoreError;

use crate::exit::Exit;
use crate::output::{error_look, harmless, said};

/// What went wrong, and how the program ends for it.
#[derive(Debug)]
pub(crate) struct Failure {
    /// How the program ends.
    pub(crate) exit: Exit,
    message: String,
    code: Option<ErrorCode>,
}

impl Failure {
    /// A failure with its whole message.
    pub(crate) fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self {
            exit,
            message: message.into(),
            code: None,
        }
    }

    /// With what was done before it.
    pub(crate) fn after(mut self, done: &str) -> Self {
        self.message = format!("{} ({done})", self.message);
        self
    }

    /// With a stable code.
    pub(crate) fn with_code(mut self, code: ErrorCode) -> Self {
        self.code = Some(code);
        self
    }
}

impl Failure {
    /// As `Display`, with its first word in red.
    fn coloured(&self) -> String {
        let text = harmless(&self.to_string());
        match text.split_once(": ") {
            Some((head, rest)) => format!("\u{1b}[1;31m{head}\u{1b}[0m: {rest}"),
            None => text,
        }
    }

    /// Tells it on stderr; a line of JSON where log lines are.
    pub(crate) fn tell(&self) {
        if aegis_telemetry::tell_json(tracing::Level::ERROR, &self.to_string()) {
            return;
        }
        if error_look().colour {
            said(&self.coloured());
        } else {
            said(&harmless(&self.to_string()));
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.code {
            Some(code) => write!(f, "error[{code}]: {}", self.message),
            None => write!(f, "error: {}", self.message),
        }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        let exit = match &error {
            StoreError::TooLarge { .. }
            | StoreError::BadTask { .. }
            | StoreError::BadFilter { .. }
            | StoreError::KeyConflict { .. } => Exit::Refused,
            StoreError::Url { .. } => Exit::Usage,
            _ => Exit::Database,
        };
        Self {
            exit,
            message: chain(&error),
            code: error.code(),
        }
    }
}

impl From<SchemaError> for Failure {
    fn from(error: SchemaError) -> Self {
        match error {
            SchemaError::Store(store) => store.into(),
            SchemaError::Differs { .. } => {
                Self::new(Exit::Database, chain(&error)).with_code(ErrorCode::STRUCTURE)
            }
            _ => Self::new(Exit::Database, chain(&error)),
        }
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        match error.downcast::<StoreError>() {
            Ok(store) => store.into(),
            Err(error) => Self::new(Exit::Broken, format!("{error:#}")),
        }
    }
}

/// The error and everything below it, each said once.
pub(crate) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut below = error.source();
    while let Some(cause) = below {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        below = cause.source();
    }
    text
}
