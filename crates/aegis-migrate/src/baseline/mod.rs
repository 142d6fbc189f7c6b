//! Lines that count as applied though nothing of them was executed here: what another tool had done, or what was compared.
//!
//! Invariants: a line is recorded with its hash, with who and why, in the transaction that has shown it; a recorded line is
//! never changed.
//!
//! Never: a record without its proof. Adopting proves by the other tool's ledger, `baseline` by the structure.

mod compare;

pub use compare::{Compared, compare};

use std::time::Duration;

use aegis_backfill::Pause;
use tokio_postgres::{GenericClient, Transaction};

use crate::change::{PhaseOf, Problem};
use crate::ledger::LedgerName;
use crate::lock::LockLine;
use crate::mutex;
use crate::standing::Recorded;

/// How often the mutex is tried.
const TRIES_MAX: u32 = 20;
/// How long is waited between two tries.
const TRY_EVERY: Duration = Duration::from_millis(100);

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
    /// A run is at work.
    #[error(
        "{holder} holds the mutex of this database's ledger; wait for its end, or end it by `aegis migrate unlock --terminate-holder`"
    )]
    Busy {
        /// Who.
        holder: String,
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
            Self::Busy { .. } => 10,
            Self::Edited { .. } => 11,
            Self::Unknown { .. } => 12,
            Self::Sql(_) => 20,
        }
    }
}

/// Who records, under the mutex and a new epoch of the ledger, until the transaction ends.
#[derive(Debug)]
pub struct Taken {
    ledger: LedgerName,
    epoch: i64,
    run: String,
}

impl Taken {
    /// The ledger's epoch.
    pub const fn epoch(&self) -> i64 {
        self.epoch
    }
}

/// Takes the mutex of an application's ledger for the caller's transaction, makes the tables where they are not there, and a new
/// epoch.
pub async fn take(transaction: &Transaction<'_>, actor: &str) -> Result<Taken, BaselineError> {
    take_in(transaction, LedgerName::Application, actor).await
}

/// [`take`] of any ledger.
pub async fn take_in(
    transaction: &Transaction<'_>,
    ledger: LedgerName,
    actor: &str,
) -> Result<Taken, BaselineError> {
    let (mut tries, mut pause) = (0, Pause::of(TRY_EVERY));
    loop {
        let row = transaction
            .query_one(
                include_str!("../../sql/baseline/mutex.sql"),
                &[&ledger.key()],
            )
            .await?;
        if row.try_get(0)? {
            break;
        }
        // A process that has just ended may still hold it for a moment on the server.
        tries += 1;
        if tries >= TRIES_MAX {
            let holder = mutex::holder_seen(transaction, ledger).await?;
            return Err(BaselineError::Busy {
                holder: mutex::told(holder),
            });
        }
        pause.wait().await;
    }
    crate::ledger::bring(transaction, ledger).await?;
    let run = "baseline".to_owned();
    let epoch = transaction
        .query_one(
            &*ledger.sql(include_str!("../../sql/baseline/take.sql")),
            &[&run, &actor],
        )
        .await?
        .try_get(0)?;
    Ok(Taken { ledger, epoch, run })
}

/// Records lines.
pub async fn record(
    transaction: &Transaction<'_>,
    taken: &Taken,
    lines: &[&LockLine],
    how: How,
    actor: &str,
    reason: &str,
) -> Result<(), BaselineError> {
    for line in lines {
        let PhaseOf { id, phase } = &line.at;
        let (id, phase) = (id.as_str(), phase.word());
        let row = transaction
            .query_opt(
                &*taken
                    .ledger
                    .sql(include_str!("../../sql/baseline/record.sql")),
                &[&id, &phase, &line.sha256, &how.word(), &actor, &reason],
            )
            .await?;
        if row.is_none() {
            return Err(BaselineError::Edited {
                at: line.at.to_string(),
            });
        }
        transaction
            .execute(
                &*taken
                    .ledger
                    .sql(include_str!("../../sql/baseline/phase.sql")),
                &[&id, &phase, &line.sha256, &taken.epoch, &taken.run],
            )
            .await?;
    }
    Ok(())
}

/// What is recorded; nothing where the tool was never here.
pub async fn read<C: GenericClient + Sync>(
    client: &C,
    ledger: LedgerName,
) -> Result<Vec<Recorded>, BaselineError> {
    let there = client
        .query_one(
            &*ledger.sql(include_str!("../../sql/baseline/exists.sql")),
            &[],
        )
        .await?;
    if !there.get::<_, bool>(0) {
        return Ok(Vec::new());
    }
    let rows = client
        .query(
            &*ledger.sql(include_str!("../../sql/baseline/read.sql")),
            &[],
        )
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
