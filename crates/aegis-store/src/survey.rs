//! Lanes, pauses, workers and operations as people look for them: by filter, by name, by the beginning of an id. Reads only.
//!
//! Never: an answer that a prefix stands for one thing when it stands for several.

use uuid::Uuid;

use crate::error::StoreError;
use crate::generated::view;
use crate::store::Store;

pub use crate::generated::view::{
    FleetChangesRow as FleetChange, LanesRow as LaneSummary, OperationsRow as OperationFound,
    PausesRow as Pause, WorkerRow as WorkerDetail, WorkerTasksRow as WorkerTask,
    WorkersRow as WorkerFound,
};

/// Which lanes to list.
#[derive(Debug, Clone, Default)]
pub struct LaneFilter {
    /// Of this queue.
    pub queue: Option<String>,
    /// Of this kind.
    pub kind: Option<String>,
    /// Those where nothing stands, too.
    pub all: bool,
    /// At most so many.
    pub limit: i64,
}

/// Which operations to list; the oldest dispatch first.
#[derive(Debug, Clone, Default)]
pub struct OperationFilter {
    /// In one of these states (numbers).
    pub states: Vec<i16>,
    /// Of this task.
    pub task: Option<Uuid>,
    /// Of this tenant.
    pub tenant: Option<String>,
    /// With this name.
    pub name: Option<String>,
    /// Of this class (its number).
    pub class: Option<i16>,
    /// Whose last dispatch is at least so many seconds ago.
    pub older_than_s: Option<f64>,
    /// At most so many.
    pub limit: i64,
}

/// Which workers to list; the newest first.
#[derive(Debug, Clone, Default)]
pub struct WorkerFilter {
    /// Of this release.
    pub release: Option<String>,
    /// That serve this queue.
    pub queue: Option<String>,
    /// That can execute this kind.
    pub kind: Option<String>,
    /// The stopped and lost ones, too.
    pub all: bool,
    /// At most so many.
    pub limit: i64,
}

/// What a person's name for a thing stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Named<T> {
    /// One thing.
    One(T),
    /// Nothing.
    None,
    /// Several: the first of them.
    Several(Vec<T>),
}

/// An operation's place: its task, and its whole id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperationId {
    /// The task.
    pub task: Uuid,
    /// `TASK/NAME/KEY/vN`.
    pub id: String,
}

/// A worker that a name stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerId {
    /// The incarnation.
    pub id: Uuid,
    /// What people call it.
    pub name: String,
}

impl Store {
    /// Lanes with what stands there; those with tasks, or all.
    ///
    /// # Errors
    /// A database error.
    pub async fn lanes_by(&self, filter: &LaneFilter) -> Result<Vec<LaneSummary>, StoreError> {
        let conn = self.conn().await?;
        let (queue, kind) = (filter.queue.as_deref(), filter.kind.as_deref());
        Ok(view::lanes(&conn.conn(), queue, kind, filter.all, filter.limit).await?)
    }

    /// What is paused, the longest first.
    ///
    /// # Errors
    /// A database error.
    pub async fn pauses(&self) -> Result<Vec<Pause>, StoreError> {
        let conn = self.conn().await?;
        Ok(view::pauses(&conn.conn()).await?)
    }

    /// What people changed about the fleet (pauses, drains, adoptions), the newest first.
    ///
    /// # Errors
    /// A database error.
    pub async fn fleet_changes(&self, limit: i64) -> Result<Vec<FleetChange>, StoreError> {
        let conn = self.conn().await?;
        Ok(view::fleet_changes(&conn.conn(), limit).await?)
    }

    /// Operations by filter.
    ///
    /// # Errors
    /// A database error.
    pub async fn operations_by(
        &self,
        filter: &OperationFilter,
    ) -> Result<Vec<OperationFound>, StoreError> {
        let conn = self.conn().await?;
        let params = view::OperationsParams {
            states: &filter.states,
            task: filter.task,
            tenant: filter.tenant.as_deref(),
            name: filter.name.as_deref(),
            class: filter.class,
            older_than_s: filter.older_than_s,
            limit: filter.limit,
        };
        Ok(view::operations(&conn.conn(), &params).await?)
    }

    /// The operation that `wanted` stands for: `TASK/NAME/KEY/vN`, with as few letters of it as make it the only one.
    ///
    /// # Errors
    /// A database error.
    pub async fn find_operation(&self, wanted: &str) -> Result<Named<OperationId>, StoreError> {
        let (task, rest) = wanted.split_once('/').unwrap_or((wanted, ""));
        let Some(digits) = digits(task) else {
            return Ok(Named::None);
        };
        let conn = self.conn().await?;
        let rows = view::find_operations(&conn.conn(), rest, &digits).await?;
        let is_exact = rows.first().is_some_and(|row| row.exact);
        let found = rows.into_iter().map(|row| OperationId {
            task: row.task,
            id: row.id,
        });
        Ok(one_of(found.collect(), is_exact))
    }

    /// Workers by filter.
    ///
    /// # Errors
    /// A database error.
    pub async fn workers_by(&self, filter: &WorkerFilter) -> Result<Vec<WorkerFound>, StoreError> {
        let conn = self.conn().await?;
        Ok(view::workers(
            &conn.conn(),
            filter.all,
            filter.release.as_deref(),
            filter.queue.as_deref(),
            filter.kind.as_deref(),
            filter.limit,
        )
        .await?)
    }

    /// The worker that `wanted` stands for: its name, its id, or the first four or more digits of it. A living one is meant
    /// before those that have ended; `all` says whether these are looked for at all.
    ///
    /// # Errors
    /// A database error.
    pub async fn find_worker(
        &self,
        wanted: &str,
        all: bool,
    ) -> Result<Named<WorkerId>, StoreError> {
        let conn = self.conn().await?;
        let digits = digits(wanted).unwrap_or_default();
        let rows = view::find_workers(&conn.conn(), wanted, &digits, all, 20).await?;
        let living = rows.iter().filter(|row| row.is_open).count();
        let found = rows.into_iter().map(|row| WorkerId {
            id: row.id,
            name: row.name,
        });
        Ok(one_of(found.collect(), living == 1))
    }

    /// One worker.
    ///
    /// # Errors
    /// A database error.
    pub async fn worker(&self, id: Uuid) -> Result<Option<WorkerDetail>, StoreError> {
        let conn = self.conn().await?;
        Ok(view::worker(&conn.conn(), id).await?)
    }

    /// What a worker holds, the oldest claim first.
    ///
    /// # Errors
    /// A database error.
    pub async fn worker_tasks(&self, id: Uuid, limit: i64) -> Result<Vec<WorkerTask>, StoreError> {
        let conn = self.conn().await?;
        Ok(view::worker_tasks(&conn.conn(), id, limit).await?)
    }
}

/// `first`: the first is meant, whatever stands behind it.
fn one_of<T>(mut found: Vec<T>, first: bool) -> Named<T> {
    if first {
        found.truncate(1);
    }
    match found.pop() {
        None => Named::None,
        Some(one) if found.is_empty() => Named::One(one),
        Some(last) => {
            found.push(last);
            Named::Several(found)
        }
    }
}

/// The hexadecimal digits of the beginning of an id, without its dashes.
fn digits(text: &str) -> Option<String> {
    let digits: String = text.chars().filter(|c| *c != '-').collect();
    let fits = (1..=32).contains(&digits.len());
    (fits && digits.chars().all(|c| c.is_ascii_hexdigit())).then(|| digits.to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_is_of_digits() {
        assert_eq!(digits("01A2-29").unwrap(), "01a229");
        assert_eq!(digits("worker"), None);
        assert_eq!(digits(""), None);
        assert_eq!(digits(&"a".repeat(33)), None);
    }

    #[test]
    fn several_are_never_one() {
        assert_eq!(one_of::<i32>(vec![], true), Named::None);
        assert_eq!(one_of(vec![1], false), Named::One(1));
        assert_eq!(one_of(vec![1, 2], false), Named::Several(vec![1, 2]));
        assert_eq!(one_of(vec![1, 2], true), Named::One(1));
    }
}
