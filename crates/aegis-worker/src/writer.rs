//! Guarded writes of one execution: queued, one in flight, and never in doubt about the last one.
//!
//! Invariants: a write runs in a task of its own, so that a handler that drops its future (`select!`) leaves no write whose
//! outcome nobody learns; after a lost answer nothing is sent before the row was read back; a fence stops the execution and
//! is never retried, except that one under its own claim (another rev, or a row that is gone after a repeat) is read back:
//! an earlier copy of the same write may have arrived late.

use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use aegis_model::{FenceReason, Held, Outcome};
use aegis_store::guarded::{ReadBack, Saved};
use aegis_store::{Store, StoreError};
use tokio::sync::{Mutex, OwnedMutexGuard};

use crate::execution::Execution;
use crate::task_error::{EngineStop, TaskError};

/// What the next guarded write has to name.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Position {
    pub(crate) held: Held,
    /// The task's lane.
    pub(crate) lane: i32,
    /// The end of the execution was sent: nothing else may be written.
    pub(crate) ended: bool,
}

/// The queue of one execution's writes.
pub(crate) struct Writer {
    position: Arc<Mutex<Position>>,
}

/// What a sent write answered: where it left the task (`None`: the row did not move), and what it gives.
pub(crate) type Sent<T> = Result<Outcome<(Option<Saved>, T)>, StoreError>;

/// A guarded write that leaves the task running.
pub(crate) trait Verb: Send + Sync + 'static {
    /// What an applied write gives.
    type Out: Send + 'static;

    /// What it is counted under: one of [`WRITES`](crate::metrics::WRITES).
    fn word(&self) -> &'static str;

    /// The operation that it is about.
    fn operation(&self) -> Option<&str> {
        None
    }

    /// Sends it once.
    fn send(&self, store: &Store, at: Position) -> impl Future<Output = Sent<Self::Out>> + Send;

    /// What it gives when only the row told that it was applied.
    fn read_back(&self) -> Self::Out;

    /// The protocol of what it writes.
    fn protocol(&self) -> i32;
}

/// What became of a write after its answer was lost.
pub(crate) enum Resolved {
    /// It was committed; the row's rev now.
    Applied {
        rev: i64,
    },
    NotApplied,
    /// Refused; without a lease nobody asked why.
    Fenced(FenceReason),
}

impl Writer {
    pub(crate) fn new(position: Position) -> Self {
        Self {
            position: Arc::new(Mutex::new(position)),
        }
    }

    /// Waits for its turn.
    pub(crate) async fn turn(&self) -> OwnedMutexGuard<Position> {
        Arc::clone(&self.position).lock_owned().await
    }
}

impl Execution {
    /// Writes, when it is its turn.
    pub(crate) async fn write<V: Verb>(self: &Arc<Self>, verb: V) -> Result<V::Out, TaskError> {
        let execution = Arc::clone(self);
        tokio::spawn(async move {
            let mut position = execution.writer.turn().await;
            if position.ended {
                return Err(EngineStop::Ended.into());
            }
            let began = SystemTime::now();
            let out = execution.write_now(&verb, &mut position).await;
            let error = out.as_ref().err().map(|error| error.word().to_owned());
            execution.tell_write(verb.word(), verb.operation(), began, error);
            execution.progress();
            out
        })
        .await
        .unwrap_or_else(|_| Err(TaskError::retryable("panic", "a guarded write panicked")))
    }

    async fn write_now<V: Verb>(
        &self,
        verb: &V,
        position: &mut Position,
    ) -> Result<V::Out, TaskError> {
        let store = &self.shared.store;
        let mut pause = Pause::new();
        loop {
            let sent = Instant::now();
            let answer = verb.send(store, *position).await;
            self.shared.metrics.write_took(verb.word(), sent.elapsed());
            let doubtful = match answer {
                Ok(Outcome::Applied((saved, out))) => {
                    if let Some(saved) = saved {
                        position.held.rev = saved.rev;
                        position.lane = saved.lane;
                    }
                    return Ok(out);
                }
                Ok(Outcome::Fenced(reason)) if !may_be_own(reason, pause.waited()) => {
                    return Err(self.refused(reason).into());
                }
                Ok(Outcome::Fenced(_) | Outcome::Unknown) => true,
                Err(error) if error.is_passing() => {
                    tracing::warn!(task = %self.claim.held.task, error = %error, "a guarded write waits for the database");
                    false
                }
                Err(error) => return Err(error.into()),
            };
            if doubtful {
                match self.read_back(position.held, None).await {
                    Resolved::Applied { rev } => {
                        position.held.rev = rev;
                        position.lane = self.lane_after(position.lane, verb.protocol()).await?;
                        return Ok(verb.read_back());
                    }
                    Resolved::NotApplied => {}
                    Resolved::Fenced(reason) => return Err(self.refused(reason).into()),
                }
            }
            if !self.incarnation.fence.is_eligible() {
                return Err(self.lose().into());
            }
            pause.wait().await;
        }
    }

    /// The lane for the next write. The write itself has asked the same, so it is cached.
    async fn lane_after(&self, lane: i32, protocol: i32) -> Result<i32, TaskError> {
        Ok(self.shared.store.lane_after(lane, protocol).await?)
    }

    /// Reads back until it is known, or the lease is over.
    pub(crate) async fn read_back(&self, held: Held, digest: Option<i64>) -> Resolved {
        let mut pause = Pause::new();
        loop {
            match self.shared.store.read_back(held, digest).await {
                Ok(ReadBack::Applied { rev, .. }) => {
                    self.shared.counters.unknown_resolved.add(1);
                    return Resolved::Applied { rev };
                }
                Ok(ReadBack::NotApplied) => {
                    self.shared.counters.unknown_resolved.add(1);
                    return Resolved::NotApplied;
                }
                Ok(ReadBack::Fenced(reason)) => return Resolved::Fenced(reason),
                Err(error) => {
                    tracing::warn!(task = %held.task, error = %error, "what became of a write cannot be read yet");
                }
            }
            // Without a lease there is nothing left that this execution may do with the answer.
            if self.incarnation.fence.is_lost() || !self.incarnation.fence.is_eligible() {
                return Resolved::Fenced(FenceReason::Lease);
            }
            pause.wait().await;
        }
    }
}

/// Could the refusal come from an earlier copy of the same write?
fn may_be_own(reason: FenceReason, repeated: bool) -> bool {
    match reason {
        FenceReason::Rev { .. } => true,
        FenceReason::Gone => repeated,
        _ => false,
    }
}

/// Growing pauses between tries: 20 ms, doubled, at most 1 s, with jitter.
pub(crate) struct Pause {
    next: Duration,
    waited: bool,
}

impl Pause {
    pub(crate) fn new() -> Self {
        Self {
            next: Duration::from_millis(20),
            waited: false,
        }
    }

    /// Has a first try failed?
    pub(crate) fn waited(&self) -> bool {
        self.waited
    }

    pub(crate) async fn wait(&mut self) {
        self.waited = true;
        tokio::time::sleep(jittered(self.next)).await;
        self.next = (self.next * 2).min(Duration::from_secs(1));
    }
}

/// A duration ± 25 %, so that a fleet does not beat in step.
pub(crate) fn jittered(duration: Duration) -> Duration {
    duration.mul_f64(rand::random_range(0.75..1.25))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_refusal_that_a_late_copy_could_cause_is_read_back() {
        assert!(may_be_own(FenceReason::Rev { current: 3 }, false));
        assert!(may_be_own(FenceReason::Gone, true));
        assert!(!may_be_own(FenceReason::Gone, false));
        assert!(!may_be_own(FenceReason::Epoch { current: 3 }, true));
        assert!(!may_be_own(FenceReason::Lease, true));
    }

    #[test]
    fn jitter_stays_within_a_quarter() {
        for _ in 0..100 {
            let one = jittered(Duration::from_secs(4));
            assert!((3.0..5.0).contains(&one.as_secs_f64()));
        }
    }
}
