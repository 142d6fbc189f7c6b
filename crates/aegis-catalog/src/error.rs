//! Why a database could not be read, or a snapshot file not used.

/// What went wrong; nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The server is older than what is supported.
    #[error("the server is PostgreSQL {found}; its catalog can be read from {oldest} on")]
    Server {
        /// Its major version.
        found: u32,
        /// The oldest that is read.
        oldest: u32,
    },
    /// A statement of the reading failed.
    #[error("read {what} from the catalog{}", hint(.source))]
    Read {
        /// Which part.
        what: &'static str,
        /// The server's answer.
        source: tokio_postgres::Error,
    },
    /// The server answered what this version does not understand.
    #[error("the catalog's {what} cannot be understood: {row}")]
    Shape {
        /// Which part.
        what: &'static str,
        /// The row, cut after 200 characters.
        row: String,
        /// Where it does not fit.
        source: serde_json::Error,
    },
    /// A file that is no snapshot, or of a newer format.
    #[error(
        "not a catalog snapshot of format {format}: make it with `aegis migrate snapshot --out FILE`"
    )]
    File {
        /// The format that is read here.
        format: u32,
        /// Where it does not fit.
        source: serde_json::Error,
    },
    /// A snapshot of another format.
    #[error(
        "the catalog snapshot has format {found}, this program reads {format}: make it again with `aegis migrate snapshot --out FILE`"
    )]
    Format {
        /// The file's.
        found: u32,
        /// The one that is read here.
        format: u32,
    },
    /// A file that is no sealed structure.
    #[error(
        "not a sealed structure (schema.<major>.json): {why}; make it again with `aegis migrate seal`"
    )]
    Sealed {
        /// What is wrong with it.
        why: String,
    },
    /// A sealed structure of another format.
    #[error(
        "the sealed structure has format {found}, this program reads {format}; make it again with `aegis migrate seal`"
    )]
    SealedFormat {
        /// The file's.
        found: u32,
        /// The one that is read here.
        format: u32,
    },
}

/// What to do about the failures that have a way out of their own.
fn hint(source: &tokio_postgres::Error) -> &'static str {
    match source.code().map(tokio_postgres::error::SqlState::code) {
        Some("55P03") => {
            ": somebody holds a table's ACCESS EXCLUSIVE lock; try again when that has ended"
        }
        Some("53200") => {
            ": more locks than the server keeps; name fewer schemas, or raise max_locks_per_transaction"
        }
        _ => "",
    }
}
