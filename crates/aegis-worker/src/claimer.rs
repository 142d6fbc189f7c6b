//! The claim loop: one claimer per process.
//!
//! Invariants: a permit of the gate is taken before SQL is sent and kept until what was claimed is registered or the reply is
//! known; a lost answer is asked for again under the same request id; a suspect runs alone; housekeeping goes on while the
//! worker is busy and while it drains, at most one tick a second beside what falls due; what waits too long in the local
//! queue goes back, for others.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use aegis_store::listen::Listener;
use aegis_store::{AcquireRequest, Acquired, Claim, Cursor, KindCapacity, StoreError};
use tokio::sync::mpsc;
use tokio::time::Instant;
use uuid::Uuid;

use crate::drain::hand_back;
use crate::execution::Execution;
use crate::gate::{GateState, Permit};
use crate::incarnation::Incarnation;
use crate::shared::Shared;
use crate::warm::Warm;
use crate::worker::Event;
use crate::writer::{Pause, jittered};

/// Reports waiting beyond the slots: more, and the claimer waits for the database to take them.
const UNREPORTED_MAX: usize = 1000;
/// Claimed and not started for so long: the work before it was misjudged.
const WAIT_MAX: Duration = Duration::from_secs(1);
/// Shortest time to the next tick, because something falls due.
const DUE_MIN: Duration = Duration::from_millis(50);
/// The same after a tick at which nothing was for this worker: other queues' tasks must not make it busy.
const OTHERS_DUE_MIN: Duration = Duration::from_millis(250);

/// Between two looks at the database for those who watch this worker.
const OBSERVE_EVERY: Duration = Duration::from_secs(15);

struct Claimer {
    shared: Arc<Shared>,
    events: mpsc::UnboundedSender<Event>,
    cursor: Cursor,
    /// By kind.
    supply: Vec<Supply>,
    due_min: Duration,
    /// Looks that nobody has to ask for.
    warm: Warm,
    /// When the database was looked at for those who watch it.
    observed: Option<Instant>,
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
    /// It found less than there was room for: only a hint or a tick makes another look worthwhile.
    Exhausted,
}

/// What a kind's share of an acquisition says about more. A kind or queue that was filled to its own limit says nothing:
/// there may be more, once there is room again.
fn supply_after(
    asked: usize,
    given: usize,
    capacity: &KindCapacity,
    of_kind: usize,
    of_queue: usize,
) -> Supply {
    let filled = |given: usize, free: i32| usize::try_from(free).is_ok_and(|free| given >= free);
    if given > 0
        && (given >= asked
            || filled(of_kind, capacity.kind_free)
            || filled(of_queue, capacity.queue_free))
    {
        Supply::More
    } else {
        Supply::Exhausted
    }
}

/// What an acquisition was asked for and gave.
struct Took {
    asked: usize,
    given: usize,
    capacity: Vec<KindCapacity>,
    of_kind: Vec<usize>,
}

/// Which statement an acquisition uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    Ready,
    Suspect,
}

/// Runs until it is dropped; while the gate drains it only keeps house.
pub(crate) async fn run(shared: Arc<Shared>, events: mpsc::UnboundedSender<Event>) {
    let mut hints = Hints::new(&shared);
    let mut claimer = Claimer {
        events,
        cursor: Cursor {
            lane: rand::random_range(0..=i32::MAX),
            tenant: 0,
        },
        supply: vec![Supply::More; shared.kinds.all.len()],
        due_min: DUE_MIN,
        warm: Warm::default(),
        observed: None,
        suspects: false,
        duty: false,
        alone: false,
        shared,
    };
    let mut tick_at = Instant::now();
    loop {
        claimer.shared.counters.claim_ticks.add(1);
        claimer.shared.pulse.claimer.moved();
        if claimer.shared.look.swap(false, Ordering::SeqCst) || Instant::now() >= tick_at {
            tick_at = Instant::now() + claimer.tick().await;
        }
        if claimer.shared.gate.state() == GateState::Draining {
            tokio::time::sleep_until(tick_at).await;
            continue;
        }
        claimer.return_waiting();
        if claimer.claim().await {
            continue;
        }
        tokio::select! {
            () = tokio::time::sleep_until(tick_at) => {}
            () = claimer.shared.wake.notified() => {}
            () = hints.next() => {
                claimer.supply.fill(Supply::More);
                claimer.warm.hinted(Instant::now());
            }
            () = claimer.warm.wait() => {
                claimer.supply.fill(Supply::More);
                claimer.warm.looks(Instant::now());
            }
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
        self.shared.counters.ticks.add(1);
        match self.shared.store.tick(incarnation.id).await {
            Ok(tick) => {
                self.supply.fill(if tick.claimable {
                    Supply::More
                } else {
                    Supply::Exhausted
                });
                self.suspects = tick.suspects;
                self.duty = tick.duty;
                let due = Duration::from_millis(u64::try_from(tick.next_due_ms).unwrap_or(0));
                // A look stands for a tick, so that it costs nothing beyond; what falls due does not wait for it.
                let idle = jittered(every) + self.observe(incarnation.id, every);
                let next = idle.min(due.max(self.due_min));
                self.due_min = due_min(tick.claimable, next < every.mul_f64(0.75));
                next
            }
            Err(error) => {
                tracing::warn!(error = %error, "a tick failed");
                jittered(every)
            }
        }
    }

    /// Looks at the database for those who watch this worker, when somebody can and it is time. Answers how much longer the
    /// next tick may wait for it.
    fn observe(&mut self, worker: Uuid, every: Duration) -> Duration {
        let due = self.observed.is_none_or(|at| at.elapsed() >= OBSERVE_EVERY);
        if !due || self.shared.listening.get().is_none() {
            return Duration::ZERO;
        }
        self.observed = Some(Instant::now());
        let shared = Arc::clone(&self.shared);
        // Claims do not wait for it.
        tokio::spawn(async move {
            match shared.store.observe(worker).await {
                Ok(Some(observed)) => shared.metrics.observed(observed),
                Ok(None) => {}
                Err(error) => {
                    tracing::warn!(error = %error, "the database could not be looked at; its gauges keep their age");
                }
            }
        });
        every
    }

    /// Hands back what has waited too long for a slot of this worker.
    fn return_waiting(&self) {
        let waiting = self.shared.executor.take_waiting(WAIT_MAX);
        if waiting.is_empty() {
            return;
        }
        tracing::info!(
            tasks = waiting.len(),
            "claimed tasks found no slot in time; they are handed back"
        );
        let shared = Arc::clone(&self.shared);
        // In flight until it is answered, so a drain waits for it.
        tokio::spawn(async move { hand_back(&shared, waiting).await });
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
            self.suspects = self.acquire(&incarnation, What::Suspect).await.given > 0;
            self.alone = self.suspects;
            return true;
        }
        if self.duty || self.supply.iter().all(|one| *one == Supply::Exhausted) {
            return false;
        }
        if in_flight > shared.options.slots + UNREPORTED_MAX {
            return false;
        }
        let room = shared.executor.room(&shared.kinds);
        let promising = room.kinds.iter().any(|capacity| {
            let kind = shared.kinds.find(&capacity.queue, &capacity.kind);
            kind.is_some_and(|kind| self.supply[kind.index] == Supply::More)
        });
        if room.count == 0 || !room.worthwhile || !promising {
            return false;
        }
        let took = self.acquire(&incarnation, What::Ready).await;
        if took.given > 0 {
            self.warm.found(Instant::now());
        }
        for capacity in &took.capacity {
            let Some(kind) = self.shared.kinds.find(&capacity.queue, &capacity.kind) else {
                continue;
            };
            let of_queue = self.shared.kinds.all.iter();
            let of_queue = of_queue
                .filter(|other| other.queue_index == kind.queue_index)
                .map(|other| took.of_kind[other.index])
                .sum();
            self.supply[kind.index] = supply_after(
                took.asked,
                took.given,
                capacity,
                took.of_kind[kind.index],
                of_queue,
            );
        }
        took.given > 0
    }

    /// One acquisition, with its permit.
    async fn acquire(&mut self, incarnation: &Arc<Incarnation>, what: What) -> Took {
        let mut took = Took {
            asked: 0,
            given: 0,
            capacity: Vec::new(),
            of_kind: vec![0; self.shared.kinds.all.len()],
        };
        let Some(permit) = self.shared.gate.permit() else {
            return took;
        };
        let room = self.shared.executor.room(&self.shared.kinds);
        took.asked = room.count;
        took.capacity.clone_from(&room.kinds);
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
                return took;
            }
        };
        if let Some(cursor) = acquired.cursor {
            self.cursor = cursor;
        }
        took.given = acquired.claims.len();
        self.shared.counters.claimed.add(took.given);
        self.register(&permit, incarnation, acquired.claims, &mut took.of_kind)
            .await;
        took
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
            let sent = Instant::now();
            let answer = match what {
                What::Ready => store.acquire(request.clone()).await,
                What::Suspect => store.acquire_suspect(request.clone()).await,
            };
            self.shared.metrics.claim_took(sent.elapsed());
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
    async fn register(
        &self,
        permit: &Permit,
        incarnation: &Arc<Incarnation>,
        claims: Vec<Claim>,
        of_kind: &mut [usize],
    ) {
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
            of_kind[kind.index] += 1;
            self.shared.metrics.kind(kind.index).claimed();
            executions.push(Execution::new(&self.shared, incarnation, kind, claim));
        }
        if permit.register(&executions) {
            self.shared.executor.submit(executions);
        } else {
            hand_back(&self.shared, executions).await;
        }
    }
}

/// How soon the next tick may come because something falls due.
fn due_min(claimable: bool, was_early: bool) -> Duration {
    if claimable || !was_early {
        DUE_MIN
    } else {
        OTHERS_DUE_MIN
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
    fn only_a_kind_with_room_left_over_is_exhausted() {
        let capacity = |kind_free, queue_free| KindCapacity {
            queue: "q".to_owned(),
            kind: "k".to_owned(),
            kind_free,
            queue_free,
        };
        let after =
            |given, of_kind, of_queue| supply_after(10, given, &capacity(2, 5), of_kind, of_queue);
        assert_eq!(after(2, 2, 2), Supply::More, "the kind's own limit");
        assert_eq!(after(5, 1, 5), Supply::More, "the queue's limit");
        assert_eq!(after(10, 1, 1), Supply::More, "as much as was asked for");
        assert_eq!(after(1, 1, 1), Supply::Exhausted);
        assert_eq!(after(2, 0, 0), Supply::Exhausted, "another kind's");
        assert_eq!(after(0, 0, 0), Supply::Exhausted);
    }

    #[test]
    fn tasks_of_others_that_fall_due_make_nobody_busy() {
        assert_eq!(due_min(true, true), DUE_MIN);
        assert_eq!(due_min(false, false), DUE_MIN);
        assert_eq!(due_min(false, true), OTHERS_DUE_MIN);
    }

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
