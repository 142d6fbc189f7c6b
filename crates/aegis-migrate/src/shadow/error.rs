//! What can go wrong in a replay.

/// Why a replay did not come to its end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ShadowError {
    /// No private server.
    #[error(
        "a private PostgreSQL could not be started: {0}; install PostgreSQL's programs, pass --fetch-postgres, or name an empty database by --clone-url"
    )]
    Server(#[source] aegis_devpg::Error),
    /// Its work was cut off.
    #[error("the private PostgreSQL could not be looked after: {0}")]
    Lost(String),
    /// No connection.
    #[error("{database} could not be reached: {source}")]
    Connect {
        /// Which database.
        database: String,
        /// Why.
        #[source]
        source: tokio_postgres::Error,
    },
    /// The clone is no empty database.
    #[error(
        "the clone has objects in the schema {schema} already; a replay wants an empty database with the extensions and roles"
    )]
    NotEmpty {
        /// The schema.
        schema: String,
    },
    /// Something that no run would take; nothing was replayed.
    #[error("no run would take this, so nothing was replayed:\n{told}")]
    Unfit {
        /// A line or more for each.
        told: String,
    },
    /// A statement failed.
    #[error("{file}:{line}: {said}{} (in {of}: {statement})", hint.as_ref().map_or_else(String::new, |hint| format!("; {hint}")))]
    Statement {
        /// The file.
        file: String,
        /// Its line.
        line: usize,
        /// The change and its phase, or what else the file is.
        of: String,
        /// The beginning of the statement.
        statement: String,
        /// What the server said, with the code.
        said: String,
        /// What to do.
        hint: Option<String>,
    },
    /// A file is no SQL.
    #[error("{file}: {source}")]
    Syntax {
        /// The file.
        file: String,
        /// Where, with a caret.
        #[source]
        source: aegis_ddl::SyntaxError,
    },
    /// The generated trigger, or a backfill, failed.
    #[error("{change}: {what}: {said}")]
    Data {
        /// The change.
        change: String,
        /// `[sync]` or `[backfill]`.
        what: &'static str,
        /// Why.
        said: String,
    },
    /// The catalog could not be read.
    #[error("the structure could not be read: {0}")]
    Catalog(#[from] aegis_catalog::Error),
    /// The server refused something of the tool's own.
    #[error("the server refused to make it ready: {0}")]
    Sql(#[source] tokio_postgres::Error),
}

impl ShadowError {
    /// The exit code of `aegis migrate`.
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::Statement { .. } | Self::Data { .. } | Self::Sql(_) => 20,
            Self::Syntax { .. } | Self::Unfit { .. } => 3,
            Self::Server(_)
            | Self::Lost(_)
            | Self::Connect { .. }
            | Self::NotEmpty { .. }
            | Self::Catalog(_) => 17,
        }
    }
}
