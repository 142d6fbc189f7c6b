//! Databases that the installer of before the lock has made: taken over when their structure is what the lock makes.
//!
//! Invariants: nothing is recorded that was not compared; the old ledger, `aegis.schema_step`, stays readable, since releases of
//! before and the doctor read it.

use aegis_catalog::Structure;
use aegis_migrate::baseline::{self, BaselineError, Compared, How, compare};
use aegis_migrate::ledger::LedgerName;
use aegis_migrate::set::Set;
use aegis_migrate::standing::recorded_in;
use aegis_store::StoreError;
use aegis_store::install::OLD_STEPS;
use tokio_postgres::{Client, GenericClient};

use crate::error::SchemaError;

/// What the lines of before the lock make, for each major version that is supported.
const STRUCTURES: [(i32, &str); 4] = [
    (15, include_str!("../before/schema.15.json")),
    (16, include_str!("../before/schema.16.json")),
    (17, include_str!("../before/schema.17.json")),
    (18, include_str!("../before/schema.18.json")),
];

const ACTOR: &str = "aegis db install";
const REASON: &str = "the installer of before the lock had done it";

/// Takes a database over where the installer of before has made it, once.
pub(crate) async fn take_over(
    client: &mut Client,
    set: &Set,
    version_num: i32,
) -> Result<(), SchemaError> {
    let steps = steps(client).await?;
    for (number, checksum) in &steps {
        let known = usize::try_from(number - 1)
            .ok()
            .and_then(|at| OLD_STEPS.get(at));
        if known.is_some_and(|known| known.checksum != checksum) {
            return Err(StoreError::StepEdited { version: *number }.into());
        }
    }
    let taken = i32::try_from(OLD_STEPS.len()).unwrap_or(i32::MAX);
    let Some((found, _)) = steps.last() else {
        return Ok(());
    };
    if !recorded_in(client, LedgerName::Engine).await?.is_empty() {
        return Ok(());
    }
    if *found != taken || steps.len() != OLD_STEPS.len() {
        return Err(SchemaError::Behind {
            found: *found,
            taken,
        });
    }
    shown(client, set, version_num, taken).await?;
    record(client, set).await
}

/// Number and hash of each old step; nothing where there is no old ledger.
async fn steps(client: &impl GenericClient) -> Result<Vec<(i32, String)>, SchemaError> {
    let there: bool = client
        .query_one(include_str!("../sql/old_there.sql"), &[])
        .await?
        .try_get(0)?;
    if !there {
        return Ok(Vec::new());
    }
    let rows = client
        .query(include_str!("../sql/old_steps.sql"), &[])
        .await?;
    rows.iter()
        .map(|row| Ok((row.try_get(0)?, row.try_get(1)?)))
        .collect()
}

/// Shows that the structure is what the lines make.
async fn shown(
    client: &Client,
    set: &Set,
    version_num: i32,
    schema: i32,
) -> Result<(), SchemaError> {
    let major = version_num / 10_000;
    let sealed = STRUCTURES.iter().find(|(of, _)| *of == major);
    let (_, text) = sealed.ok_or_else(|| SchemaError::NotCompared {
        why: format!("this binary has no structure for PostgreSQL {major}"),
    })?;
    let structure = Structure::from_json(text).map_err(SchemaError::Structure)?;
    match compare(client, set, &structure).await? {
        Compared::Equal(_) => Ok(()),
        Compared::NotCompared(why) => Err(SchemaError::NotCompared {
            why: why.to_string(),
        }),
        Compared::Differs(wrong) => {
            let lines: Vec<String> = wrong.iter().map(|one| format!("  {one}")).collect();
            Err(SchemaError::Differs {
                schema,
                differences: lines.join("\n"),
            })
        }
    }
}

/// Records the lines, under the mutex. Somebody else may have been first.
async fn record(client: &mut Client, set: &Set) -> Result<(), SchemaError> {
    let transaction = client.transaction().await?;
    let taken = baseline::take_in(&transaction, LedgerName::Engine, ACTOR).await?;
    if recorded_in(&transaction, LedgerName::Engine)
        .await?
        .is_empty()
    {
        let lines: Vec<_> = set.lock.lines.iter().take(OLD_STEPS.len()).collect();
        baseline::record(&transaction, &taken, &lines, How::Compared, ACTOR, REASON).await?;
    }
    transaction.commit().await.map_err(BaselineError::Sql)?;
    Ok(())
}
