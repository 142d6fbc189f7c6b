//! Executes the lock from nothing: phase by phase, statement by statement.
//!
//! No gates and no ladder: nobody else is in the database. A concurrent build is one here too, since it needs no other reason
//! to be tried.

use aegis_backfill::sync::{Sides, SyncError};
use aegis_catalog::quote;
use aegis_ddl::Form;
use tokio_postgres::Client;
use tokio_postgres::error::SqlState;

use super::{ShadowError, prepare};
use crate::change::{Change, Part, Phase, SqlFile};
use crate::set::Set;

/// How much of a statement is told.
const SHOWN_CHARS: usize = 120;

/// Replays every line of the lock into an empty database.
pub async fn replay(client: &Client, set: &Set) -> Result<(), ShadowError> {
    prepare::prepare(client, set).await?;
    for (line, change) in set.lines() {
        apply(client, change, line.at.phase).await?;
    }
    Ok(())
}

/// Roles and session for [`apply`], in a database that may have something.
pub async fn ready(client: &Client, set: &Set) -> Result<(), ShadowError> {
    prepare::session(client).await?;
    prepare::roles(client, set).await
}

/// Executes one phase, and leaves the session as it was at the start.
pub async fn apply(client: &Client, change: &Change, phase: Phase) -> Result<(), ShadowError> {
    let done = execute(client, change, phase).await;
    // The first error is what is told; a lost session has no settings.
    let ended = prepare::session(client).await;
    done.and(ended)
}

async fn execute(client: &Client, change: &Change, phase: Phase) -> Result<(), ShadowError> {
    if !makes_its_schema(change, phase) {
        prepare::schema(client, change).await?;
    }
    let mut session = format!("SET search_path = {}, pg_catalog", quote(&change.schema));
    if let Some(role) = &change.run_as {
        session.push_str("; SET ROLE ");
        session.push_str(&quote(role));
    }
    client
        .batch_execute(&session)
        .await
        .map_err(ShadowError::Sql)?;
    for part in change.parts(phase) {
        match part {
            Part::Sql { file, .. } => {
                let atomic = phase == Phase::Expand
                    && change.expand.as_ref().is_some_and(|expand| expand.atomic);
                let of = format!("{}:{phase}", change.id);
                run_file(client, &file.path, &of, &file.text, atomic).await?;
            }
            Part::Sync(_) | Part::EndSync(_) => sync(client, change, part).await?,
            // Nothing is in it to move or to count.
            Part::Backfill(_) | Part::Reconcile(_) => {}
        }
    }
    Ok(())
}

/// Makes the generated trigger, or takes it away.
async fn sync(client: &Client, change: &Change, part: Part<'_>) -> Result<(), ShadowError> {
    let Some(rule) = change.sync_rule() else {
        return Ok(());
    };
    let of_sync = |error: SyncError| ShadowError::Data {
        change: change.path.clone(),
        what: "[sync]",
        said: error.to_string(),
    };
    let statements = if matches!(part, Part::EndSync(_)) {
        rule.drop_statements()
    } else {
        let sides = Sides::read(client, &rule).await.map_err(of_sync)?;
        let pinned = sides.pin(client).await.map_err(of_sync)?;
        pinned.tried(client).await.map_err(of_sync)?;
        pinned.create()
    };
    for statement in statements {
        client
            .batch_execute(&statement)
            .await
            .map_err(|error| of_sync(SyncError::Sql(error)))?;
    }
    Ok(())
}

/// Whether the phase begins with nothing to stand in.
pub(crate) fn makes_its_schema(change: &Change, phase: Phase) -> bool {
    let makes = |file: &SqlFile| {
        aegis_ddl::read(&file.text).is_ok_and(|script| {
            script.statements.iter().any(
                |statement| matches!(&statement.form, Form::CreateSchema { name } if *name == change.schema),
            )
        })
    };
    change
        .parts(phase)
        .into_iter()
        .any(|part| matches!(part, Part::Sql { file, .. } if makes(file)))
}

/// Executes a file, one statement after the other.
pub(super) async fn run_file(
    client: &Client,
    file: &str,
    of: &str,
    text: &str,
    atomic: bool,
) -> Result<(), ShadowError> {
    let script = aegis_ddl::read(text).map_err(|source| ShadowError::Syntax {
        file: file.to_owned(),
        source,
    })?;
    let (begin, end) = ("BEGIN", "COMMIT");
    if atomic {
        client
            .batch_execute(begin)
            .await
            .map_err(ShadowError::Sql)?;
    }
    for statement in &script.statements {
        if let Err(error) = client.batch_execute(&statement.text).await {
            let refused = refused(&error, file, of, statement);
            if atomic {
                client
                    .batch_execute("ROLLBACK")
                    .await
                    .map_err(ShadowError::Sql)?;
            }
            return Err(refused);
        }
    }
    if atomic {
        client.batch_execute(end).await.map_err(ShadowError::Sql)?;
    }
    Ok(())
}

fn refused(
    error: &tokio_postgres::Error,
    file: &str,
    of: &str,
    statement: &aegis_ddl::Statement,
) -> ShadowError {
    let (said, code) = match error.as_db_error() {
        Some(said) => (
            format!("{} ({})", said.message(), said.code().code()),
            Some(said.code().clone()),
        ),
        None => (error.to_string(), None),
    };
    let hint = code.and_then(|code| {
        let text = if code == SqlState::UNDEFINED_OBJECT || code == SqlState::FEATURE_NOT_SUPPORTED
        {
            "what the platform gives (roles, extensions) stands in shadow.sql beside migrations.lock; an extension that this machine has not: --clone-url"
        } else if code == SqlState::INSUFFICIENT_PRIVILEGE {
            "run_as has no right to it; what the platform grants stands in shadow.sql beside migrations.lock"
        } else {
            return None;
        };
        Some(text.to_owned())
    });
    ShadowError::Statement {
        file: file.to_owned(),
        line: statement.line,
        of: of.to_owned(),
        statement: shortened(&statement.normalised()),
        said,
        hint,
    }
}

/// Enough of a statement to know it again.
fn shortened(text: &str) -> String {
    let mut short: String = text.chars().take(SHOWN_CHARS).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}
