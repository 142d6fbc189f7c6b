//! Installing: the changes by the runner, then the number of the schema and the partitions.
//!
//! Invariants: one installer at a time, by the mutex of the engine's ledger; the number is raised only for lines that the ledger
//! has whole, in a transaction that the ledger fences; what was killed at any point is ended by the next install.

use std::time::Duration;

use aegis_migrate::change::Phase;
use aegis_migrate::ledger::{self, LedgerName};
use aegis_migrate::mutex::{Held, RunName};
use aegis_migrate::run::{Ladder, run};
use aegis_migrate::session::Direct;
use aegis_migrate::set::Set;
use aegis_migrate::standing::{Standing, recorded_in, standing};
use aegis_store::install::{INLINE_SINCE, OLD_STEPS, connect_direct, direct_parts};
use aegis_store::{Config, StoreError};
use tokio_postgres::{Client, Transaction};

use crate::error::SchemaError;
use crate::{old, set};

/// PostgreSQL 15.
const OLDEST: i32 = 150_000;

/// How long another installer is waited for.
const WAIT: Duration = Duration::from_mins(5);

/// What an install did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installed {
    /// Lines applied now, by their numbers.
    pub applied: Vec<i32>,
    /// The database's schema afterwards.
    pub schema: i32,
    /// Partitions made.
    pub partitions: i32,
}

/// Brings the database to this binary's schema and makes partitions for `days_ahead`. Idempotent. It needs the server itself, as
/// every change does: behind a pooler give the address around it.
///
/// # Errors
/// See [`SchemaError`].
pub async fn install(config: &Config, days_ahead: i32) -> Result<Installed, SchemaError> {
    install_set(config, &set::set()?, days_ahead).await
}

/// [`install`] of a given set: for the tests that show version N - 1 beside N.
///
/// # Errors
/// As [`install`].
pub async fn install_set(
    config: &Config,
    set: &Set,
    days_ahead: i32,
) -> Result<Installed, SchemaError> {
    // The store's own connection first: its errors say what a user of every other command is told.
    let mut client = connect_direct(config).await?;
    let row = client
        .query_one(include_str!("../sql/server.sql"), &[])
        .await?;
    let (number, version): (i32, String) = (row.try_get(0)?, row.try_get(1)?);
    if number < OLDEST {
        return Err(StoreError::ServerTooOld { found: version }.into());
    }
    old::take_over(&mut client, set, number).await?;
    drop(client);
    let name = RunName {
        run: uuid::Uuid::now_v7().simple().to_string()[20..].to_owned(),
        by: "aegis db install".to_owned(),
        release: env!("CARGO_PKG_VERSION").to_owned(),
    };
    let (postgres, tls) = direct_parts(config);
    let session = Direct::connect(postgres, tls, &name.application_name()).await?;
    let mut held = Held::take_in(session, LedgerName::Engine, &name, WAIT).await?;
    let done = under_mutex(&mut held, set, days_ahead).await;
    held.release().await;
    done
}

async fn under_mutex(
    held: &mut Held,
    set: &Set,
    days_ahead: i32,
) -> Result<Installed, SchemaError> {
    let (schema, min_schema) = numbers(&held.session.client).await?;
    let known = number(set.lock.lines.len());
    if known < min_schema {
        return Err(StoreError::BinaryTooOld { known, min_schema }.into());
    }
    // Without a whole install nobody has used it, whatever else is in this database.
    held.ledger.fresh &= schema == 0;
    let before = stands(&held.session.client, set).await?;
    if let Some(at) = before.lines.iter().position(is_edited) {
        let version = number(at + 1);
        return Err(StoreError::StepEdited { version }.into());
    }
    run(held, set, Phase::Expand, &Ladder::default(), &mut |_| {}).await?;
    let after = stands(&held.session.client, set).await?;
    let is_new = schema == 0;
    let who = held.who.clone();
    let transaction = held.session.client.transaction().await?;
    ledger::fence(&transaction, &who).await?;
    let (schema, partitions) = finish(&transaction, &after, is_new, days_ahead).await?;
    transaction.commit().await?;
    let newly = |at: &usize| !done(&before, *at) && done(&after, *at);
    Ok(Installed {
        applied: (0..after.lines.len())
            .filter(newly)
            .map(|at| number(at + 1))
            .collect(),
        schema,
        partitions,
    })
}

/// The number, for programs of every release, and the partitions.
async fn finish(
    transaction: &Transaction<'_>,
    stands: &Standing,
    is_new: bool,
    days_ahead: i32,
) -> Result<(i32, i32), SchemaError> {
    let version = stands.version();
    for (at, line) in stands.lines.iter().take(version).enumerate() {
        let (name, hash) = match OLD_STEPS.get(at) {
            Some(old) => (old.name, old.checksum),
            None => (line.line.at.id.as_str(), line.line.sha256.as_str()),
        };
        transaction
            .execute(
                include_str!("../sql/step.sql"),
                &[&number(at + 1), &name, &hash],
            )
            .await?;
    }
    transaction
        .execute(include_str!("../sql/raise.sql"), &[&number(version)])
        .await?;
    if is_new && number(version) >= INLINE_SINCE {
        // No older program has ever seen this database: it need not wait for a switch.
        transaction
            .execute(include_str!("../sql/switch_inline.sql"), &[])
            .await?;
    }
    let partitions = transaction
        .query_one(include_str!("../sql/partitions.sql"), &[&days_ahead])
        .await?
        .try_get(0)?;
    let schema = transaction
        .query_one(include_str!("../sql/numbers.sql"), &[])
        .await?
        .try_get(0)?;
    Ok((schema, partitions))
}

/// Schema and min_schema; zeros where there is none yet.
async fn numbers(client: &Client) -> Result<(i32, i32), SchemaError> {
    let there: bool = client
        .query_one(include_str!("../sql/numbers_there.sql"), &[])
        .await?
        .try_get(0)?;
    if !there {
        return Ok((0, 0));
    }
    let row = client
        .query_opt(include_str!("../sql/numbers.sql"), &[])
        .await?;
    row.map_or(Ok((0, 0)), |row| Ok((row.try_get(0)?, row.try_get(1)?)))
}

async fn stands(client: &Client, set: &Set) -> Result<Standing, SchemaError> {
    Ok(standing(
        set,
        &recorded_in(client, LedgerName::Engine).await?,
    ))
}

fn is_edited(line: &aegis_migrate::standing::Line) -> bool {
    matches!(line.state, aegis_migrate::standing::State::Edited { .. })
}

fn done(stands: &Standing, at: usize) -> bool {
    stands
        .lines
        .get(at)
        .is_some_and(|line| line.state.is_done())
}

fn number(lines: usize) -> i32 {
    i32::try_from(lines).unwrap_or(i32::MAX)
}
