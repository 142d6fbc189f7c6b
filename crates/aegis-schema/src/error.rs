//! Why the schema was not installed.

use aegis_migrate::baseline::BaselineError;
use aegis_migrate::change::Problems;
use aegis_migrate::ledger::LedgerError;
use aegis_migrate::mutex::MutexError;
use aegis_migrate::run::RunError;
use aegis_migrate::session::SessionError;
use aegis_migrate::shadow::ShadowError;
use aegis_store::StoreError;

/// Why the schema was not installed. What was applied before stays, and the ledger says so.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SchemaError {
    /// The database cannot be reached, is too old or too new, or has an edited line.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The changes in this binary.
    #[error(transparent)]
    Set(#[from] Problems),
    /// The session is not one for changes.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// Somebody else is installing.
    #[error(transparent)]
    Mutex(#[from] MutexError),
    /// The ledger.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// A step.
    #[error(transparent)]
    Run(#[from] Box<RunError>),
    /// Taking over what the installer of before had done.
    #[error(transparent)]
    Baseline(#[from] BaselineError),
    /// The structure could not be compared.
    #[error(transparent)]
    Shadow(#[from] Box<ShadowError>),
    /// The file of a structure.
    #[error("the structure of before the lock cannot be read")]
    Structure(#[source] aegis_catalog::Error),
    /// Too old to be taken over.
    #[error(
        "the installer of before the lock has brought this database to schema {found}, and only schema {taken} is taken over; bring it there with the build that installed it, then run this again"
    )]
    Behind {
        /// The schema found.
        found: i32,
        /// The one that is taken over.
        taken: i32,
    },
    /// It is not what its ledger says.
    #[error(
        "the ledger of before the lock says schema {schema}, and the structure is another, so nothing was taken over:\n{differences}"
    )]
    Differs {
        /// The schema that it says.
        schema: i32,
        /// One a line.
        differences: String,
    },
    /// Nobody knows.
    #[error(
        "the structure of before the lock could not be compared, so nothing was taken over: {why}"
    )]
    NotCompared {
        /// Why.
        why: String,
    },
}

impl From<RunError> for SchemaError {
    fn from(error: RunError) -> Self {
        Self::Run(Box::new(error))
    }
}

impl From<ShadowError> for SchemaError {
    fn from(error: ShadowError) -> Self {
        Self::Shadow(Box::new(error))
    }
}

impl From<tokio_postgres::Error> for SchemaError {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Store(error.into())
    }
}
