//! One execution: a claim with its handler, from registration until its end is known.
//!
//! Invariants: its guarded writes are queued, one in flight (`writer`); what the engine raised stands whatever the
//! handler does (`Poison`).

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use aegis_model::FenceReason;
use aegis_store::Claim;
use tokio::sync::OnceCell;

use crate::cancel::{CancelReason, Canceller};
use crate::gate::Key;
use crate::incarnation::Incarnation;
use crate::kinds::Kind;
use crate::metrics::{Ended, KindMetrics};
use crate::parts::Parts;
use crate::poison::Poison;
use crate::shared::Shared;
use crate::task_error::{EngineStop, TaskError};
use crate::traced::Traced;
use crate::writer::{Position, Writer};

/// How far an execution has come, locally.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// In the local queue.
    Queued,
    /// Its handler runs.
    Running,
    /// Its handler has returned; its end is being reported.
    Stopped,
}

/// What a used name stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Used {
    Step,
    Operation,
}

/// One execution.
pub(crate) struct Execution {
    pub(crate) shared: Arc<Shared>,
    pub(crate) incarnation: Arc<Incarnation>,
    pub(crate) kind: Arc<Kind>,
    /// As claimed; the input is taken out when it starts.
    pub(crate) claim: Claim,
    /// When it reached this worker.
    pub(crate) claimed_at: Instant,
    pub(crate) canceller: Canceller,
    pub(crate) writer: Writer,
    pub(crate) parts: OnceCell<Parts>,
    pub(crate) traced: Traced,
    /// The database said that the task is somebody else's.
    pub(crate) taken: AtomicBool,
    /// The database has refused a write.
    pub(crate) fenced: AtomicBool,
    /// The completion was done inside the handler's own transaction.
    pub(crate) completed: AtomicBool,
    input: Mutex<Option<Vec<u8>>>,
    poison: Mutex<Option<Poison>>,
    used: Mutex<HashSet<(Used, String, String)>>,
    /// Operations that got an answer in this attempt, by id.
    settled: Mutex<HashSet<String>>,
    stage: AtomicU8,
}

impl Execution {
    pub(crate) fn new(
        shared: &Arc<Shared>,
        incarnation: &Arc<Incarnation>,
        kind: &Arc<Kind>,
        mut claim: Claim,
    ) -> Arc<Self> {
        let input = std::mem::take(&mut claim.input);
        let position = Position {
            held: claim.held,
            lane: claim.lane,
            ended: false,
        };
        let execution = Self {
            shared: Arc::clone(shared),
            incarnation: Arc::clone(incarnation),
            kind: Arc::clone(kind),
            claimed_at: Instant::now(),
            canceller: Canceller::default(),
            writer: Writer::new(position),
            parts: OnceCell::new(),
            traced: Traced::of(&claim, &shared.tracer),
            taken: AtomicBool::new(false),
            fenced: AtomicBool::new(false),
            completed: AtomicBool::new(false),
            input: Mutex::new(Some(input)),
            poison: Mutex::new(None),
            used: Mutex::new(HashSet::new()),
            settled: Mutex::new(HashSet::new()),
            stage: AtomicU8::new(0),
            claim,
        };
        if let Some(cause) = execution.claim.cancel {
            execution.canceller.cancel(cause.into());
        }
        Arc::new(execution)
    }

    pub(crate) fn key(&self) -> Key {
        (self.claim.held.task, self.claim.held.epoch)
    }

    /// Does this claim only settle open operations?
    pub(crate) fn is_settling(&self) -> bool {
        self.claim.pending.is_some()
    }

    pub(crate) fn take_input(&self) -> Vec<u8> {
        self.input
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
            .unwrap_or_default()
    }

    pub(crate) fn stage(&self) -> Stage {
        match self.stage.load(Ordering::SeqCst) {
            0 => Stage::Queued,
            1 => Stage::Running,
            _ => Stage::Stopped,
        }
    }

    pub(crate) fn set_stage(&self, stage: Stage) {
        self.stage.store(stage as u8, Ordering::SeqCst);
    }

    /// Remembers what the engine raised.
    pub(crate) fn poison(&self, poison: Poison) {
        let mut stored = self.poison.lock().unwrap_or_else(PoisonError::into_inner);
        *stored = Some(match stored.take() {
            None => poison,
            Some(standing) => standing.and(poison),
        });
    }

    pub(crate) fn poisoned(&self) -> Option<Poison> {
        self.poison
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// The task is somebody else's, or will be: stop.
    pub(crate) fn lose(&self) -> EngineStop {
        self.poison(Poison::LeaseLost);
        self.canceller.cancel(CancelReason::LeaseLost);
        EngineStop::LeaseLost
    }

    /// The database said that the task is somebody else's: stop. A result that is ready is still sent, to be refused.
    pub(crate) fn give_up(&self) {
        self.taken.store(true, Ordering::SeqCst);
        self.canceller.cancel(CancelReason::LeaseLost);
    }

    /// Has the database said that it is somebody else's?
    pub(crate) fn is_taken(&self) -> bool {
        self.taken.load(Ordering::SeqCst)
    }

    /// What is measured for its kind.
    pub(crate) fn metrics(&self) -> &KindMetrics {
        self.shared.metrics.kind(self.kind.index)
    }

    /// Counts how this attempt ended.
    pub(crate) fn count(&self, ended: Ended) {
        let counters = &self.shared.counters;
        match ended {
            Ended::Completed => counters.completed.add(1),
            Ended::Failed => counters.failed.add(1),
            Ended::Snoozed | Ended::Cancelled | Ended::Unknown => counters.released.add(1),
            Ended::HandedBack => counters.handed_back.add(1),
            Ended::Lost => counters.lost.add(1),
        }
        self.metrics().ended(ended);
        self.tell_ended(ended);
    }

    /// The database has refused a write: counted, and the end of this execution.
    pub(crate) fn refused(&self, reason: impl Into<Option<FenceReason>>) -> EngineStop {
        self.shared.counters.fenced.add(1);
        self.metrics().fenced(reason.into());
        self.fenced.store(true, Ordering::SeqCst);
        self.lose()
    }

    /// May new work (a step, an operation) begin?
    pub(crate) fn may_begin(&self) -> Result<(), TaskError> {
        if let Some(reason) = self.canceller.reason() {
            self.poison(match reason {
                CancelReason::LeaseLost => Poison::LeaseLost,
                other => Poison::Cancelled(other),
            });
            return Err(EngineStop::Cancelled { reason }.into());
        }
        match self.poisoned() {
            None => Ok(()),
            Some(poison) => Err(raised(poison).into()),
        }
    }

    /// New work in a claim that only settles is refused.
    pub(crate) fn not_while_settling(&self) -> Result<(), TaskError> {
        if self.is_settling() {
            self.poison(Poison::SettlingOnly);
            return Err(EngineStop::SettlingOnly.into());
        }
        Ok(())
    }

    /// Marks a (name, key) as used. False: it was used before in this attempt.
    pub(crate) fn first_use(&self, what: Used, name: &str, key: &str) -> bool {
        self.used
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert((what, name.to_owned(), key.to_owned()))
    }

    /// Operations that were reached in this attempt, as (name, key).
    pub(crate) fn was_used(&self, what: Used, name: &str, key: &str) -> bool {
        self.used
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .contains(&(what, name.to_owned(), key.to_owned()))
    }

    /// The ledger has an answer for an operation, or knows that it did not happen.
    pub(crate) fn note_settled(&self, operation: &str) {
        self.settled
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(operation.to_owned());
    }

    /// Was an operation settled in this attempt?
    pub(crate) fn was_settled(&self, operation: &str) -> bool {
        self.settled
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .contains(operation)
    }

    /// Something moved.
    pub(crate) fn progress(&self) {
        self.shared.counters.progress_ticks.add(1);
    }
}

/// What a standing poison looks like to a handler that goes on.
pub(crate) fn raised(poison: Poison) -> EngineStop {
    match poison {
        Poison::LeaseLost => EngineStop::LeaseLost,
        Poison::Unknown { mut operations, .. } => EngineStop::EffectUnknown {
            operation: operations.pop().unwrap_or_default(),
        },
        Poison::Quiet { after } => EngineStop::QuietPeriod {
            operation: "of before".to_owned(),
            after,
        },
        Poison::SettlingOnly => EngineStop::SettlingOnly,
        Poison::Cancelled(reason) => EngineStop::Cancelled { reason },
    }
}
