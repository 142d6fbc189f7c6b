//! How a runner takes a job: its lock, what it stands on, its row with a new epoch.
//!
//! Invariants: the lock is the session's, and is polled; a job that is new has its greatest keys in the transaction that makes it; a
//! cursor is only taken up for the very same table, key and statement.

use std::time::{Duration, Instant};

use tokio_postgres::Client;

use super::batch::{Change, Place, Walk, settings};
use super::error::JobError;
use super::leaf::{self, Leaf};
use super::statement;
use super::try_out::try_out;
use super::{AtPause, Report, Spec, Who, Write};
use crate::Pause;
use crate::key::{Key, KeyValue};
use crate::sync::{Pinned, SyncError, TriggerState};

const FIRST_PAUSE: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// A job that this session runs.
pub(crate) struct Taken<'a> {
    pub(crate) walk: Walk<'a>,
    pub(crate) batch_rows: u32,
    /// What is open, in order; its tables are there.
    pub(crate) open: Vec<(Place, Leaf)>,
    /// Tables of the job that are not below the change's any more.
    pub(crate) gone: Vec<String>,
}

/// What taking came to.
pub(crate) enum Begun<'a> {
    Taken(Box<Taken<'a>>),
    Done(Report),
}

/// Polls for the job's lock for at most `wait`. It goes with the session.
pub(crate) async fn lock(client: &Client, change: &str, wait: Duration) -> Result<(), JobError> {
    let started = Instant::now();
    let mut pause = Pause::growing(FIRST_PAUSE, PAUSE_MAX);
    loop {
        let got: bool = client
            .query_one(include_str!("../../sql/job/lock.sql"), &[&change])
            .await?
            .try_get(0)?;
        if got {
            return Ok(());
        }
        if started.elapsed() >= wait {
            let row = client
                .query_opt(include_str!("../../sql/job/holder.sql"), &[&change])
                .await?;
            let holder = match row {
                None => "a session that has just gone".to_owned(),
                Some(row) => format!(
                    "process {} ({} from {})",
                    row.try_get::<_, i32>("pid")?,
                    row.try_get::<_, String>("application_name")?,
                    row.try_get::<_, String>("client")?
                ),
            };
            return Err(JobError::Busy {
                change: change.to_owned(),
                holder,
                waited_s: started.elapsed().as_secs(),
            });
        }
        pause.wait().await;
    }
}

/// Takes the job, which is made when it is not there. The lock is held.
pub(crate) async fn begin<'a>(
    client: &mut Client,
    spec: &'a Spec,
    who: &Who,
    at_pause: AtPause,
) -> Result<Begun<'a>, JobError> {
    let found = client
        .query_opt(include_str!("../../sql/job/found.sql"), &[&spec.change])
        .await?;
    let mut batch_rows = spec.batch.start;
    if let Some(row) = &found {
        let (sha256, state): (String, String) =
            (row.try_get("spec_sha256")?, row.try_get("state")?);
        if sha256 != spec.sha256() {
            return Err(JobError::OtherSpec {
                change: spec.change.clone(),
            });
        }
        match state.as_str() {
            "done" => {
                return Ok(Begun::Done(Report {
                    was_done: true,
                    rows_seen: row.try_get("rows_seen")?,
                    rows_changed: row.try_get("rows_changed")?,
                }));
            }
            "cancelled" => {
                return Err(JobError::Cancelled {
                    change: spec.change.clone(),
                    by: row.try_get("state_by")?,
                    reason: row.try_get("state_reason")?,
                });
            }
            "failed" => {
                return Err(JobError::Failed {
                    change: spec.change.clone(),
                    said: row.try_get("error")?,
                });
            }
            "paused" if at_pause == AtPause::Ends => {
                return Err(JobError::Paused {
                    change: spec.change.clone(),
                    by: row.try_get("state_by")?,
                    reason: row.try_get("state_reason")?,
                });
            }
            _ => batch_rows = u32::try_from(row.try_get::<_, i32>("batch_rows")?).unwrap_or(1),
        }
    }
    let leaves = leaf::walked(client, &spec.table, spec.write.walked()).await?;
    let key = leaf::key(client, spec, &leaves).await?;
    let change = prepared(client, spec, &key).await?;
    let mut walk = Walk {
        spec,
        key,
        change,
        epoch: 1,
    };
    if found.is_none() {
        create(client, &mut walk, &leaves, who).await?;
    } else {
        let row = client
            .query_one(
                include_str!("../../sql/job/take.sql"),
                &[&spec.change, &who.run, &who.release],
            )
            .await?;
        walk.epoch = row.try_get("epoch")?;
    }
    old_side_counts(client, &spec.change).await?;
    let (open, gone) = open(client, spec, leaves).await?;
    Ok(Begun::Taken(Box::new(Taken {
        walk,
        batch_rows,
        open,
        gone,
    })))
}

/// What is written, when everything that it stands on is there.
async fn prepared(client: &mut Client, spec: &Spec, key: &Key) -> Result<Change, JobError> {
    match &spec.write {
        Write::Forward(rule) => {
            let pinned = Pinned::of(client, rule, spec.run_as.as_deref())
                .await
                .map_err(|error| match error {
                    SyncError::Sql(error) => JobError::Database(error),
                    other => JobError::Precondition(other.to_string()),
                })?;
            let sides = pinned.sides();
            let fires = trigger(client, spec).await?;
            if fires.is_some_and(|state| !rule.has_made(&state)) {
                return Err(JobError::Precondition(format!(
                    "the trigger of {0} on {1} was made of other expressions than [sync] has now, so what it writes and what is moved would be unlike; \
                     `aegis migrate repair sync {0} --reason TEXT` makes it of these",
                    spec.change, spec.table
                )));
            }
            Ok(Change::Set {
                carries: sides.carries(),
                agrees: sides.agrees(),
            })
        }
        Write::Statement { file, sql } => {
            let smallest = key.columns.iter().map(|column| {
                statement::smallest(&column.type_sql).map(str::to_owned).ok_or_else(|| {
                    JobError::Precondition(format!(
                        "{}.{} is {}, which has no smallest value for :from of the first batch; use set = \"sync.forward\", or a key of numbers, text, uuid or time",
                        spec.table, column.name, column.type_sql
                    ))
                })
            });
            Ok(Change::Statement {
                smallest: smallest.collect::<Result<KeyValue, _>>()?,
                sql: statement::bound(file, sql, key).map_err(JobError::Precondition)?,
            })
        }
    }
}

/// Refuses when the trigger of a forward job does not fire: rows that come in now would be nobody's.
pub(crate) async fn trigger(
    client: &Client,
    spec: &Spec,
) -> Result<Option<TriggerState>, JobError> {
    let Write::Forward(rule) = &spec.write else {
        return Ok(None);
    };
    let fires = rule.state(client).await?.filter(|state| state.enabled);
    if fires.is_some() {
        return Ok(fires);
    }
    Err(JobError::Precondition(format!(
        "the trigger of {0} on {1} does not fire, so a row that is written behind the cursor would be missed; \
         `aegis migrate run --phase expand` makes it, and `aegis migrate repair sync {0} --reason TEXT` one that was there",
        spec.change, spec.table
    )))
}

/// Refuses when programs may write the new side. Asked when the job is there with this runner's epoch: who moves the switch later finds
/// it, and gives it another epoch.
pub(crate) async fn old_side_counts(client: &Client, change: &str) -> Result<(), JobError> {
    let has_switch = include_str!("../../sql/job/has_switch.sql");
    if !client.query_one(has_switch, &[]).await?.try_get(0)? {
        return Ok(());
    }
    client
        .execute(include_str!("../../sql/job/mover.sql"), &[&change])
        .await?;
    let moved = client
        .query_opt(include_str!("../../sql/job/new_side.sql"), &[&change])
        .await?;
    match moved.map(|row| row.try_get(0)).transpose()? {
        Some(true) => Err(JobError::NewSide {
            change: change.to_owned(),
        }),
        Some(false) | None => Ok(()),
    }
}

/// Makes the job with the greatest key of each leaf.
async fn create(
    client: &mut Client,
    walk: &mut Walk<'_>,
    leaves: &[Leaf],
    who: &Who,
) -> Result<(), JobError> {
    let spec = walk.spec;
    let mut places = Vec::new();
    let transaction = client.transaction().await?;
    transaction.batch_execute(&settings(spec)).await?;
    for leaf in leaves {
        let upper = upper(&transaction, walk, leaf).await?;
        places.push((leaf.name.sql(), upper));
    }
    transaction.commit().await?;
    let tried = places.iter().find_map(|(leaf, upper)| {
        Some(Place {
            leaf: leaf.clone(),
            upper: upper.clone()?,
            cursor: None,
        })
    });
    if let Some(place) = tried {
        try_out(client, walk, &place).await?;
    }
    let estimated: Option<i64> = leaves.iter().map(|leaf| leaf.rows_estimated).sum();
    let transaction = client.transaction().await?;
    let start = i32::try_from(spec.batch.start).unwrap_or(i32::MAX);
    transaction
        .execute(
            include_str!("../../sql/job/create.sql"),
            &[
                &spec.change,
                &spec.sha256(),
                &who.by,
                &who.run,
                &who.release,
                &start,
                &estimated,
            ],
        )
        .await?;
    for ((leaf, upper), ordinal) in places.iter().zip(1_i32..) {
        transaction
            .execute(
                include_str!("../../sql/job/create_leaf.sql"),
                &[&spec.change, leaf, &ordinal, upper],
            )
            .await?;
    }
    transaction.commit().await?;
    Ok(())
}

/// The greatest key of a leaf; none where it is empty.
async fn upper(
    transaction: &tokio_postgres::Transaction<'_>,
    walk: &Walk<'_>,
    leaf: &Leaf,
) -> Result<Option<KeyValue>, JobError> {
    let (name, only) = (leaf.name.sql(), walk.change.only());
    let sql = format!(
        "SELECT {} FROM {only}{name} ORDER BY {} LIMIT 1",
        walk.key.texts(),
        walk.key.descending()
    );
    let row = transaction.query_opt(&sql, &[]).await?;
    if let Change::Statement { smallest, .. } = &walk.change {
        let sql = format!(
            "SELECT EXISTS (SELECT FROM {only}{name} WHERE {})",
            walk.key.range(None, 1)
        );
        if transaction.query_one(&sql, &[smallest]).await?.try_get(0)? {
            return Err(JobError::Precondition(format!(
                "{} has a row with the smallest key that there can be ({}), which no range (:from, :to] holds; move that row by hand, or give it another key",
                leaf.name,
                smallest.join(", ")
            )));
        }
    }
    Ok(row.map(|row| row.try_get(0)).transpose()?)
}

async fn open(
    client: &Client,
    spec: &Spec,
    leaves: Vec<Leaf>,
) -> Result<(Vec<(Place, Leaf)>, Vec<String>), JobError> {
    let rows = client
        .query(
            include_str!("../../sql/job/open_leaves.sql"),
            &[&spec.change],
        )
        .await?;
    let (mut open, mut gone) = (Vec::new(), Vec::new());
    for row in &rows {
        let leaf: String = row.try_get("leaf")?;
        match leaves.iter().find(|there| there.name.sql() == leaf) {
            None => gone.push(leaf),
            Some(there) => open.push((
                Place {
                    leaf,
                    upper: row.try_get("upper_key")?,
                    cursor: row.try_get("cursor_key")?,
                },
                there.clone(),
            )),
        }
    }
    Ok((open, gone))
}
