//! Forgets what no later step can see, so that states which differ in nothing else are one.

use aegis_model::{Class, OperationState, WorkerState};

use crate::bounds::Bounds;
use crate::mutant::Mutant;
use crate::world::{At, Mode, World};

impl World {
    /// Has everything ended, with nobody left who could write or have an effect?
    pub(crate) fn is_over(&self) -> bool {
        self.database
            .tasks
            .iter()
            .all(|task| task.state.is_terminal())
            && self
                .executions
                .iter()
                .all(|execution| execution.at == At::Idle)
            && self
                .downstream
                .iter()
                .all(|remote| remote.requests.is_empty())
            && self.reaper_read.is_empty()
    }

    /// Makes equal what only differs in numbers that are not read any more.
    pub(crate) fn forget_what_nobody_can_see(&mut self, bounds: &Bounds) {
        let now = self.now;
        let time = self.time;
        // A clock that may jump back can make an expired lease live again.
        let looks_back = bounds.has(Mutant::TransactionClock) || bounds.has(Mutant::SnapshotLease);
        let expired_for_good = self.used.jumps.1 >= bounds.jumps.1 && !looks_back;
        for worker in &mut self.database.workers {
            let over = matches!(worker.state, WorkerState::Lost | WorkerState::Stopped);
            if (over || worker.lease_until <= now) && expired_for_good {
                worker.lease_until = 0;
            }
        }
        for process in &mut self.processes {
            if process.believes_until <= time || process.mode == Mode::Dead {
                process.believes_until = 0;
            }
        }
        for task in &mut self.database.tasks {
            let operation = &mut task.operation;
            operation.dispatches = operation.dispatches.min(1);
            operation.dispatched_at = match bounds.class {
                Class::Queryable | Class::Blind if !task.state.is_terminal() => {
                    operation.dispatched_at
                }
                _ => 0,
            };
            if bounds.class != Class::Idempotent || task.state.is_terminal() {
                operation.first_at = 0;
            }
            let waits_for_a_person = operation.state == OperationState::Unknown;
            if matches!(bounds.class, Class::Idempotent | Class::Fenced) && !waits_for_a_person
                || task.state.is_terminal()
                || (operation.quiet_until <= now && expired_for_good)
            {
                operation.quiet_until = 0;
            }
            if task.run_at <= now && expired_for_good {
                task.run_at = 0;
            }
        }
        if bounds.class != Class::Idempotent {
            for remote in &mut self.downstream {
                for key in &mut remote.keys {
                    key.1 = 0;
                }
            }
        }
        for execution in &mut self.executions {
            if let (false, At::Writing(sent) | At::WriteUnknown(sent)) =
                (looks_back, &mut execution.at)
            {
                sent.at = 0;
                sent.live = true;
            }
        }
    }
}
