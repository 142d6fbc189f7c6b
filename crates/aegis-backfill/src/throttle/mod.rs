//! When a backfill waits: several sources, each with its limit; the first that says so is told.
//!
//! Invariants: a source that gives no answer is never taken for a good one, `on_unknown` says what it means; limits are given anew
//! with each look, so they may change while a job runs.

use std::time::Duration;

use tokio_postgres::Client;

/// The limits now. A source without one is not asked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Limits {
    /// The farthest a standby may be behind.
    pub max_lag_bytes: Option<u64>,
    /// The most WAL that a replication slot may hold back.
    pub max_slot_bytes: Option<u64>,
    /// The most WAL that the server may write in a second.
    pub max_wal_bytes_s: Option<u64>,
    /// The most sessions that may be active beside it.
    pub max_active: Option<u32>,
    /// Whether it waits while a vacuum works on the table.
    pub autovacuum: bool,
    /// A query that answers one row with `true` while it has to wait.
    pub query: Option<String>,
    /// A file that stops it while it exists.
    pub file: Option<String>,
    /// Whether it goes on when a source gives no answer.
    pub go_on_unknown: bool,
}

/// What the sources said.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Look {
    /// Why it waits; none: it goes on.
    pub wait: Option<String>,
    /// Sources without an answer that were passed over.
    pub unknown: Vec<String>,
}

/// What a source says.
enum Said {
    Fine,
    Wait(String),
    Unknown(String),
}

/// How long the author's query may take.
const QUERY_TIMEOUT: Duration = Duration::from_secs(5);

/// Asks the sources; remembers what a rate needs.
#[derive(Debug, Default)]
pub struct Sampler {
    /// The place in the WAL and the server's time, in seconds, of the look before.
    wal: Option<(i64, f64)>,
}

impl Sampler {
    /// Asks each source that has a limit. `table` is the leaf's oid; `schema` and `role` are for the author's query.
    ///
    /// # Errors
    /// Only when the session is gone.
    pub async fn look(
        &mut self,
        client: &mut Client,
        limits: &Limits,
        table: u32,
        schema: &str,
        role: Option<&str>,
    ) -> Result<Look, tokio_postgres::Error> {
        let mut look = Look::default();
        let mut said = Vec::new();
        if let Some(file) = &limits.file {
            said.push(("file", of_file(file)));
        }
        if let Some(limit) = limits.max_lag_bytes {
            said.push(("max_lag_bytes", lag(client, limit).await?));
        }
        if let Some(limit) = limits.max_slot_bytes {
            said.push(("max_slot_bytes", slot(client, limit).await?));
        }
        if let Some(limit) = limits.max_wal_bytes_s {
            said.push(("max_wal_bytes_s", self.wal(client, limit).await?));
        }
        if let Some(limit) = limits.max_active {
            said.push(("max_active", active(client, limit).await?));
        }
        if limits.autovacuum {
            said.push(("autovacuum", vacuum(client, table).await?));
        }
        if let Some(query) = &limits.query {
            said.push(("query", of_query(client, query, schema, role).await?));
        }
        for (source, said) in said {
            match said {
                Said::Fine => {}
                Said::Wait(why) => look.wait = look.wait.or(Some(format!("{source}: {why}"))),
                Said::Unknown(why) if limits.go_on_unknown => {
                    look.unknown.push(format!("{source}: {why}"));
                }
                Said::Unknown(why) => {
                    look.wait = look.wait.or(Some(format!("{source}: no answer: {why}")));
                }
            }
        }
        Ok(look)
    }

    /// From this look and the one before; the first knows no rate and holds nothing up.
    async fn wal(&mut self, client: &Client, limit: u64) -> Result<Said, tokio_postgres::Error> {
        let row = match client
            .query_one(include_str!("../../sql/throttle/wal.sql"), &[])
            .await
        {
            Ok(row) => row,
            Err(error) => return unless_lost(error),
        };
        let now: (i64, f64) = (row.try_get("bytes")?, row.try_get("seconds")?);
        let before = self.wal.replace(now);
        let Some((bytes, seconds)) = before.filter(|before| now.1 - before.1 > 0.001) else {
            return Ok(Said::Fine);
        };
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            reason = "a rate for people and a limit of their own"
        )]
        let rate = ((now.0 - bytes) as f64 / (now.1 - seconds)).round() as i64;
        Ok(over(rate, limit, |rate| {
            format!("{rate} bytes of WAL a second")
        }))
    }
}

fn over(found: i64, limit: u64, words: impl Fn(i64) -> String) -> Said {
    if u64::try_from(found).unwrap_or(0) > limit {
        Said::Wait(format!("{} (limit {limit})", words(found)))
    } else {
        Said::Fine
    }
}

/// The server's refusal is no answer; a lost session is the caller's.
fn unless_lost(error: tokio_postgres::Error) -> Result<Said, tokio_postgres::Error> {
    if error.is_closed() {
        return Err(error);
    }
    match error.as_db_error() {
        Some(db) if !db.code().code().starts_with("57P") => {
            Ok(Said::Unknown(db.message().to_owned()))
        }
        _ => Err(error),
    }
}

fn of_file(file: &str) -> Said {
    match std::path::Path::new(file).try_exists() {
        Ok(true) => Said::Wait(format!("{file} exists")),
        Ok(false) => Said::Fine,
        Err(error) => Said::Unknown(format!("{file}: {error}")),
    }
}

async fn lag(client: &Client, limit: u64) -> Result<Said, tokio_postgres::Error> {
    let row = match client
        .query_one(include_str!("../../sql/throttle/lag.sql"), &[])
        .await
    {
        Ok(row) => row,
        Err(error) => return unless_lost(error),
    };
    let (standbys, shown): (i64, i64) = (row.try_get("standbys")?, row.try_get("shown")?);
    let bytes: Option<i64> = row.try_get("bytes")?;
    Ok(match bytes {
        _ if standbys == 0 => Said::Unknown("no standby is connected".to_owned()),
        Some(bytes) if standbys == shown => over(bytes, limit, |bytes| {
            format!("a standby is {bytes} bytes behind")
        }),
        _ => Said::Unknown(format!(
            "{} of {standbys} standbys do not show where they are; the role needs pg_monitor",
            standbys - shown
        )),
    })
}

async fn slot(client: &Client, limit: u64) -> Result<Said, tokio_postgres::Error> {
    let row = match client
        .query_one(include_str!("../../sql/throttle/slot.sql"), &[])
        .await
    {
        Ok(row) => row,
        Err(error) => return unless_lost(error),
    };
    let bytes: i64 = row.try_get("bytes")?;
    Ok(over(bytes, limit, |bytes| {
        format!("a replication slot holds {bytes} bytes of WAL back")
    }))
}

async fn active(client: &Client, limit: u32) -> Result<Said, tokio_postgres::Error> {
    let row = match client
        .query_one(include_str!("../../sql/throttle/active.sql"), &[])
        .await
    {
        Ok(row) => row,
        Err(error) => return unless_lost(error),
    };
    let (active, hidden): (i64, i64) = (row.try_get("active")?, row.try_get("hidden")?);
    if hidden > 0 && active <= i64::from(limit) {
        return Ok(Said::Unknown(format!(
            "what {hidden} sessions do is hidden; the role needs pg_monitor"
        )));
    }
    Ok(over(active, u64::from(limit), |active| {
        format!("{active} sessions are active")
    }))
}

async fn vacuum(client: &Client, table: u32) -> Result<Said, tokio_postgres::Error> {
    let row = match client
        .query_one(include_str!("../../sql/throttle/vacuum.sql"), &[&table])
        .await
    {
        Ok(row) => row,
        Err(error) => return unless_lost(error),
    };
    let (here, hidden): (i64, i64) = (row.try_get("here")?, row.try_get("hidden")?);
    Ok(if here > 0 {
        Said::Wait("a vacuum works on the table".to_owned())
    } else if hidden > 0 {
        Said::Unknown(format!(
            "the table of {hidden} vacuums is hidden; the role needs pg_monitor"
        ))
    } else {
        Said::Fine
    })
}

async fn of_query(
    client: &mut Client,
    query: &str,
    schema: &str,
    role: Option<&str>,
) -> Result<Said, tokio_postgres::Error> {
    let transaction = client.build_transaction().read_only(true).start().await?;
    let mut settings = format!(
        "SET LOCAL statement_timeout = {}; SET LOCAL search_path = {}, pg_catalog;",
        QUERY_TIMEOUT.as_millis(),
        aegis_catalog::quote(schema)
    );
    if let Some(role) = role {
        settings.push_str(" SET LOCAL ROLE ");
        settings.push_str(&aegis_catalog::quote(role));
    }
    let asked = match transaction.batch_execute(&settings).await {
        Ok(()) => transaction.query(query, &[]).await,
        Err(error) => Err(error),
    };
    transaction.rollback().await?;
    let rows = match asked {
        Ok(rows) => rows,
        Err(error) => return unless_lost(error),
    };
    Ok(match rows.as_slice() {
        [row] => match row.try_get::<_, Option<bool>>(0) {
            Ok(Some(true)) => Said::Wait("it answers true".to_owned()),
            Ok(Some(false)) => Said::Fine,
            Ok(None) => Said::Unknown("it answers NULL".to_owned()),
            Err(_) => Said::Unknown("its first column is no boolean".to_owned()),
        },
        rows => Said::Unknown(format!("it answers {} rows", rows.len())),
    })
}
