//! Why a pass has no result.

use crate::job::JobError;
use crate::sync::SyncError;

/// Why a pass has no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PassError {
    /// The table or its columns.
    #[error("{0}")]
    Asked(String),
    /// What it would compute could be somebody else's.
    #[error("{0}")]
    Untrusted(String),
    /// The trigger is not the one that it was.
    #[error(
        "the trigger of {change} was touched while the pass read, so what it counted says nothing; run it again"
    )]
    Touched {
        /// The change.
        change: String,
    },
    /// The trigger computes something else than what is compared.
    #[error(
        "the trigger of {change} was made of other expressions than [sync] has now, so what a pass counts with these says nothing of what it writes; `aegis migrate repair sync {change} --reason TEXT` makes it of these, then count again"
    )]
    OtherExpressions {
        /// The change.
        change: String,
    },
    /// A word that is none.
    #[error(
        "{file}: a row says `{found}`; write missing, mismatch or orphaned into the second column"
    )]
    Word {
        /// The file.
        file: String,
        /// What stands there.
        found: String,
    },
    /// The server, or the connection.
    #[error("the pass could not read everything")]
    Database(#[from] tokio_postgres::Error),
}

impl From<JobError> for PassError {
    fn from(error: JobError) -> Self {
        match error {
            JobError::Database(error) => Self::Database(error),
            other => Self::Asked(other.to_string()),
        }
    }
}

impl From<SyncError> for PassError {
    fn from(error: SyncError) -> Self {
        match error {
            SyncError::Sql(error) => Self::Database(error),
            SyncError::Untrusted { .. } => Self::Untrusted(error.to_string()),
            other => Self::Asked(other.to_string()),
        }
    }
}
