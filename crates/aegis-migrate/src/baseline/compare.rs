//! Whether a database is what the lock makes, through one of its lines.

use aegis_catalog::{Difference, NotCompared, Structure};
use tokio_postgres::Client;

use crate::set::Set;
use crate::shadow::{self, ShadowError};

/// The answer: equal only where it was compared.
#[derive(Debug, Clone, PartialEq)]
pub enum Compared {
    /// Nothing is wrong; what is told besides.
    Equal(Vec<Difference>),
    /// What is wrong.
    Differs(Vec<Difference>),
    /// Nobody knows.
    NotCompared(NotCompared),
}

/// Compares a database with what a replay has made.
pub async fn compare(
    client: &Client,
    set: &Set,
    expected: &Structure,
) -> Result<Compared, ShadowError> {
    let found = shadow::structure(client, set, None).await?;
    Ok(match expected.compare(&found) {
        Err(not) => Compared::NotCompared(not),
        Ok(differences) => {
            let (wrong, told): (Vec<_>, Vec<_>) =
                differences.into_iter().partition(Difference::is_wrong);
            if wrong.is_empty() {
                Compared::Equal(told)
            } else {
                Compared::Differs(wrong)
            }
        }
    })
}
