//! Large batches by COPY: several rows a WAL record, and no array that the server has to take apart (docs/adr/0004).
//!
//! Invariants: the moment, the randomness and the permission come from the database; what is written is what
//! `client/submit.sql` would write. Used only where statements are prepared by name: through a transaction pooler the COPY
//! could meet another server process than its preparation.

use std::pin::pin;

use futures_util::SinkExt as _;
use jiff::{SignedDuration, Timestamp};
use uuid::Uuid;

use super::mint::uuid7_nth;
use super::resolve::Resolved;
use super::rows::Rows;
use super::{INLINE_BYTES_MAX, NewTask, Submitted};
use crate::error::StoreError;
use crate::generated::client;
use crate::session::Session;

/// From so many tasks on a COPY pays for its second round trip.
const COPY_FROM: usize = 32;

/// Microseconds of head start for each level of priority.
const CREDIT_US: i64 = 60_000_000;

/// Writes the batch; `None`, and nothing written, when it has to go the other way.
pub(super) async fn write(
    session: &(impl Session + ?Sized),
    batch: &Resolved,
    ids: &[Option<Uuid>],
) -> Result<Option<Vec<Submitted>>, StoreError> {
    if batch.tasks.len() < COPY_FROM
        || !session.conn().is_named()
        || !batch.tasks.iter().all(stands_inline)
    {
        return Ok(None);
    }
    let moment = client::submit_moment(session).await?;
    if !moment.may_copy {
        return Ok(None);
    }
    let now_us = moment.now.as_microsecond();
    let mut submitted = Vec::with_capacity(batch.tasks.len());
    let fields = i16::try_from(client::SUBMIT_COPY.types.len()).unwrap_or_default();
    let mut sink = pin!(session.conn().copy_in(&client::SUBMIT_COPY).await?);
    let mut rows = Rows::new();
    for (n, task) in batch.tasks.iter().enumerate() {
        let number = n + 1;
        let id = ids[n].unwrap_or_else(|| uuid7_nth(moment.ms, moment.random, number));
        let run_at = task.run_at.filter(|at| *at > moment.now);
        let state = i16::from(run_at.is_none());
        let ord = now_us + i64::try_from(number).unwrap_or(i64::MAX)
            - (9 - i64::from(task.priority)) * CREDIT_US;
        let next_deadline = waiting_deadline(task, moment.now);
        let trace = task.trace.map(|trace| trace.to_string());
        rows.row(fields)
            .uuid(id)
            .int4(batch.lanes[n])
            .int4(batch.tenants[n])
            .int4(batch.policies[n])
            .int2(state)
            .int2(task.priority)
            .int8(ord)
            .timestamptz(run_at)
            .timestamptz(task.deadline_at)
            .timestamptz(next_deadline)
            .int4(task.protocol)
            .bytes(&task.input)
            .text(trace.as_deref());
        if let Some(piece) = rows.full() {
            sink.send(piece).await?;
        }
        submitted.push(Submitted {
            task: id,
            is_new: true,
        });
    }
    sink.send(rows.end()).await?;
    sink.finish().await?;
    Ok(Some(submitted))
}

fn stands_inline(task: &NewTask) -> bool {
    task.labels.is_none()
        && i32::try_from(task.input.len()).is_ok_and(|bytes| bytes <= INLINE_BYTES_MAX)
}

/// As `aegis.waiting_deadline`: schedule-to-start counts from when it may start.
fn waiting_deadline(task: &NewTask, now: Timestamp) -> Option<Timestamp> {
    let to_start = task.policy.schedule_to_start_ms.map(|ms| {
        let from = task.run_at.map_or(now, |at| at.max(now));
        from.checked_add(SignedDuration::from_millis(ms))
            .unwrap_or(Timestamp::MAX)
    });
    match (task.deadline_at, to_start) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}
