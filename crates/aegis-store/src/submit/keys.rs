//! Idempotency keys: reserved in their order, read by a second statement.
//!
//! Invariant: the same key with the same payload gives the same task; with another payload the whole batch is refused.

use std::collections::HashMap;

use aegis_model::limits::KEY_KEPT_MS;
use uuid::Uuid;

use super::Submitted;
use super::resolve::Resolved;
use super::write::write;
use crate::error::StoreError;
use crate::generated::client;
use crate::session::Session;

/// How often a key that expires just then is reserved anew.
const KEY_TRIES: usize = 3;

/// Writes a batch in which some tasks have keys.
pub(super) async fn write_keyed(
    session: &(impl Session + ?Sized),
    batch: &Resolved,
) -> Result<Vec<Submitted>, StoreError> {
    let mut open: Vec<usize> = (0..batch.tasks.len())
        .filter(|&n| batch.tasks[n].key.is_some())
        .collect();
    let mut new: HashMap<(i32, String, String), Uuid> = HashMap::new();
    let mut known: HashMap<usize, Uuid> = HashMap::new();
    for _ in 0..KEY_TRIES {
        if open.is_empty() {
            break;
        }
        reserve(session, batch, &open, &mut new, &mut known).await?;
        open.retain(|n| !known.contains_key(n));
    }
    if let Some(&position) = open.first() {
        return Err(StoreError::BadTask {
            field: "key",
            position,
            problem: "expired again and again while it was used; submit once more".to_owned(),
        });
    }
    // The first of several equal keys in one batch makes the task; the others answer it.
    let mut ids: Vec<Option<Uuid>> = Vec::with_capacity(batch.tasks.len());
    let mut write_these = Vec::new();
    for (n, task) in batch.tasks.iter().enumerate() {
        let minted = task
            .key
            .as_ref()
            .and_then(|key| new.remove(&(batch.tenants[n], task.kind.clone(), key.clone())));
        if task.key.is_none() || minted.is_some() {
            write_these.push(n);
        }
        ids.push(minted);
    }
    let written = write_some(session, batch, &write_these, &ids).await?;
    Ok((0..batch.tasks.len())
        .map(|n| match written.get(&n).copied() {
            Some(task) => Submitted { task, is_new: true },
            None => Submitted {
                task: known.get(&n).copied().unwrap_or_default(),
                is_new: false,
            },
        })
        .collect())
}

/// Reserves the keys of the tasks `these` and reads what stands under them. A key that expires between the two statements is
/// neither new nor known afterwards.
async fn reserve(
    session: &(impl Session + ?Sized),
    batch: &Resolved,
    these: &[usize],
    new: &mut HashMap<(i32, String, String), Uuid>,
    known: &mut HashMap<usize, Uuid>,
) -> Result<(), StoreError> {
    let tasks = || these.iter().map(|&n| &batch.tasks[n]);
    let tenants: Vec<i32> = these.iter().map(|&n| batch.tenants[n]).collect();
    let kinds: Vec<&str> = tasks().map(|task| task.kind.as_str()).collect();
    let keys: Vec<&str> = tasks().filter_map(|task| task.key.as_deref()).collect();
    let protocols: Vec<i32> = tasks().map(|task| task.protocol).collect();
    let inputs: Vec<&[u8]> = tasks().map(|task| task.input.as_slice()).collect();
    let reservation = client::ReserveKeysParams {
        content_type: 0,
        keep_ms: KEY_KEPT_MS,
        tenants: &tenants,
        kinds: &kinds,
        keys: &keys,
        protocols: &protocols,
        inputs: &inputs,
    };
    for row in client::reserve_keys(session, &reservation).await? {
        new.insert((row.tenant, row.kind, row.key), row.task);
    }
    // A second statement: beside an uncommitted twin the first one cannot see what it waited for.
    for row in client::find_keys(session, 0, &tenants, &kinds, &keys, &protocols, &inputs).await? {
        let n = usize::try_from(row.position - 1)
            .ok()
            .and_then(|at| these.get(at))
            .copied()
            .ok_or(StoreError::Panicked)?;
        if !row.same {
            return Err(StoreError::KeyConflict {
                key: batch.tasks[n].key.clone().unwrap_or_default(),
                kind: batch.tasks[n].kind.clone(),
                task: row.task,
            });
        }
        known.insert(n, row.task);
    }
    Ok(())
}

async fn write_some(
    session: &(impl Session + ?Sized),
    batch: &Resolved,
    these: &[usize],
    ids: &[Option<Uuid>],
) -> Result<HashMap<usize, Uuid>, StoreError> {
    if these.is_empty() {
        return Ok(HashMap::new());
    }
    let ids: Vec<Option<Uuid>> = these.iter().map(|&n| ids[n]).collect();
    let part = Resolved {
        tasks: these.iter().map(|&n| batch.tasks[n].clone()).collect(),
        lanes: these.iter().map(|&n| batch.lanes[n]).collect(),
        tenants: these.iter().map(|&n| batch.tenants[n]).collect(),
        policies: these.iter().map(|&n| batch.policies[n]).collect(),
    };
    let written = write(session, &part, &ids).await?;
    Ok(these
        .iter()
        .copied()
        .zip(written.into_iter().map(|one| one.task))
        .collect())
}
