//! Partitions: made ahead, removed by retention. Runs over the direct URL as the owner of the tables.
//!
//! Invariants: a day is removed only when none of its tasks is live or parked and its last task ended before the retention;
//! it is removed by DETACH CONCURRENTLY and then DROP, so that one reader does not block the other days.

use crate::config::Config;
use crate::error::StoreError;
use crate::install::connect_direct;

/// What maintenance did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Maintained {
    /// Partitions made.
    pub made: i32,
    /// Days removed, such as `20261101`.
    pub removed_days: Vec<String>,
}

const PARENTS: [&str; 7] = [
    "task_body",
    "task_history",
    "checkpoint",
    "step",
    "operation",
    "attempt_error",
    "task_event",
];

/// Makes partitions for `days_ahead` and removes days whose last task ended more than `retention_days` ago.
///
/// # Errors
/// What the database said; run it again, each step is idempotent.
pub async fn maintain(
    config: &Config,
    days_ahead: i32,
    retention_days: i32,
) -> Result<Maintained, StoreError> {
    let client = connect_direct(config).await?;
    client.batch_execute("SET lock_timeout = '5s'").await?;
    let made: i32 = client
        .query_one("SELECT aegis.make_partitions($1)", &[&days_ahead])
        .await?
        .try_get(0)?;
    finish_detaching(&client).await?;
    let days = client
        .query(
            "SELECT to_char(d, 'YYYYMMDD') AS day FROM (
                SELECT DISTINCT to_date(right(c.relname, 8), 'YYYYMMDD') AS d FROM pg_class c
                JOIN pg_namespace n ON n.oid = c.relnamespace AND n.nspname = 'aegis'
                WHERE c.relkind = 'r' AND c.relname ~ '^(task_body|task_history|checkpoint|step|operation|attempt_error|task_event)_[0-9]{8}$') x
             WHERE d < (clock_timestamp() AT TIME ZONE 'UTC')::date - $1::int
               AND NOT EXISTS (SELECT FROM aegis.task t WHERE t.id >= aegis.uuid7_floor(d::timestamp AT TIME ZONE 'UTC')
                   AND t.id < aegis.uuid7_floor((d + 1)::timestamp AT TIME ZONE 'UTC'))
               AND NOT EXISTS (SELECT FROM aegis.parked p WHERE p.id >= aegis.uuid7_floor(d::timestamp AT TIME ZONE 'UTC')
                   AND p.id < aegis.uuid7_floor((d + 1)::timestamp AT TIME ZONE 'UTC'))
               AND NOT EXISTS (SELECT FROM aegis.task_history h WHERE h.id >= aegis.uuid7_floor(d::timestamp AT TIME ZONE 'UTC')
                   AND h.id < aegis.uuid7_floor((d + 1)::timestamp AT TIME ZONE 'UTC')
                   AND h.finished_at > clock_timestamp() - $1::int * interval '1 day')
             ORDER BY d",
            &[&retention_days],
        )
        .await?;
    let mut removed_days = Vec::new();
    for row in days {
        let day: String = row.try_get(0)?;
        for parent in PARENTS {
            remove(&client, parent, &day).await?;
        }
        removed_days.push(day);
    }
    Ok(Maintained { made, removed_days })
}

/// What an interrupted run left half detached is finished first: a parent has at most one such partition, and until it is gone
/// no other can be detached.
async fn finish_detaching(client: &tokio_postgres::Client) -> Result<(), StoreError> {
    let rows = client
        .query(
            "SELECT p.relname::text, c.relname::text FROM pg_inherits i
             JOIN pg_class p ON p.oid = i.inhparent JOIN pg_class c ON c.oid = i.inhrelid
             WHERE i.inhdetachpending AND p.relnamespace = 'aegis'::regnamespace",
            &[],
        )
        .await?;
    for row in rows {
        let (parent, part): (String, String) = (row.try_get(0)?, row.try_get(1)?);
        if PARENTS.contains(&parent.as_str()) {
            client
                .batch_execute(&format!(
                    "ALTER TABLE aegis.{parent} DETACH PARTITION aegis.{part} FINALIZE"
                ))
                .await?;
        }
    }
    Ok(())
}

/// Detaches and drops one partition. Names are our own: parent and eight digits.
async fn remove(
    client: &tokio_postgres::Client,
    parent: &str,
    day: &str,
) -> Result<(), StoreError> {
    let part = format!("aegis.{parent}_{day}");
    let attached: bool = client
        .query_one(
            "SELECT EXISTS (SELECT FROM pg_inherits WHERE inhrelid = to_regclass($1))",
            &[&part],
        )
        .await?
        .try_get(0)?;
    if attached {
        client
            .batch_execute(&format!(
                "ALTER TABLE aegis.{parent} DETACH PARTITION {part} CONCURRENTLY"
            ))
            .await?;
    }
    client
        .batch_execute(&format!("DROP TABLE IF EXISTS {part}"))
        .await?;
    Ok(())
}
