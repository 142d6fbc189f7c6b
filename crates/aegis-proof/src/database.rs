//! Statements that are not guarded by a claim: acquire, renew, register, drain, reap, resolve, failover.

use aegis_model::state::{self, TaskChange};
use aegis_model::{Class, OperationState, Resolution, State, WorkerState};

use crate::bounds::{Bounds, MAX_CRASHES, QUIET, TTL};
use crate::mutant::Mutant;
use crate::properties::Invariant;
use crate::world::{At, Held, Mode, Process, Task, Worker, World};

impl Task {
    /// The only way to change a task's state: the product's table.
    pub(crate) fn moves(&mut self, change: TaskChange) {
        if let Ok(to) = state::next(self.state, change) {
            self.state = to;
        }
        if self.state != State::Running {
            self.owner = None;
            if !self.state.is_terminal() {
                self.claim = None;
            }
            self.lineage = None;
        }
    }

    /// The end of a claim: what it left open is unknown at once, or waits for its quiet period. `may_send_until`: as long as
    /// its execution may believe that it may call. True: a person decides.
    pub(crate) fn end_operation(&mut self, bounds: &Bounds, may_send_until: u8) -> bool {
        let operation = &mut self.operation;
        if operation.state == OperationState::Dispatched {
            operation.quiet_until = may_send_until.max(operation.dispatched_at) + QUIET;
            if bounds.has(Mutant::EndForgetsDispatch) {
                operation.state = OperationState::Intended;
            } else if bounds.class == Class::Blind {
                operation.state = OperationState::Unknown;
            }
        }
        operation.state == OperationState::Unknown
    }

    /// Takes the task from its claim and brings it back to its lane, or to a person.
    pub(crate) fn returns(&mut self, bounds: &Bounds, may_send_until: u8) {
        self.epoch += 1;
        self.rev += 1;
        let people = self.end_operation(bounds, may_send_until);
        self.moves(if people {
            TaskChange::Doubt
        } else {
            TaskChange::Return
        });
    }
}

impl World {
    /// Is this worker's lease live, judged now?
    pub(crate) fn lease_live(&self, worker: u8) -> bool {
        let worker = &self.database.workers[usize::from(worker)];
        matches!(worker.state, WorkerState::Accepting | WorkerState::Draining)
            && worker.lease_until > self.now
    }

    /// May this process claim this task?
    pub(crate) fn may_claim(&self, bounds: &Bounds, worker: u8, protocol: u8, task: usize) -> bool {
        let row = &self.database.tasks[task];
        let due = match row.state {
            State::Ready => true,
            State::Scheduled => row.run_at <= self.now,
            _ => false,
        };
        let gate = bounds.has(Mutant::GateInMemoryOnly)
            || self.database.workers[usize::from(worker)].state == WorkerState::Accepting;
        let reads = bounds.has(Mutant::ClaimIgnoresProtocol) || row.protocol <= protocol;
        due && gate && reads && self.lease_live(worker)
    }

    /// The acquire statement of an execution that holds a permit.
    pub(crate) fn claim(&mut self, bounds: &Bounds, execution: usize, lost: bool) -> bool {
        let At::Claiming { task, claim } = self.executions[execution].at else {
            return false;
        };
        let process = self.process(execution).clone();
        let at = usize::from(task);
        if !self.may_claim(bounds, process.worker, process.protocol, at) {
            self.executions[execution].at = At::Idle;
            return !lost;
        }
        if self.database.workers[usize::from(process.worker)].state != WorkerState::Accepting {
            self.breaks(Invariant::DrainClosed);
        }
        let lineage = self.database.lineage;
        let row = &mut self.database.tasks[at];
        if row.state == State::Scheduled {
            row.moves(TaskChange::Promote);
        }
        row.moves(TaskChange::Claim);
        row.owner = Some(process.worker);
        row.claim = Some(claim);
        row.lineage = Some(lineage);
        if !bounds.has(Mutant::ClaimKeepsEpoch) {
            row.epoch += 1;
        }
        row.rev += 1;
        let held = Held {
            task,
            tenant: row.tenant,
            owner: process.worker,
            claim,
            epoch: row.epoch,
            rev: row.rev,
            lineage,
        };
        let unreadable = row.protocol > process.protocol;
        if unreadable {
            self.breaks(Invariant::Protocol);
        }
        let newest = Some((lineage, held.epoch));
        if self.newest_claim[at] >= newest {
            self.breaks(Invariant::FenceMonotone);
        }
        self.newest_claim[at] = newest;
        let execution = &mut self.executions[execution];
        if lost {
            execution.at = At::ClaimUnknown { task, claim };
        } else {
            execution.at = At::Deciding;
            execution.held = Some(held);
        }
        true
    }

    /// The same acquire call again: it gives the first answer, as far as that still stands.
    pub(crate) fn ask_again(&mut self, execution: usize) -> bool {
        let At::ClaimUnknown { task, claim } = self.executions[execution].at else {
            return false;
        };
        let worker = self.worker(execution);
        let today = self.database.lineage;
        let row = &self.database.tasks[usize::from(task)];
        let mine = row.state == State::Running
            && row.claim == Some(claim)
            && row.owner == Some(worker)
            && row.lineage == Some(today);
        self.executions[execution].held = mine.then_some(Held {
            task,
            tenant: row.tenant,
            owner: worker,
            claim,
            epoch: row.epoch,
            rev: row.rev,
            lineage: today,
        });
        self.executions[execution].at = if mine { At::Deciding } else { At::Idle };
        true
    }

    /// Until when the execution of a claim that somebody else ends may believe in its lease. A worker whose lease has run out
    /// stopped itself before; any other may have renewed a moment ago, even where this database (promoted, restored) has lost
    /// that renewal.
    pub(crate) fn may_send_until(&self, bounds: &Bounds, task: usize) -> u8 {
        let row = &self.database.tasks[task];
        let foreign = row.lineage != Some(self.database.lineage);
        let live = row.owner.is_some_and(|owner| self.lease_live(owner));
        if (foreign || live) && !bounds.has(Mutant::QuietFromTheEnd) {
            self.now + TTL
        } else {
            self.now
        }
    }

    /// What a renewal's answer names as lost stops.
    fn obeys(&mut self, process: usize) -> bool {
        let today = self.database.lineage;
        let mut stopped = false;
        for execution in 0..self.executions.len() {
            let slot = &self.executions[execution];
            let its = usize::from(slot.process) == process && !slot.orphan;
            let can_stop = matches!(
                slot.at,
                At::Deciding | At::Cleared { .. } | At::Calling | At::WriteUnknown(_)
            );
            let lost = slot.held.is_some_and(|held| {
                let row = &self.database.tasks[usize::from(held.task)];
                row.owner != Some(held.owner)
                    || row.claim != Some(held.claim)
                    || row.epoch != held.epoch
                    || row.lineage != Some(today)
            });
            if its && can_stop && lost {
                self.lets_go(execution);
                stopped = true;
            }
        }
        stopped
    }

    /// One beat, and what its answer asks for.
    pub(crate) fn renew(&mut self, bounds: &Bounds, process: usize) -> bool {
        let worker = self.processes[process].worker;
        if !self.lease_live(worker) {
            return false;
        }
        let until = self.now + TTL;
        let believes = self.time + TTL;
        let row = &mut self.database.workers[usize::from(worker)];
        // Renewal never shortens a lease.
        row.lease_until = row.lease_until.max(until);
        let number = process;
        let process = &mut self.processes[number];
        let moved = process.believes_until != believes;
        process.believes_until = believes;
        let stopped = !bounds.has(Mutant::RenewalIsDeaf) && self.obeys(number);
        moved || stopped
    }

    /// A new incarnation: a fresh id, never used before (unless the bounds say that names are used again).
    pub(crate) fn register(&mut self, bounds: &Bounds, process: usize) {
        let row = Worker {
            state: WorkerState::Accepting,
            lease_until: self.now + TTL,
        };
        let worker = if bounds.reuse_ids {
            let worker = self.processes[process].worker;
            self.database.workers[usize::from(worker)] = row;
            worker
        } else {
            self.database.workers.push(row);
            u8::try_from(self.database.workers.len() - 1).unwrap_or(u8::MAX)
        };
        let believes_until = self.time + TTL;
        let process: &mut Process = &mut self.processes[process];
        process.worker = worker;
        process.mode = Mode::Accepting;
        process.believes_until = believes_until;
    }

    /// May the reaper take this row?
    pub(crate) fn reapable(&self, bounds: &Bounds, task: usize) -> bool {
        let row = &self.database.tasks[task];
        let Some(owner) = row.owner else {
            return false;
        };
        let foreign = row.lineage != Some(self.database.lineage)
            && !bounds.has(Mutant::ReaperTrustsOldLineage);
        row.state == State::Running && (foreign || !self.lease_live(owner))
    }

    /// Returns a task whose owner is lost, or whose lineage is not the database's.
    pub(crate) fn reap(&mut self, bounds: &Bounds, task: usize) {
        let today = self.database.lineage;
        let now = self.now;
        let may_send_until = self.may_send_until(bounds, task);
        let row = &mut self.database.tasks[task];
        // Only a loss that the database did not cause is a crash.
        let crash = row.lineage == Some(today);
        if let Some(owner) = row.owner {
            let worker = &mut self.database.workers[usize::from(owner)];
            if worker.lease_until <= now && worker.state != WorkerState::Stopped {
                worker.state = WorkerState::Lost;
            }
        }
        if crash {
            self.taken[task] += 1;
            if !bounds.has(Mutant::CrashesUncounted) {
                row.crashes += 1;
            }
        }
        if row.crashes >= MAX_CRASHES && row.pending.is_none() {
            if row.operation.state.is_open() {
                row.pending = Some(State::Quarantined);
            } else {
                row.epoch += 1;
                row.rev += 1;
                row.moves(TaskChange::Quarantine);
                return;
            }
        }
        row.returns(bounds, may_send_until);
    }

    /// A person looks at the downstream and says what is true at that moment.
    pub(crate) fn resolve(&mut self, task: usize) {
        let happened = self.downstream[task].effects > 0;
        let row = &mut self.database.tasks[task];
        row.operation.state = OperationState::Resolved;
        row.operation.resolution = Some(if happened {
            Resolution::Happened
        } else {
            Resolution::DidNotHappen
        });
        row.rev += 1;
        row.moves(match row.pending {
            Some(State::Quarantined) => TaskChange::Quarantine,
            Some(State::Succeeded) => TaskChange::Complete,
            _ => TaskChange::Resolve,
        });
    }

    /// The standby becomes the database, on a timeline of its own.
    pub(crate) fn fail_over(&mut self, bounds: &Bounds) -> bool {
        let Some(standby) = self.standby.take() else {
            return false;
        };
        let known = self.database.workers.len();
        self.database = *standby;
        if !bounds.has(Mutant::PromotionKeepsLineage) {
            self.database.lineage.timeline += 1;
        }
        // A registration that the standby never saw is a worker that the database does not know: lost.
        while self.database.workers.len() < known {
            self.database.workers.push(Worker {
                state: WorkerState::Lost,
                lease_until: 0,
            });
        }
        // What the lost tail had counted, nobody knows any more.
        self.taken = self
            .database
            .tasks
            .iter()
            .map(|task| task.crashes)
            .collect();
        self.used.failovers += 1;
        true
    }
}
