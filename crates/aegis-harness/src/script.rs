//! Follows one run: which points were reached, and which fault comes next.
//!
//! Invariants: an execution of a dead worker never goes on; points of other tasks, and of executions that a takeover has made
//! stale, are let pass and not counted.

use std::collections::{HashMap, VecDeque};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aegis_worker::points::{Listener, Point, Reached};
use tokio::sync::{Notify, watch};
use uuid::Uuid;

use crate::fault::Fault;

/// Shared by all workers of a harness.
#[derive(Debug, Default)]
pub(crate) struct Script {
    state: Mutex<State>,
    /// A task is being submitted, and a worker may be quicker than the answer: nobody goes on until its id is known.
    expecting: watch::Sender<bool>,
    /// A fault has struck.
    pub(crate) struck: Notify,
}

#[derive(Debug, Default)]
struct State {
    task: Option<Uuid>,
    faults: VecDeque<Fault>,
    struck: Option<Fault>,
    counts: HashMap<Point, usize>,
    seen: Vec<Seen>,
    epochs: Vec<i64>,
    faults_done: usize,
    /// Executions up to this epoch are a lost worker's.
    stale: i64,
}

/// A point that was reached, with its number since the start or the last fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) point: Point,
    pub(crate) nth: usize,
    /// Faults that had struck before.
    pub(crate) faults_before: usize,
}

/// What a run was like, when it is over.
#[derive(Debug, Default)]
pub(crate) struct Followed {
    pub(crate) seen: Vec<Seen>,
    pub(crate) executions: usize,
    pub(crate) left_over: Option<Fault>,
}

impl Script {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A task is about to be submitted. Until the run begins or ends, everything stands still at its next point.
    pub(crate) fn await_task(&self) {
        self.expecting.send_replace(true);
    }

    /// A new run begins.
    pub(crate) fn begin(&self, task: Uuid, faults: &[Fault]) {
        *self.state() = State {
            task: Some(task),
            faults: faults.iter().cloned().collect(),
            ..State::default()
        };
        self.expecting.send_replace(false);
    }

    /// The fault that has struck and was not dealt with.
    pub(crate) fn take_struck(&self) -> Option<Fault> {
        self.state().struck.take()
    }

    pub(crate) fn has_struck(&self) -> bool {
        self.state().struck.is_some()
    }

    /// How many executions have begun.
    pub(crate) fn executions(&self) -> usize {
        self.state().epochs.len()
    }

    /// The run is over.
    pub(crate) fn end(&self) -> Followed {
        let state = std::mem::take(&mut *self.state());
        self.expecting.send_replace(false);
        Followed {
            seen: state.seen,
            executions: state.epochs.len(),
            left_over: state.faults.into_iter().next(),
        }
    }

    /// What becomes of an execution that stands at a point.
    fn reach(&self, reached: Reached) -> Fate {
        let mut state = self.state();
        if state.task != Some(reached.task) {
            return Fate::GoesOn;
        }
        if reached.epoch <= state.stale {
            return Fate::Held;
        }
        if !state.epochs.contains(&reached.epoch) {
            state.epochs.push(reached.epoch);
        }
        let point = reached.point;
        let counted = state.counts.entry(point.clone()).or_insert(0);
        *counted += 1;
        let nth = *counted;
        let faults_before = state.faults_done;
        state.seen.push(Seen {
            point: point.clone(),
            nth,
            faults_before,
        });
        let Some(fault) = state
            .faults
            .pop_front_if(|next| next.point == point && next.nth == nth)
        else {
            return Fate::GoesOn;
        };
        state.counts.clear();
        state.faults_done += 1;
        state.stale = reached.epoch;
        state.struck = Some(fault);
        drop(state);
        self.struck.notify_one();
        Fate::Held
    }
}

/// What becomes of an execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    GoesOn,
    /// Until its worker is ended or waked.
    Held,
}

/// One worker's ear.
pub(crate) struct Ear {
    script: Arc<Script>,
    /// A fault has struck this worker: `None` before, then whether it may go on.
    held: watch::Sender<Option<bool>>,
}

impl Ear {
    pub(crate) fn new(script: &Arc<Script>) -> Arc<Self> {
        Arc::new(Self {
            script: Arc::clone(script),
            held: watch::Sender::new(None),
        })
    }

    fn hold(&self) {
        self.held.send_if_modified(|held| {
            let first = held.is_none();
            *held = held.or(Some(false));
            first
        });
    }

    /// A frozen worker wakes up.
    pub(crate) fn wake(&self) {
        self.held.send_replace(Some(true));
    }
}

impl Listener for Ear {
    fn reached(&self, reached: Reached) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async move {
            // What runs beside the execution that was struck stands still, too.
            if self.held.borrow().is_none() {
                let mut expecting = self.script.expecting.subscribe();
                // The sender lives as long as the script.
                expecting.wait_for(|expecting| !expecting).await.ok();
                match self.script.reach(reached) {
                    Fate::GoesOn => return,
                    Fate::Held => self.hold(),
                }
            }
            let mut held = self.held.subscribe();
            // The sender lives as long as this borrow.
            held.wait_for(|may| *may == Some(true)).await.ok();
        })
    }
}

#[cfg(test)]
mod tests {
    use aegis_worker::points::{Cut, Subject};

    use super::*;

    fn reached(task: Uuid, epoch: i64, cut: Cut) -> (Uuid, i64, Point) {
        (task, epoch, Point::new(Subject::Checkpoint, cut))
    }

    #[test]
    fn a_fault_strikes_the_nth_time_and_what_is_stale_is_not_counted() {
        let (script, task) = (Script::default(), Uuid::from_u128(1));
        let point = Point::new(Subject::Checkpoint, Cut::Stored);
        script.begin(task, &[Fault::crash(point.clone()).nth(2)]);
        let fates: Vec<_> = [
            reached(task, 1, Cut::Stored),
            reached(Uuid::from_u128(2), 1, Cut::Stored),
            reached(task, 1, Cut::Before),
            reached(task, 1, Cut::Stored),
            reached(task, 1, Cut::Stored),
            reached(task, 2, Cut::Stored),
        ]
        .map(|(task, epoch, point)| script.reach(Reached::new(task, epoch, point)))
        .into();
        assert_eq!(
            fates,
            [
                Fate::GoesOn,
                Fate::GoesOn,
                Fate::GoesOn,
                Fate::Held,
                Fate::Held,
                Fate::GoesOn
            ]
        );
        let followed = script.end();
        assert_eq!((followed.executions, followed.seen.len()), (2, 4));
        assert_eq!(followed.seen[3].nth, 1, "counted anew after a fault");
        assert!(followed.left_over.is_none());
    }
}
