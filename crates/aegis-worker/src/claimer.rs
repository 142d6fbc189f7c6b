//! The claim loop: one claimer per process.
//!
//! Invariants: a permit of the gate is taken before SQL is sent and kept until what was claimed is registered or the reply is
//! known; a lost answer is asked for again under the same request id; a suspect runs alone; housekeeping goes on while the
//! worker is busy, at most one tick a second.

use std::sync::Arc;
use std::time::Duration;

use aegis_store::listen::Listener;
use aegis_store::{AcquireRequest, Acquired, Claim, Cursor, StoreError};
use tokio::sync::mpsc;
use tokio::time::Instant;
use uuid::Uuid;

use crate::drain::hand_back;
use crate::execution::Execution;
use crate::gate::{GateState, Permit};
use crate::incarnation::Incarnation;
use crate::shared::Shared;
use crate::worker::Event;
use crate::writer::{Pause, jittered};

/// Reports waiting beyond the slots: more, and the claimer waits for the database to take them.
const UNREPORTED_MAX: usize = 1000;

struct Claimer {
    shared: Arc<Shared>,
    events: mpsc::UnboundedSender<Event>,
    cursor: Cursor,
    supply: Supply,
    /// The last tick found a suspect.
    suspects: bool,
    /// This worker has to become empty and take suspects.
    duty: bool,
    /// A suspect runs.
    alone: bool,
}

/// What the last look said about the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Supply {
    /// Perhaps there is more.
    More,
    /// It found less than was asked for: only a hint or a tick makes another look worthwhile.
    Exhausted,
}

/// Which statement an acquisition uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    Ready,
    Suspect,
}

/// Runs until the gate drains.
pub(crate) async fn run(shared: Arc<Shared>, events: mpsc::UnboundedSender<Event>) {
    let mut hints = Hints::new(&shared);
    let mut claimer = Claimer {
        events,
        cursor: Cursor {
            lane: rand::random_range(0..=i32::MAX),
            tenant: 0,
        },
        supply: Supply::More,
        suspects: false,
        duty: false,
        alone: false,
        shared,
    };
    let mut tick_at = Instant::now();
    loop {
        claimer.shared.counters.claim_ticks.add(1);
        if claimer.shared.gate.state() == GateState::Draining {
            return;
        }
        if Instant::now() >= tick_at {
            tick_at = Instant::now() + claimer.tick().await;
        }
        if claimer.claim().await {
            continue;
        }
        tokio::select! {
            () = tokio::time::sleep_until(tick_at) => {}
            () = claimer.shared.wake.notified() => {}
            () = hints.next() => claimer.supply = Supply::More,
            () = claimer.shared.drain.cancelled() => {
                claimer.shared.gate.until(|view| view.state() == GateState::Draining).await;
            }
        }
    }
}

impl Claimer {
    /// Housekeeping, and whether there is something to claim. Answers when to look again.
    async fn tick(&mut self) -> Duration {
        let every = tick_every(self.shared.options.lease_ttl);
        let Some(incarnation) = self.shared.incarnation() else {
            return every;
        };
        match self.shared.store.tick(incarnation.id).await {
            Ok(tick) => {
                self.supply = if tick.claimable {
                    Supply::More
                } else {
                    Supply::Exhausted
                };
                self.suspects = tick.suspects;
                self.duty = tick.duty;
                let due = Duration::from_millis(tick.next_due_ms.unsigned_abs());
                jittered(every).min(due.max(Duration::from_millis(50)))
            }
            Err(error) => {
                tracing::warn!(error = %error, "a tick failed");
                jittered(every)
            }
        }
    }

    /// Claims once, if there is room and reason. True: look again at once.
    async fn claim(&mut self) -> bool {
        let shared = &self.shared;
        let in_flight = shared.gate.count();
        if self.alone && in_flight > 0 {
            return false;
        }
        self.alone = false;
        let Some(incarnation) = shared.incarnation() else {
            return false;
        };
        if !incarnation.fence.is_eligible() {
            return false;
        }
        if self.suspects && in_flight == 0 {
            self.suspects = self.acquire(&incarnation, What::Suspect).await > 0;
            self.alone = self.suspects;
            return true;
        }
        if self.duty || self.supply == Supply::Exhausted {
            return false;
        }
        if in_flight > shared.options.slots + UNREPORTED_MAX {
            return false;
        }
        let room = shared.executor.room(&shared.kinds);
        if room.count == 0 || !room.worthwhile {
            return false;
        }
        let asked = room.count;
        let given = self.acquire(&incarnation, What::Ready).await;
        if given < asked {
            self.supply = Supply::Exhausted;
        }
        given > 0
    }

    /// One acquisition, with its permit. Answers how many tasks it gave.
    async fn acquire(&mut self, incarnation: &Arc<Incarnation>, what: What) -> usize {
        let Some(permit) = self.shared.gate.permit() else {
            return 0;
        };
        let room = self.shared.executor.room(&self.shared.kinds);
        let request = AcquireRequest {
            worker: incarnation.id,
            request: Uuid::new_v4(),
            capacity: room.kinds,
            count: room.count,
            cursor: self.cursor,
        };
        let acquired = match self.ask(incarnation, request, what).await {
            Ok(acquired) => acquired,
            Err(error) => {
                tracing::warn!(error = %error, "an acquisition failed");
                if matches!(error, StoreError::NotAdopted) {
                    self.events.send(Event::Regressed).ok();
                }
                return 0;
            }
        };
        if let Some(cursor) = acquired.cursor {
            self.cursor = cursor;
        }
        let given = acquired.claims.len();
        self.shared.counters.claimed.add(given);
        self.register(&permit, incarnation, acquired.claims).await;
        given
    }

    /// Asks until the answer is known, or the lease is over: then nothing that was claimed can be started any more.
    async fn ask(
        &self,
        incarnation: &Incarnation,
        request: AcquireRequest,
        what: What,
    ) -> Result<Acquired, StoreError> {
        let store = &self.shared.store;
        let mut pause = Pause::new();
        let mut lost = false;
        self.shared.counters.acquisitions.add(1);
        loop {
            let answer = match what {
                What::Ready => store.acquire(request.clone()).await,
                What::Suspect => store.acquire_suspect(request.clone()).await,
            };
            let answer = match answer {
                // Nothing now: perhaps because the lost call had claimed.
                Ok(nothing) if lost && nothing.claims.is_empty() => {
                    store.acquired(request.worker, request.request).await
                }
                answer => answer,
            };
            match answer {
                Err(error) if error.lost_answer() || (lost && error.is_passing()) => {
                    if !incarnation.fence.is_eligible() {
                        return Err(error);
                    }
                    lost = true;
                    self.shared.counters.acquire_repeated.add(1);
                    tracing::warn!(error = %error, "the answer to an acquisition was lost; it is asked for again");
                }
                answer => return answer,
            }
            pause.wait().await;
        }
    }

    /// Registers what was claimed and starts it; or hands it back, when the gate has closed meanwhile.
    async fn register(&self, permit: &Permit, incarnation: &Arc<Incarnation>, claims: Vec<Claim>) {
        if claims.is_empty() {
            return;
        }
        let mut executions = Vec::with_capacity(claims.len());
        for claim in claims {
            let lane = match self.shared.store.lane(claim.lane).await {
                Ok(lane) => lane,
                Err(error) => {
                    // Not named by renewal, so it goes back to its lane after two beats.
                    tracing::error!(task = %claim.held.task, error = %error, "the lane of a claimed task cannot be read");
                    continue;
                }
            };
            let Some(kind) = self.shared.kinds.find(&lane.queue, &lane.kind) else {
                tracing::error!(task = %claim.held.task, kind = %lane.kind, "a task of a kind without a handler was claimed");
                continue;
            };
            executions.push(Execution::new(&self.shared, incarnation, kind, claim));
        }
        if permit.register(&executions) {
            self.shared.executor.submit(executions);
        } else {
            hand_back(&self.shared, executions).await;
        }
    }
}

/// So often that ticks and beats of an idle worker together stay at one query a second; with a short lease an eighth of
/// it. A takeover does not wait for it: the last tick said when a lease ends.
fn tick_every(lease_ttl: Duration) -> Duration {
    (lease_ttl / 8).clamp(Duration::from_millis(20), Duration::from_millis(1200))
}

/// Hints that a queue has work. Without a direct URL there are none, and polling stands in.
struct Hints {
    woken: mpsc::Receiver<()>,
    _stop: tokio_util::task::AbortOnDropHandle<()>,
}

impl Hints {
    fn new(shared: &Arc<Shared>) -> Self {
        let (wake, woken) = mpsc::channel(1);
        let shared = Arc::clone(shared);
        let listening = tokio::spawn(async move {
            let queues = shared.kinds.queue_names();
            loop {
                match Listener::connect(shared.store.config(), &queues).await {
                    Ok(None) => return,
                    Ok(Some(mut listener)) => {
                        // What was sent before it listened is not heard: look once.
                        wake.try_send(()).ok();
                        while listener.hint().await {
                            wake.try_send(()).ok();
                        }
                    }
                    Err(error) => tracing::debug!(error = %error, "hints are not heard; polling"),
                }
                tokio::time::sleep(jittered(Duration::from_secs(2))).await;
            }
        });
        Self {
            woken,
            _stop: tokio_util::task::AbortOnDropHandle::new(listening),
        }
    }

    async fn next(&mut self) {
        if self.woken.recv().await.is_none() {
            std::future::pending::<()>().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_and_beats_together_stay_at_one_query_a_second() {
        let ttl = Duration::from_secs(30);
        let a_second =
            1.0 / tick_every(ttl).as_secs_f64() + 1.0 / (ttl / 4).mul_f64(0.94).as_secs_f64();
        assert!(a_second <= 1.0, "{a_second}");
        assert_eq!(
            tick_every(Duration::from_millis(800)),
            Duration::from_millis(100)
        );
    }
}
