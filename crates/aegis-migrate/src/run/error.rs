//! Why a run ends early, with the exit codes of the design.

use aegis_backfill::job::JobError;
use aegis_backfill::pass::PassError;
use aegis_backfill::sync::SyncError;

use crate::change::Problems;
use crate::ledger::LedgerError;
use crate::mutex::MutexError;
use crate::session::SessionError;
use crate::standing::Missing;
use crate::structure::StructureError;

/// Why a run did not do all that it was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The folder.
    #[error(transparent)]
    Folder(#[from] Problems),
    /// The session.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// The mutex.
    #[error(transparent)]
    Mutex(#[from] MutexError),
    /// The ledger.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The structure.
    #[error(transparent)]
    Structure(#[from] StructureError),
    /// The catalog.
    #[error(transparent)]
    Catalog(#[from] aegis_catalog::Error),
    /// What was applied is not what stands in the folder.
    #[error(
        "history was edited: {0}. What was applied cannot be taken back by editing it; restore the file, and make a new change. An edit that was reviewed, as of a step that failed, is accepted by `aegis migrate repair accept-checksum ID:PHASE --reason TEXT`"
    )]
    Edited(String),
    /// A line before one that is applied.
    #[error("{0} would run out of order: a later line of its phase is applied. Give it a newer id")]
    OutOfOrder(String),
    /// Somebody builds there, without the mutex.
    #[error(
        "{holder} builds on {what} (an index, say); waited {waited_s} s. It is let be: run again when it is done, `aegis migrate status` tells how far it is"
    )]
    Builds {
        /// A change, or a relation.
        what: String,
        /// Who.
        holder: String,
        /// How long was waited.
        waited_s: u64,
    },
    /// Something must come first.
    #[error("{0}")]
    Requires(Box<Missing>),
    /// The database is newer, and lacks lines of this folder.
    #[error(
        "the database knows {unknown}, which this folder does not, and lacks {lacks}: two histories; use the newer folder"
    )]
    AheadRefused {
        /// What only the database knows.
        unknown: String,
        /// What only the folder knows.
        lacks: String,
    },
    /// The database is no older or newer state of this folder.
    #[error(
        "the database had {unknown}, which this folder does not know, before {after}, which it does: two histories; use the folder that has both"
    )]
    TwoHistories {
        /// What only the database knows.
        unknown: String,
        /// What both know, and what came later.
        after: String,
    },
    /// A folder that is older than a contract.
    #[error(
        "the contract of {0} is closed here, and this folder does not know that change: its programs use what was taken. Use a newer one, or `aegis migrate contract reopen {0}` as long as nothing was dropped"
    )]
    TooOld(String),
    /// A statement that may not run in this phase.
    #[error("{file}:{line}: class {class} may not run in phase {phase}: {why}")]
    Class {
        /// Its file.
        file: String,
        /// From 1.
        line: usize,
        /// Its class, decided under the locks.
        class: String,
        /// The phase.
        phase: String,
        /// Why, and what to do.
        why: String,
    },
    /// The locks could not be had.
    #[error(
        "{file}:{line}: the locks could not be had in {tries} tries ({said}); nothing was changed. Look who holds them (pg_blocking_pids), and run again"
    )]
    LockBudget {
        /// Its file.
        file: String,
        /// From 1.
        line: usize,
        /// How often it was tried.
        tries: u32,
        /// What the server said last.
        said: String,
    },
    /// What a step has left cannot be told.
    #[error("{file}:{line}: {why}")]
    Unknown {
        /// Its file.
        file: String,
        /// From 1.
        line: usize,
        /// What is known, and what to do.
        why: String,
    },
    /// A name that exists and is something else.
    #[error("{file}:{line}: {why}")]
    Shape {
        /// Its file.
        file: String,
        /// From 1.
        line: usize,
        /// Both shapes.
        why: String,
    },
    /// The server refused a statement.
    #[error("{file}:{line}: {said} ({sqlstate})")]
    Sql {
        /// Its file.
        file: String,
        /// From 1.
        line: usize,
        /// What the server said.
        said: String,
        /// Its code.
        sqlstate: String,
    },
    /// A contract that could not be shown to be safe. Nothing was changed.
    #[error("{0}")]
    Evidence(String),
    /// Two sides that no trigger can keep alike.
    #[error("{change}/change.toml: {source}")]
    Sync {
        /// The change.
        change: String,
        /// What does not fit.
        source: SyncError,
    },
    /// The backfill.
    #[error(transparent)]
    Backfill(#[from] JobError),
    /// The reconciliation.
    #[error(transparent)]
    Pass(#[from] PassError),
    /// It counted something.
    #[error("the reconciliation of {change} is not zero: {counted}; {way_out}")]
    NotZero {
        /// The change.
        change: String,
        /// What was counted.
        counted: String,
        /// What to do.
        way_out: String,
    },
    /// A part that this release does not run.
    #[error("{what} of {change} is not run by this release; nothing after it was run")]
    NotRun {
        /// The change.
        change: String,
        /// Which part.
        what: &'static str,
    },
    /// The connection was lost while a command of the runner was in the air.
    #[error(
        "the connection was lost ({said}) and the answer to {what} did not arrive: it is done whole or not at all. Run again: the next run looks, and goes on from there"
    )]
    NoAnswer {
        /// What was sent.
        what: String,
        /// What the connection said.
        said: String,
    },
    /// SIGTERM or Ctrl-C.
    #[error("interrupted; what was under way was cancelled, and the ledger says how it stands")]
    Interrupted,
    /// The session.
    #[error("a command of the runner was not done")]
    Database(#[from] tokio_postgres::Error),
}

impl RunError {
    /// With everything below it, each said once.
    pub fn whole(&self) -> String {
        super::lost::whole_of(self)
    }

    /// Whether the connection was lost where nothing was in the air that could be half done.
    pub fn is_lost(&self) -> bool {
        super::lost::is_lost_below(self)
    }

    /// The exit code of the design page.
    pub fn exit_code(&self) -> u8 {
        match self {
            lost if lost.is_lost() => 17,
            Self::Folder(problems) => problems.exit_code(),
            Self::NotRun { .. }
            | Self::OutOfOrder(_)
            | Self::Sync {
                source:
                    SyncError::NoTable { .. }
                    | SyncError::NoColumn { .. }
                    | SyncError::Column { .. }
                    | SyncError::Expression { .. }
                    | SyncError::Unresolved { .. },
                ..
            }
            | Self::Pass(PassError::Asked(_) | PassError::Word { .. }) => 2,
            Self::Mutex(MutexError::Busy { .. }) | Self::Builds { .. } => 10,
            Self::Edited(_) => 11,
            Self::Shape { .. } => 12,
            Self::Class { .. } => 13,
            Self::LockBudget { .. }
            | Self::Ledger(LedgerError::Locked { .. })
            | Self::Mutex(MutexError::Ledger(LedgerError::Locked { .. })) => 14,
            Self::Unknown { .. }
            | Self::NoAnswer { .. }
            | Self::Structure(StructureError::Unprovable { .. }) => 15,
            Self::Ledger(LedgerError::Fenced { .. }) => 16,
            Self::Session(_) | Self::Mutex(MutexError::NotHeld) => 17,
            Self::Evidence(_)
            | Self::NotZero { .. }
            | Self::Pass(PassError::Touched { .. } | PassError::OtherExpressions { .. }) => 18,
            Self::Backfill(error) => of_job(error),
            Self::AheadRefused { .. } | Self::TwoHistories { .. } | Self::TooOld(_) => 19,
            Self::Sync {
                source: SyncError::Untrusted { .. } | SyncError::Heirs { .. },
                ..
            }
            | Self::Requires(_)
            | Self::Ledger(LedgerError::Denied { .. })
            | Self::Mutex(MutexError::Ledger(LedgerError::Denied { .. }))
            | Self::Pass(PassError::Untrusted(_)) => 21,
            Self::Interrupted => 22,
            Self::Sql { .. }
            | Self::Sync { .. }
            | Self::Mutex(_)
            | Self::Ledger(_)
            | Self::Structure(_)
            | Self::Catalog(_)
            | Self::Pass(_)
            | Self::Database(_) => 20,
        }
    }
}

fn of_job(error: &JobError) -> u8 {
    match error {
        JobError::Busy { .. } => 10,
        JobError::OtherSpec { .. } => 11,
        JobError::Fenced { .. } => 16,
        JobError::Connect(_) => 17,
        JobError::NewSide { .. } => 18,
        JobError::Precondition(_) => 21,
        JobError::Cancelled { .. } => 22,
        _ => 20,
    }
}
