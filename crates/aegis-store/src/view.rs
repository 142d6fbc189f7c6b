//! What people and programs look at: tasks, workers, operations, the database. Reads only.

use std::time::Duration;

use aegis_model::State;
use uuid::Uuid;

use crate::error::StoreError;
use crate::generated::{database, operation, task, worker};
use crate::store::Store;

pub use crate::filter::{TaskFilter, TaskSummary};
pub use crate::generated::database::StatusRow as DatabaseStatus;
pub use crate::generated::operation::{ListRow as OperationSummary, ShowRow as OperationDetail};
pub use crate::generated::task::{
    CountsRow as LaneCount, ErrorsRow as AttemptError, EventsRow as TaskEvent, GetRow as TaskDetail,
};
pub use crate::generated::worker::ListRow as WorkerSummary;

/// What a prefix of an id stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// One task.
    One(Uuid),
    /// None.
    None,
    /// More than one.
    Several,
}

impl Store {
    /// One task, wherever it stands.
    ///
    /// # Errors
    /// A database error.
    pub async fn task(&self, id: Uuid) -> Result<Option<TaskDetail>, StoreError> {
        let conn = self.conn().await?;
        Ok(task::get(&conn.conn(), id).await?)
    }

    /// Live and parked tasks by lane and state.
    ///
    /// # Errors
    /// A database error.
    pub async fn counts(&self) -> Result<Vec<LaneCount>, StoreError> {
        let conn = self.conn().await?;
        Ok(task::counts(&conn.conn()).await?)
    }

    /// What happened to a task, in order.
    ///
    /// # Errors
    /// A database error.
    pub async fn events(&self, id: Uuid) -> Result<Vec<TaskEvent>, StoreError> {
        let conn = self.conn().await?;
        Ok(task::events(&conn.conn(), id).await?)
    }

    /// The errors of a task's attempts, in order.
    ///
    /// # Errors
    /// A database error.
    pub async fn attempt_errors(&self, id: Uuid) -> Result<Vec<AttemptError>, StoreError> {
        let conn = self.conn().await?;
        Ok(task::errors(&conn.conn(), id).await?)
    }

    /// The task whose id starts with `prefix` (hex digits, dashes allowed).
    ///
    /// # Errors
    /// A database error.
    pub async fn find_task(&self, prefix: &str) -> Result<Found, StoreError> {
        let Some((low, high)) = bounds(prefix) else {
            return Ok(Found::None);
        };
        let conn = self.conn().await?;
        let rows = task::find(&conn.conn(), low, high).await?;
        Ok(match rows.as_slice() {
            [] => Found::None,
            [one] => Found::One(one.id),
            _ => Found::Several,
        })
    }

    /// Waits until a task has ended or is parked; `None` when that took longer than `timeout`. Polls, more slowly with time.
    ///
    /// # Errors
    /// A database error.
    pub async fn wait(
        &self,
        id: Uuid,
        timeout: Duration,
    ) -> Result<Option<TaskDetail>, StoreError> {
        let mut pause = Duration::from_millis(10);
        let polling = async {
            loop {
                match self.task(id).await? {
                    Some(task) if !State::from_number(task.state).is_terminal() => {}
                    ended => return Ok(ended),
                }
                tokio::time::sleep(pause).await;
                pause = (pause * 3 / 2).min(Duration::from_secs(1));
            }
        };
        tokio::time::timeout(timeout, polling)
            .await
            .unwrap_or(Ok(None))
    }

    /// Workers, the newest first; `all` includes the stopped and lost ones.
    ///
    /// # Errors
    /// A database error.
    pub async fn workers(&self, all: bool, limit: i64) -> Result<Vec<WorkerSummary>, StoreError> {
        let conn = self.conn().await?;
        Ok(worker::list(&conn.conn(), all, limit).await?)
    }

    /// Operations in these states (numbers), the oldest dispatch first.
    ///
    /// # Errors
    /// A database error.
    pub async fn operations(
        &self,
        states: &[i16],
        task: Option<Uuid>,
        limit: i64,
    ) -> Result<Vec<OperationSummary>, StoreError> {
        let conn = self.conn().await?;
        Ok(operation::list(&conn.conn(), states, task, limit).await?)
    }

    /// One operation.
    ///
    /// # Errors
    /// A database error.
    pub async fn operation(
        &self,
        task: Uuid,
        id: &str,
    ) -> Result<Option<OperationDetail>, StoreError> {
        let conn = self.conn().await?;
        Ok(operation::show(&conn.conn(), task, id).await?)
    }

    /// What this database is.
    ///
    /// # Errors
    /// A database error.
    pub async fn database_status(&self) -> Result<DatabaseStatus, StoreError> {
        self.bounded(async move |store| {
            let conn = store.conn().await?;
            Ok(database::status(&conn.conn()).await?)
        })
        .await
    }
}

/// The smallest and the largest id with this prefix.
fn bounds(prefix: &str) -> Option<(Uuid, Uuid)> {
    let digits: String = prefix.chars().filter(|c| *c != '-').collect();
    if digits.is_empty() || digits.len() > 32 || !digits.chars().all(|c| c.is_ascii_hexdigit()) {
        return None;
    }
    let low = format!("{digits:0<32}");
    let high = format!("{digits:f<32}");
    Some((Uuid::parse_str(&low).ok()?, Uuid::parse_str(&high).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_has_bounds() {
        let (low, high) = bounds("01a2-29").unwrap();
        assert_eq!(low.to_string(), "01a22900-0000-0000-0000-000000000000");
        assert_eq!(high.to_string(), "01a229ff-ffff-ffff-ffff-ffffffffffff");
        assert!(bounds("xyz").is_none());
        assert!(bounds("").is_none());
    }
}
