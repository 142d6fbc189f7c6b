//! What all parts of a worker share, and the handle by which the outside sees and steers it.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use aegis_store::Store;
use aegis_telemetry::Tracer;
use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::budgets::Budgets;
use crate::completer::Finished;
use crate::counters::{Counters, Counts};
use crate::executor::Executor;
use crate::gate::{Gate, GateState};
use crate::http::HttpClient;
use crate::incarnation::Incarnation;
use crate::kinds::Kinds;
use crate::metrics::Metrics;
use crate::points::Points;
use crate::pulse::Pulse;
use crate::tuning::Tuning;

/// How a worker was configured.
#[derive(Debug, Clone)]
pub(crate) struct Options {
    pub(crate) name: String,
    pub(crate) host: String,
    pub(crate) environment: String,
    pub(crate) release: String,
    pub(crate) build: String,
    pub(crate) digest: String,
    pub(crate) slots: usize,
    pub(crate) lease_ttl: Duration,
    pub(crate) start_ttl: Duration,
    pub(crate) kill_after: Duration,
    pub(crate) stuck_after: Duration,
    pub(crate) budgets: Budgets,
    pub(crate) points: Points,
    pub(crate) tuning: Tuning,
}

/// What all parts of a worker share.
pub(crate) struct Shared {
    pub(crate) store: Store,
    pub(crate) options: Options,
    pub(crate) kinds: Kinds,
    pub(crate) gate: Arc<Gate>,
    pub(crate) executor: Executor,
    pub(crate) http: HttpClient,
    pub(crate) counters: Counters,
    pub(crate) metrics: Metrics,
    pub(crate) tracer: Tracer,
    /// Where health and metrics are shown.
    pub(crate) listening: OnceLock<SocketAddr>,
    pub(crate) pulse: Pulse,
    pub(crate) completions: mpsc::Sender<Finished>,
    /// The claimer has something to look at: a free slot, a hint, an opened gate.
    pub(crate) wake: Notify,
    /// The claimer is to tick at once.
    pub(crate) look: AtomicBool,
    /// Somebody asked for a drain.
    pub(crate) drain: CancellationToken,
    /// Somebody asked to go straight to the cancel phase.
    pub(crate) cancel_now: CancellationToken,
    /// The worker has ended: nothing is tried again.
    pub(crate) ended: CancellationToken,
    /// Around everything that this worker logs.
    pub(crate) span: tracing::Span,
    incarnation: Mutex<Option<Arc<Incarnation>>>,
}

impl Shared {
    pub(crate) fn new(
        store: Store,
        options: Options,
        kinds: Kinds,
        http: HttpClient,
        tracer: Tracer,
        completions: mpsc::Sender<Finished>,
    ) -> Arc<Self> {
        Arc::new(Self {
            executor: Executor::new(&kinds, options.slots, options.tuning),
            metrics: Metrics::new(&kinds),
            tracer,
            listening: OnceLock::new(),
            store,
            span: tracing::error_span!(
                "worker",
                worker = tracing::field::Empty,
                worker_name = options.name,
                release = options.release,
            ),
            options,
            kinds,
            gate: Arc::new(Gate::new()),
            http,
            counters: Counters::default(),
            pulse: Pulse::default(),
            completions,
            wake: Notify::new(),
            look: AtomicBool::new(false),
            drain: CancellationToken::new(),
            cancel_now: CancellationToken::new(),
            ended: CancellationToken::new(),
            incarnation: Mutex::new(None),
        })
    }

    /// The newest incarnation; `None` before the first registration.
    pub(crate) fn incarnation(&self) -> Option<Arc<Incarnation>> {
        self.incarnation
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    pub(crate) fn set_incarnation(&self, incarnation: &Arc<Incarnation>) {
        self.span
            .record("worker", tracing::field::display(incarnation.id));
        *self
            .incarnation
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(incarnation));
    }
}

/// Where a worker stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WorkerPhase {
    /// Not registered yet.
    Starting,
    /// Claims and executes.
    Accepting,
    /// Executes and does not claim: it registers anew after a lost lease, or waits for `aegis db adopt`.
    Held,
    /// Finishes what it has.
    Draining,
    /// Has ended.
    Ended,
}

/// What a worker does right now.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Snapshot {
    /// Where it stands.
    pub phase: WorkerPhase,
    /// Its incarnation; `None` before the first registration.
    pub worker: Option<Uuid>,
    /// Does it believe to be eligible?
    pub eligible: bool,
    /// Handlers that run.
    pub executing: usize,
    /// Claimed and not started.
    pub queued: usize,
    /// Everything claimed whose end the database has not confirmed.
    pub in_flight: usize,
    /// What it has counted.
    pub counts: Counts,
}

/// Sees and steers a running worker. Cheap to clone.
#[derive(Clone)]
pub struct WorkerHandle {
    pub(crate) shared: Arc<Shared>,
}

impl WorkerHandle {
    /// Starts a drain: no more claims, what runs goes on within the drain budget.
    pub fn drain(&self) {
        self.shared.drain.cancel();
    }

    /// Goes straight to the cancel phase of a drain.
    pub fn cancel_now(&self) {
        self.shared.drain.cancel();
        self.shared.cancel_now.cancel();
    }

    /// Looks for due housekeeping and for work now, instead of within a second or so.
    pub fn look_now(&self) {
        self.shared.look.store(true, Ordering::SeqCst);
        self.shared.wake.notify_one();
    }

    /// The newest incarnation; `None` before the first registration.
    pub fn id(&self) -> Option<Uuid> {
        self.shared.incarnation().map(|incarnation| incarnation.id)
    }

    /// Where it shows its health and its metrics; `None`: nowhere.
    pub fn listening(&self) -> Option<SocketAddr> {
        self.shared.listening.get().copied()
    }

    /// May it be sent traffic, in the platform's words: registered, eligible and not draining?
    pub fn is_ready(&self) -> bool {
        let snapshot = self.snapshot();
        snapshot.phase == WorkerPhase::Accepting && snapshot.eligible
    }

    /// What it does right now.
    pub fn snapshot(&self) -> Snapshot {
        let shared = &self.shared;
        let incarnation = shared.incarnation();
        let phase = match (shared.gate.state(), &incarnation) {
            _ if shared.ended.is_cancelled() => WorkerPhase::Ended,
            (GateState::Draining, _) => WorkerPhase::Draining,
            (_, None) => WorkerPhase::Starting,
            (GateState::Accepting, _) => WorkerPhase::Accepting,
            (GateState::Held, _) => WorkerPhase::Held,
        };
        let (executing, queued) = shared.executor.load();
        Snapshot {
            phase,
            worker: incarnation.as_ref().map(|incarnation| incarnation.id),
            eligible: incarnation.is_some_and(|incarnation| incarnation.fence.is_eligible()),
            executing,
            queued,
            in_flight: shared.gate.count(),
            counts: shared.counters.read(),
        }
    }
}
