//! What one run of a task came to.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use aegis_model::State;
use aegis_store::view::TaskDetail;
use aegis_worker::points::Point;
use serde_json::Value;
use uuid::Uuid;

/// How a task ended, or what it waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// With a result.
    Succeeded,
    /// Given up after an error.
    Failed {
        /// The error's code.
        code: String,
        /// What it said.
        message: String,
    },
    /// It killed too many workers.
    Quarantined,
    /// Somebody asked for its end.
    Cancelled,
    /// Nobody knows whether these operations happened; a person decides.
    WaitsForPerson {
        /// Their names, as in `charge/7/v1`.
        operations: Vec<String>,
        /// All of them are `queryable` or `blind`, so that no engine could tell.
        expected: bool,
    },
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Succeeded => f.write_str("succeeded"),
            Self::Failed { code, message } => write!(f, "failed: {code}: {message}"),
            Self::Quarantined => f.write_str("quarantined"),
            Self::Cancelled => f.write_str("cancelled"),
            Self::WaitsForPerson { operations, .. } => {
                write!(f, "a person decides about {}", operations.join(", "))
            }
        }
    }
}

impl Outcome {
    /// Of a task that has ended; `None` for one that has not.
    pub(crate) fn of(task: &TaskDetail) -> Option<Self> {
        let text = |field: &str| {
            let error = task.error.as_ref()?;
            Some(error.get(field)?.as_str()?.to_owned())
        };
        match State::from_number(task.state) {
            State::Succeeded => Some(Self::Succeeded),
            State::Failed => Some(Self::Failed {
                code: text("code").unwrap_or_default(),
                message: text("message").unwrap_or_default(),
            }),
            State::Cancelled => Some(Self::Cancelled),
            State::Quarantined => Some(Self::Quarantined),
            _ => None,
        }
    }
}

/// One run of a task, from submit to its end.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Run {
    /// The task.
    pub task: Uuid,
    /// How it ended.
    pub outcome: Outcome,
    /// Its result, where it succeeded.
    pub result: Option<Value>,
    /// How many executions it took.
    pub executions: usize,
    /// The named points that it reached, in order.
    pub points: Vec<Point>,
    /// What happened outside, counted by name. An operation's effect is named `name/key/vN`.
    pub effects: BTreeMap<String, usize>,
    /// What a frozen worker caused after it had waked up. Counted among the effects, too.
    pub late: Vec<String>,
    /// How much time has passed for it.
    pub passed: Duration,
}

impl Run {
    /// The result, decoded.
    ///
    /// # Errors
    /// There is none, or it is of another type.
    pub fn result_as<T: serde::de::DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_value(self.result.clone().unwrap_or_default())
    }
}
