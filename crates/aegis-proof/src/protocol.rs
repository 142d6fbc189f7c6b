//! The machine that stateright explores: which steps there are, and what each does.

use std::sync::Arc;

use aegis_model::{Class, OperationState, State, WorkerState};
use stateright::{Model, Property};

use crate::action::Action;
use crate::bounds::Bounds;
use crate::calm::Calm;
use crate::mutant::Mutant;
use crate::properties::{self, Invariant};
use crate::world::{At, Mode, World};

/// One configuration of the protocol.
#[derive(Debug, Clone)]
pub struct Protocol {
    pub(crate) bounds: Bounds,
    /// What must serve every state, where that is looked at.
    pub(crate) calm: Option<Arc<Calm>>,
}

impl Protocol {
    /// Explores within these bounds.
    pub fn new(bounds: Bounds) -> Self {
        Self { bounds, calm: None }
    }

    /// The same, in which every state must be served when nothing goes wrong any more.
    #[must_use]
    pub fn and_calm(mut self) -> Self {
        self.calm = Some(Arc::new(Calm::after(&self.bounds)));
        self
    }

    fn of_executions(&self, world: &World, actions: &mut Vec<Action>) {
        for (number, execution) in world.executions.iter().enumerate() {
            let process = world.process(number);
            let may_lose = world.used.lost_replies < self.bounds.lost_replies;
            match execution.at {
                At::Idle => {
                    let asks = process.mode == Mode::Accepting
                        && world.used.claims < self.bounds.claims
                        && world.time < process.believes_until;
                    if asks {
                        for task in 0..world.database.tasks.len() {
                            if world.may_claim(&self.bounds, process.worker, process.protocol, task)
                            {
                                actions.push(Action::Acquire {
                                    execution: number,
                                    task,
                                    lost: false,
                                });
                                if may_lose && self.bounds.drains == 0 {
                                    actions.push(Action::Acquire {
                                        execution: number,
                                        task,
                                        lost: true,
                                    });
                                }
                            }
                        }
                    }
                }
                At::Claiming { .. } => {
                    actions.push(Action::Claim {
                        execution: number,
                        lost: false,
                    });
                    if may_lose {
                        actions.push(Action::Claim {
                            execution: number,
                            lost: true,
                        });
                    }
                }
                At::ClaimUnknown { .. } => actions.push(Action::AskAgain { execution: number }),
                At::Deciding => {
                    actions.push(Action::Decide { execution: number });
                    actions.push(Action::Skip { execution: number });
                }
                At::Writing(_) => {
                    actions.push(Action::Write {
                        execution: number,
                        lost: false,
                    });
                    if may_lose && !execution.orphan {
                        actions.push(Action::Write {
                            execution: number,
                            lost: true,
                        });
                    }
                }
                At::WriteUnknown(_) => actions.push(Action::ReadBack { execution: number }),
                At::Cleared { .. } => actions.push(Action::Call { execution: number }),
                At::Calling => actions.push(Action::TimeOut { execution: number }),
            }
            if process.mode == Mode::Draining && !execution.orphan {
                actions.push(Action::HandBack { execution: number });
            }
            if world.time >= process.believes_until && execution.at != At::Idle && !execution.orphan
            {
                actions.push(Action::StandDown { execution: number });
            }
        }
    }

    fn of_processes(&self, world: &World, actions: &mut Vec<Action>) {
        let spare = self.bounds.protocols.len() + usize::from(self.bounds.crashes) + 1;
        for (number, process) in world.processes.iter().enumerate() {
            let alive = matches!(process.mode, Mode::Accepting | Mode::Draining);
            if alive {
                actions.push(Action::Renew { process: number });
                if world.used.crashes < self.bounds.crashes {
                    actions.push(Action::Crash { process: number });
                }
            }
            if process.mode == Mode::Accepting && world.used.drains < self.bounds.drains {
                actions.push(Action::Drain { process: number });
            }
            if process.mode == Mode::Draining {
                actions.push(Action::Finish { process: number });
            }
            let idle = world.executions.iter().all(|execution| {
                usize::from(execution.process) != number
                    || execution.at == At::Idle
                    || execution.orphan
            });
            let lost = process.mode == Mode::Accepting && !world.lease_live(process.worker);
            if idle && (process.mode == Mode::Dead || lost) && world.database.workers.len() < spare
            {
                actions.push(Action::Register { process: number });
            }
        }
    }

    fn of_tasks(&self, world: &World, actions: &mut Vec<Action>) {
        for (task, row) in world.database.tasks.iter().enumerate() {
            if world.reapable(&self.bounds, task) {
                if self.bounds.has(Mutant::UnguardedReaper) {
                    actions.push(Action::ReapRead { task });
                }
                if !self.bounds.has(Mutant::NobodyReaps) {
                    actions.push(Action::Reap { task });
                }
            }
            let named = world.executions.iter().any(|execution| {
                let claims = match execution.at {
                    At::Claiming { task, claim } | At::ClaimUnknown { task, claim } => {
                        Some((task, claim))
                    }
                    _ => execution.held.map(|held| (held.task, held.claim)),
                };
                !execution.orphan
                    && claims.is_some_and(|(held, claim)| {
                        usize::from(held) == task && row.claim == Some(claim)
                    })
            });
            let owned = row.owner.is_some_and(|owner| {
                world.lease_live(owner)
                    && world
                        .processes
                        .iter()
                        .any(|process| process.worker == owner && process.mode != Mode::Dead)
            });
            if row.state == State::Running && owned && !named {
                actions.push(Action::ReturnAbsent { task });
            }
            let patient =
                world.now >= row.operation.quiet_until || self.bounds.has(Mutant::ResolvedEarly);
            if row.state == State::Reconciling
                && row.operation.state == OperationState::Unknown
                && patient
            {
                actions.push(Action::Resolve { task });
            }
            let remote = &world.downstream[task];
            let may_lose = world.used.lost_replies < self.bounds.lost_replies;
            for request in 0..remote.requests.len() {
                actions.push(Action::Deliver {
                    task,
                    request,
                    lost: false,
                });
                if may_lose {
                    actions.push(Action::Deliver {
                        task,
                        request,
                        lost: true,
                    });
                }
            }
            if self.bounds.class == Class::Idempotent && !remote.keys.is_empty() {
                actions.push(Action::Forget { task });
            }
        }
        for task in &world.reaper_read {
            actions.push(Action::ReapWrite {
                task: usize::from(*task),
            });
        }
    }
}

impl Model for Protocol {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        vec![World::first(&self.bounds)]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        if world.is_over() {
            return;
        }
        if world.time < self.bounds.ticks {
            actions.push(Action::Tick);
        }
        if world.used.jumps.0 < self.bounds.jumps.0 {
            actions.push(Action::JumpForward);
        }
        if world.used.jumps.1 < self.bounds.jumps.1 && world.now >= 2 {
            actions.push(Action::JumpBack);
        }
        if world
            .standby
            .as_ref()
            .is_some_and(|standby| **standby != world.database)
        {
            actions.push(Action::Replicate);
        }
        if world.standby.is_some() && world.used.failovers < self.bounds.failovers {
            actions.push(Action::Failover);
        }
        self.of_executions(world, actions);
        self.of_processes(world, actions);
        self.of_tasks(world, actions);
    }

    fn next_state(&self, last: &World, action: Action) -> Option<World> {
        let bounds = &self.bounds;
        let mut world = last.clone();
        let happened = match action {
            Action::Tick => {
                world.time += 1;
                world.now += 1;
                world.expire_requests();
                true
            }
            Action::JumpForward => {
                world.now += 2;
                world.used.jumps.0 += 1;
                true
            }
            Action::JumpBack => {
                world.now -= 2;
                world.used.jumps.1 += 1;
                true
            }
            Action::Replicate => {
                world.standby = Some(Box::new(world.database.clone()));
                true
            }
            Action::Failover => world.fail_over(bounds),
            Action::Acquire {
                execution,
                task,
                lost,
            } => {
                let claim = world.used.claims + 1;
                world.used.claims = claim;
                let task = u8::try_from(task).unwrap_or(u8::MAX);
                world.executions[execution].at = At::Claiming { task, claim };
                // The moment between permit and statement matters to a drain only.
                if bounds.drains == 0 {
                    if lost {
                        world.used.lost_replies += 1;
                    }
                    world.claim(bounds, execution, lost);
                }
                true
            }
            Action::Claim { execution, lost } => {
                if lost {
                    world.used.lost_replies += 1;
                }
                let dead = world.executions[execution].orphan;
                let happened = world.claim(bounds, execution, lost);
                if dead {
                    world.lets_go(execution);
                }
                happened
            }
            Action::AskAgain { execution } => world.ask_again(execution),
            Action::Decide { execution } => world.decide(bounds, execution),
            Action::Skip { execution } => world.skips(execution),
            Action::Write { execution, lost } => {
                if lost {
                    world.used.lost_replies += 1;
                }
                let dead = world.executions[execution].orphan;
                let happened = world.run_write(bounds, execution, lost);
                if dead {
                    world.lets_go(execution);
                }
                happened
            }
            Action::ReadBack { execution } => world.read_back(bounds, execution),
            Action::Call { execution } => world.call(bounds, execution),
            Action::Deliver {
                task,
                request,
                lost,
            } => {
                if lost {
                    world.used.lost_replies += 1;
                }
                world.deliver(bounds, task, request, lost);
                true
            }
            Action::Forget { task } => world.forget(task),
            Action::TimeOut { execution } => world.times_out(bounds, execution),
            Action::Renew { process } => world.renew(bounds, process),
            Action::StandDown { execution } => world.stands_down(execution),
            Action::Register { process } => {
                world.register(bounds, process);
                true
            }
            Action::Crash { process } => {
                world.used.crashes += 1;
                world.processes[process].mode = Mode::Dead;
                for execution in 0..world.executions.len() {
                    let its = usize::from(world.executions[execution].process) == process;
                    // A statement that has left still runs.
                    let left = matches!(
                        world.executions[execution].at,
                        At::Writing(_) | At::Claiming { .. }
                    );
                    if its && !left {
                        world.lets_go(execution);
                    } else if its {
                        world.executions[execution].orphan = true;
                    }
                }
                true
            }
            Action::Drain { process } => {
                world.used.drains += 1;
                world.processes[process].mode = Mode::Draining;
                let worker = usize::from(world.processes[process].worker);
                let row = &mut world.database.workers[worker];
                if row.state == WorkerState::Accepting {
                    row.state = WorkerState::Draining;
                }
                true
            }
            Action::HandBack { execution } => world.hands_back(execution),
            Action::Finish { process } => {
                let forgets = bounds.has(Mutant::DrainForgetsClaims);
                let done = world.executions.iter().all(|execution| {
                    usize::from(execution.process) != process
                        || execution.at == At::Idle
                        || (forgets && matches!(execution.at, At::Claiming { .. }))
                });
                if done {
                    world.processes[process].mode = Mode::Drained;
                    let worker = usize::from(world.processes[process].worker);
                    let row = &mut world.database.workers[worker];
                    if row.state != WorkerState::Lost {
                        row.state = WorkerState::Stopped;
                    }
                }
                done
            }
            Action::Reap { task } => {
                world.reap(bounds, task);
                true
            }
            Action::ReapRead { task } => {
                let task = u8::try_from(task).unwrap_or(u8::MAX);
                let fresh = !world.reaper_read.contains(&task);
                if fresh {
                    world.reaper_read.push(task);
                    world.reaper_read.sort_unstable();
                }
                fresh
            }
            Action::ReapWrite { task } => {
                world.reaper_read.retain(|read| usize::from(*read) != task);
                world.database.tasks[task].state = State::Running;
                world.reap(bounds, task);
                true
            }
            Action::ReturnAbsent { task } => {
                let may_send_until = world.may_send_until(bounds, task);
                world.database.tasks[task].returns(bounds, may_send_until);
                true
            }
            Action::Resolve { task } => {
                world.resolve(task);
                true
            }
        };
        if !matches!(action, Action::Failover) {
            let reopened = last
                .database
                .tasks
                .iter()
                .zip(&world.database.tasks)
                .any(|(before, after)| before.state.is_terminal() && !after.state.is_terminal());
            if reopened {
                world.breaks(Invariant::NoPhantomDone);
            }
            if !world.ledger_follows(last) {
                world.breaks(Invariant::LedgerOneWay);
            }
        }
        world.forget_what_nobody_can_see(bounds);
        (happened && world != *last).then_some(world)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        properties::all(self)
    }
}
