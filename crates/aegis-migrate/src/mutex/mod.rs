//! One runner at a time: a session advisory lock, polled, and the epoch that fences each write of the ledger.
//!
//! Invariants: nobody waits for the lock inside the server (a blocked waiter and a concurrent index build deadlock); getting it
//! proves that the holder before is gone, so the ledger's row has no time-out; the ledger is made after the lock is had, never
//! before.

use std::time::{Duration, Instant};

use aegis_backfill::Pause;
use tokio_postgres::{Client, GenericClient};

use crate::ledger::{self, Ledger, LedgerError, LedgerName, Who};
use crate::session::Direct;

/// Ends a session and waits for its end. $1 its process.
pub const TERMINATE: &str = include_str!("../../sql/mutex/terminate.sql");

const FIRST_PAUSE: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// The mutex, held.
#[derive(Debug)]
pub struct Held {
    /// The session that holds it. Lost with it.
    pub session: Direct,
    /// The ledger, with this run's epoch.
    pub ledger: Ledger,
    /// Who writes.
    pub who: Who,
    /// A second connection to the same database, from which builds are watched. Optional; it holds nothing.
    pub watch: Option<Client>,
    /// How long another run is waited for.
    pub(crate) wait: Duration,
    /// Others may have it: see [`Self::step_aside`].
    aside: bool,
}

/// Who holds the mutex, as far as the server tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// Its process.
    pub pid: i32,
    /// What it calls itself: `aegis migrate/RELEASE/RUN`.
    pub program: String,
    /// From where.
    pub client: String,
    /// What it is doing.
    pub state: String,
    /// Seconds since it connected.
    pub age_s: i64,
}

/// Why the mutex is not had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MutexError {
    /// Somebody else has it.
    #[error(
        "{holder} holds the mutex of this database's ledger; waited {waited_s} s. It goes by itself when that process ends; `aegis migrate unlock --terminate-holder` ends it"
    )]
    Busy {
        /// Who.
        holder: String,
        /// How long was waited.
        waited_s: u64,
    },
    /// The session does not hold what it was told it has.
    #[error(
        "the server said that the mutex is held, and does not show it for this session: something between here and the server spreads a session over several"
    )]
    NotHeld,
    /// The ledger.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The database.
    #[error("the mutex could not be asked for")]
    Database(#[source] tokio_postgres::Error),
}

/// Who a run is.
#[derive(Debug, Clone)]
pub struct RunName {
    /// Names this run.
    pub run: String,
    /// The person or the Job.
    pub by: String,
    /// The release that brings the folder.
    pub release: String,
}

impl RunName {
    /// As it stands in pg_stat_activity, which keeps 63 bytes.
    pub fn application_name(&self) -> String {
        let mut name = format!("aegis migrate/{}/{}", self.release, self.run);
        while name.len() > 63 {
            name.pop();
        }
        name
    }
}

impl Held {
    /// Polls for the mutex of an application's ledger for at most `bound`, then takes a new epoch.
    pub async fn take(
        session: Direct,
        name: &RunName,
        bound: Duration,
    ) -> Result<Self, MutexError> {
        Self::take_in(session, LedgerName::Application, name, bound).await
    }

    /// [`Self::take`] of any ledger.
    pub async fn take_in(
        session: Direct,
        of: LedgerName,
        name: &RunName,
        bound: Duration,
    ) -> Result<Self, MutexError> {
        poll(&session, of, bound).await?;
        let ledger = ledger::take(&session.client, of, &name.run, &name.application_name()).await?;
        let who = Who {
            ledger: of,
            epoch: ledger.epoch,
            run: name.run.clone(),
            by: name.by.clone(),
            release: name.release.clone(),
            server_version: session.version.clone(),
        };
        Ok(Self {
            session,
            ledger,
            who,
            watch: None,
            wait: bound,
            aside: false,
        })
    }

    /// Lets others have the mutex while this run does what needs none. Nothing of the ledger may be written until
    /// [`Self::step_back`].
    pub(crate) async fn step_aside(&mut self) -> Result<(), MutexError> {
        let unlocked: bool = self
            .session
            .client
            .query_one(
                include_str!("../../sql/mutex/unlock.sql"),
                &[&self.who.ledger.key()],
            )
            .await
            .and_then(|row| row.try_get(0))
            .map_err(MutexError::Database)?;
        self.aside = true;
        if unlocked {
            Ok(())
        } else {
            Err(MutexError::NotHeld)
        }
    }

    /// Whether others may have the mutex.
    pub(crate) const fn is_aside(&self) -> bool {
        self.aside
    }

    /// Polls for the mutex again, with a new epoch. What the ledger said before may not be true any more.
    pub(crate) async fn step_back(&mut self) -> Result<(), MutexError> {
        let of = self.who.ledger;
        poll(&self.session, of, self.wait).await?;
        self.aside = false;
        let name = RunName {
            run: self.who.run.clone(),
            by: self.who.by.clone(),
            release: self.who.release.clone(),
        };
        self.ledger = ledger::take(
            &self.session.client,
            of,
            &name.run,
            &name.application_name(),
        )
        .await?;
        self.who.epoch = self.ledger.epoch;
        Ok(())
    }

    /// Gives the mutex back. What goes wrong here hides no earlier error: it is told only.
    pub async fn release(self) {
        if self.aside {
            return;
        }
        let unlocked: Result<bool, _> = self
            .session
            .client
            .query_one(
                include_str!("../../sql/mutex/unlock.sql"),
                &[&self.who.ledger.key()],
            )
            .await
            .and_then(|row| row.try_get(0));
        match unlocked {
            Ok(true) => {}
            Ok(false) => tracing::error!("the mutex was not held any more when it was given back"),
            Err(error) => tracing::warn!(%error, "the mutex goes with the session"),
        }
    }
}

/// Polls for the mutex for at most `bound`.
async fn poll(session: &Direct, of: LedgerName, bound: Duration) -> Result<(), MutexError> {
    let started = Instant::now();
    let mut pause = Pause::growing(FIRST_PAUSE, PAUSE_MAX);
    while !try_lock(session, of).await? {
        if started.elapsed() >= bound {
            return Err(MutexError::Busy {
                holder: told(holder_in(session, of).await?),
                waited_s: started.elapsed().as_secs(),
            });
        }
        pause.wait().await;
    }
    let held: bool = session
        .client
        .query_one(include_str!("../../sql/mutex/held.sql"), &[&of.key()])
        .await
        .and_then(|row| row.try_get(0))
        .map_err(MutexError::Database)?;
    if held {
        Ok(())
    } else {
        Err(MutexError::NotHeld)
    }
}

async fn try_lock(session: &Direct, of: LedgerName) -> Result<bool, MutexError> {
    session
        .client
        .query_one(include_str!("../../sql/mutex/try.sql"), &[&of.key()])
        .await
        .and_then(|row| row.try_get(0))
        .map_err(MutexError::Database)
}

/// Who holds the mutex of an application's ledger. None: nobody.
pub async fn holder(session: &Direct) -> Result<Option<Holder>, MutexError> {
    holder_in(session, LedgerName::Application).await
}

/// [`holder`] of any ledger.
pub async fn holder_in(session: &Direct, of: LedgerName) -> Result<Option<Holder>, MutexError> {
    holder_seen(&session.client, of)
        .await
        .map_err(MutexError::Database)
}

/// [`holder_in`] for who has no proven session.
pub(crate) async fn holder_seen(
    client: &impl GenericClient,
    of: LedgerName,
) -> Result<Option<Holder>, tokio_postgres::Error> {
    let row = client
        .query_opt(include_str!("../../sql/mutex/holder.sql"), &[&of.key()])
        .await?;
    row.map(|row| {
        Ok(Holder {
            pid: row.try_get("pid")?,
            program: row.try_get("application_name")?,
            client: row.try_get("client")?,
            state: row.try_get("state")?,
            age_s: row.try_get("age_s")?,
        })
    })
    .transpose()
}

/// The holder in words, also where the server shows none.
pub(crate) fn told(holder: Option<Holder>) -> String {
    holder.map_or_else(
        || "a session that the server does not show".to_owned(),
        |one| one.to_string(),
    )
}

impl std::fmt::Display for Holder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "process {} ({} from {}, {}, connected {} s ago)",
            self.pid, self.program, self.client, self.state, self.age_s
        )
    }
}
