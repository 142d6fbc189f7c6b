//! The controlled clock: time passes by moving what is stored, and housekeeping is done at once.
//!
//! Invariant: time passes for the database as a whole, so what was after something stays after it.

use std::time::Duration;

use tokio_postgres::Client;
use uuid::Uuid;

use crate::error::HarnessError;

/// Lets time pass. `dead`: workers that do not renew any more.
pub(crate) async fn advance(
    admin: &Client,
    by: Duration,
    dead: &[Uuid],
) -> Result<(), HarnessError> {
    let ms = i64::try_from(by.as_millis()).unwrap_or(i64::MAX);
    asked(
        "let time pass",
        admin
            .execute("SELECT aegis_harness.advance($1, $2)", &[&ms, &dead])
            .await,
    )?;
    keep_house(admin).await
}

/// What is due is done now: as a worker does it at its next tick, for a worker that has no lanes.
pub(crate) async fn keep_house(admin: &Client) -> Result<(), HarnessError> {
    asked(
        "keep house",
        admin
            .execute("SELECT FROM aegis.tick($1)", &[&Uuid::nil()])
            .await,
    )?;
    Ok(())
}

/// Is this worker lost, and everything that it held given back?
pub(crate) async fn is_lost(admin: &Client, worker: Uuid) -> Result<bool, HarnessError> {
    let row = asked(
        "look at a worker",
        admin
            .query_one(
                "SELECT NOT EXISTS (SELECT FROM aegis.worker WHERE id = $1 AND state <= 1)
                    AND NOT EXISTS (SELECT FROM aegis.task WHERE owner = $1 AND state = 2)",
                &[&worker],
            )
            .await,
    )?;
    asked("look at a worker", row.try_get(0))
}

/// Ends the connections of a dead process, and returns when there are none.
pub(crate) async fn hang_up(admin: &Client, application: &str) -> Result<(), HarnessError> {
    asked(
        "end a dead worker's connections",
        admin
            .execute(
                "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity
                    WHERE datname = current_database() AND application_name = $1",
                &[&application],
            )
            .await,
    )?;
    Ok(())
}

fn asked<T>(
    what: &'static str,
    answer: Result<T, tokio_postgres::Error>,
) -> Result<T, HarnessError> {
    answer.map_err(|source| HarnessError::Database { what, source })
}
