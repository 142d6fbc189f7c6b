//! One task's whole life: everything that is stored about it, and the same on one time line.
//!
//! Invariants: reads only; what is left out for its size is said. The time line is made of what was stored and nothing else,
//! so an auditor can find each moment in the tables.

mod told;

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde_json::Value;
use uuid::Uuid;

use crate::error::StoreError;
use crate::generated::{operation, task, worker};
use crate::store::Store;
use crate::view::{AttemptError, OperationSummary, TaskDetail, TaskEvent};

pub use crate::generated::task::StepsRow as StepSummary;
pub use crate::generated::worker::NamedRow as WorkerName;

/// So many steps, and so many operations, are shown at most.
pub const PARTS_MAX: i64 = 1000;

/// All that is stored about a task, but the values of its steps and operations.
#[derive(Debug, Clone)]
pub struct Life {
    /// The task itself.
    pub task: TaskDetail,
    /// What happened, in order.
    pub events: Vec<TaskEvent>,
    /// The errors of its attempts, in order.
    pub errors: Vec<AttemptError>,
    /// Its memoised steps, in order; the first [`PARTS_MAX`].
    pub steps: Vec<StepSummary>,
    /// Its operations; the first [`PARTS_MAX`].
    pub operations: Vec<OperationSummary>,
    /// Who the workers were. One that ended long ago is forgotten.
    pub workers: BTreeMap<Uuid, WorkerName>,
    /// When this was read, by the database's clock.
    pub read_at: Timestamp,
}

/// Something that happened to a task.
#[derive(Debug, Clone, PartialEq)]
pub struct Moment {
    /// When.
    pub at: Timestamp,
    /// At which epoch, where one was given.
    pub epoch: Option<i64>,
    /// A stable word: `submitted`, `claimed`, `step`, `checkpoint`, `operation_dispatched`, …, a cause, or a state.
    pub what: String,
    /// The worker that it is about.
    pub worker: Option<Uuid>,
    /// The person that did it.
    pub actor: Option<String>,
    /// For people.
    pub text: String,
    /// What else is stored.
    pub detail: Option<Value>,
}

impl Life {
    /// Everything that happened, in order.
    pub fn moments(&self) -> Vec<Moment> {
        told::moments(self)
    }

    /// Was something left out for its size?
    pub fn is_cut(&self) -> bool {
        let full = |count: usize| i64::try_from(count).is_ok_and(|count| count >= PARTS_MAX);
        full(self.steps.len()) || full(self.operations.len())
    }
}

impl Store {
    /// One task's life, wherever it stands.
    ///
    /// # Errors
    /// A database error.
    pub async fn life(&self, id: Uuid) -> Result<Option<Life>, StoreError> {
        let conn = self.conn().await?;
        let conn = conn.conn();
        let Some(task) = task::get(&conn, id).await? else {
            return Ok(None);
        };
        let events = task::events(&conn, id).await?;
        let errors = task::errors(&conn, id).await?;
        let steps = task::steps(&conn, id, PARTS_MAX).await?;
        let states = [0, 1, 2, 3, 4, 5];
        let operations = operation::list(&conn, &states, Some(id), PARTS_MAX).await?;
        let ids: BTreeSet<Uuid> = [task.owner]
            .into_iter()
            .chain(events.iter().map(|event| event.owner))
            .chain(errors.iter().map(|error| error.owner))
            .chain(operations.iter().map(|one| one.worker))
            .flatten()
            .collect();
        let ids: Vec<Uuid> = ids.into_iter().collect();
        let workers = worker::named(&conn, &ids).await?;
        Ok(Some(Life {
            read_at: task::moment(&conn, 0).await?.at,
            workers: workers.into_iter().map(|one| (one.id, one)).collect(),
            task,
            events,
            errors,
            steps,
            operations,
        }))
    }
}
