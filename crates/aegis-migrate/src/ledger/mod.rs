//! The ledger in the target: what each step did, and who says so.
//!
//! Invariants: it is made and written only under the mutex; each write is in a transaction that has seen its own epoch
//! ([`fence`]); a step that cannot run in a transaction has its intent committed before it begins.

mod edition;
mod name;

use serde_json::Value;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, GenericClient, Row, Transaction};

use crate::change::{ChangeId, Phase, PhaseOf};

pub(crate) use name::belongs_to;
pub use name::{LedgerName, Tenant};

/// The tables, in the order in which they are made. Each is idempotent.
const TABLES: [&str; 8] = [
    include_str!("../../schema/0001_ledger.sql"),
    aegis_backfill::sync::SCHEMA,
    include_str!("../../schema/0003_switch.sql"),
    include_str!("../../schema/0004_contract.sql"),
    include_str!("../../schema/0005_adopt.sql"),
    crate::structure::SCHEMA,
    aegis_backfill::SCHEMA,
    include_str!("../../schema/0008_repair.sql"),
];

/// Those that every ledger has.
const BOOKS: [&str; 4] = [
    include_str!("../../schema/0001_ledger.sql"),
    include_str!("../../schema/0005_adopt.sql"),
    crate::structure::SCHEMA,
    include_str!("../../schema/0008_repair.sql"),
];

/// The ledger as somebody who runs sees it.
#[derive(Debug, Clone)]
pub struct Ledger {
    /// Names it in approvals.
    pub id: uuid::Uuid,
    /// The fence of all writes of this run.
    pub epoch: i64,
    /// Nothing was here when it was made, and no run has ended whole since.
    pub fresh: bool,
    /// A developer's database.
    pub dev: bool,
    /// Lines of the lock that a program must know at least.
    pub min_schema: i32,
}

/// How a step stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepState {
    /// Begun outside of a transaction; nobody has heard of its end.
    Intent,
    /// Done.
    Applied,
    /// Refused by the server; nothing of it is there.
    Failed,
    /// Ended by a signal.
    Interrupted,
    /// Its outcome is not known.
    Unknown,
    /// Found done, and taken for it.
    Reconciled,
}

impl StepState {
    /// As in the table.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Intent => "intent",
            Self::Applied => "applied",
            Self::Failed => "failed",
            Self::Interrupted => "interrupted",
            Self::Unknown => "unknown",
            Self::Reconciled => "reconciled",
        }
    }

    /// The one with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        [
            Self::Intent,
            Self::Applied,
            Self::Failed,
            Self::Interrupted,
            Self::Unknown,
            Self::Reconciled,
        ]
        .into_iter()
        .find(|state| state.name() == name)
    }

    /// Whether something of it may be there, and nobody has heard what.
    pub const fn is_begun(self) -> bool {
        matches!(self, Self::Intent | Self::Unknown | Self::Interrupted)
    }

    /// Whether it needs no more work.
    pub const fn is_done(self) -> bool {
        matches!(self, Self::Applied | Self::Reconciled)
    }
}

/// A step as the ledger has it.
#[derive(Debug, Clone)]
pub struct StepRow {
    /// Which phase.
    pub at: PhaseOf,
    /// From 1.
    pub ordinal: i32,
    /// How it stands.
    pub state: StepState,
    /// The hash of the lock line that it was run for.
    pub line_sha256: String,
    /// The hash of its statement.
    pub sha256: String,
    /// The epoch that wrote it.
    pub epoch: i64,
    /// What the server, or the runner, said last.
    pub said: Option<String>,
}

/// Why the ledger cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LedgerError {
    /// A newer holder is there.
    #[error(
        "another run has taken over (this one has epoch {epoch}); nothing more was written by it"
    )]
    Fenced {
        /// The epoch of this run.
        epoch: i64,
    },
    /// A row that this release does not understand.
    #[error(
        "the ledger holds {what}, which this release cannot read: a newer one wrote it, or somebody by hand"
    )]
    Unreadable {
        /// What.
        what: String,
    },
    /// Others kept a lock on the tool's own tables, which this release has to make newer.
    #[error(
        "the tables of `aegis migrate` in this database are of an older release, and others hold locks on them ({tries} tries of {wait_ms} ms); nothing was changed. End the transactions that are open for long, then run again"
    )]
    Locked {
        /// How often it was tried.
        tries: u32,
        /// How long each waited.
        wait_ms: u32,
    },
    /// Another role's.
    #[error(
        "this role may not use the ledger ({said}). One role runs all changes of a database: the owner of its schema `aegis_migrate`; where there is none yet, a role that has CREATE on the database"
    )]
    Denied {
        /// What the server says.
        said: String,
    },
    /// The database.
    #[error("the ledger could not be used")]
    Database(#[source] tokio_postgres::Error),
}

impl From<tokio_postgres::Error> for LedgerError {
    fn from(error: tokio_postgres::Error) -> Self {
        match error.as_db_error() {
            Some(db) if *db.code() == SqlState::INSUFFICIENT_PRIVILEGE => Self::Denied {
                said: db.message().to_owned(),
            },
            _ => Self::Database(error),
        }
    }
}

/// What makes a ledger's tables where they are missing.
pub fn script(name: LedgerName) -> String {
    let tables: &[&str] = match name {
        LedgerName::Application => &TABLES,
        // No side of the engine's own tables is switched or contracted by people.
        // Nor is one of a tenant's: see `Set::in_schema`.
        LedgerName::Engine | LedgerName::Tenant(_) => &BOOKS,
    };
    let mut script = String::new();
    for tables in tables {
        script.push_str(&name.sql(tables));
        script.push('\n');
    }
    script
}

/// Takes a new epoch; makes the tables first where they are missing or older than this program's. The caller holds the mutex.
pub async fn take(
    client: &Client,
    name: LedgerName,
    run: &str,
    holder: &str,
) -> Result<Ledger, LedgerError> {
    let row = exists(client, name).await?;
    let (made, used): (bool, bool) = (row.try_get("made")?, row.try_get("used")?);
    edition::bring(client, name, row.try_get("numbered")?).await?;
    let row = client
        .query_one(
            &*name.sql(include_str!("../../sql/ledger/take.sql")),
            &[&run, &holder, &(!made && !used)],
        )
        .await?;
    read_ledger(&row)
}

/// Makes the tables where they are missing or older than this program's, in the caller's transaction. The caller holds the mutex.
pub(crate) async fn bring(
    transaction: &Transaction<'_>,
    name: LedgerName,
) -> Result<(), tokio_postgres::Error> {
    let numbered = exists_row(transaction, name).await?.try_get("numbered")?;
    edition::bring_in(transaction, name, numbered).await
}

async fn exists_row(
    client: &impl GenericClient,
    name: LedgerName,
) -> Result<Row, tokio_postgres::Error> {
    let schemas = name.lives_in().map(|schema| vec![schema]);
    let sql = name.sql(include_str!("../../sql/ledger/exists.sql"));
    client.query_one(&*sql, &[&schemas]).await
}

async fn exists(client: &impl GenericClient, name: LedgerName) -> Result<Row, LedgerError> {
    Ok(exists_row(client, name).await?)
}

/// An application's ledger, for who only looks. None: there is none.
pub async fn find(client: &impl GenericClient) -> Result<Option<Ledger>, LedgerError> {
    find_in(client, LedgerName::Application).await
}

/// [`find`] of any ledger.
pub async fn find_in(
    client: &impl GenericClient,
    name: LedgerName,
) -> Result<Option<Ledger>, LedgerError> {
    let row = exists(client, name).await?;
    if !row.try_get::<_, bool>("made")? {
        return Ok(None);
    }
    let row = client
        .query_opt(&*name.sql(include_str!("../../sql/ledger/read.sql")), &[])
        .await?;
    row.as_ref().map(read_ledger).transpose()
}

fn read_ledger(row: &Row) -> Result<Ledger, LedgerError> {
    Ok(Ledger {
        id: row.try_get("id")?,
        epoch: row.try_get("epoch")?,
        fresh: row.try_get("fresh")?,
        dev: row.try_get("dev")?,
        min_schema: row.try_get("min_schema")?,
    })
}

/// Shows, in the caller's transaction, that nobody has taken over, and keeps it so until it commits.
pub async fn fence(client: &impl GenericClient, who: &Who) -> Result<(), LedgerError> {
    let sql = who.ledger.sql(include_str!("../../sql/ledger/fence.sql"));
    client
        .query_opt(&*sql, &[&who.epoch])
        .await?
        .map(|_| ())
        .ok_or(LedgerError::Fenced { epoch: who.epoch })
}

/// All steps.
pub async fn steps(
    client: &impl GenericClient,
    name: LedgerName,
) -> Result<Vec<StepRow>, LedgerError> {
    let rows = client
        .query(&*name.sql(include_str!("../../sql/ledger/steps.sql")), &[])
        .await?;
    rows.iter()
        .map(|row| {
            let state: String = row.try_get("state")?;
            Ok(StepRow {
                at: at(row)?,
                ordinal: row.try_get("ordinal")?,
                state: StepState::from_name(&state).ok_or_else(|| LedgerError::Unreadable {
                    what: format!("a step in state `{state}`"),
                })?,
                line_sha256: row.try_get("line_sha256")?,
                sha256: row.try_get("sha256")?,
                epoch: row.try_get("epoch")?,
                said: row.try_get("said")?,
            })
        })
        .collect()
}

fn at(row: &Row) -> Result<PhaseOf, LedgerError> {
    let (change, phase): (String, String) = (row.try_get("change")?, row.try_get("phase")?);
    format!("{change}:{phase}")
        .parse()
        .map_err(|_| LedgerError::Unreadable {
            what: format!("`{change}:{phase}`"),
        })
}

/// Says that a phase is whole. In the caller's fenced transaction.
pub async fn phase_done(
    client: &impl GenericClient,
    at: &PhaseOf,
    line_sha256: &str,
    steps: i32,
    who: &Who,
) -> Result<(), LedgerError> {
    let (change, phase) = parts(at);
    client
        .execute(
            &*who
                .ledger
                .sql(include_str!("../../sql/ledger/phase_done.sql")),
            &[
                &change,
                &phase,
                &line_sha256,
                &steps,
                &who.epoch,
                &who.run,
                &who.release,
            ],
        )
        .await?;
    Ok(())
}

/// Keeps an event. Told events are for people; a failed write of one is a failed write of the ledger.
pub async fn event(
    client: &impl GenericClient,
    who: &Who,
    event: &Value,
) -> Result<(), LedgerError> {
    client
        .execute(
            &*who.ledger.sql(include_str!("../../sql/ledger/event.sql")),
            &[&who.run, &who.epoch, event],
        )
        .await?;
    Ok(())
}

/// Keeps an event of a build that has no mutex: as long as its process holds the lock of its change.
pub(crate) async fn event_of_build(
    client: &impl GenericClient,
    who: &Who,
    event: &Value,
    pid: i32,
    change: &str,
) -> Result<(), LedgerError> {
    client
        .execute(
            &*who.ledger.sql(include_str!("../../sql/build/event.sql")),
            &[&who.run, &who.epoch, event, &pid, &change],
        )
        .await?;
    Ok(())
}

/// Takes along, under the epoch of `who`, what this run had begun under an earlier one. In the caller's fenced transaction.
pub(crate) async fn carry(
    client: &impl GenericClient,
    who: &Who,
    before: i64,
) -> Result<(), LedgerError> {
    client
        .execute(
            &*who.ledger.sql(include_str!("../../sql/ledger/carry.sql")),
            &[&before, &who.epoch],
        )
        .await?;
    Ok(())
}

/// Says of what this run had begun outside of a transaction that it was cancelled: how many steps. In the caller's fenced transaction.
pub async fn interrupted(client: &impl GenericClient, who: &Who) -> Result<u64, LedgerError> {
    Ok(client
        .execute(
            &*who
                .ledger
                .sql(include_str!("../../sql/ledger/interrupted.sql")),
            &[&who.epoch],
        )
        .await?)
}

/// [`event`] for several, in their order.
pub async fn events(
    client: &impl GenericClient,
    who: &Who,
    events: &[Value],
) -> Result<(), LedgerError> {
    client
        .execute(
            &*who.ledger.sql(include_str!("../../sql/ledger/events.sql")),
            &[&who.run, &who.epoch, &events],
        )
        .await?;
    Ok(())
}

/// Ends the time in which nobody uses this database.
pub async fn settled(client: &impl GenericClient, who: &Who) -> Result<(), LedgerError> {
    client
        .execute(
            &*who.ledger.sql(include_str!("../../sql/ledger/settled.sql")),
            &[],
        )
        .await?;
    Ok(())
}

/// Who writes.
#[derive(Debug, Clone)]
pub struct Who {
    /// The ledger that is written.
    pub ledger: LedgerName,
    /// The fence.
    pub epoch: i64,
    /// This run.
    pub run: String,
    /// The person or the Job.
    pub by: String,
    /// The release that brings the folder.
    pub release: String,
    /// The server's version.
    pub server_version: String,
}

/// A step as it is written.
#[derive(Debug, Clone)]
pub struct Step {
    /// Which phase.
    pub at: PhaseOf,
    /// From 1.
    pub ordinal: i32,
    /// The hash of the lock line.
    pub line_sha256: String,
    /// The hash of the statement as it stands.
    pub raw_sha256: String,
    /// The hash of it without comments and whitespace.
    pub sha256: String,
    /// The file, as it is told.
    pub file: String,
    /// From 1.
    pub line: i32,
    /// The statement, as it stands.
    pub statement: String,
    /// Its class when it ran.
    pub class: String,
}

/// Writes a step's state, in the caller's fenced transaction. What is applied stays so.
pub async fn write(
    client: &impl GenericClient,
    step: &Step,
    state: StepState,
    who: &Who,
    sqlstate: Option<&str>,
    said: Option<&str>,
) -> Result<(), LedgerError> {
    let (change, phase) = parts(&step.at);
    let written = client
        .execute(
            &*who.ledger.sql(include_str!("../../sql/ledger/step.sql")),
            &[
                &change,
                &phase,
                &step.ordinal,
                &state.name(),
                &step.line_sha256,
                &step.raw_sha256,
                &step.sha256,
                &step.file,
                &step.line,
                &step.statement,
                &step.class,
                &who.epoch,
                &who.run,
                &who.by,
                &who.release,
                &who.server_version,
                &sqlstate,
                &said,
            ],
        )
        .await?;
    if written == 0 {
        return Err(LedgerError::Unreadable {
            what: format!("{}#{} as applied already", step.at, step.ordinal),
        });
    }
    Ok(())
}

fn parts(at: &PhaseOf) -> (String, String) {
    let (id, phase): (&ChangeId, Phase) = (&at.id, at.phase);
    (id.to_string(), phase.to_string())
}
