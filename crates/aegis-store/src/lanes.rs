//! Lanes, tenants and policies by name: dictionaries, cached for the life of the process.
//!
//! Invariant: an id never changes its meaning, so a cached entry is never stale. A missing one is made in a short transaction
//! of its own.

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

use aegis_model::LaneRange;

use crate::error::StoreError;
use crate::generated::client;
use crate::store::Store;
use crate::submit::RetryPolicy;

/// A (queue, kind, lowest and highest protocol of what is stored).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Lane {
    /// Its id.
    pub id: i32,
    /// The queue.
    pub queue: String,
    /// The kind.
    pub kind: String,
    /// Lowest and highest protocol stored.
    pub range: LaneRange,
}

#[derive(Default)]
pub(crate) struct Lanes {
    by_id: RwLock<HashMap<i32, Lane>>,
    by_name: RwLock<HashMap<(String, String, i32, i32), i32>>,
    tenants: RwLock<HashMap<String, i32>>,
    policies: RwLock<HashMap<RetryPolicy, i32>>,
}

fn cached<K: std::hash::Hash + Eq, V: Clone>(map: &RwLock<HashMap<K, V>>, key: &K) -> Option<V> {
    map.read()
        .unwrap_or_else(PoisonError::into_inner)
        .get(key)
        .cloned()
}

fn keep<K: std::hash::Hash + Eq, V>(map: &RwLock<HashMap<K, V>>, key: K, value: V) {
    map.write()
        .unwrap_or_else(PoisonError::into_inner)
        .insert(key, value);
}

impl Store {
    /// A lane by its id.
    ///
    /// # Errors
    /// [`StoreError`]; [`StoreError::NotInstalled`] when the database has no such lane.
    pub async fn lane(&self, id: i32) -> Result<Lane, StoreError> {
        if let Some(lane) = cached(&self.lanes().by_id, &id) {
            return Ok(lane);
        }
        let row = self
            .bounded(async move |store| {
                let conn = store.conn().await?;
                Ok(client::lane_by_id(&conn.conn(), id).await?)
            })
            .await?
            .ok_or(StoreError::NotInstalled)?;
        let lane = Lane {
            id,
            queue: row.queue,
            kind: row.kind,
            range: LaneRange {
                lo: row.lo,
                hi: row.hi,
            },
        };
        keep(&self.lanes().by_id, id, lane.clone());
        Ok(lane)
    }

    /// The id of a lane, made when it is new.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn lane_id(
        &self,
        queue: &str,
        kind: &str,
        range: LaneRange,
    ) -> Result<i32, StoreError> {
        let key = (queue.to_owned(), kind.to_owned(), range.lo, range.hi);
        if let Some(id) = cached(&self.lanes().by_name, &key) {
            return Ok(id);
        }
        let id = self
            .bounded(async move |store| {
                let conn = store.conn().await?;
                Ok(client::lane(&conn.conn(), queue, kind, range.lo, range.hi).await?)
            })
            .await?
            .id;
        keep(&self.lanes().by_name, key, id);
        Ok(id)
    }

    /// The id of a tenant, made when it is new.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn tenant_id(&self, name: &str) -> Result<i32, StoreError> {
        if let Some(id) = cached(&self.lanes().tenants, &name.to_owned()) {
            return Ok(id);
        }
        let conn = self.conn().await?;
        let id = client::tenant(&conn.conn(), name).await?.id;
        keep(&self.lanes().tenants, name.to_owned(), id);
        Ok(id)
    }

    /// The id of a policy, made when it is new; the default one is 0.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn policy_id(&self, policy: &RetryPolicy) -> Result<i32, StoreError> {
        if *policy == RetryPolicy::default() {
            return Ok(0);
        }
        if let Some(id) = cached(&self.lanes().policies, policy) {
            return Ok(id);
        }
        let conn = self.conn().await?;
        let row = client::policy(
            &conn.conn(),
            &client::PolicyParams {
                max_failures: policy.max_failures,
                max_crashes: policy.max_crashes,
                backoff_initial_ms: policy.backoff_initial_ms,
                backoff_cap_ms: policy.backoff_cap_ms,
                schedule_to_start_ms: policy.schedule_to_start_ms,
                start_to_close_ms: policy.start_to_close_ms,
                kill_after_ms: policy.kill_after_ms,
            },
        )
        .await?;
        keep(&self.lanes().policies, *policy, row.id);
        Ok(row.id)
    }
}
