//! After a lost answer: what became of the write.
//!
//! Only one guarded write of a claim is in flight, so this is decidable from claim, epoch and rev.

use aegis_model::{FenceReason, Held, State};
use uuid::Uuid;

use crate::error::StoreError;
use crate::generated::task;
use crate::store::Store;

/// How often it is read when the connection ends.
const READ_TRIES: u32 = 3;

/// What became of a write whose answer was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadBack {
    /// It was committed; the rev for the next write, and the state afterwards.
    Applied {
        /// The row's rev now.
        rev: i64,
        /// Where the task stands now.
        state: State,
    },
    /// It was not committed: the same write may be sent again, with the same rev.
    NotApplied,
    /// The claim is over, by this write or by somebody else; either way this execution has nothing left to write.
    Fenced(FenceReason),
}

impl Store {
    /// Reads back under the row's lock what became of a write of `held`. `digest` is that of a completion.
    ///
    /// # Errors
    /// A database error; try again, it only reads.
    pub async fn read_back(&self, held: Held, digest: Option<i64>) -> Result<ReadBack, StoreError> {
        let mut tries = 1;
        loop {
            // The pool may still hand out the connection on which the answer was lost.
            match self.read_row(held.task).await {
                Err(error) if error.lost_answer() && tries < READ_TRIES => tries += 1,
                row => return Ok(judge(&held, digest, row?.as_ref())),
            }
        }
    }

    async fn read_row(&self, task: Uuid) -> Result<Option<task::ReadBackRow>, StoreError> {
        self.bounded(async move |store| {
            let conn = store.conn().await?;
            Ok(task::read_back(&conn.conn(), task).await?)
        })
        .await
    }
}

fn judge(held: &Held, digest: Option<i64>, row: Option<&task::ReadBackRow>) -> ReadBack {
    let Some(row) = row else {
        return ReadBack::Fenced(FenceReason::Gone);
    };
    let state = State::from_number(row.state);
    let same_claim = row.claim_id == Some(held.claim_id) && row.epoch == held.epoch;
    if state.is_terminal() {
        let mine = same_claim
            && match row.rev - held.rev {
                0 => digest.is_none_or(|digest| row.digest == Some(digest)),
                // An end that first ended the attempt (cancelled, failed, a stored outcome): whose outcome stands is not asked.
                // Ends by others raise the epoch.
                1 => true,
                _ => false,
            };
        return if mine {
            ReadBack::Applied {
                rev: row.rev,
                state,
            }
        } else {
            ReadBack::Fenced(FenceReason::Gone)
        };
    }
    if state == State::Running && same_claim {
        return match row.rev - held.rev {
            0 => ReadBack::NotApplied,
            1 => ReadBack::Applied {
                rev: row.rev,
                state,
            },
            _ => ReadBack::Fenced(FenceReason::Rev { current: row.rev }),
        };
    }
    if row.epoch != held.epoch {
        return ReadBack::Fenced(FenceReason::Epoch { current: row.epoch });
    }
    // Same epoch and no longer running: a failure, a snooze, a doubt or a stored outcome. All of them only this claim writes.
    ReadBack::Applied {
        rev: row.rev,
        state,
    }
}

#[cfg(test)]
mod tests {
    use aegis_model::Lineage;

    use super::*;

    fn held() -> Held {
        Held {
            task: Uuid::from_u128(1),
            owner: Uuid::from_u128(2),
            claim_id: Uuid::from_u128(3),
            epoch: 4,
            rev: 6,
            lineage: Lineage {
                floor: 0,
                timeline: 1,
            },
        }
    }

    fn row(state: State, epoch: i64, rev: i64) -> task::ReadBackRow {
        task::ReadBackRow {
            id: Uuid::from_u128(1),
            state: state.number(),
            epoch,
            rev,
            owner: Some(Uuid::from_u128(2)),
            claim_id: Some(Uuid::from_u128(3)),
            digest: Some(11),
        }
    }

    #[test]
    fn rev_tells_whether_a_write_was_applied() {
        let at = |row| judge(&held(), None, Some(&row));
        assert_eq!(at(row(State::Running, 4, 6)), ReadBack::NotApplied);
        assert_eq!(
            at(row(State::Running, 4, 7)),
            ReadBack::Applied {
                rev: 7,
                state: State::Running
            }
        );
        assert_eq!(
            at(row(State::Running, 5, 7)),
            ReadBack::Fenced(FenceReason::Epoch { current: 5 })
        );
        assert_eq!(
            at(row(State::Scheduled, 4, 8)),
            ReadBack::Applied {
                rev: 8,
                state: State::Scheduled
            }
        );
        assert_eq!(
            judge(&held(), None, None),
            ReadBack::Fenced(FenceReason::Gone)
        );
    }

    #[test]
    fn an_end_that_moved_the_rev_is_this_claims_own() {
        for state in [State::Cancelled, State::Failed, State::Succeeded] {
            let at = |epoch, rev| judge(&held(), Some(12), Some(&row(state, epoch, rev)));
            assert_eq!(at(4, 7), ReadBack::Applied { rev: 7, state });
            assert_eq!(at(4, 8), ReadBack::Fenced(FenceReason::Gone));
            assert_eq!(at(4, 5), ReadBack::Fenced(FenceReason::Gone));
            assert_eq!(at(5, 7), ReadBack::Fenced(FenceReason::Gone), "a kill");
        }
    }

    #[test]
    fn a_completion_is_recognised_by_its_digest() {
        let ended = row(State::Succeeded, 4, 6);
        assert_eq!(
            judge(&held(), Some(11), Some(&ended)),
            ReadBack::Applied {
                rev: 6,
                state: State::Succeeded
            }
        );
        assert_eq!(
            judge(&held(), Some(12), Some(&ended)),
            ReadBack::Fenced(FenceReason::Gone)
        );
    }
}
