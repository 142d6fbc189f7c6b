//! The invariants, by the names of the reference (`RL-I1` to `RL-I15`), and what a useful exploration must have reached.
//!
//! RL-I7 (one key whatever the epoch) is broken by [`crate::Mutant::KeyHasEpoch`] and shows as RL-I4. RL-I15 is the part that
//! is the engine's: what a claim writes is a row of the tenant whose task was claimed. Who may ask for what is a server's.

use aegis_model::{Class, OperationState, State};
use stateright::Property;

use crate::calm::SERVED;
use crate::protocol::Protocol;
use crate::world::{At, Mode, World};

/// What always holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Invariant {
    /// RL-I1: an applied guarded write is of the row's claim, at the row's rev, under the database's lineage.
    SingleWriter,
    /// RL-I2: the lease was live after the row lock was granted.
    LeaseAtWrite,
    /// RL-I3: (lineage, epoch) of a task's claims grows, and no two claims share one.
    FenceMonotone,
    /// RL-I4: at most one effect.
    AtMostOnce,
    /// RL-I5: a task that succeeded has its effect or a person's word; an unknown operation has no ended task.
    NoPhantomDone,
    /// RL-I6: an effect has a durable dispatch before it.
    IntentFirst,
    /// RL-I8: the ledger only goes forward.
    LedgerOneWay,
    /// RL-I9: nothing is claimed behind a closed gate; who says "drained" holds nothing.
    DrainClosed,
    /// RL-I10: what has not ended is claimable, held by somebody who may write, reapable, or before a person.
    NoLostTask,
    /// RL-I11: nobody gets what it cannot read.
    Protocol,
    /// RL-I12: effects follow the order of their tokens.
    Order,
    /// RL-I13: a task that killed its workers often enough does not run again.
    AttemptBound,
    /// RL-I14: after a lost reply the caller acts on what it read back, not on a guess.
    UnknownRemains,
    /// RL-I15: a claim's writes touch rows of the tenant whose task it is, and no other's.
    TenantFence,
}

/// All of them, with their names.
pub const INVARIANTS: [(Invariant, &str); 14] = [
    (Invariant::SingleWriter, "RL-I1 single writer"),
    (Invariant::LeaseAtWrite, "RL-I2 lease at write"),
    (Invariant::FenceMonotone, "RL-I3 fence monotone"),
    (Invariant::AtMostOnce, "RL-I4 at most one effect"),
    (Invariant::NoPhantomDone, "RL-I5 no phantom done"),
    (Invariant::IntentFirst, "RL-I6 intent first"),
    (Invariant::LedgerOneWay, "RL-I8 ledger one way"),
    (Invariant::DrainClosed, "RL-I9 drain closed"),
    (Invariant::NoLostTask, "RL-I10 no lost task"),
    (Invariant::Protocol, "RL-I11 protocol"),
    (Invariant::Order, "RL-I12 order"),
    (Invariant::AttemptBound, "RL-I13 attempt bound"),
    (Invariant::UnknownRemains, "RL-I14 unknown remains"),
    (Invariant::TenantFence, "RL-I15 tenant fence"),
];

impl World {
    /// Does this invariant hold here?
    pub(crate) fn keeps(&self, model: &Protocol, invariant: Invariant) -> bool {
        !self.has_broken(invariant)
            && match invariant {
                Invariant::AtMostOnce => self.downstream.iter().all(|remote| remote.effects <= 1),
                Invariant::NoPhantomDone => {
                    (0..self.database.tasks.len()).all(|task| self.is_real(task))
                }
                Invariant::DrainClosed => self.drained_hold_nothing(),
                Invariant::NoLostTask => {
                    (0..self.database.tasks.len()).all(|task| self.somebody_can(model, task))
                }
                Invariant::AttemptBound => self.suspects_end(),
                _ => true,
            }
    }

    fn is_real(&self, task: usize) -> bool {
        let row = &self.database.tasks[task];
        let ended = row.state.is_terminal();
        let settled = match self.ledger(task) {
            OperationState::Succeeded => self.downstream[task].effects > 0,
            OperationState::Resolved => true,
            // What the ledger does not know must not have happened.
            _ => row.operation.dispatches == 0 && self.downstream[task].effects == 0,
        };
        let open = self.ledger(task).is_open();
        !(ended && open) && (row.state != State::Succeeded || settled)
    }

    fn drained_hold_nothing(&self) -> bool {
        self.executions.iter().all(|execution| {
            self.processes[usize::from(execution.process)].mode != Mode::Drained
                || execution.at == At::Idle
        })
    }

    fn somebody_can(&self, model: &Protocol, task: usize) -> bool {
        let row = &self.database.tasks[task];
        match row.state {
            State::Running => {
                let writable = row.lineage == Some(self.database.lineage)
                    && row.owner.is_some_and(|owner| self.lease_live(owner));
                writable || self.reapable(&model.bounds, task)
            }
            State::Reconciling => row.operation.state == OperationState::Unknown,
            _ => true,
        }
    }

    fn suspects_end(&self) -> bool {
        self.database
            .tasks
            .iter()
            .zip(&self.taken)
            .all(|(row, taken)| {
                *taken < crate::bounds::MAX_CRASHES
                    || row.pending.is_some()
                    || row.state == State::Reconciling
                    || row.state.is_terminal()
            })
    }
}

macro_rules! always {
    ($($invariant:ident),*) => {
        vec![$(Property::<Protocol>::always(
            name(Invariant::$invariant),
            |model, world| world.keeps(model, Invariant::$invariant),
        )),*]
    };
}

fn name(invariant: Invariant) -> &'static str {
    INVARIANTS
        .iter()
        .find(|(known, _)| *known == invariant)
        .map_or("unnamed", |(_, name)| name)
}

/// The invariants, and what must be reachable for their holding to mean anything.
pub(crate) fn all(model: &Protocol) -> Vec<Property<Protocol>> {
    let mut properties = always![
        SingleWriter,
        LeaseAtWrite,
        FenceMonotone,
        AtMostOnce,
        NoPhantomDone,
        IntentFirst,
        LedgerOneWay,
        DrainClosed,
        NoLostTask,
        Protocol,
        Order,
        AttemptBound,
        UnknownRemains,
        TenantFence
    ];
    properties.push(Property::sometimes(
        "a task succeeds",
        |_, world: &World| {
            world
                .database
                .tasks
                .iter()
                .any(|task| task.state == State::Succeeded)
        },
    ));
    properties.push(Property::sometimes(
        "a takeover succeeds",
        |_, world: &World| {
            world
                .database
                .tasks
                .iter()
                .any(|task| task.state == State::Succeeded && task.crashes > 0)
        },
    ));
    properties.push(Property::sometimes(
        "a stale write is under way",
        |_, world: &World| {
            world.executions.iter().any(|execution| {
                matches!(execution.at, At::Writing(_))
                    && execution.held.is_some_and(|held| {
                        held.epoch < world.database.tasks[usize::from(held.task)].epoch
                    })
            })
        },
    ));
    properties.push(Property::sometimes(
        "a reply is lost",
        |_, world: &World| {
            world
                .executions
                .iter()
                .any(|execution| matches!(execution.at, At::WriteUnknown(_)))
        },
    ));
    if model.calm.is_some() {
        properties.push(Property::always(SERVED, |model: &Protocol, world| {
            let calm = model.calm.as_ref();
            calm.is_none_or(|calm| calm.serves(world).is_ok())
        }));
    }
    if model.bounds.class == Class::Blind {
        properties.push(Property::sometimes(
            "a person decides",
            |_, world: &World| {
                world
                    .database
                    .tasks
                    .iter()
                    .any(|task| task.operation.state == OperationState::Resolved)
            },
        ));
    }
    if model.bounds.drains > 0 {
        properties.push(Property::sometimes(
            "a claim races a drain",
            |_, world: &World| {
                world.executions.iter().any(|execution| {
                    matches!(execution.at, At::Claiming { .. })
                        && world.processes[usize::from(execution.process)].mode == Mode::Draining
                })
            },
        ));
    }
    if model.bounds.failovers > 0 {
        properties.push(Property::sometimes(
            "a failover loses a claim",
            |_, world: &World| {
                world.executions.iter().any(|execution| {
                    execution.held.is_some_and(|held| {
                        held.lineage != world.database.lineage
                            && held.epoch > world.database.tasks[usize::from(held.task)].epoch
                    })
                })
            },
        ));
    }
    properties
}
