//! The generated trigger as statements of the runner: made for the catalog as it is, executed and recorded like any other step.

use aegis_backfill::sync::{Pinned, Rule, Sides, SyncError};
use aegis_catalog::quote;
use aegis_ddl::{Phase, SourceFile};
use serde_json::json;
use tokio_postgres::Client;

use super::RunError;
use crate::change::Change;

/// Where the ledger says that its statements stand.
pub(crate) const PLACE: &str = "[sync]";

/// What makes the trigger. Its expressions are tried first, with the rights that it will have.
pub(crate) async fn begin(client: &mut Client, change: &Change) -> Result<SourceFile, RunError> {
    let rule = rule(change)?;
    let transaction = client.transaction().await?;
    // The session's own search_path has nothing of the schema: what is asked here is not found there.
    if let Some(role) = &change.run_as {
        let role = format!("SET LOCAL ROLE {}", quote(role));
        transaction.batch_execute(&role).await?;
    }
    let read = async {
        let pinned = Sides::read(&transaction, &rule)
            .await?
            .pin(&transaction)
            .await?;
        pinned.trusted(&transaction, None).await?;
        rule.without_heirs(&transaction).await?;
        pinned.tried(&transaction).await?;
        Ok(pinned.create())
    };
    let statements = read.await.map_err(|source: SyncError| RunError::Sync {
        change: change.path.clone(),
        source,
    });
    transaction.rollback().await?;
    file(change, &statements?, Phase::Expand)
}

/// What some of the rows that are there would lose on the way to the new side and back, as an event; none when nothing, or when it cannot
/// be asked: it is a notice, and stands in no run's way.
pub(super) async fn loses(
    client: &mut Client,
    change: &Change,
) -> Result<Option<serde_json::Value>, RunError> {
    let (rule, role) = (rule(change)?, change.run_as.as_deref());
    let key = change.backfill.as_ref().map(|backfill| &*backfill.key);
    let tried = match Pinned::of(client, &rule, role).await {
        Ok(pinned) => pinned.loses(client, role, key.unwrap_or_default()).await,
        Err(error) => Err(error),
    };
    match tried {
        Ok(Some(loses)) if loses.lost > 0 => Ok(Some(json!({
            "event": "sync_loses", "change": change.id.to_string(), "table": rule.table.to_string(),
            "rows": loses.rows, "lost": loses.lost, "key": loses.key,
        }))),
        Ok(_) => Ok(None),
        Err(SyncError::Sql(error)) if super::lost::is_lost(&error) => Err(error.into()),
        Err(error) => {
            tracing::debug!(%error, change = %change.id, "what [sync] loses could not be asked");
            Ok(None)
        }
    }
}

/// What takes it away.
pub(super) fn end(change: &Change) -> Result<SourceFile, RunError> {
    file(change, &rule(change)?.drop_statements(), Phase::Contract)
}

fn rule(change: &Change) -> Result<Rule, RunError> {
    change.sync_rule().ok_or_else(|| RunError::NotRun {
        change: change.id.to_string(),
        what: PLACE,
    })
}

fn file(change: &Change, statements: &[String], phase: Phase) -> Result<SourceFile, RunError> {
    let path = format!("{}/change.toml {PLACE}", change.path);
    let text = format!("{};\n", statements.join(";\n"));
    let script = aegis_ddl::read(&text).map_err(|error| {
        let problem = crate::change::Problem::of_file(
            &path,
            error.to_string(),
            "an expression of [sync] is no SQL: mend it",
        );
        RunError::Folder(problem.into())
    })?;
    Ok(SourceFile {
        path,
        script,
        phase: Some(phase),
        atomic: Some(phase == Phase::Contract),
        proven: true,
    })
}
