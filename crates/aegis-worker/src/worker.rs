//! A worker's life: register, renew, claim and execute, register anew after a lost lease, drain, stop.
//!
//! Invariants: a lost lease is lost for ever: its executions are cancelled, waited for, and a new incarnation names its
//! predecessor; renewal is the last thing that stops.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use aegis_store::worker::Registration;
use aegis_telemetry::Listening;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;
use tracing::Instrument;
use uuid::Uuid;

use crate::claimer;
use crate::completer::{self, Finished};
use crate::drain;
use crate::error::WorkerError;
use crate::execution::Stage;
use crate::exit::Exit;
use crate::gate::GateState;
use crate::incarnation::Incarnation;
use crate::renewal::Renewal;
use crate::self_fence::boot_ns;
use crate::shared::{Shared, WorkerHandle};
use crate::watchdog::Watchdog;
use crate::writer::Pause;

/// How often the supervisor looks for an adopted database.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The last spans get so long to be sent.
const FLUSH_MAX: Duration = Duration::from_secs(2);

/// What the parts of a worker tell its supervisor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event {
    /// The database said so.
    LeaseLost(Uuid),
    /// The database has lost its newest claims, or is another one.
    Regressed,
    /// No slot is left that stops when it is asked to.
    Stuck,
}

/// A worker that was built and not started; made by [`Worker::builder`].
#[must_use = "a worker does nothing until it runs"]
pub struct Worker {
    pub(crate) shared: Arc<Shared>,
    pub(crate) completions: mpsc::Receiver<Finished>,
    /// Shows health and metrics until the worker has ended.
    pub(crate) listening: Option<Listening>,
}

impl Worker {
    /// To see and steer it, also while it runs.
    pub fn handle(&self) -> WorkerHandle {
        WorkerHandle {
            shared: Arc::clone(&self.shared),
        }
    }

    /// Runs until SIGTERM or SIGINT and the drain that follows; a second signal goes straight to the cancel phase. Right
    /// for a process of its own, also as PID 1: `std::process::exit(exit.code().into())` afterwards, since a handler that
    /// blocks a thread would hold the runtime's end up. A worker that cannot return in its time (its budgets after a signal,
    /// [`stuck_after`](crate::WorkerBuilder::stuck_after) when handlers block every thread) ends the process itself, with the
    /// code of [`Exit`].
    ///
    /// # Errors
    /// [`WorkerError`] when it cannot start.
    pub async fn run_until_signal(self) -> Result<Exit, WorkerError> {
        self.run_watched(std::future::pending(), true).await
    }

    /// Runs until `shutdown` is ready, or a drain is asked for through [`WorkerHandle`] or in the database, and then drains.
    ///
    /// # Errors
    /// [`WorkerError`] when it cannot start. While the database is out of reach it tries again.
    pub async fn run(self, shutdown: impl Future<Output = ()> + Send) -> Result<Exit, WorkerError> {
        self.run_watched(shutdown, false).await
    }

    async fn run_watched(
        self,
        shutdown: impl Future<Output = ()> + Send,
        owns_process: bool,
    ) -> Result<Exit, WorkerError> {
        let Self {
            shared,
            completions,
            listening: _listening,
        } = self;
        let span = shared.span.clone();
        let (events, inbox) = mpsc::unbounded_channel();
        let mut watchdog = Watchdog::start(&shared, events.clone(), owns_process)?;
        let mut life = Life {
            completer: AbortOnDropHandle::new(tokio::spawn(
                completer::run(Arc::clone(&shared), completions).instrument(span.clone()),
            )),
            claimer: AbortOnDropHandle::new(tokio::spawn(
                claimer::run(Arc::clone(&shared), events.clone()).instrument(span.clone()),
            )),
            shared: Arc::clone(&shared),
            events,
            renewal: None,
            awaits_adoption: false,
        };
        let whole = async {
            let exit = life.live(inbox).await;
            life.end().await;
            exit
        }
        .instrument(span);
        tokio::select! {
            exit = whole => exit,
            // Nothing may be waited for any more: what would wake this is what stands still.
            () = watchdog.gives_up() => Ok(Exit::RuntimeStuck),
            () = forward(shutdown, &shared) => unreachable!("it never ends"),
        }
    }
}

/// Turns the end of `shutdown` into a request to drain, and never ends.
async fn forward(shutdown: impl Future<Output = ()>, shared: &Shared) {
    shutdown.await;
    shared.drain.cancel();
    std::future::pending::<()>().await;
}

struct Life {
    shared: Arc<Shared>,
    events: mpsc::UnboundedSender<Event>,
    renewal: Option<Renewal>,
    completer: AbortOnDropHandle<()>,
    claimer: AbortOnDropHandle<()>,
    /// Acquisition is closed: the database has lost its newest claims, or is a copy.
    awaits_adoption: bool,
}

impl Life {
    async fn live(
        &mut self,
        mut inbox: mpsc::UnboundedReceiver<Event>,
    ) -> Result<Exit, WorkerError> {
        let shared = Arc::clone(&self.shared);
        if !self.register(None).await? {
            return Ok(Exit::Drained);
        }
        let mut look = tokio::time::interval(LOOK_EVERY);
        look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = shared.drain.cancelled() => return Ok(drain::drain(&shared).await),
                Some(event) = inbox.recv() => match event {
                    Event::LeaseLost(lost) => if let Some(exit) = self.lease_lost(lost).await? {
                        return Ok(exit);
                    },
                    Event::Regressed => self.regressed(),
                    Event::Stuck => {
                        drain::close(&shared).await;
                        return Ok(Exit::Stuck);
                    }
                },
                _ = look.tick() => {
                    tokio::select! {
                        () = self.look_for_adoption() => {}
                        () = shared.drain.cancelled() => {}
                    }
                }
            }
        }
    }

    /// Registers an incarnation, starts its renewal, opens the gate. False: a drain was asked for before that succeeded.
    async fn register(&mut self, predecessor: Option<Uuid>) -> Result<bool, WorkerError> {
        let shared = Arc::clone(&self.shared);
        let options = &shared.options;
        let mut pause = Pause::new();
        loop {
            if shared.drain.is_cancelled() {
                return Ok(false);
            }
            let id = Uuid::new_v4();
            let sent_ns = boot_ns();
            let registration = Registration {
                worker: id,
                predecessor,
                name: options.name.clone(),
                host: options.host.clone(),
                pid: i32::try_from(std::process::id()).unwrap_or_default(),
                release: options.release.clone(),
                build: options.build.clone(),
                digest: options.digest.clone(),
                slots: i32::try_from(options.slots).unwrap_or(i32::MAX),
                ttl_ms: i64::try_from(options.lease_ttl.as_millis()).unwrap_or(i64::MAX),
                capabilities: shared.kinds.capabilities(),
            };
            // A registration that is left behind here is one whose answer was lost.
            let registered = tokio::select! {
                registered = shared.store.register(registration) => registered,
                () = shared.drain.cancelled() => return Ok(false),
            };
            match registered {
                Ok(forgiven) => {
                    let incarnation = Arc::new(Incarnation::new(id, sent_ns, options.lease_ttl));
                    tracing::info!(worker = %id, predecessor = ?predecessor, forgiven, "registered");
                    let renewal = Renewal::start(&shared, &incarnation, self.events.clone())
                        .map_err(|source| WorkerError::Start {
                            what: "renewal thread",
                            source: Box::new(source),
                        })?;
                    self.renewal = Some(renewal);
                    shared.set_incarnation(&incarnation);
                    if !self.awaits_adoption {
                        shared.gate.set(GateState::Accepting);
                    }
                    shared.wake.notify_one();
                    return Ok(true);
                }
                // A registration whose answer was lost leaves a row that nobody renews: it expires holding nothing.
                Err(source) if source.is_passing() => {
                    tracing::warn!(error = %source, "the worker cannot register yet");
                    tokio::select! {
                        () = pause.wait() => {}
                        () = shared.drain.cancelled() => {}
                    }
                }
                Err(source) => return Err(WorkerError::Register { source }),
            }
        }
    }

    /// Waits for the executions of a lost lease and registers anew; gives an exit when one outlives `kill_after`.
    async fn lease_lost(&mut self, lost: Uuid) -> Result<Option<Exit>, WorkerError> {
        let shared = Arc::clone(&self.shared);
        if shared.incarnation().is_none_or(|now| now.id != lost) {
            return Ok(None);
        }
        shared.gate.set(GateState::Held);
        let deadline = Instant::now() + shared.options.kill_after;
        // What had not started never will.
        for execution in shared.executor.take_queued() {
            shared.gate.remove(execution.key());
        }
        let stopped = shared.gate.until(|view| {
            view.permits() == 0
                && view.in_flight().all(|execution| {
                    execution.claim.held.owner != lost || execution.stage() == Stage::Stopped
                })
        });
        if tokio::time::timeout_at(deadline, stopped).await.is_err() {
            tracing::error!("an execution outlived its lease and kill_after; the worker ends");
            return Ok(Some(Exit::LeaseOutlived));
        }
        if let Some(renewal) = self.renewal.take() {
            renewal.stop().await;
        }
        if self.register(Some(lost)).await? {
            return Ok(None);
        }
        Ok(Some(drain::drain(&shared).await))
    }

    /// Closes acquisition until the database is adopted. The database is closed, too: this only stops asking it.
    fn regressed(&mut self) {
        if !self.awaits_adoption {
            self.awaits_adoption = true;
            self.shared.gate.set(GateState::Held);
            tracing::error!(
                code = aegis_model::ErrorCode::NOT_ADOPTED.as_str(),
                "the database has lost its newest claims, or is a copy; acquisition is closed until `aegis db adopt`"
            );
        }
    }

    async fn look_for_adoption(&mut self) {
        if !self.awaits_adoption {
            return;
        }
        match self.shared.store.database_status().await {
            Ok(status) if status.closed_at.is_none() && status.lineage_floor.is_some() => {
                tracing::info!(
                    floor = status.floor,
                    "the database was adopted; acquisition is open again"
                );
                self.awaits_adoption = false;
                self.shared.gate.set(GateState::Accepting);
                self.shared.wake.notify_one();
            }
            Ok(_) => {}
            Err(error) => {
                tracing::debug!(error = %error, "whether the database was adopted cannot be read");
            }
        }
    }

    /// Everything has ended or is left to expiry: stop the loops, then renewal, then the row.
    async fn end(&mut self) {
        self.shared.gate.set(GateState::Draining);
        self.claimer.abort();
        self.shared.ended.cancel();
        self.completer.abort();
        if let Some(renewal) = self.renewal.take() {
            renewal.stop().await;
        }
        if let Some(incarnation) = self.shared.incarnation() {
            let stopping = self.shared.store.stop(incarnation.id);
            match tokio::time::timeout(Duration::from_secs(5), stopping).await {
                Ok(Ok(true)) => {}
                Ok(Ok(false)) => {
                    tracing::warn!(worker = %incarnation.id, "the worker still holds tasks, or its lease is lost; expiry does the rest");
                }
                Ok(Err(error)) => {
                    tracing::warn!(error = %error, "the worker's end could not be told to the database");
                }
                Err(_) => {
                    tracing::warn!("the worker's end could not be told to the database in time");
                }
            }
        }
        let tracer = self.shared.tracer.clone();
        if tracer.is_on() {
            let flushing = tokio::task::spawn_blocking(move || tracer.flush(FLUSH_MAX));
            if !flushing.await.unwrap_or(false) {
                tracing::warn!("the last spans could not be sent in time; they are lost");
            }
        }
    }
}
