//! Slots and the local queue: which claimed task starts now, which waits, and how many more may be claimed.
//!
//! Invariants: a slot stays taken until the handler has returned; the local queue holds about 50 ms of measured work, at
//! most 500; what waits there is in flight like what runs.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use aegis_store::KindCapacity;
use futures_util::FutureExt;
use tracing::Instrument;

use crate::ending::{self, Returned};
use crate::execution::{Execution, Stage};
use crate::kinds::Kinds;
use crate::points::{Cut, Subject};
use crate::shared::Shared;
use crate::tuning::Tuning;

/// The slots and the local queue of a worker.
pub(crate) struct Executor {
    slots: usize,
    tuning: Tuning,
    state: Mutex<State>,
}

struct State {
    queued: VecDeque<Arc<Execution>>,
    executing: usize,
    executing_of_kind: Vec<usize>,
    executing_of_queue: Vec<usize>,
    queued_of_kind: Vec<usize>,
    queued_of_queue: Vec<usize>,
}

/// How much may be claimed now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Room {
    /// At most so many tasks.
    pub(crate) count: usize,
    /// Of which kinds.
    pub(crate) kinds: Vec<KindCapacity>,
    /// Is it worth a statement? A queue that still holds half of its work waits for more room.
    pub(crate) worthwhile: bool,
}

impl Executor {
    pub(crate) fn new(kinds: &Kinds, slots: usize, tuning: Tuning) -> Self {
        let (kinds, queues) = (kinds.all.len(), kinds.queues.len());
        Self {
            slots,
            tuning,
            state: Mutex::new(State {
                queued: VecDeque::new(),
                executing: 0,
                executing_of_kind: vec![0; kinds],
                executing_of_queue: vec![0; queues],
                queued_of_kind: vec![0; kinds],
                queued_of_queue: vec![0; queues],
            }),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Executing, and waiting in the local queue.
    pub(crate) fn load(&self) -> (usize, usize) {
        let state = self.state();
        (state.executing, state.queued.len())
    }

    /// The same for each kind, by its index.
    pub(crate) fn load_of_kinds(&self) -> Vec<(usize, usize)> {
        let state = self.state();
        let executing = state.executing_of_kind.iter().copied();
        executing
            .zip(state.queued_of_kind.iter().copied())
            .collect()
    }

    /// How much may be claimed now.
    pub(crate) fn room(&self, kinds: &Kinds) -> Room {
        let state = self.state();
        let window = self.tuning.local_queue;
        let mut ahead_max = 0;
        let mut ahead_of_queue = vec![0; kinds.queues.len()];
        let mut capacities = Vec::with_capacity(kinds.all.len());
        for kind in &kinds.all {
            let slots = kind.slots.min(self.slots);
            let ahead = (kind.pace.fit_into(window) * slots).min(self.tuning.claim_max);
            let taken = state.executing_of_kind[kind.index] + state.queued_of_kind[kind.index];
            ahead_max = ahead_max.max(ahead);
            let of_queue = &mut ahead_of_queue[kind.queue_index];
            *of_queue = ahead.max(*of_queue);
            capacities.push((kind, (kind.slots + ahead).saturating_sub(taken)));
        }
        let queue_free = |index: usize| {
            let taken = state.executing_of_queue[index] + state.queued_of_queue[index];
            (kinds.queues[index].1 + ahead_of_queue[index]).saturating_sub(taken)
        };
        let capacities: Vec<KindCapacity> = capacities
            .into_iter()
            .map(|(kind, free)| KindCapacity {
                queue: kind.queue.clone(),
                kind: kind.name.clone(),
                kind_free: to_i32(free),
                queue_free: to_i32(queue_free(kind.queue_index)),
            })
            .filter(|capacity| capacity.kind_free > 0 && capacity.queue_free > 0)
            .collect();
        let queued = state.queued.len();
        let free = self.slots.saturating_sub(state.executing);
        let count = (free + ahead_max)
            .saturating_sub(queued)
            .min(self.tuning.claim_max);
        Room {
            count: if capacities.is_empty() { 0 } else { count },
            kinds: capacities,
            worthwhile: free > queued || queued <= ahead_max / 2,
        }
    }

    /// Takes over what was claimed, and starts what has a slot.
    pub(crate) fn submit(&self, executions: Vec<Arc<Execution>>) {
        {
            let mut state = self.state();
            for execution in executions {
                state.queued_of_kind[execution.kind.index] += 1;
                state.queued_of_queue[execution.kind.queue_index] += 1;
                state.queued.push_back(execution);
            }
        }
        self.pump();
    }

    /// Takes everything out that has not started: to be handed back.
    pub(crate) fn take_queued(&self) -> Vec<Arc<Execution>> {
        let mut state = self.state();
        state.queued_of_kind.fill(0);
        state.queued_of_queue.fill(0);
        state.queued.drain(..).collect()
    }

    /// Takes out what has waited longer than `patience`: another worker may have a slot for it. Their kinds are misjudged as
    /// short, so nothing is claimed ahead for them until short executions show otherwise.
    pub(crate) fn take_waiting(&self, patience: Duration) -> Vec<Arc<Execution>> {
        let mut state = self.state();
        let (waiting, rest) = std::mem::take(&mut state.queued)
            .into_iter()
            .partition::<Vec<_>, _>(|execution| execution.claimed_at.elapsed() > patience);
        state.queued = rest.into();
        for execution in &waiting {
            state.queued_of_kind[execution.kind.index] -= 1;
            state.queued_of_queue[execution.kind.queue_index] -= 1;
            execution.kind.pace.measured(patience);
        }
        waiting
    }

    fn pump(&self) {
        loop {
            let Some(next) = self.next() else { return };
            // Not below any level of detail: an error's line names its task whatever else is logged.
            let span = tracing::error_span!(
                parent: &next.shared.span,
                "task",
                task = %next.claim.held.task,
                epoch = next.claim.held.epoch,
                worker = %next.incarnation.id,
                queue = next.kind.queue,
                kind = next.kind.name,
                trace_id = next.traced.trace_id(),
                span_id = next.traced.span_id(),
            );
            tokio::spawn(run(next).instrument(span));
        }
    }

    /// The first in the queue whose kind and queue have a slot.
    fn next(&self) -> Option<Arc<Execution>> {
        let mut state = self.state();
        if state.executing >= self.slots {
            return None;
        }
        let at = state.queued.iter().position(|execution| {
            let kind = &execution.kind;
            let queue_slots = execution.shared.kinds.queues[kind.queue_index].1;
            state.executing_of_kind[kind.index] < kind.slots
                && state.executing_of_queue[kind.queue_index] < queue_slots
        })?;
        let execution = state.queued.remove(at)?;
        let (kind, queue) = (execution.kind.index, execution.kind.queue_index);
        state.queued_of_kind[kind] -= 1;
        state.queued_of_queue[queue] -= 1;
        state.executing += 1;
        state.executing_of_kind[kind] += 1;
        state.executing_of_queue[queue] += 1;
        execution.set_stage(Stage::Running);
        Some(execution)
    }

    /// A handler has returned: its slot is free.
    fn stopped(&self, execution: &Execution) {
        {
            let mut state = self.state();
            state.executing -= 1;
            state.executing_of_kind[execution.kind.index] -= 1;
            state.executing_of_queue[execution.kind.queue_index] -= 1;
        }
        self.pump();
    }

    /// Is every slot taken by an execution that was asked to stop longer than `patience` ago?
    pub(crate) fn is_stuck(&self, shared: &Shared, patience: Duration) -> bool {
        let executing = self.state().executing;
        if executing < self.slots {
            return false;
        }
        let in_flight = shared.gate.in_flight();
        let deaf = in_flight.iter().filter(|execution| {
            execution.stage() == Stage::Running
                && execution
                    .canceller
                    .since()
                    .is_some_and(|(_, at)| at.elapsed() > patience)
        });
        deaf.count() >= self.slots
    }
}

fn to_i32(n: usize) -> i32 {
    i32::try_from(n).unwrap_or(i32::MAX)
}

/// One execution, from its slot to its reported end.
async fn run(execution: Arc<Execution>) {
    let started = Instant::now();
    execution
        .metrics()
        .started_after(started.saturating_duration_since(execution.claimed_at));
    let returned =
        if execution.incarnation.fence.is_eligible() && execution.canceller.reason().is_none() {
            execution.look_back().await;
            let handler = Arc::clone(&execution.kind.handler);
            execution.at(Cut::Before, || Subject::Handler).await;
            let input = execution.take_input();
            let running = handler.run(Arc::clone(&execution), input);
            let returned = match std::panic::AssertUnwindSafe(running).catch_unwind().await {
                Ok(Ok(result)) => Returned::Result(result),
                Ok(Err(error)) => Returned::Error(error),
                Err(panic) => Returned::Panicked(panic_text(panic.as_ref())),
            };
            execution.at(Cut::Ran, || Subject::Handler).await;
            returned
        } else {
            Returned::NotStarted
        };
    if !matches!(returned, Returned::NotStarted) {
        execution.kind.pace.measured(started.elapsed());
        execution.metrics().ran_for(started.elapsed());
    }
    execution.set_stage(Stage::Stopped);
    let shared = Arc::clone(&execution.shared);
    shared.executor.stopped(&execution);
    shared.gate.touch();
    shared.wake.notify_one();
    ending::report(execution, returned).await;
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without a text".to_owned())
}
