//! `dev`: a developer's database follows the folder, also after an edit.
//!
//! Invariants: only a database that a person has marked, by its name, is touched; what is not sealed is applied like what is; a
//! phase that broke off is never taken for applied.
//!
//! Never: a database that somebody else needs. What is in the schemas of the changes is dropped when a change was edited.

use aegis_catalog::quote;
use tokio_postgres::Client;

use crate::baseline::{self, BaselineError};
use crate::change::PhaseOf;
use crate::lock::LockFile;
use crate::set::Set;
use crate::shadow::{self, ShadowError};
use crate::standing::{State, recorded, standing};

/// What was done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Done {
    /// Phases that were applied.
    pub applied: Vec<PhaseOf>,
    /// Whether everything was dropped first, and why.
    pub redone: Option<String>,
}

/// Why it was not.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DevError {
    /// Nobody has marked it.
    #[error(
        "the database {database} is not marked dev: what is in the schemas {schemas} may be dropped there; if it is yours alone, add --mark {database}"
    )]
    NotMarked {
        /// Its name.
        database: String,
        /// What may be dropped.
        schemas: String,
    },
    /// Another one was named.
    #[error("--mark {given} does not name this database, which is {database}; nothing was done")]
    OtherName {
        /// What was given.
        given: String,
        /// Its name.
        database: String,
    },
    /// The ledger.
    #[error(transparent)]
    Baseline(#[from] BaselineError),
    /// A statement.
    #[error(transparent)]
    Shadow(#[from] ShadowError),
    /// The server.
    #[error("the database refused: {0}")]
    Sql(#[from] tokio_postgres::Error),
}

impl DevError {
    /// The exit code of `aegis migrate`.
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::NotMarked { .. } | Self::OtherName { .. } => 17,
            Self::Baseline(error) => error.exit_code(),
            Self::Shadow(error) => error.exit_code(),
            Self::Sql(_) => 20,
        }
    }
}

/// The set with a line for everything that is in the folder, as it is now.
pub fn as_written(set: &Set) -> Set {
    let mut written = set.clone();
    let mut lock = LockFile::default();
    let sealed: Vec<PhaseOf> = set.lock.lines.iter().map(|line| line.at.clone()).collect();
    for at in sealed.into_iter().chain(set.unsealed()) {
        let sha256 = set
            .changes
            .get(&at.id)
            .and_then(|change| change.sha256(at.phase));
        if let Some(sha256) = sha256 {
            lock.append(at, sha256);
        }
    }
    written.lock = lock;
    written
}

/// Brings a marked database to what the folder says. `mark` is the database's name, by which a person marks it.
pub async fn follow(
    client: &mut Client,
    set: &Set,
    mark: Option<&str>,
    actor: &str,
) -> Result<Done, DevError> {
    let set = as_written(set);
    let epoch = enter(client, &set, mark, actor).await?;
    let stands = standing(&set, &recorded(&*client).await?);
    let mut redone = None;
    let edited = stands
        .lines
        .iter()
        .find(|line| matches!(line.state, State::Edited { .. } | State::Partly { .. }));
    if let Some(line) = edited {
        redone = Some(format!("{} was edited, or broke off", line.line.at));
    } else if let Some(at) = stands.unknown.first() {
        redone = Some(format!("{at} is not in the folder any more"));
    } else if stands.version()
        < stands
            .lines
            .iter()
            .filter(|line| line.state.is_done())
            .count()
    {
        redone = Some("a change came before one that was applied".to_owned());
    }
    if redone.is_some() {
        forget(client, &set).await?;
    }
    let mut applied = Vec::new();
    shadow::ready(client, &set).await?;
    for (number, (line, change)) in set.lines().enumerate() {
        let done = stands
            .lines
            .get(number)
            .is_some_and(|line| line.state.is_done());
        if done && redone.is_none() {
            continue;
        }
        let (id, phase) = (line.at.id.as_str(), line.at.phase.word());
        client
            .execute(
                include_str!("../../sql/dev/begin.sql"),
                &[&id, &phase, &epoch],
            )
            .await?;
        shadow::apply(client, change, line.at.phase).await?;
        client
            .execute(
                include_str!("../../sql/dev/end.sql"),
                &[&id, &phase, &line.sha256],
            )
            .await?;
        applied.push(line.at.clone());
    }
    Ok(Done { applied, redone })
}

/// The ledger's epoch, in a database that is marked.
async fn enter(
    client: &mut Client,
    set: &Set,
    mark: Option<&str>,
    actor: &str,
) -> Result<i64, DevError> {
    let row = client
        .query_one("SELECT current_database()::text", &[])
        .await?;
    let database: String = row.get(0);
    if let Some(given) = mark.filter(|given| *given != database) {
        return Err(DevError::OtherName {
            given: given.to_owned(),
            database,
        });
    }
    let transaction = client.transaction().await?;
    let taken = baseline::take(&transaction, actor).await?;
    if mark.is_some() {
        transaction
            .execute(include_str!("../../sql/dev/mark.sql"), &[])
            .await?;
    }
    let row = transaction
        .query_one(include_str!("../../sql/dev/is_dev.sql"), &[])
        .await?;
    if !row.get::<_, bool>(0) {
        return Err(DevError::NotMarked {
            database,
            schemas: shadow::schemas(set).join(", "),
        });
    }
    transaction.commit().await?;
    Ok(taken.epoch())
}

/// Drops what the changes made.
async fn forget(client: &mut Client, set: &Set) -> Result<(), DevError> {
    let transaction = client.transaction().await?;
    transaction
        .batch_execute(include_str!("../../sql/dev/forget.sql"))
        .await?;
    for schema in shadow::schemas(set) {
        let name = quote(&schema);
        transaction
            .batch_execute(&format!("DROP SCHEMA IF EXISTS {name} CASCADE"))
            .await?;
        if schema == "public" {
            transaction.batch_execute("CREATE SCHEMA public").await?;
        }
    }
    transaction.commit().await?;
    Ok(())
}
