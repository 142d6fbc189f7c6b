//! Guarded writes: the product's guard judges them, and what they change stands here.

use aegis_model::guard::{self, Row};
use aegis_model::operation::OperationState;
use aegis_model::state::TaskChange;
use aegis_model::{Class, FenceReason, Resolution, State};
use uuid::Uuid;

use crate::bounds::{Bounds, KEY_MARGIN, RETENTION};
use crate::mutant::Mutant;
use crate::properties::Invariant;
use crate::world::{Held, Sent, Task, Verb, World};

/// What a guarded write answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    /// It was applied; the claim goes on at this rev.
    Applied(u8),
    /// It was applied and ended the claim.
    Ended,
    /// The claim may write, and the ledger refused the change.
    Refused,
    /// Somebody else may write.
    Fenced,
}

fn id(number: u8) -> Uuid {
    Uuid::from_u128(u128::from(number))
}

impl World {
    /// The row that a write of this claim is about.
    fn row_of(&self, bounds: &Bounds, held: &Held) -> usize {
        let by_owner = |task: &Task| {
            task.owner == Some(held.owner) && task.epoch == held.epoch && task.rev == held.rev
        };
        let found = bounds
            .has(Mutant::RowsByOwner)
            .then(|| self.database.tasks.iter().position(by_owner));
        found.flatten().unwrap_or(usize::from(held.task))
    }

    /// The guard, over the row as it is now, with what a mutant does not look at made equal before.
    fn judge(
        &self,
        bounds: &Bounds,
        held: &Held,
        at: usize,
        sent: Sent,
    ) -> Result<(), FenceReason> {
        let task = &self.database.tasks[at];
        let mut row = Row {
            state: task.state,
            owner: task.owner.map(id),
            claim_id: task.claim.map(id),
            epoch: i64::from(task.epoch),
            rev: i64::from(task.rev),
            lineage: task.lineage,
        };
        let mut today = Some(self.database.lineage);
        let ours = aegis_model::Held {
            task: id(held.task),
            owner: id(held.owner),
            claim_id: id(held.claim),
            epoch: i64::from(held.epoch),
            rev: i64::from(held.rev),
            lineage: held.lineage,
        };
        let weak = [
            Mutant::FenceIsEpoch,
            Mutant::FenceIsOwnerAndEpoch,
            Mutant::FenceIsOwner,
        ];
        if bounds.mutant.is_some_and(|mutant| weak.contains(&mutant)) {
            row.claim_id = Some(ours.claim_id);
            row.rev = ours.rev;
            today = Some(held.lineage);
            row.lineage = today;
            if bounds.has(Mutant::FenceIsEpoch) {
                row.owner = Some(ours.owner);
            }
            if bounds.has(Mutant::FenceIsOwner) {
                row.epoch = ours.epoch;
            }
        }
        if bounds.has(Mutant::RowsByOwner) {
            // As of one acquire call, which gives its id to all that it claims.
            row.claim_id = Some(ours.claim_id);
        }
        let live = if bounds.has(Mutant::NoLease) || bounds.has(Mutant::FenceIsEpoch) {
            true
        } else if bounds.has(Mutant::SnapshotLease) {
            sent.live
        } else if bounds.has(Mutant::TransactionClock) {
            self.database.workers[usize::from(held.owner)].lease_until > sent.at
        } else {
            self.lease_live(held.owner)
        };
        guard::judge(&ours, Some(&row), today, live)
    }

    /// Runs the write of an execution.
    pub(crate) fn write(
        &mut self,
        bounds: &Bounds,
        held: &Held,
        sent: Sent,
        protocol: u8,
    ) -> Answer {
        let at = self.row_of(bounds, held);
        if self.judge(bounds, held, at, sent).is_err() {
            return Answer::Fenced;
        }
        let now = self.now;
        let row = &self.database.tasks[at];
        let truly_mine = row.claim == Some(held.claim)
            && row.rev == held.rev
            && row.lineage == Some(self.database.lineage)
            && held.lineage == self.database.lineage;
        if row.tenant != held.tenant {
            self.breaks(Invariant::TenantFence);
        }
        if !truly_mine {
            self.breaks(Invariant::SingleWriter);
        }
        if !self.lease_live(held.owner) {
            self.breaks(Invariant::LeaseAtWrite);
        }
        let answer = self.database.tasks[at].apply(bounds, sent.verb, now, protocol);
        if bounds.synchronous
            && matches!(sent.verb, Verb::Dispatch { .. })
            && self.standby.is_some()
        {
            self.standby = Some(Box::new(self.database.clone()));
        }
        answer
    }

    /// Did no ledger go backwards since then? Whoever wrote it: a claim, the reaper, a person.
    pub(crate) fn ledger_follows(&self, last: &Self) -> bool {
        let (before, after) = (&last.database.tasks, &self.database.tasks);
        before
            .iter()
            .zip(after)
            .all(|(from, to)| legal(from.operation.state, to.operation.state))
    }
}

/// May the ledger go from here to there?
fn legal(from: OperationState, to: OperationState) -> bool {
    use OperationState::{Dispatched, Intended, Resolved, Succeeded, Unknown};
    from == to
        || matches!(
            (from, to),
            (Intended | Resolved, Dispatched)
                | (Dispatched, Succeeded | Unknown)
                | (Unknown, Resolved)
        )
}

impl Task {
    /// May this operation be dispatched now? As the dispatching statement says it.
    fn may_dispatch(&self, bounds: &Bounds, now: u8, probed: bool) -> bool {
        let operation = &self.operation;
        let blind_too = bounds.has(Mutant::BlindIsRepeated);
        match (operation.state, bounds.class) {
            (OperationState::Resolved, _) => operation.resolution == Some(Resolution::DidNotHappen),
            (OperationState::Intended, _) | (OperationState::Dispatched, Class::Fenced) => true,
            (OperationState::Dispatched, Class::Idempotent) => {
                now < key_valid_until(bounds, operation.first_at)
            }
            (OperationState::Dispatched, Class::Queryable) => probed,
            (OperationState::Dispatched, Class::Blind) => blind_too,
            _ => false,
        }
    }

    fn apply(&mut self, bounds: &Bounds, verb: Verb, now: u8, protocol: u8) -> Answer {
        match verb {
            Verb::Dispatch { probed } => {
                if !self.may_dispatch(bounds, now, probed) {
                    return Answer::Refused;
                }
                let operation = &mut self.operation;
                if operation.state != OperationState::Dispatched {
                    operation.first_at = now;
                }
                operation.state = OperationState::Dispatched;
                operation.resolution = None;
                operation.dispatches += 1;
                operation.dispatched_at = now;
                operation.quiet_until = 0;
                self.protocol = self.protocol.max(protocol);
            }
            Verb::Settle => {
                if self.operation.state != OperationState::Dispatched {
                    return Answer::Refused;
                }
                self.operation.state = OperationState::Succeeded;
            }
            Verb::Complete => {
                if self.operation.state.is_open() && !bounds.has(Mutant::CompleteBesideOpen) {
                    // Stored as pending; a claim settles first, or a person.
                    self.pending = self.pending.or(Some(State::Succeeded));
                    self.rev += 1;
                    let people = self.end_operation(bounds, now);
                    self.moves(if people {
                        TaskChange::Doubt
                    } else {
                        TaskChange::Return
                    });
                } else {
                    self.moves(if self.pending == Some(State::Quarantined) {
                        TaskChange::Quarantine
                    } else {
                        TaskChange::Complete
                    });
                }
                return Answer::Ended;
            }
            Verb::Snooze => {
                self.rev += 1;
                self.end_operation(bounds, now);
                self.run_at = self.operation.quiet_until;
                self.moves(TaskChange::Snooze);
                return Answer::Ended;
            }
            Verb::Doubt => {
                self.rev += 1;
                self.end_operation(bounds, now);
                self.operation.state = OperationState::Unknown;
                self.moves(if bounds.has(Mutant::DoubtGoesRound) {
                    TaskChange::Return
                } else {
                    TaskChange::Doubt
                });
                return Answer::Ended;
            }
            Verb::HandBack => {
                self.returns(bounds, now);
                return Answer::Ended;
            }
        }
        self.rev += 1;
        Answer::Applied(self.rev)
    }
}

/// Until when the downstream is trusted to know a key that it saw first at this moment.
pub(crate) fn key_valid_until(bounds: &Bounds, first_at: u8) -> u8 {
    let margin = if bounds.has(Mutant::NoKeyMargin) {
        0
    } else {
        KEY_MARGIN
    };
    first_at + RETENTION - margin
}
