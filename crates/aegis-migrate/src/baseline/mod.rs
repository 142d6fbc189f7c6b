//! Lines that count as applied though nothing of them was executed here: what another tool had done, or what was compared.
//!
//! Invariants: a line is recorded with its hash, with who and why, in the transaction that has shown it; a recorded line is
//! never changed.
//!
//! Never: a record without its proof. Adopting proves by the other tool's ledger, `baseline` by the structure.

mod compare;

pub use compare::{Compared, compare};

use tokio_postgres::{GenericClient, Transaction};

use crate::change::{PhaseOf, Problem};
use crate::lock::LockLine;
use crate::standing::Recorded;

/// How a line came to count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// Another tool had done it.
    Adopted,
    /// The structure is what the lock makes.
    Compared,
}

impl How {
    const fn word(self) -> &'static str {
        match self {
            Self::Adopted => "adopted",
            Self::Compared => "compared",
        }
    }
}

/// Why nothing was recorded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BaselineError {
    /// The line was recorded with another hash.
    #[error(
        "{at} was recorded here with another hash; history was edited: put the files back as they were"
    )]
    Edited {
        /// The line.
        at: String,
    },
    /// The ledger has a line that no folder could have written.
    #[error(
        "the ledger has {row}, which is no phase of a change: it was written by a newer program, or by hand"
    )]
    Unknown {
        /// What stands there.
        row: String,
    },
    /// The server refused.
    #[error("the database refused: {0}")]
    Sql(#[from] tokio_postgres::Error),
}

impl BaselineError {
    /// The exit code of `aegis migrate`.
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::Edited { .. } => 11,
            Self::Unknown { .. } => 12,
            Self::Sql(_) => 20,
        }
    }
}

/// Makes the tables of this module, where they are not there.
pub async fn make(transaction: &Transaction<'_>) -> Result<(), BaselineError> {
    transaction
        .batch_execute(include_str!("../../sql/baseline/make.sql"))
        .await?;
    transaction
        .batch_execute(include_str!("../../schema/0005_adopt.sql"))
        .await?;
    Ok(())
}

/// Records lines.
pub async fn record(
    transaction: &Transaction<'_>,
    lines: &[&LockLine],
    how: How,
    actor: &str,
    reason: &str,
) -> Result<(), BaselineError> {
    for line in lines {
        let PhaseOf { id, phase } = &line.at;
        let row = transaction
            .query_opt(
                include_str!("../../sql/baseline/record.sql"),
                &[
                    &id.as_str(),
                    &phase.word(),
                    &line.sha256,
                    &how.word(),
                    &actor,
                    &reason,
                ],
            )
            .await?;
        if row.is_none() {
            return Err(BaselineError::Edited {
                at: line.at.to_string(),
            });
        }
    }
    Ok(())
}

/// What is recorded; nothing where the tool was never here.
pub async fn read<C: GenericClient + Sync>(client: &C) -> Result<Vec<Recorded>, BaselineError> {
    let there = client
        .query_one(include_str!("../../sql/baseline/exists.sql"), &[])
        .await?;
    if !there.get::<_, bool>(0) {
        return Ok(Vec::new());
    }
    let rows = client
        .query(include_str!("../../sql/baseline/read.sql"), &[])
        .await?;
    rows.iter()
        .map(|row| {
            let text = format!("{}:{}", row.get::<_, String>(0), row.get::<_, String>(1));
            let at = text
                .parse()
                .map_err(|_| BaselineError::Unknown { row: text })?;
            Ok(Recorded {
                at,
                sha256: row.get(2),
                whole: true,
                steps_done: 0,
                open: None,
            })
        })
        .collect()
}

/// The lines of a lock through one of them.
pub fn through<'a>(set: &'a crate::set::Set, at: &PhaseOf) -> Result<Vec<&'a LockLine>, Problem> {
    let last = set.lock.position(at).ok_or_else(|| {
        Problem::of_file(
            set.files().name_of(crate::lock::LOCK_FILE),
            format!("it has no line {at}"),
            "name a line of it, or `aegis migrate seal` first",
        )
    })?;
    Ok(set.lock.lines[..=last].iter().collect())
}
