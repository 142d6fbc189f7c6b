//! What people tell a job, and how it stands: rows of the target, so that both hold without a runner and after a kill.
//!
//! Invariants: a state that was told holds when the call returns (no batch is committed after a pause); each move is kept with who and
//! why; what cannot be told says how it stands.

use serde::Serialize;
use tokio_postgres::{GenericClient, Row};

use super::progress::Progress;

/// What a person wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Command {
    /// No more batches until it is resumed; its runner stays and waits.
    Pause,
    /// Goes on.
    Resume,
    /// It ends. What was committed stays.
    Cancel,
    /// A failed or cancelled one may run again, its failed rows first.
    Retry,
    /// The same from the first row on: its cursors and failed rows go.
    Restart,
}

impl Command {
    /// As it is typed.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pause => "pause",
            Self::Resume => "resume",
            Self::Cancel => "cancel",
            Self::Retry => "retry",
            Self::Restart => "retry --restart",
        }
    }

    const fn sql(self) -> &'static str {
        match self {
            Self::Pause => include_str!("../../sql/control/pause.sql"),
            Self::Resume => include_str!("../../sql/control/resume.sql"),
            Self::Cancel => include_str!("../../sql/control/cancel.sql"),
            Self::Retry => include_str!("../../sql/control/retry.sql"),
            Self::Restart => include_str!("../../sql/control/restart.sql"),
        }
    }

    /// The state in which it has nothing to do.
    const fn reached(self) -> &'static str {
        match self {
            Self::Pause => "paused",
            Self::Resume => "running",
            Self::Cancel => "cancelled",
            Self::Retry | Self::Restart => "",
        }
    }
}

/// How a job stands.
#[derive(Debug, Clone, Serialize)]
pub struct Status {
    /// The change.
    pub change: String,
    /// `running`, `paused`, `cancelled`, `failed`, `done`.
    pub state: String,
    /// Who moved it last.
    pub state_by: String,
    /// Why.
    pub state_reason: String,
    /// The session that runs it; none: nobody does.
    pub runner: Option<String>,
    /// Why it does not move now.
    pub waiting: Option<String>,
    /// What was in the way.
    pub error: Option<String>,
    /// Rows that could not be moved.
    pub failed_rows: i64,
    /// Tables with rows, and how many of them are done.
    pub leaves: i64,
    /// Those that are done.
    pub leaves_done: i64,
    /// The fence.
    pub epoch: i64,
    /// Rows of the next batch.
    pub batch_rows: i32,
    /// Seconds since its row was written last.
    pub silent_s: i64,
    /// What it has done.
    pub progress: Progress,
}

/// Why a command was not obeyed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ControlError {
    /// There is no such job.
    #[error(
        "no backfill of {change} has begun in this database; next: `aegis migrate backfill run {change}`"
    )]
    NoJob {
        /// The change.
        change: String,
    },
    /// It stands elsewhere.
    #[error(
        "the backfill of {change} is {state}: it cannot be told to {command}{}",
        instead(state, command)
    )]
    NotNow {
        /// The change.
        change: String,
        /// How it stands.
        state: String,
        /// What was told.
        command: &'static str,
    },
    /// The database.
    #[error(transparent)]
    Database(#[from] tokio_postgres::Error),
}

/// What may be told instead.
fn instead(state: &str, command: &str) -> &'static str {
    if state == "done" && command == Command::Retry.name() {
        "; `retry --restart` runs it again, from the first row on"
    } else {
        ""
    }
}

/// Tells a job. True: it moved; false: it stood so already.
///
/// # Errors
/// See [`ControlError`].
pub async fn tell(
    client: &impl GenericClient,
    change: &str,
    command: Command,
    by: &str,
    reason: &str,
) -> Result<bool, ControlError> {
    let moved = client
        .query_opt(command.sql(), &[&change, &by, &reason])
        .await?;
    if moved.is_some() {
        return Ok(true);
    }
    let Some(row) = client
        .query_opt(include_str!("../../sql/job/look.sql"), &[&change])
        .await?
    else {
        return Err(ControlError::NoJob {
            change: change.to_owned(),
        });
    };
    let state: String = row.try_get("state")?;
    if state == command.reached() {
        return Ok(false);
    }
    Err(ControlError::NotNow {
        change: change.to_owned(),
        state,
        command: command.name(),
    })
}

/// How the jobs of a database stand; only one where a change is named. A database without such a table has none.
pub async fn status(
    client: &impl GenericClient,
    change: Option<&str>,
) -> Result<Vec<Status>, tokio_postgres::Error> {
    let made: bool = client
        .query_one(include_str!("../../sql/control/exists.sql"), &[])
        .await?
        .try_get(0)?;
    if !made {
        return Ok(Vec::new());
    }
    let rows = client
        .query(include_str!("../../sql/control/status.sql"), &[&change])
        .await?;
    rows.iter().map(read).collect()
}

/// A row that could not be moved.
#[derive(Debug, Clone, Serialize)]
pub struct FailedRow {
    /// Its table.
    pub leaf: String,
    /// Its key.
    pub key: Vec<String>,
    /// The server's code.
    pub sqlstate: String,
    /// What the server said.
    pub said: String,
    /// How often it was tried.
    pub attempts: i32,
}

/// Rows that could not be moved, at most `limit`.
pub async fn failed_rows(
    client: &impl GenericClient,
    change: &str,
    limit: i64,
) -> Result<Vec<FailedRow>, tokio_postgres::Error> {
    let rows = client
        .query(
            include_str!("../../sql/job/failures.sql"),
            &[&change, &limit],
        )
        .await?;
    rows.iter()
        .map(|row| {
            Ok(FailedRow {
                leaf: row.try_get("leaf")?,
                key: row.try_get("key")?,
                sqlstate: row.try_get("sqlstate")?,
                said: row.try_get("said")?,
                attempts: row.try_get("attempts")?,
            })
        })
        .collect()
}

fn read(row: &Row) -> Result<Status, tokio_postgres::Error> {
    let state: String = row.try_get("state")?;
    let progress = Progress::of(
        row.try_get("rows_seen")?,
        row.try_get("rows_changed")?,
        row.try_get("rows_estimated")?,
        row.try_get("worked_ms")?,
        row.try_get("waited_ms")?,
        state == "done",
    );
    Ok(Status {
        change: row.try_get("change")?,
        state_by: row.try_get("state_by")?,
        state_reason: row.try_get("state_reason")?,
        runner: row.try_get("runner")?,
        waiting: row.try_get("waiting")?,
        error: row.try_get("error")?,
        failed_rows: row.try_get("failed_rows")?,
        leaves: row.try_get("leaves")?,
        leaves_done: row.try_get("leaves_done")?,
        epoch: row.try_get("epoch")?,
        batch_rows: row.try_get("batch_rows")?,
        silent_s: row.try_get("silent_s")?,
        state,
        progress,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_told_names_what_can() {
        let says = |state: &str, command: Command| {
            let (change, state) = ("c".to_owned(), state.to_owned());
            ControlError::NotNow {
                change,
                state,
                command: command.name(),
            }
            .to_string()
        };
        let done = says("done", Command::Retry);
        assert!(done.contains("`retry --restart` runs it again"), "{done}");
        for (state, command) in [("done", Command::Cancel), ("running", Command::Retry)] {
            let plain = says(state, command);
            assert!(!plain.contains("--restart"), "{plain}");
        }
        // A second restart finds no job any more: the first has taken it away.
        let none = ControlError::NoJob {
            change: "c".to_owned(),
        };
        let none = none.to_string();
        assert!(
            none.contains("next: `aegis migrate backfill run c`"),
            "{none}"
        );
    }
}
