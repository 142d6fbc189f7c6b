//! Guarded writes: everything that changes a task on a worker's behalf.
//!
//! Invariants: each statement includes `sql/include/guard.sql`; each write answers [`Outcome`] row by row; after
//! [`Outcome::Unknown`] nothing is repeated before [`Store::read_back`] said what became of it; a fence is written down as an
//! event with both epochs.
//!
//! Never: write by id alone.

mod checkpoint;
mod fail;
mod finish;
mod operation;
mod read_back;

use aegis_model::{FenceReason, Held, Lineage, Outcome, State, guard};
use uuid::Uuid;

pub use checkpoint::{SaveTo, Saved, StepValue, fence_in};
pub use fail::Failure;
pub(crate) use finish::is_data_error;
pub use finish::{Completion, Release, complete_in};
pub use operation::{Dispatch, Dispatched, LedgerEntry, OperationResult};
pub use read_back::ReadBack;

use crate::error::StoreError;
use crate::generated::task;
use crate::session::Session;
use crate::store::Store;

/// What is held, as the arrays that the guard takes. In id order: the order of locking.
pub(crate) struct Group {
    pub(crate) worker: Uuid,
    pub(crate) ids: Vec<Uuid>,
    pub(crate) claim_ids: Vec<Uuid>,
    pub(crate) epochs: Vec<i64>,
    pub(crate) revs: Vec<i64>,
}

impl Group {
    /// All of one owner; `None` when there is nothing. Callers group by owner.
    pub(crate) fn of<'a>(held: impl IntoIterator<Item = &'a Held>) -> Option<Self> {
        let mut group: Option<Self> = None;
        for one in held {
            let group = group.get_or_insert_with(|| Self {
                worker: one.owner,
                ids: Vec::new(),
                claim_ids: Vec::new(),
                epochs: Vec::new(),
                revs: Vec::new(),
            });
            group.ids.push(one.task);
            group.claim_ids.push(one.claim_id);
            group.epochs.push(one.epoch);
            group.revs.push(one.rev);
        }
        group
    }
}

impl Store {
    /// Why a write was refused, and the event that says so. When the row can no longer tell, the reason is `Gone`.
    /// Public for writes that joined a handler's own transaction, which has to be rolled back first.
    ///
    /// # Errors
    /// A database error.
    pub async fn fenced(
        &self,
        session: &(impl Session + ?Sized),
        held: &Held,
        verb: &str,
    ) -> Result<FenceReason, StoreError> {
        let row = task::why_fenced(session, held.owner, held.task).await?;
        let today = match &row {
            Some(row) if row.lineage_holds => lineage(row.floor, row.timeline),
            // Not today's, or no lineage at all: either way it cannot be the claim's.
            _ => None,
        };
        let seen = row.as_ref().map(|row| guard::Row {
            state: State::from_number(row.state),
            owner: row.owner,
            claim_id: row.claim_id,
            epoch: row.epoch,
            rev: row.rev,
            lineage: lineage(row.floor, row.timeline),
        });
        let live = row.as_ref().is_some_and(|row| row.lease_live);
        // The row may have changed again since it was refused; it was refused all the same.
        let reason = guard::judge(held, seen.as_ref(), today, live)
            .err()
            .unwrap_or(FenceReason::Lease);
        let current = seen.map(|row| row.epoch);
        task::note_fence(
            session,
            held.epoch,
            held.owner,
            verb,
            reason.word(),
            current,
            held.task,
        )
        .await?;
        tracing::warn!(task = %held.task, epoch = held.epoch, worker = %held.owner, verb, reason = reason.word(), "a stale write was refused");
        Ok(reason)
    }
}

fn lineage(floor: Option<i32>, timeline: Option<i32>) -> Option<Lineage> {
    Some(Lineage {
        floor: floor?,
        timeline: timeline?,
    })
}

/// Turns a lost answer into [`Outcome::Unknown`]; every other error stays one.
pub(crate) fn or_unknown<T>(
    result: Result<Outcome<T>, StoreError>,
) -> Result<Outcome<T>, StoreError> {
    match result {
        Err(error) if error.lost_answer() => {
            tracing::warn!(error = %error, "the answer to a guarded write was lost");
            Ok(Outcome::Unknown)
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(n: u128) -> Held {
        Held {
            task: Uuid::from_u128(n),
            owner: Uuid::from_u128(9),
            claim_id: Uuid::from_u128(10 + n),
            epoch: 20 + i64::try_from(n).unwrap(),
            rev: 30 + i64::try_from(n).unwrap(),
            lineage: Lineage {
                floor: 0,
                timeline: 1,
            },
        }
    }

    #[test]
    fn a_group_is_what_is_held_row_by_row() {
        assert!(Group::of(&[]).is_none());
        let group = Group::of(&[held(1), held(2)]).unwrap();
        assert_eq!(group.worker, Uuid::from_u128(9));
        assert_eq!(group.ids, [1, 2].map(Uuid::from_u128));
        assert_eq!(group.claim_ids, [11, 12].map(Uuid::from_u128));
        assert_eq!((group.epochs, group.revs), (vec![21, 22], vec![31, 32]));
    }

    #[test]
    fn half_a_lineage_is_none() {
        let whole = lineage(Some(7), Some(3));
        let wanted = Lineage {
            floor: 7,
            timeline: 3,
        };
        assert_eq!(whole, Some(wanted));
        assert_eq!(lineage(None, Some(3)), None);
        assert_eq!(lineage(Some(7), None), None);
    }

    #[test]
    fn only_a_lost_answer_is_unknown() {
        let lost = or_unknown::<()>(Err(StoreError::Panicked));
        assert!(matches!(lost, Ok(Outcome::Unknown)));
        let told = or_unknown::<()>(Err(StoreError::NotInstalled));
        assert!(matches!(told, Err(StoreError::NotInstalled)));
        let applied = or_unknown(Ok(Outcome::Applied(5)));
        assert!(matches!(applied, Ok(Outcome::Applied(5))));
    }
}
