//! The gate: one lock over its state, the claim calls under way, and everything that is in flight.
//!
//! Invariants: a claim call takes a permit *before* it sends SQL and gives it back only when its rows are registered or the
//! reply is known; a claimed task that has not started is in flight. So there is no moment at which a task is claimed and
//! neither registered nor handed back, and once the gate is closed and empty it stays empty.
//!
//! Never: hold this lock across an await.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use uuid::Uuid;

use crate::execution::Execution;

/// Where the gate stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GateState {
    /// Claims may be made.
    Accepting,
    /// Not now: between two incarnations, or until the database is adopted.
    Held,
    /// Never again.
    Draining,
}

/// A task at an epoch: the same process may meet the same task at a newer one.
pub(crate) type Key = (Uuid, i64);

/// What the lock guards, and what a waiting condition sees.
pub(crate) struct Word {
    state: GateState,
    permits: usize,
    in_flight: HashMap<Key, Arc<Execution>>,
}

/// The gate of one process.
pub(crate) struct Gate {
    word: Mutex<Word>,
    changed: Notify,
}

impl Gate {
    /// Held until the worker is registered.
    pub(crate) fn new() -> Self {
        Self {
            word: Mutex::new(Word {
                state: GateState::Held,
                permits: 0,
                in_flight: HashMap::new(),
            }),
            changed: Notify::new(),
        }
    }

    fn word(&self) -> MutexGuard<'_, Word> {
        self.word.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn state(&self) -> GateState {
        self.word().state
    }

    /// Moves between accepting and held; a draining gate stays what it is.
    pub(crate) fn set(&self, state: GateState) {
        {
            let mut word = self.word();
            if word.state != GateState::Draining {
                word.state = state;
            }
        }
        self.changed.notify_waiters();
    }

    /// A permit for one claim call; `None` unless the gate accepts.
    pub(crate) fn permit(self: &Arc<Self>) -> Option<Permit> {
        let mut word = self.word();
        if word.state != GateState::Accepting {
            return None;
        }
        word.permits += 1;
        Some(Permit {
            gate: Arc::clone(self),
        })
    }

    /// Everything in flight.
    pub(crate) fn in_flight(&self) -> Vec<Arc<Execution>> {
        self.word().in_flight.values().cloned().collect()
    }

    /// How many are in flight.
    pub(crate) fn count(&self) -> usize {
        self.word().in_flight.len()
    }

    /// One of them.
    pub(crate) fn find(&self, key: Key) -> Option<Arc<Execution>> {
        self.word().in_flight.get(&key).cloned()
    }

    /// Its end is known to the database, or left to expiry.
    pub(crate) fn remove(&self, key: Key) {
        self.word().in_flight.remove(&key);
        self.changed.notify_waiters();
    }

    /// Waits until a condition holds; it is looked at again after every change.
    pub(crate) async fn until(&self, holds: impl Fn(&Word) -> bool) {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if holds(&self.word()) {
                return;
            }
            changed.await;
        }
    }

    /// Wakes those that wait for something else than the gate's own word (an execution that has stopped).
    pub(crate) fn touch(&self) {
        self.changed.notify_waiters();
    }
}

impl Word {
    pub(crate) fn permits(&self) -> usize {
        self.permits
    }

    pub(crate) fn state(&self) -> GateState {
        self.state
    }

    pub(crate) fn in_flight(&self) -> impl Iterator<Item = &Arc<Execution>> {
        self.in_flight.values()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.permits == 0 && self.in_flight.is_empty()
    }
}

/// The right to make one claim call.
pub(crate) struct Permit {
    gate: Arc<Gate>,
}

impl Permit {
    /// Registers what the call claimed. False: the gate has closed meanwhile, hand them back.
    pub(crate) fn register(&self, executions: &[Arc<Execution>]) -> bool {
        let mut word = self.gate.word();
        for execution in executions {
            word.in_flight
                .insert(execution.key(), Arc::clone(execution));
        }
        word.state == GateState::Accepting
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.gate.word().permits -= 1;
        self.gate.changed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    #[test]
    fn no_permit_unless_it_accepts() {
        let gate = Arc::new(Gate::new());
        assert!(gate.permit().is_none());
        gate.set(GateState::Accepting);
        let permit = gate.permit();
        assert!(permit.is_some());
        gate.set(GateState::Draining);
        assert!(gate.permit().is_none());
        gate.set(GateState::Accepting);
        assert_eq!(gate.state(), GateState::Draining, "a draining gate stays");
    }

    #[tokio::test]
    async fn a_closed_gate_is_empty_only_when_the_claim_on_its_way_came_back() {
        let gate = Arc::new(Gate::new());
        gate.set(GateState::Accepting);
        let permit = gate.permit().unwrap();
        gate.set(GateState::Draining);
        let waiter = tokio::spawn({
            let gate = Arc::clone(&gate);
            async move { gate.until(Word::is_empty).await }
        });
        tokio::task::yield_now().await;
        assert!(!waiter.is_finished());
        assert!(!permit.register(&[]), "what it claimed is handed back");
        drop(permit);
        waiter.await.unwrap();
    }

    #[tokio::test]
    async fn who_waits_for_permits_waits_while_one_is_out() {
        let gate = Arc::new(Gate::new());
        gate.set(GateState::Accepting);
        let permit = gate.permit().unwrap();
        let waiter = tokio::spawn({
            let gate = Arc::clone(&gate);
            async move { gate.until(|word| word.permits() == 0).await }
        });
        tokio::task::yield_now().await;
        assert!(!waiter.is_finished(), "a claim is on its way");
        drop(permit);
        waiter.await.unwrap();
    }

    #[tokio::test]
    async fn who_waits_for_an_execution_is_woken_by_a_touch() {
        let gate = Arc::new(Gate::new());
        let stopped = Arc::new(AtomicBool::new(false));
        let waiter = tokio::spawn({
            let (gate, stopped) = (Arc::clone(&gate), Arc::clone(&stopped));
            async move { gate.until(|_| stopped.load(Ordering::SeqCst)).await }
        });
        tokio::task::yield_now().await;
        stopped.store(true, Ordering::SeqCst);
        tokio::task::yield_now().await;
        assert!(!waiter.is_finished(), "nobody has told it");
        gate.touch();
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
        assert!(waiter.is_finished(), "it was not woken");
    }
}
