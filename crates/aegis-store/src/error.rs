//! What can go wrong between the engine and its database, each with its stable code.
//!
//! Invariant: a lost answer is not an error here, it is `Outcome::Unknown`; [`StoreError::lost_answer`] tells which is which.

use aegis_model::ErrorCode;
use deadpool_postgres::PoolError;
use tokio_postgres::error::SqlState;
use uuid::Uuid;

use crate::guarded::is_data_error;

/// An error of a store call.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The connection string cannot be used.
    #[error("the database URL cannot be used: {what}; write postgresql://USER@HOST:PORT/DATABASE")]
    Url {
        /// What is wrong, without the URL's secrets.
        what: String,
    },
    /// Nobody answers, or no connection became free in time.
    #[error(
        "the database at {place} cannot be reached; check that it runs and accepts connections there"
    )]
    Unreachable {
        /// Host and port, or the socket folder.
        place: String,
        /// The driver's error.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The server is too old.
    #[error("PostgreSQL {found} is too old; Aegis needs 15 or newer")]
    ServerTooOld {
        /// The server's version.
        found: String,
    },
    /// There is no schema yet.
    #[error("the database has no Aegis schema; run `aegis db install`")]
    NotInstalled,
    /// The database is behind this binary.
    #[error(
        "the database has schema {found} and this binary needs {needed}; run `aegis db install` of this version first"
    )]
    SchemaTooOld {
        /// The database's schema.
        found: i32,
        /// What this binary needs.
        needed: i32,
    },
    /// This binary is behind the database.
    #[error(
        "this binary knows schema {known} and the database needs at least {min_schema}; use a newer release"
    )]
    BinaryTooOld {
        /// The binary's schema.
        known: i32,
        /// The lowest schema that the database admits.
        min_schema: i32,
    },
    /// Workers of an older release are alive that could not read what would be written from now on.
    #[error("{said}; drain them and start this release, then switch again; nothing was changed")]
    OldWorkers {
        /// What the database said, with their names.
        said: String,
    },
    /// A schema step was edited after it was applied.
    #[error(
        "schema step {version} was applied with another text than this binary has; use the binary that applied it, or a newer one"
    )]
    StepEdited {
        /// The step's number.
        version: i32,
    },
    /// The connection's settings would break the guard or the plans.
    #[error(
        "setting {name} is `{found}` for role {role} and must be `{wanted}`; run: ALTER ROLE {role} SET {name} = '{wanted}'"
    )]
    Setting {
        /// The setting.
        name: &'static str,
        /// As found.
        found: String,
        /// As needed.
        wanted: &'static str,
        /// The role that was connected.
        role: String,
    },
    /// Something is larger than its limit.
    #[error(
        "{what} has {bytes} bytes; the limit is {limit}; store large data elsewhere and pass a reference"
    )]
    TooLarge {
        /// Input, result, checkpoint, step value.
        what: String,
        /// Its size.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// A field of a submit makes no sense.
    #[error("{field} of task {position} {problem}")]
    BadTask {
        /// The field.
        field: &'static str,
        /// The task's place in the batch, from 0.
        position: usize,
        /// What is wrong with it and what to do.
        problem: String,
    },
    /// An idempotency key was used with another payload; nothing was written.
    #[error(
        "idempotency key `{key}` of kind `{kind}` was used with another payload, for task {task}; use a new key for a new payload"
    )]
    KeyConflict {
        /// The key.
        key: String,
        /// The kind.
        kind: String,
        /// The task it stands for.
        task: Uuid,
    },
    /// A filter or change that makes no sense.
    #[error("{problem}")]
    BadFilter {
        /// What, and what to use.
        problem: String,
    },
    /// No partition for a task's day.
    #[error("there is no partition for today; run `aegis db maintain` as the owner role")]
    NoPartition {
        /// The driver's error.
        #[source]
        source: tokio_postgres::Error,
    },
    /// The database is not the one it was: a copy, a restore, or an upgrade.
    #[error(
        "the database is not the one it was (copied, restored or upgraded); acquisition is closed until `aegis db adopt`"
    )]
    NotAdopted,
    /// Any other error of the database.
    #[error("the database refused the statement")]
    Database {
        /// The driver's error.
        #[source]
        source: tokio_postgres::Error,
    },
    /// No answer within the deadline; the connection was given up.
    #[error(
        "the database at {place} has not answered within {} ms; whether the statement was committed is not known",
        within.as_millis()
    )]
    Deadline {
        /// Host and port, or the socket folder.
        place: String,
        /// The deadline.
        within: std::time::Duration,
    },
    /// A document of the database's does not have the form that this binary knows.
    #[error(
        "the database answered in a form that this binary does not know: {what}; use the release that installed it"
    )]
    Unreadable {
        /// What was found.
        what: String,
    },
    /// A call ended by a panic.
    #[error("a database call panicked")]
    Panicked,
}

impl StoreError {
    /// The stable code, where the error has one.
    pub fn code(&self) -> Option<ErrorCode> {
        Some(match self {
            Self::TooLarge { .. } => ErrorCode::PAYLOAD_TOO_LARGE,
            Self::KeyConflict { .. } => ErrorCode::KEY_CONFLICT,
            Self::BadTask { .. } => ErrorCode::BAD_SUBMIT,
            Self::BadFilter { .. } => ErrorCode::BAD_FILTER,
            Self::Unreachable { .. } | Self::Deadline { .. } | Self::Url { .. } => {
                ErrorCode::UNREACHABLE
            }
            Self::ServerTooOld { .. }
            | Self::NotInstalled
            | Self::SchemaTooOld { .. }
            | Self::BinaryTooOld { .. }
            | Self::OldWorkers { .. } => ErrorCode::SCHEMA,
            Self::Setting { .. } => ErrorCode::SETTINGS,
            Self::StepEdited { .. } => ErrorCode::STEP_EDITED,
            Self::NotAdopted => ErrorCode::NOT_ADOPTED,
            Self::NoPartition { .. } => ErrorCode::NO_PARTITION,
            Self::Database { .. } | Self::Unreadable { .. } | Self::Panicked => return None,
        })
    }

    /// Was the statement sent and its answer lost? Then nobody knows whether it was committed.
    pub fn lost_answer(&self) -> bool {
        match self {
            Self::Database { source } => lost_answer(source),
            Self::Panicked | Self::Deadline { .. } => true,
            _ => false,
        }
    }

    /// May the same call be tried again later, with a chance?
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::Deadline { .. } | Self::Panicked => true,
            Self::Database { source } => {
                lost_answer(source) || source.code().is_some_and(is_passing)
            }
            _ => false,
        }
    }

    /// Is what a row holds to blame (SQLSTATE classes 22 and 23)? Then no repeat mends it.
    pub fn blames_data(&self) -> bool {
        matches!(self, Self::TooLarge { .. }) || is_data_error(self)
    }
}

/// The server is starting, stopping, a standby around a failover, out of something, or in somebody's way.
fn is_passing(code: &SqlState) -> bool {
    let class = &code.code()[..2];
    // Rolled back by contention; resources; a time limit or an operator; the machine.
    ["40", "53", "57", "58"].contains(&class)
        || [
            SqlState::LOCK_NOT_AVAILABLE,
            SqlState::READ_ONLY_SQL_TRANSACTION,
            // What a server says in recovery, where it can say nothing of its lineage.
            SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
        ]
        .contains(code)
}

/// A driver error after which the fate of a sent statement is unknown: the connection is gone, the backend was ended, or
/// a time limit struck when the commit may already have been under way.
pub(crate) fn lost_answer(error: &tokio_postgres::Error) -> bool {
    match error.code() {
        None => true,
        Some(code) => {
            code.code().starts_with("08")
                || [
                    SqlState::ADMIN_SHUTDOWN,
                    SqlState::CRASH_SHUTDOWN,
                    SqlState::QUERY_CANCELED,
                    SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT,
                ]
                .contains(code)
        }
    }
}

impl From<tokio_postgres::Error> for StoreError {
    /// "no partition of relation … found for row" is a check violation without a constraint's name.
    fn from(source: tokio_postgres::Error) -> Self {
        let missing = source.as_db_error().is_some_and(|error| {
            *error.code() == SqlState::CHECK_VIOLATION && error.constraint().is_none()
        });
        if missing {
            Self::NoPartition { source }
        } else {
            Self::Database { source }
        }
    }
}

impl From<PoolError> for StoreError {
    fn from(error: PoolError) -> Self {
        match error {
            PoolError::Backend(source) if source.code().is_some() => source.into(),
            other => Self::Unreachable {
                place: "its address".to_owned(),
                source: Box::new(other),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_failover_or_a_full_server_says_passes_and_what_a_row_holds_does_not() {
        for code in [
            "25006", "40001", "40P01", "53100", "53200", "53300", "55000", "55P03", "57P01",
            "57P02", "57P03", "58030",
        ] {
            assert!(is_passing(&SqlState::from_code(code)), "{code}");
        }
        for code in ["22P02", "23505", "42501", "42P01", "XX000", "P0001"] {
            assert!(!is_passing(&SqlState::from_code(code)), "{code}");
        }
    }

    #[test]
    fn a_call_past_its_deadline_is_an_answer_that_was_lost() {
        let late = StoreError::Deadline {
            place: "h port 1".to_owned(),
            within: std::time::Duration::from_secs(35),
        };
        assert!(late.lost_answer() && late.is_passing());
        assert!(late.to_string().contains("35000 ms"), "{late}");
    }
}
