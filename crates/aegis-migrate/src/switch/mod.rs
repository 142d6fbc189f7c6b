//! Which side of a change is read and written. Applications ask `aegis_migrate.switched(change)` and may keep the answer for
//! `cache_ttl_ms`, so a move counts only after that time.
//!
//! Invariants: rows are only added; a move is from the rev that its mover saw; the new side needs a zero pass of forward, or a person who
//! accepts what it counted by its number; a batch of the
//! change's backfill that began before a move is not committed after it; nobody moves back to a side whose door is shut, or that is gone.

mod leave;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use tokio_postgres::error::SqlState;
use tokio_postgres::{GenericClient, Row};

use crate::change::Change;
use crate::contract::fact::Fact;
use crate::contract::reconciled::WrittenNew;

/// A side of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// The form from before the change.
    Old,
    /// The form that it brings.
    New,
}

impl Side {
    /// As it stands in files and rows.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Old => "old",
            Self::New => "new",
        }
    }

    /// The one with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Old, Self::New]
            .into_iter()
            .find(|side| side.name() == name)
    }
}

impl std::fmt::Display for Side {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// Where a change stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Standing {
    /// 0 before the first move.
    pub rev: i32,
    /// What is read.
    pub reads: Side,
    /// What is written.
    pub writes: Side,
    /// The newest move; none before the first.
    pub last: Option<LastMove>,
}

/// The newest move.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LastMove {
    /// Who.
    pub by: String,
    /// The release that it belongs to.
    pub release: String,
    /// When it was written.
    pub at: Timestamp,
    /// From then on every application has read it.
    pub counts_from: Timestamp,
    /// Whether that time has come, by the database's clock.
    pub counts: bool,
    /// Seconds until then, rounded up; 0 when it has come.
    pub counts_in_s: i64,
}

/// A move that somebody wants.
#[derive(Debug, Clone, Copy)]
pub struct Move<'a> {
    /// The change's id.
    pub change: &'a str,
    /// The rev that the mover saw; none: whatever it is.
    pub seen: Option<i32>,
    /// What shall be read.
    pub reads: Side,
    /// What shall be written.
    pub writes: Side,
    /// `[switch] reads`.
    pub may_read: &'a [Side],
    /// `[switch] writes`.
    pub may_write: &'a [Side],
    /// `[switch] cache_ttl_ms`.
    pub cache_ttl_ms: i32,
    /// The release that it belongs to.
    pub release: &'a str,
    /// Who.
    pub by: &'a str,
    /// Why.
    pub reason: &'a str,
    /// What is known of the last pass of forward.
    pub forward: &'a Fact,
    /// Rows that forward does not make, while one of the directions holds for each.
    pub written_new: &'a WrittenNew,
    /// How many of them somebody accepts.
    pub accept_forward: Option<i64>,
    /// The database's time.
    pub now: Timestamp,
}

/// What a move did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Moved {
    /// It stood there already.
    Nothing,
    /// It moved.
    Applied {
        /// The new rev.
        rev: i32,
        /// From then on it counts.
        counts_from: Timestamp,
        /// Rows whose new side forward does not make, which were accepted.
        accepted: Option<i64>,
    },
}

/// Why a switch does not move.
#[derive(Debug, thiserror::Error)]
pub enum SwitchError {
    /// `[switch]` does not name that side.
    #[error(
        "{change} does not switch its {what} to {side}: [switch] {what} allows {allowed}; edit change.toml if that is wrong"
    )]
    NotDeclared {
        /// The change.
        change: String,
        /// `reads` or `writes`.
        what: &'static str,
        /// The side that was wanted.
        side: Side,
        /// What the file allows.
        allowed: String,
    },
    /// A side is not filled, or nobody has shown that it is.
    #[error("{change} cannot switch to the new side yet: {why}; {way_out}")]
    NotReconciled {
        /// The change.
        change: String,
        /// What blocks.
        why: String,
        /// What to do.
        way_out: String,
    },
    /// What somebody accepts is not what was counted.
    #[error(
        "{change} does not switch: --accept-forward {accepted} is for exactly the rows that the newest pass of forward counted as mismatching, while agrees is zero; {why}"
    )]
    NotAccepted {
        /// The change.
        change: String,
        /// The number that was named.
        accepted: i64,
        /// What is so, and what to do.
        why: String,
    },
    /// A move that leaves no old side needs no evidence.
    #[error(
        "{change} does not go from the old side to the new one by this move, so there is nothing to accept; leave --accept-forward out"
    )]
    NothingToAccept {
        /// The change.
        change: String,
    },
    /// The old side's door is shut.
    #[error(
        "the contract of {change} is closed (attempt {attempt}), so its old side cannot be used any more; `aegis migrate contract reopen {change}` gives it back"
    )]
    Closed {
        /// The change.
        change: String,
        /// The attempt.
        attempt: i32,
    },
    /// The contract has run.
    #[error(
        "the contract of {change} has run here at {at}, which dropped its old side, so nothing can read or write it any more; what it held comes back from a backup, or by a new change that makes a column and fills it from the new side (`aegis migrate new NAME`)"
    )]
    Dropped {
        /// The change.
        change: String,
        /// When.
        at: Timestamp,
    },
    /// Somebody else moved at the same moment.
    #[error(
        "somebody else has moved {change}; look at `aegis migrate switch {change}` and decide again"
    )]
    MovedMeanwhile {
        /// The change.
        change: String,
    },
    /// A rev that the switch never had.
    #[error(
        "{change} is at rev {is}, and rev {seen} was never there; `aegis migrate switch {change}` shows it"
    )]
    NoSuchRev {
        /// The change.
        change: String,
        /// The rev that was named.
        seen: i32,
        /// The rev that it has.
        is: i32,
    },
    /// The database.
    #[error(transparent)]
    Database(#[from] tokio_postgres::Error),
    /// A row that this release does not understand.
    #[error("aegis_migrate.switch holds `{0}`, which is no side; a newer release wrote it")]
    Unreadable(String),
}

/// Where a change stands.
pub async fn standing(client: &impl GenericClient, change: &str) -> Result<Standing, SwitchError> {
    let row = client
        .query_opt(include_str!("../../sql/switch/newest.sql"), &[&change])
        .await?;
    let Some(row) = row else {
        return Ok(Standing {
            rev: 0,
            reads: Side::Old,
            writes: Side::Old,
            last: None,
        });
    };
    Ok(Standing {
        rev: row.try_get("rev")?,
        reads: side(&row, "reads")?,
        writes: side(&row, "writes")?,
        last: Some(LastMove {
            by: row.try_get("made_by")?,
            release: row.try_get("release")?,
            at: row.try_get("at")?,
            counts_from: row.try_get("counts_from")?,
            counts: row.try_get("counts")?,
            counts_in_s: row.try_get("counts_in_s")?,
        }),
    })
}

/// Says that a database which was made fresh, with the contract, has no old side. The caller holds the mutex and commits.
pub async fn born(
    client: &impl GenericClient,
    change: &Change,
    release: &str,
    by: &str,
) -> Result<(), tokio_postgres::Error> {
    let Some(declared) = &change.switch else {
        return Ok(());
    };
    let ttl = i32::try_from(declared.cache_ttl_ms).unwrap_or(i32::MAX);
    client
        .execute(
            include_str!("../../sql/switch/born.sql"),
            &[&change.id.as_str(), &ttl, &release, &by],
        )
        .await?;
    Ok(())
}

/// Moves, and fences a backfill of the change. The caller holds the mutex, has a transaction, and commits.
pub async fn make(client: &impl GenericClient, wanted: &Move<'_>) -> Result<Moved, SwitchError> {
    declared(wanted.change, "reads", wanted.reads, wanted.may_read)?;
    declared(wanted.change, "writes", wanted.writes, wanted.may_write)?;
    let from = standing(client, wanted.change).await?;
    if let Some(seen) = wanted.seen.filter(|seen| *seen < 0 || *seen > from.rev) {
        return Err(SwitchError::NoSuchRev {
            change: wanted.change.to_owned(),
            seen,
            is: from.rev,
        });
    }
    if wanted.seen.is_some_and(|seen| seen != from.rev) {
        return Err(SwitchError::MovedMeanwhile {
            change: wanted.change.to_owned(),
        });
    }
    if (from.reads, from.writes) == (wanted.reads, wanted.writes) {
        return Ok(Moved::Nothing);
    }
    if wanted.reads == Side::Old || wanted.writes == Side::Old {
        old_side_is_there(client, wanted.change).await?;
    }
    // Reads of the new side see what forward has filled; writes of it leave the old side to backward.
    let leaves_old = wanted.reads == Side::New && from.reads == Side::Old
        || wanted.writes == Side::New && from.writes == Side::Old;
    let accepted = if leaves_old {
        leave::may(wanted)?
    } else if wanted.accept_forward.is_some() {
        return Err(SwitchError::NothingToAccept {
            change: wanted.change.to_owned(),
        });
    } else {
        None
    };
    let reason = accepted.map_or_else(
        || wanted.reason.to_owned(),
        |rows| {
            format!(
                "{}; accepted: {rows} rows whose new side forward does not make",
                wanted.reason
            )
        },
    );
    let (reads, writes) = (wanted.reads.name(), wanted.writes.name());
    client
        .execute(
            include_str!("../../sql/switch/alone.sql"),
            &[&wanted.change],
        )
        .await?;
    let moved = client
        .query_one(
            include_str!("../../sql/switch/move.sql"),
            &[
                &wanted.change,
                &from.rev,
                &reads,
                &writes,
                &wanted.cache_ttl_ms,
                &wanted.release,
                &wanted.by,
                &reason,
            ],
        )
        .await;
    match moved {
        Ok(row) => Ok(Moved::Applied {
            rev: row.try_get("rev")?,
            counts_from: row.try_get("counts_from")?,
            accepted,
        }),
        Err(error) if error.code() == Some(&SqlState::UNIQUE_VIOLATION) => {
            Err(SwitchError::MovedMeanwhile {
                change: wanted.change.to_owned(),
            })
        }
        Err(error) => Err(error.into()),
    }
}

/// Refuses when the door of the old side is shut, or the contract has run: here, or when the database was made.
async fn old_side_is_there(client: &impl GenericClient, change: &str) -> Result<(), SwitchError> {
    let sql = include_str!("../../sql/switch/old_side.sql");
    let row = client.query_one(sql, &[&change]).await?;
    let change = change.to_owned();
    if let Some(at) = row.try_get("dropped_at")? {
        return Err(SwitchError::Dropped { change, at });
    }
    match row.try_get("attempt")? {
        Some(attempt) => Err(SwitchError::Closed { change, attempt }),
        None => Ok(()),
    }
}

fn declared(
    change: &str,
    what: &'static str,
    side: Side,
    allowed: &[Side],
) -> Result<(), SwitchError> {
    if allowed.contains(&side) {
        return Ok(());
    }
    let allowed: Vec<_> = allowed.iter().map(|side| side.name()).collect();
    Err(SwitchError::NotDeclared {
        change: change.to_owned(),
        what,
        side,
        allowed: if allowed.is_empty() {
            "nothing".to_owned()
        } else {
            allowed.join(" and ")
        },
    })
}

fn side(row: &Row, column: &str) -> Result<Side, SwitchError> {
    let name: String = row.try_get(column)?;
    Side::from_name(&name).ok_or(SwitchError::Unreadable(name))
}
