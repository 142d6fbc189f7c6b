//! One attempt at a contract: from the shut door to the drop, or to the door that was opened again.

use jiff::Timestamp;
use serde_json::Value;
use tokio_postgres::GenericClient;
use tokio_postgres::error::SqlState;

use super::door::{self, Door, DoorError, Grant};

/// An attempt that is under way, or done.
#[derive(Debug, Clone)]
pub struct Attempt {
    /// The change's id.
    pub change: String,
    /// 1 for the first.
    pub number: i32,
    /// When the door was shut, by the database's clock.
    pub closed_at: Timestamp,
    /// Who shut it.
    pub closed_by: String,
    /// For which release.
    pub release: String,
    /// What was taken.
    pub taken: Vec<Grant>,
    /// When the old form went; none while it is there.
    pub done_at: Option<Timestamp>,
    /// The database's time of this reading.
    pub now: Timestamp,
}

/// Why an attempt does not begin or end.
#[derive(Debug, thiserror::Error)]
pub enum AttemptError {
    /// It is shut already.
    #[error(
        "the contract of {change} is closed already (attempt {attempt}); go on with `contract observe`, or `contract reopen`"
    )]
    Closed {
        /// The change.
        change: String,
        /// The attempt.
        attempt: i32,
    },
    /// It is not shut.
    #[error(
        "the contract of {change} is not closed; begin with `aegis migrate contract close {change}`"
    )]
    NotClosed {
        /// The change.
        change: String,
    },
    /// The old form is gone.
    #[error(
        "the contract of {change} has run at {at}: what it dropped cannot come back by reopening"
    )]
    Done {
        /// The change.
        change: String,
        /// When.
        at: Timestamp,
    },
    /// The door.
    #[error(transparent)]
    Door(#[from] DoorError),
    /// The database.
    #[error(transparent)]
    Database(#[from] tokio_postgres::Error),
    /// A row that this release does not understand.
    #[error(
        "aegis_migrate.contract holds what this release cannot read: {0}; a newer release wrote it"
    )]
    Unreadable(String),
}

impl Attempt {
    /// The one that is under way or done; none when the door stands open.
    pub async fn find(
        client: &impl GenericClient,
        change: &str,
    ) -> Result<Option<Self>, AttemptError> {
        let row = client
            .query_opt(include_str!("../../sql/contract/attempt.sql"), &[&change])
            .await?;
        let Some(row) = row else { return Ok(None) };
        let taken: Value = row.try_get("taken")?;
        Ok(Some(Self {
            change: change.to_owned(),
            number: row.try_get("attempt")?,
            closed_at: row.try_get("closed_at")?,
            closed_by: row.try_get("closed_by")?,
            release: row.try_get("release")?,
            taken: serde_json::from_value(taken)
                .map_err(|error| AttemptError::Unreadable(error.to_string()))?,
            done_at: row.try_get("done_at")?,
            now: row.try_get("now")?,
        }))
    }

    /// The one that is under way.
    pub async fn under_way(
        client: &impl GenericClient,
        change: &str,
    ) -> Result<Self, AttemptError> {
        let found = Self::find(client, change)
            .await?
            .ok_or_else(|| AttemptError::NotClosed {
                change: change.to_owned(),
            })?;
        match found.done_at {
            None => Ok(found),
            Some(at) => Err(AttemptError::Done {
                change: change.to_owned(),
                at,
            }),
        }
    }
}

/// Shuts the door and begins an attempt, in the caller's transaction. The floor of the schema is raised there too.
pub async fn close(
    client: &impl GenericClient,
    change: &str,
    door: Option<&Door<'_>>,
    by: &str,
    release: &str,
) -> Result<Attempt, AttemptError> {
    if let Some(found) = Attempt::find(client, change).await? {
        return Err(match found.done_at {
            Some(at) => AttemptError::Done {
                change: change.to_owned(),
                at,
            },
            None => AttemptError::Closed {
                change: change.to_owned(),
                attempt: found.number,
            },
        });
    }
    let taken = match door {
        Some(door) => door::shut(client, door).await?,
        None => Vec::new(),
    };
    let kept = serde_json::to_value(&taken)
        .map_err(|error| AttemptError::Unreadable(error.to_string()))?;
    let row = client
        .query_one(
            include_str!("../../sql/contract/close.sql"),
            &[&change, &by, &release, &kept],
        )
        .await
        .map_err(|error| {
            if error.code() == Some(&SqlState::UNIQUE_VIOLATION) {
                AttemptError::Closed {
                    change: change.to_owned(),
                    attempt: 0,
                }
            } else {
                error.into()
            }
        })?;
    let closed_at = row.try_get("closed_at")?;
    Ok(Attempt {
        change: change.to_owned(),
        number: row.try_get("attempt")?,
        closed_at,
        closed_by: by.to_owned(),
        release: release.to_owned(),
        taken,
        done_at: None,
        now: closed_at,
    })
}

/// Opens the door again and ends the attempt, in the caller's transaction.
pub async fn reopen(
    client: &impl GenericClient,
    change: &str,
    by: &str,
    reason: &str,
) -> Result<Attempt, AttemptError> {
    let attempt = Attempt::under_way(client, change).await?;
    client
        .query_opt(
            include_str!("../../sql/contract/reopen.sql"),
            &[&change, &attempt.number, &by, &reason],
        )
        .await?
        .ok_or_else(|| AttemptError::NotClosed {
            change: change.to_owned(),
        })?;
    door::open(client, &attempt.taken).await?;
    Ok(attempt)
}
