//! Installs and upgrades the engine's own schema.
//!
//! Invariants: one transaction under a transaction-level mutex, so it works through a pooler, two installers apply a step
//! once, and a killed one leaves nothing half done; steps only expand; an applied step is never edited (checksums); version
//! N - 1 starts after N has expanded, because a step never raises `min_schema`.

use sha2::{Digest, Sha256};
use tokio_postgres::Client;
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::config::Config;
use crate::error::StoreError;

/// One expand-only step.
#[derive(Debug, Clone, Copy)]
pub struct Step {
    /// 1, 2, 3, …
    pub version: i32,
    /// What it is for.
    pub name: &'static str,
    /// Its SQL.
    pub sql: &'static str,
}

const LEDGER: &str = include_str!("../schema/0000_ledger.sql");

/// The steps of this binary.
pub const STEPS: &[Step] = &[
    Step {
        version: 1,
        name: "tables",
        sql: include_str!("../schema/0001_tables.sql"),
    },
    Step {
        version: 2,
        name: "functions",
        sql: include_str!("../schema/0002_functions.sql"),
    },
    Step {
        version: 3,
        name: "verbs",
        sql: include_str!("../schema/0003_verbs.sql"),
    },
    Step {
        version: 4,
        name: "housekeeping",
        sql: include_str!("../schema/0004_housekeeping.sql"),
    },
    Step {
        version: 5,
        name: "views_roles",
        sql: include_str!("../schema/0005_views_roles.sql"),
    },
    Step {
        version: 6,
        name: "task_verbs",
        sql: include_str!("../schema/0006_task_verbs.sql"),
    },
    Step {
        version: 7,
        name: "inline_inputs",
        sql: include_str!("../schema/0007_inline_inputs.sql"),
    },
    Step {
        version: 8,
        name: "look",
        sql: include_str!("../schema/0008_look.sql"),
    },
    Step {
        version: 9,
        name: "quiet",
        sql: include_str!("../schema/0009_quiet.sql"),
    },
    Step {
        version: 10,
        name: "fleet_changes",
        sql: include_str!("../schema/0010_fleet_changes.sql"),
    },
];

/// The schema that this binary needs, and the newest it knows.
pub const SCHEMA: i32 = 10;

/// From this schema on programs read inputs that stand inline.
const INLINE_SINCE: i32 = 7;

/// The key of the install mutex: "aegis" and a version of the locking itself.
const MUTEX: i64 = 0x6165_6769_7301;

/// Changes with every byte of the schema that this binary installs: a name for a template of it.
pub fn fingerprint() -> String {
    let mut all = LEDGER.to_owned();
    for step in STEPS {
        all.push_str(step.sql);
    }
    checksum(&all)
}

/// What an install did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installed {
    /// Steps applied now.
    pub applied: Vec<i32>,
    /// The database's schema afterwards.
    pub schema: i32,
    /// Partitions made.
    pub partitions: i32,
}

/// Brings the database to this binary's schema and makes partitions for `days_ahead`. Idempotent.
///
/// # Errors
/// [`StoreError::StepEdited`], a version, or what the database said; nothing is half done.
pub async fn install(config: &Config, days_ahead: i32) -> Result<Installed, StoreError> {
    install_steps(config, STEPS, days_ahead).await
}

/// [`install`] with given steps: for the test that shows version N - 1 beside N.
///
/// # Errors
/// As [`install`].
pub async fn install_steps(
    config: &Config,
    steps: &[Step],
    days_ahead: i32,
) -> Result<Installed, StoreError> {
    let mut client = connect_direct(config).await?;
    let version: String = client
        .query_one("SHOW server_version", &[])
        .await?
        .try_get(0)?;
    let number: i32 = client
        .query_one("SELECT current_setting('server_version_num')::int", &[])
        .await?
        .try_get(0)?;
    if number < 150_000 {
        return Err(StoreError::ServerTooOld { found: version });
    }
    // The mutex first, then a new transaction's statements see what the other installer committed (READ COMMITTED).
    let transaction = client
        .build_transaction()
        .isolation_level(tokio_postgres::IsolationLevel::ReadCommitted)
        .start()
        .await?;
    transaction
        .execute("SELECT pg_advisory_xact_lock($1)", &[&MUTEX])
        .await?;
    transaction.batch_execute(LEDGER).await?;
    let known = steps
        .iter()
        .map(|step| step.version)
        .max()
        .unwrap_or_default();
    let min_schema: i32 = transaction
        .query_one("SELECT min_schema FROM aegis.schema_version", &[])
        .await?
        .try_get(0)?;
    if known < min_schema {
        return Err(StoreError::BinaryTooOld { known, min_schema });
    }
    let is_new = !transaction
        .query_one("SELECT EXISTS (SELECT FROM aegis.schema_step)", &[])
        .await?
        .try_get::<_, bool>(0)?;
    let mut applied = Vec::new();
    for step in steps {
        let checksum = checksum(step.sql);
        let found = transaction
            .query_opt(
                "SELECT checksum FROM aegis.schema_step WHERE version = $1",
                &[&step.version],
            )
            .await?;
        if let Some(row) = found {
            if row.try_get::<_, String>(0)? != checksum {
                return Err(StoreError::StepEdited {
                    version: step.version,
                });
            }
            continue;
        }
        transaction.batch_execute(step.sql).await?;
        transaction
            .execute(
                "INSERT INTO aegis.schema_step (version, name, checksum) VALUES ($1, $2, $3)",
                &[&step.version, &step.name, &checksum],
            )
            .await?;
        transaction
            .execute(
                "UPDATE aegis.schema_version SET schema = $1",
                &[&step.version],
            )
            .await?;
        applied.push(step.version);
    }
    if is_new && known >= INLINE_SINCE {
        // No older program has ever seen this database: it need not wait for a switch.
        transaction
            .execute("SELECT aegis.switch_inline()", &[])
            .await?;
    }
    let partitions: i32 = transaction
        .query_one("SELECT aegis.make_partitions($1)", &[&days_ahead])
        .await?
        .try_get(0)?;
    let schema: i32 = transaction
        .query_one("SELECT schema FROM aegis.schema_version", &[])
        .await?
        .try_get(0)?;
    transaction.batch_execute("SELECT").await?;
    transaction.commit().await?;
    Ok(Installed {
        applied,
        schema,
        partitions,
    })
}

/// Lets small inputs stand in their tasks' rows from now on, in a database that was installed by an older release. Programs from
/// before schema 7 cannot work on it any more, so none of their workers may be alive. True when this changed something.
///
/// # Errors
/// [`StoreError::OldWorkers`] with their names, and nothing changed; an error of the database.
pub async fn switch_inline(config: &Config) -> Result<bool, StoreError> {
    let client = connect_direct(config).await?;
    match client.query_one("SELECT aegis.switch_inline()", &[]).await {
        Ok(row) => Ok(row.try_get(0)?),
        Err(error) => match error.as_db_error() {
            Some(db) if db.code().code() == "AEG08" => Err(StoreError::OldWorkers {
                said: db.message().to_owned(),
            }),
            _ => Err(error.into()),
        },
    }
}

/// Compares the database's schema with this binary's.
///
/// # Errors
/// [`StoreError::NotInstalled`], [`StoreError::SchemaTooOld`] or [`StoreError::BinaryTooOld`].
pub async fn verify(client: &Client) -> Result<(), StoreError> {
    verify_against(client, SCHEMA).await
}

/// [`verify`] for a binary that knows schema `known`: for the test that shows version N - 1 beside N.
///
/// # Errors
/// As [`verify`].
pub async fn verify_against(client: &Client, known: i32) -> Result<(), StoreError> {
    let installed: bool = client
        .query_one(
            "SELECT to_regclass('aegis.schema_version') IS NOT NULL",
            &[],
        )
        .await?
        .try_get(0)?;
    if !installed {
        return Err(StoreError::NotInstalled);
    }
    let row = client
        .query_one("SELECT schema, min_schema FROM aegis.schema_version", &[])
        .await?;
    let (found, min_schema): (i32, i32) = (row.try_get(0)?, row.try_get(1)?);
    if known < min_schema {
        return Err(StoreError::BinaryTooOld { known, min_schema });
    }
    if found < known {
        return Err(StoreError::SchemaTooOld {
            found,
            needed: known,
        });
    }
    Ok(())
}

/// What a connection around the pooler is made of, for who must make it by itself.
pub fn direct_parts(config: &Config) -> (&tokio_postgres::Config, MakeRustlsConnect) {
    match &config.direct {
        Some(direct) => (direct, config.direct_tls.connector()),
        None => (&config.postgres, config.tls.connector()),
    }
}

/// A connection around the pooler where there is one.
pub async fn connect_direct(config: &Config) -> Result<Client, StoreError> {
    let (postgres, tls) = match &config.direct {
        Some(direct) => (direct, &config.direct_tls),
        None => (&config.postgres, &config.tls),
    };
    let (client, connection) =
        postgres
            .connect(tls.connector())
            .await
            .map_err(|source| StoreError::Unreachable {
                place: config.place(),
                source: Box::new(source),
            })?;
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(error = %error, "a direct connection ended");
        }
    });
    Ok(client)
}

fn checksum(sql: &str) -> String {
    Sha256::digest(sql.as_bytes())
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .filter_map(|half| char::from_digit(half.into(), 16))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_numbered_without_gaps() {
        let versions: Vec<i32> = STEPS.iter().map(|step| step.version).collect();
        assert_eq!(versions, (1..=SCHEMA).collect::<Vec<_>>());
    }
}
