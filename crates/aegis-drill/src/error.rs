//! Why a drill could not be run. What it found wrong is no error but a [report](crate::report).

use std::io;
use std::path::{Path, PathBuf};

use aegis_schema::SchemaError;
use aegis_store::StoreError;
use aegis_worker::WorkerError;

/// Why a drill could not be run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DrillError {
    /// A file of the drill.
    #[error("{doing} {}: the system refused; give --report a folder that can be written", path.display())]
    File {
        /// What was tried.
        doing: &'static str,
        /// Where.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The report's folder holds something.
    #[error("{} is not empty: evidence of another run is never overwritten; name a new folder", .0.display())]
    NotEmpty(PathBuf),
    /// The minutes make no sense.
    #[error("{0} minutes: a drill takes from 0.25 to 1440 minutes")]
    Minutes(f64),
    /// There is no PostgreSQL.
    #[error("the drill has no PostgreSQL")]
    Postgres(#[from] aegis_devpg::Error),
    /// The engine's store.
    #[error("the drill's database")]
    Store(#[from] StoreError),
    /// The schema.
    #[error("the drill's schema")]
    Schema(#[from] Box<SchemaError>),
    /// The drill's own statements.
    #[error("the drill cannot read its database; look at postgres.log in the report's folder")]
    Sql(#[from] tokio_postgres::Error),
    /// A row or line that is not what it should be.
    #[error("{what} cannot be read; the run tells nothing")]
    Reading {
        /// What.
        what: &'static str,
        /// Why.
        #[source]
        source: serde_json::Error,
    },
    /// A worker process of the drill.
    #[error("the drill's worker")]
    Worker(#[from] WorkerError),
    /// A process that did not come up.
    #[error("{name} did not come up: {why}; its log stands in the report's folder")]
    Child {
        /// Which.
        name: String,
        /// What happened.
        why: String,
    },
    /// A socket, a signal or a thread.
    #[error("{doing}: the system refused")]
    System {
        /// What was tried.
        doing: &'static str,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The oracle cannot be reached.
    #[error("the oracle of effects does not answer")]
    Oracle(#[from] reqwest::Error),
}

impl DrillError {
    pub(crate) fn file(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::File {
            doing,
            path,
            source,
        }
    }

    pub(crate) fn system(doing: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::System { doing, source }
    }

    pub(crate) fn reading(what: &'static str) -> impl FnOnce(serde_json::Error) -> Self {
        move |source| Self::Reading { what, source }
    }
}
