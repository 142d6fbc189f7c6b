//! Writes a resolved batch: by COPY where that is possible and pays, otherwise in one statement.

use jiff::Timestamp;
use serde_json::Value;
use uuid::Uuid;

use super::resolve::Resolved;
use super::{INLINE_BYTES_MAX, Submitted, copy};
use crate::error::StoreError;
use crate::generated::client;
use crate::session::Session;

/// Writes a batch, whole or not at all; in the caller's transaction where the session is one.
pub(super) async fn write(
    session: &(impl Session + ?Sized),
    batch: &Resolved,
    ids: &[Option<Uuid>],
) -> Result<Vec<Submitted>, StoreError> {
    if let Some(submitted) = copy::write(session, batch, ids).await? {
        return Ok(submitted);
    }
    let tasks = &batch.tasks;
    let protocols: Vec<i32> = tasks.iter().map(|task| task.protocol).collect();
    let priorities: Vec<i16> = tasks.iter().map(|task| task.priority).collect();
    let run_ats: Vec<Option<Timestamp>> = tasks.iter().map(|task| task.run_at).collect();
    let deadlines: Vec<Option<Timestamp>> = tasks.iter().map(|task| task.deadline_at).collect();
    let inputs: Vec<&[u8]> = tasks.iter().map(|task| task.input.as_slice()).collect();
    let labels: Vec<Option<&Value>> = tasks.iter().map(|task| task.labels.as_ref()).collect();
    let traces: Vec<Option<String>> = tasks
        .iter()
        .map(|task| task.trace.map(|trace| trace.to_string()))
        .collect();
    let traces: Vec<Option<&str>> = traces.iter().map(Option::as_deref).collect();
    let rows = client::submit(
        session,
        &client::SubmitParams {
            ids,
            lanes: &batch.lanes,
            tenants: &batch.tenants,
            policies: &batch.policies,
            protocols: &protocols,
            priorities: &priorities,
            run_ats: &run_ats,
            deadlines: &deadlines,
            inputs: &inputs,
            content_type: 0,
            labels: &labels,
            traces: &traces,
            submitter: None,
            inline_bytes: INLINE_BYTES_MAX,
        },
    )
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| Submitted {
            task: row.id,
            is_new: true,
        })
        .collect())
}
