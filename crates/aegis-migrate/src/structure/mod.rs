//! What the applied steps made of a database, and whether it still is that.
//!
//! Around each step [`before`] and [`Before::record`] look at what the step touches, within its transaction, and the difference is
//! written beside the step's verdict: one commit. The sum of all differences ([`expected`]) is the expected structure, so a
//! step's postcondition holds until another step touches the element, and what somebody changed by hand in between is never
//! taken into it. [`verify`] compares that, and the sealed structure, with the server.
//!
//! Never: "equal" for what was not compared.

mod fold;
mod head;
mod reach;
mod shadow;
mod standing;
mod tenant;
mod verify;

pub use fold::{Before, Expected, SCHEMA, before, expected, record_as_is};
pub use reach::Reach;
pub use shadow::{missing_roles, refused_on_a_shared_server};
pub use standing::{
    Detach, ExpectedIndex, IndexStanding, detach, expected_index, leftovers_of_reindex, standing,
};
pub use tenant::in_schema;
pub use verify::{Answer, Report, Sealed, verify, verify_in};

/// Why a structure could not be told.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StructureError {
    /// The catalog could not be read.
    #[error(transparent)]
    Catalog(#[from] aegis_catalog::Error),
    /// The ledger's account could not be read or written.
    #[error("{what} could not be done")]
    Sql {
        /// What was asked for.
        what: &'static str,
        /// The server's answer.
        #[source]
        source: tokio_postgres::Error,
    },
    /// The ledger's account has an element that this program does not know.
    #[error(
        "aegis_migrate.structure has {row}, which this program does not know: it was written by a newer one, or by hand"
    )]
    Unknown {
        /// The element.
        row: String,
    },
    /// What a killed build should have made cannot be told from its statement.
    #[error("what the statement should have made cannot be told: {why}")]
    Unprovable {
        /// Why.
        why: String,
    },
}

impl StructureError {
    /// The exit code of `aegis migrate`.
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::Catalog(_) => 17,
            Self::Sql { .. } => 20,
            Self::Unknown { .. } => 12,
            Self::Unprovable { .. } => 15,
        }
    }

    fn sql(what: &'static str) -> impl FnOnce(tokio_postgres::Error) -> Self {
        move |source| Self::Sql { what, source }
    }
}
