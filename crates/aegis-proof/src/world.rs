//! Everything that is: the database and its lagging copy, processes and their executions, the downstream, time.

use aegis_model::{Lineage, OperationState, Resolution, State, WorkerState};

use crate::bounds::{Bounds, TTL};
use crate::properties::Invariant;

/// One state of the exploration.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct World {
    /// True time, in ticks. Processes measure with it: their clock is monotonic.
    pub(crate) time: u8,
    /// What the database's clock says. It may jump.
    pub(crate) now: u8,
    pub(crate) database: Database,
    /// What the standby has.
    pub(crate) standby: Option<Box<Database>>,
    pub(crate) processes: Vec<Process>,
    pub(crate) executions: Vec<Execution>,
    pub(crate) downstream: Vec<Downstream>,
    /// What the paths so far have used up.
    pub(crate) used: Used,
    /// The newest claim that was ever acknowledged or written, of each task.
    pub(crate) newest_claim: Vec<Option<(Lineage, u8)>>,
    /// How often a task was taken from a worker that had died.
    pub(crate) taken: Vec<u8>,
    /// What an unguarded reaper has read and not yet written.
    pub(crate) reaper_read: Vec<u8>,
    /// Invariants that a step has broken, as a set of bits.
    pub(crate) broken: u16,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Database {
    pub(crate) lineage: Lineage,
    pub(crate) tasks: Vec<Task>,
    pub(crate) workers: Vec<Worker>,
}

/// A task's row, its operation's row, and, when it has ended, what its history says.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Task {
    /// Whose it is. Never changes; every task is another tenant's.
    pub(crate) tenant: u8,
    pub(crate) state: State,
    pub(crate) owner: Option<u8>,
    pub(crate) claim: Option<u8>,
    pub(crate) epoch: u8,
    pub(crate) rev: u8,
    pub(crate) lineage: Option<Lineage>,
    pub(crate) run_at: u8,
    /// The highest protocol of what is stored.
    pub(crate) protocol: u8,
    pub(crate) crashes: u8,
    /// An outcome that waits for the open operation.
    pub(crate) pending: Option<State>,
    pub(crate) operation: Operation,
}

/// `Intended` without a dispatch: there is no row yet.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Operation {
    pub(crate) state: OperationState,
    pub(crate) dispatches: u8,
    pub(crate) first_at: u8,
    pub(crate) dispatched_at: u8,
    pub(crate) quiet_until: u8,
    pub(crate) resolution: Option<Resolution>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Worker {
    pub(crate) state: WorkerState,
    pub(crate) lease_until: u8,
}

/// A worker process: one incarnation after the other.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Process {
    pub(crate) worker: u8,
    pub(crate) mode: Mode,
    /// Until when it may believe in its lease, in true time: counted from before the renewal was sent.
    pub(crate) believes_until: u8,
    /// The highest protocol that it reads, and the one that it writes.
    pub(crate) protocol: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Mode {
    Accepting,
    Draining,
    Drained,
    Dead,
}

/// What one slot of a process is doing.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Execution {
    pub(crate) process: u8,
    pub(crate) at: At,
    /// Its process is dead; a statement that it had sent still runs.
    pub(crate) orphan: bool,
    pub(crate) held: Option<Held>,
}

/// What an execution holds; see [`aegis_model::Held`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Held {
    pub(crate) task: u8,
    /// The tenant of the task at the claim.
    pub(crate) tenant: u8,
    pub(crate) owner: u8,
    pub(crate) claim: u8,
    pub(crate) epoch: u8,
    pub(crate) rev: u8,
    pub(crate) lineage: Lineage,
}

/// Where an execution stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum At {
    Idle,
    /// It holds a permit of its gate; the statement may run at any moment.
    Claiming {
        task: u8,
        claim: u8,
    },
    /// The reply of that statement was lost.
    ClaimUnknown {
        task: u8,
        claim: u8,
    },
    /// It holds a task and looks at the ledger next.
    Deciding,
    /// A guarded write was sent; it may run at any moment.
    Writing(Sent),
    /// Its reply was lost.
    WriteUnknown(Sent),
    /// The dispatch was applied: the call may leave until this moment of true time, as long as the downstream surely knows
    /// its key.
    Cleared {
        until: u8,
    },
    /// The request has left.
    Calling,
}

/// A guarded write under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Sent {
    pub(crate) verb: Verb,
    /// The database's clock when it was sent.
    pub(crate) at: u8,
    /// Was the lease live in the snapshot of that moment?
    pub(crate) live: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Verb {
    Dispatch { probed: bool },
    Settle,
    Complete,
    Snooze,
    Doubt,
    HandBack,
}

/// The remote side of one task's operation.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(crate) struct Downstream {
    pub(crate) effects: u8,
    /// Keys that it knows, with the moment of their first request.
    pub(crate) keys: Vec<(u8, u8)>,
    /// The highest token that it has served.
    pub(crate) token: Option<(Lineage, u8)>,
    /// Requests under way.
    pub(crate) requests: Vec<Request>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Request {
    pub(crate) sent_at: u8,
    pub(crate) key: u8,
    pub(crate) token: (Lineage, u8),
    pub(crate) execution: u8,
    pub(crate) claim: u8,
}

/// Budgets used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct Used {
    pub(crate) claims: u8,
    pub(crate) crashes: u8,
    pub(crate) lost_replies: u8,
    pub(crate) failovers: u8,
    pub(crate) jumps: (u8, u8),
    pub(crate) drains: u8,
}

impl World {
    /// All tasks ready, all processes registered, nothing under way.
    pub(crate) fn first(bounds: &Bounds) -> Self {
        let lineage = Lineage {
            floor: 0,
            timeline: 1,
        };
        let task = |tenant| Task {
            tenant,
            state: State::Ready,
            owner: None,
            claim: None,
            epoch: 0,
            rev: 0,
            lineage: None,
            run_at: 0,
            protocol: 1,
            crashes: 0,
            pending: None,
            operation: Operation {
                state: OperationState::Intended,
                dispatches: 0,
                first_at: 0,
                dispatched_at: 0,
                quiet_until: 0,
                resolution: None,
            },
        };
        let processes: Vec<Process> = (0u8..)
            .zip(&bounds.protocols)
            .map(|(worker, protocol)| Process {
                worker,
                mode: Mode::Accepting,
                believes_until: TTL,
                protocol: *protocol,
            })
            .collect();
        let database = Database {
            lineage,
            tasks: (0..bounds.tasks).map(task).collect(),
            workers: vec![
                Worker {
                    state: WorkerState::Accepting,
                    lease_until: TTL
                };
                processes.len()
            ],
        };
        Self {
            time: 0,
            now: 0,
            standby: (bounds.failovers > 0).then(|| Box::new(database.clone())),
            database,
            processes,
            executions: bounds
                .executions
                .iter()
                .map(|process| Execution {
                    process: *process,
                    at: At::Idle,
                    orphan: false,
                    held: None,
                })
                .collect(),
            downstream: vec![Downstream::default(); usize::from(bounds.tasks)],
            used: Used::default(),
            newest_claim: vec![None; usize::from(bounds.tasks)],
            taken: vec![0; usize::from(bounds.tasks)],
            reaper_read: Vec::new(),
            broken: 0,
        }
    }

    /// Notes that a step has broken an invariant.
    pub(crate) fn breaks(&mut self, invariant: Invariant) {
        self.broken |= 1 << invariant as u16;
    }

    pub(crate) fn has_broken(&self, invariant: Invariant) -> bool {
        self.broken & (1 << invariant as u16) != 0
    }

    pub(crate) fn worker(&self, execution: usize) -> u8 {
        self.process(execution).worker
    }

    pub(crate) fn process(&self, execution: usize) -> &Process {
        &self.processes[usize::from(self.executions[execution].process)]
    }
}
