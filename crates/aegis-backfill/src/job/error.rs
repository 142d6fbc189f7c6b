//! Why a job does not move, or has ended without being done; and what an error of the server means for a batch.

use tokio_postgres::error::Severity;

/// Why a job is not done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JobError {
    /// Something that a backfill stands on is not there.
    #[error("{0}")]
    Precondition(String),
    /// Somebody else runs it.
    #[error("{holder} runs the backfill of {change}; waited {waited_s} s")]
    Busy {
        /// The change.
        change: String,
        /// Who.
        holder: String,
        /// How long was waited.
        waited_s: u64,
    },
    /// The cursors belong to something else.
    #[error(
        "the backfill of {change} was begun with another table, key or statement, so its cursors say nothing; `aegis migrate backfill cancel {change} --reason TEXT`, then `aegis migrate backfill retry --restart {change} --reason TEXT`"
    )]
    OtherSpec {
        /// The change.
        change: String,
    },
    /// A person ended it.
    #[error(
        "the backfill of {change} was cancelled by {by} ({reason}); `aegis migrate backfill retry {change} --reason TEXT` takes it up where it was"
    )]
    Cancelled {
        /// The change.
        change: String,
        /// Who.
        by: String,
        /// Why.
        reason: String,
    },
    /// A person holds it back, and this runner does not wait for that.
    #[error(
        "the backfill of {change} is paused by {by} ({reason}); `aegis migrate backfill resume {change} --reason TEXT` lets it go on"
    )]
    Paused {
        /// The change.
        change: String,
        /// Who.
        by: String,
        /// Why.
        reason: String,
    },
    /// It ended, and a person has to look.
    #[error(
        "the backfill of {change} has failed: {said}; when that is mended, `aegis migrate backfill retry {change} --reason TEXT` and run again"
    )]
    Failed {
        /// The change.
        change: String,
        /// What was in the way.
        said: String,
    },
    /// A newer runner has taken the job.
    #[error(
        "another runner has taken the backfill of {change} (this one has epoch {epoch}); nothing more was written by it"
    )]
    Fenced {
        /// The change.
        change: String,
        /// The epoch of this one.
        epoch: i64,
    },
    /// Programs may write the new side now, and forward of the old one would go over it.
    #[error(
        "the switch of {change} was moved to the new side, so its backfill moves nothing more; what a batch had under way was taken back"
    )]
    NewSide {
        /// The change.
        change: String,
    },
    /// No connection.
    #[error("the backfill has no connection: {0}")]
    Connect(String),
    /// The server or the connection.
    #[error("the backfill could not go on")]
    Database(#[from] tokio_postgres::Error),
}

impl JobError {
    /// Whether a new connection may help: what was committed is found there.
    pub(crate) fn is_lost(&self) -> bool {
        match self {
            Self::Database(error) => fault(error) == Fault::Lost,
            Self::Connect(_) => true,
            _ => false,
        }
    }
}

/// What an error means for a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// A row is in the way; the others are not.
    Row,
    /// A lock was not had; a smaller batch may have it.
    Lock,
    /// It took too long; a smaller one may not.
    Time,
    /// The server lacks something for now.
    Resources,
    /// The session is gone, or no place to write any more.
    Lost,
    /// The statement is wrong, or not allowed.
    Statement,
}

/// What the server's answer means. Codes of functions and triggers of the author are theirs: a row. What ends the session is no answer,
/// whatever its code: the server's word for one that stood still inside a transaction is of the class that else means a wrong statement.
pub(crate) fn fault(error: &tokio_postgres::Error) -> Fault {
    let Some(db) = error.as_db_error() else {
        return Fault::Lost;
    };
    match db.parsed_severity() {
        Some(Severity::Fatal | Severity::Panic) => Fault::Lost,
        _ => of_code(db.code().code()),
    }
}

/// Of an answer in a session that goes on.
fn of_code(code: &str) -> Fault {
    match code {
        "55P03" | "40P01" | "40001" => Fault::Lock,
        "57014" => Fault::Time,
        // A standby: the place to write is elsewhere by now.
        "25006" => Fault::Lost,
        _ => match code.get(..2).unwrap_or_default() {
            // 08 is another server's, which the statement asks.
            "08" | "53" => Fault::Resources,
            "0A" | "25" | "26" | "28" | "34" | "3D" | "3F" | "42" | "55" | "58" | "F0" | "XX" => {
                Fault::Statement
            }
            _ => Fault::Row,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::{Fault, of_code};

    #[test]
    fn each_kind_of_answer_has_its_meaning() {
        for (code, fault) in [
            ("23505", Fault::Row),
            ("22012", Fault::Row),
            ("P0001", Fault::Row),
            ("AEG99", Fault::Row),
            ("55P03", Fault::Lock),
            ("40P01", Fault::Lock),
            ("57014", Fault::Time),
            ("57P01", Fault::Row),
            ("08006", Fault::Resources),
            ("25006", Fault::Lost),
            ("53100", Fault::Resources),
            ("42703", Fault::Statement),
            ("42501", Fault::Statement),
            ("XX000", Fault::Statement),
        ] {
            assert_eq!(of_code(code), fault, "{code}");
        }
    }
}
