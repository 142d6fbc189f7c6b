//! From names to ids: lanes, tenants and policies, made when they are new.

use aegis_model::LaneRange;
use aegis_model::limits::SUBMIT_BATCH_MAX;

use super::NewTask;
use crate::error::StoreError;
use crate::store::Store;

/// A batch whose names were resolved to ids.
pub(super) struct Resolved {
    pub(super) tasks: Vec<NewTask>,
    pub(super) lanes: Vec<i32>,
    pub(super) tenants: Vec<i32>,
    pub(super) policies: Vec<i32>,
}

impl Store {
    /// Checks a whole batch, then resolves it.
    pub(super) async fn resolve_batch(&self, tasks: Vec<NewTask>) -> Result<Resolved, StoreError> {
        if tasks.len() > SUBMIT_BATCH_MAX {
            return Err(StoreError::TooLarge {
                what: "the batch (counted in tasks)".to_owned(),
                bytes: tasks.len(),
                limit: SUBMIT_BATCH_MAX,
            });
        }
        for (position, task) in tasks.iter().enumerate() {
            task.check(position)?;
        }
        let mut resolved = Resolved {
            lanes: Vec::with_capacity(tasks.len()),
            tenants: Vec::with_capacity(tasks.len()),
            policies: Vec::with_capacity(tasks.len()),
            tasks,
        };
        for (n, task) in resolved.tasks.iter().enumerate() {
            // Most batches are of one kind: what the task before had is not looked up again.
            let before = n.checked_sub(1).map(|at| (&resolved.tasks[at], at));
            let lane = match before {
                Some((other, at))
                    if (&other.queue, &other.kind, other.protocol)
                        == (&task.queue, &task.kind, task.protocol) =>
                {
                    resolved.lanes[at]
                }
                _ => {
                    let range = LaneRange {
                        lo: task.protocol,
                        hi: task.protocol,
                    };
                    self.lane_id(&task.queue, &task.kind, range).await?
                }
            };
            let tenant = match before {
                Some((other, at)) if other.tenant == task.tenant => resolved.tenants[at],
                _ => self.tenant_id(&task.tenant).await?,
            };
            let policy = match before {
                Some((other, at)) if other.policy == task.policy => resolved.policies[at],
                _ => self.policy_id(&task.policy).await?,
            };
            resolved.lanes.push(lane);
            resolved.tenants.push(tenant);
            resolved.policies.push(policy);
        }
        Ok(resolved)
    }
}
