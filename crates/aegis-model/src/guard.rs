//! The guard: what every write on a worker's behalf must match, as a pure rule.
//!
//! `aegis-store/sql/include/guard.sql` restates [`judge`] in SQL; a truth table proves that they agree. Lease is for
//! liveness, the guard is for safety.
//!
//! Never: add a comparison here without adding it there.

use uuid::Uuid;

use crate::outcome::FenceReason;
use crate::state::State;

/// Which life of a database: floor and WAL timeline, under one system identifier. A promoted standby has another
/// timeline; an adopted copy has another floor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Lineage {
    /// Raised by `aegis db adopt`.
    pub floor: i32,
    /// The WAL timeline.
    pub timeline: i32,
}

/// What an execution holds: its claim and the rev of its last write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Held {
    /// The task.
    pub task: Uuid,
    /// The worker incarnation that made the claim; never the process's newest one.
    pub owner: Uuid,
    /// The request id of the acquire call.
    pub claim_id: Uuid,
    /// The fencing number of the task at the claim.
    pub epoch: i64,
    /// Moved by every guarded write.
    pub rev: i64,
    /// The database's lineage at the claim.
    pub lineage: Lineage,
}

/// A task's row as the guard sees it, after its lock was granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// Where the task stands.
    pub state: State,
    /// Who owns it.
    pub owner: Option<Uuid>,
    /// Under which acquire call.
    pub claim_id: Option<Uuid>,
    /// At which epoch.
    pub epoch: i64,
    /// At which rev.
    pub rev: i64,
    /// Under which lineage it was claimed.
    pub lineage: Option<Lineage>,
}

/// May this write be accepted? `today` is the database's lineage, `lease_live` the owner's lease judged after the lock.
///
/// # Errors
/// The first [`FenceReason`] in the order in which a person wants to know them.
pub fn judge(
    held: &Held,
    row: Option<&Row>,
    today: Option<Lineage>,
    lease_live: bool,
) -> Result<(), FenceReason> {
    let Some(row) = row else {
        return Err(FenceReason::Gone);
    };
    if row.epoch != held.epoch {
        return Err(FenceReason::Epoch { current: row.epoch });
    }
    if row.state != State::Running {
        return Err(FenceReason::NotRunning);
    }
    if row.owner != Some(held.owner) {
        return Err(FenceReason::Owner);
    }
    if row.claim_id != Some(held.claim_id) {
        return Err(FenceReason::Claim);
    }
    if today.is_none() || row.lineage != today {
        return Err(FenceReason::Lineage);
    }
    if !lease_live {
        return Err(FenceReason::Lease);
    }
    if row.rev != held.rev {
        return Err(FenceReason::Rev { current: row.rev });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TODAY: Lineage = Lineage {
        floor: 0,
        timeline: 1,
    };

    fn held() -> Held {
        Held {
            task: Uuid::from_u128(1),
            owner: Uuid::from_u128(2),
            claim_id: Uuid::from_u128(3),
            epoch: 7,
            rev: 9,
            lineage: TODAY,
        }
    }

    fn row() -> Row {
        Row {
            state: State::Running,
            owner: Some(Uuid::from_u128(2)),
            claim_id: Some(Uuid::from_u128(3)),
            epoch: 7,
            rev: 9,
            lineage: Some(TODAY),
        }
    }

    #[test]
    fn what_matches_may_write() {
        assert_eq!(judge(&held(), Some(&row()), Some(TODAY), true), Ok(()));
    }

    #[test]
    fn each_difference_alone_fences() {
        let other = Some(Uuid::from_u128(99));
        let cases = [
            (
                Row {
                    state: State::Ready,
                    ..row()
                },
                FenceReason::NotRunning,
            ),
            (
                Row {
                    owner: other,
                    ..row()
                },
                FenceReason::Owner,
            ),
            (
                Row {
                    claim_id: other,
                    ..row()
                },
                FenceReason::Claim,
            ),
            (Row { epoch: 8, ..row() }, FenceReason::Epoch { current: 8 }),
            (Row { rev: 10, ..row() }, FenceReason::Rev { current: 10 }),
            (
                Row {
                    lineage: Some(Lineage {
                        floor: 1,
                        timeline: 1,
                    }),
                    ..row()
                },
                FenceReason::Lineage,
            ),
            (
                Row {
                    lineage: Some(Lineage {
                        floor: 0,
                        timeline: 2,
                    }),
                    ..row()
                },
                FenceReason::Lineage,
            ),
        ];
        for (row, reason) in cases {
            assert_eq!(judge(&held(), Some(&row), Some(TODAY), true), Err(reason));
        }
        assert_eq!(
            judge(&held(), Some(&row()), Some(TODAY), false),
            Err(FenceReason::Lease)
        );
        assert_eq!(
            judge(&held(), Some(&row()), None, true),
            Err(FenceReason::Lineage)
        );
        assert_eq!(
            judge(&held(), None, Some(TODAY), true),
            Err(FenceReason::Gone)
        );
    }
}
