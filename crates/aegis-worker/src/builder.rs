//! How a worker is put together. Everything is checked here, before anything is started.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use aegis_model::limits::{DURATION_MS_MAX, KILL_AFTER_MS, LEASE_TTL_MS};
use aegis_store::Store;
use aegis_telemetry::{Tracer, listen};
use tokio::sync::mpsc;

use crate::budgets::Budgets;
use crate::error::WorkerError;
use crate::handler::{Erased, TaskHandler};
use crate::health::Probed;
use crate::http::{HttpClient, HttpPolicy};
use crate::kinds::{Kind, Kinds, Pace};
use crate::points::{Listener, Points};
use crate::shared::{Options, Shared};
use crate::tuning::Tuning;
use crate::worker::Worker;

/// How long a runtime may stand still: longer than a moment's blocking, shorter than people's patience.
const STUCK_AFTER: Duration = Duration::from_mins(1);

/// Where one handler's tasks wait, and how many run at once.
#[derive(Debug, Clone, Default)]
pub struct HandlerOptions {
    /// The queue; `None`: the worker's.
    pub queue: Option<String>,
    /// At most so many at once; `None`: all slots of the worker.
    pub slots: Option<usize>,
}

/// Puts a worker together; made by [`Worker::builder`].
#[must_use = "a builder does nothing until it is built"]
pub struct WorkerBuilder {
    store: Store,
    handlers: Vec<(Arc<dyn Erased>, HandlerOptions)>,
    queue: String,
    queue_slots: Vec<(String, usize)>,
    options: Options,
    start_ttl: Option<Duration>,
    grace_period: Option<Duration>,
    http: HttpPolicy,
    listen: Option<SocketAddr>,
    tracer: Tracer,
}

impl Worker {
    /// A worker over a store, with defaults: queue `default`, 10 slots, a lease of 30 s, budgets for a grace period of 600 s.
    pub fn builder(store: Store) -> WorkerBuilder {
        WorkerBuilder {
            store,
            handlers: Vec::new(),
            queue: "default".to_owned(),
            queue_slots: Vec::new(),
            options: Options {
                name: "worker".to_owned(),
                host: nix::unistd::gethostname().map_or_else(
                    |_| "unknown".to_owned(),
                    |name| name.to_string_lossy().into_owned(),
                ),
                environment: "none".to_owned(),
                release: "none".to_owned(),
                build: "none".to_owned(),
                digest: "none".to_owned(),
                slots: 10,
                lease_ttl: Duration::from_millis(LEASE_TTL_MS),
                start_ttl: Duration::ZERO,
                kill_after: Duration::from_millis(KILL_AFTER_MS.unsigned_abs()),
                stuck_after: STUCK_AFTER,
                budgets: Budgets::default(),
                points: Points::default(),
                tuning: Tuning::default(),
            },
            start_ttl: None,
            grace_period: None,
            http: HttpPolicy::default(),
            listen: None,
            tracer: Tracer::off(),
        }
    }
}

impl WorkerBuilder {
    /// What people call it; `worker` unless said otherwise. Its identity is the id of its incarnation.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.options.name = name.into();
        self
    }

    /// The queue of the handlers that name none.
    pub fn queue(mut self, queue: impl Into<String>) -> Self {
        self.queue = queue.into();
        self
    }

    /// A handler, in the worker's queue and with all of its slots.
    pub fn handler(self, handler: impl TaskHandler) -> Self {
        self.handler_with(handler, HandlerOptions::default())
    }

    /// A handler with a queue or slots of its own. The same handler may be given for several queues.
    pub fn handler_with(mut self, handler: impl TaskHandler, options: HandlerOptions) -> Self {
        self.handlers.push((Arc::new(handler), options));
        self
    }

    /// How many handlers run at once; 10 unless said otherwise.
    pub fn slots(mut self, slots: usize) -> Self {
        self.options.slots = slots;
        self
    }

    /// How many of one queue run at once; all slots unless said otherwise.
    pub fn queue_slots(mut self, queue: impl Into<String>, slots: usize) -> Self {
        self.queue_slots.push((queue.into(), slots));
        self
    }

    /// The lease; 30 s unless said otherwise. After a crash its tasks are taken over when it has run out, so shorter is
    /// faster, and longer rides out more of the network's moods.
    pub fn lease_ttl(mut self, ttl: Duration) -> Self {
        self.options.lease_ttl = ttl;
        self
    }

    /// How old a claim has to be before it counts as lost when this worker does not name it; half of the lease unless said
    /// otherwise.
    pub fn start_ttl(mut self, ttl: Duration) -> Self {
        self.start_ttl = Some(ttl);
        self
    }

    /// How long an execution may go on after it was asked to stop before the worker gives up on it; 30 s unless said
    /// otherwise.
    pub fn kill_after(mut self, after: Duration) -> Self {
        self.options.kill_after = after;
        self
    }

    /// How long the runtime that executes may run nothing at all, because handlers block every thread of it, before the
    /// worker gives its lease up and ends; 60 s unless said otherwise. Blocking work belongs on `spawn_blocking`.
    pub fn stuck_after(mut self, after: Duration) -> Self {
        self.options.stuck_after = after;
        self
    }

    /// Shows health (`/livez`, `/readyz`) and metrics (`/metrics`) at this address, without a password: loopback, or a
    /// network that only the platform reaches. Port 0 takes a free one, see [`WorkerHandle::listening`]. `None`, unless said
    /// otherwise: nothing is shown.
    ///
    /// [`WorkerHandle::listening`]: crate::WorkerHandle::listening
    pub fn listen(mut self, address: Option<SocketAddr>) -> Self {
        self.listen = address;
        self
    }

    /// Where its spans go; nowhere unless said otherwise.
    pub fn tracer(mut self, tracer: Tracer) -> Self {
        self.tracer = tracer;
        self
    }

    /// Which installation this is, such as `production`: a label of its metrics.
    pub fn environment(mut self, environment: impl Into<String>) -> Self {
        self.options.environment = environment.into();
        self
    }

    /// The release that this worker belongs to.
    pub fn release(mut self, release: impl Into<String>) -> Self {
        self.options.release = release.into();
        self
    }

    /// The identity of its build.
    pub fn build_id(mut self, build: impl Into<String>) -> Self {
        self.options.build = build.into();
        self
    }

    /// The digest of its image.
    pub fn digest(mut self, digest: impl Into<String>) -> Self {
        self.options.digest = digest.into();
        self
    }

    /// The machine's name for people; the host name unless said otherwise.
    pub fn host(mut self, host: impl Into<String>) -> Self {
        self.options.host = host.into();
        self
    }

    /// How long each phase of a drain may take.
    pub fn budgets(mut self, budgets: Budgets) -> Self {
        self.options.budgets = budgets;
        self
    }

    /// The time that the platform gives between SIGTERM and SIGKILL; the budgets have to fit into it. `None`: not checked.
    pub fn grace_period(mut self, grace: Option<Duration>) -> Self {
        self.grace_period = grace;
        self
    }

    /// Which addresses the built-in HTTP call may connect to; public ones unless said otherwise.
    pub fn http_policy(mut self, policy: HttpPolicy) -> Self {
        self.http = policy;
        self
    }

    /// How much is gathered before the database is asked.
    pub fn tuning(mut self, tuning: Tuning) -> Self {
        self.options.tuning = tuning.bounded();
        self
    }

    /// For test kits: hears of every named point that an execution reaches, and holds it there.
    pub fn points(mut self, listener: Arc<dyn Listener>) -> Self {
        self.options.points = Points::to(listener);
        self
    }

    /// Checks everything, and listens where it was told to.
    ///
    /// # Errors
    /// [`WorkerError`]; nothing was started.
    pub fn build(mut self) -> Result<Worker, WorkerError> {
        self.check()?;
        let options = &mut self.options;
        for text in [
            &mut options.name,
            &mut options.host,
            &mut options.environment,
            &mut options.release,
            &mut options.build,
            &mut options.digest,
        ] {
            // For people only, and PostgreSQL stores no NUL.
            *text = text.replace('\0', "\u{fffd}");
        }
        self.options.start_ttl = self.start_ttl.unwrap_or(self.options.lease_ttl / 2);
        let kinds = self.kinds()?;
        let http = HttpClient::new(self.http);
        let (ready, completions) = mpsc::channel(1024);
        let shared = Shared::new(self.store, self.options, kinds, http, self.tracer, ready);
        let listening = match self.listen {
            None => None,
            Some(address) => {
                let probes = Arc::new(Probed::new(&shared));
                let listening = listen(address, probes)
                    .map_err(|source| WorkerError::Listen { address, source })?;
                let address = shared.listening.get_or_init(|| listening.address());
                let inside = shared.span.enter();
                if !address.ip().is_loopback() {
                    tracing::warn!(%address, "health and metrics are shown beyond this machine, to whoever reaches the address");
                }
                tracing::info!(%address, "health and metrics are shown");
                drop(inside);
                Some(listening)
            }
        };
        Ok(Worker {
            shared,
            completions,
            listening,
        })
    }

    fn check(&self) -> Result<(), WorkerError> {
        self.options.budgets.fit(self.grace_period)?;
        if self.handlers.is_empty() {
            return Err(WorkerError::NoHandler);
        }
        let ttl = self.options.lease_ttl;
        if !(Duration::from_millis(100)..=Duration::from_hours(1)).contains(&ttl) {
            return Err(WorkerError::Setting {
                name: "lease_ttl",
                found: format!("{} ms", ttl.as_millis()),
                bounds: "100 ms to 1 h",
            });
        }
        let longest = Duration::from_millis(DURATION_MS_MAX.unsigned_abs());
        for (name, found) in [
            ("kill_after", Some(self.options.kill_after)),
            ("stuck_after", Some(self.options.stuck_after)),
            ("start_ttl", self.start_ttl),
        ] {
            if let Some(found) = found.filter(|found| *found > longest) {
                return Err(WorkerError::Setting {
                    name,
                    found: format!("{} ms", found.as_millis()),
                    bounds: "at most 10 years",
                });
            }
        }
        if self.options.stuck_after < Duration::from_millis(100) {
            return Err(WorkerError::Setting {
                name: "stuck_after",
                found: format!("{} ms", self.options.stuck_after.as_millis()),
                bounds: "100 ms to 10 years",
            });
        }
        let mut slots = vec![("slots", self.options.slots)];
        slots.extend(
            self.queue_slots
                .iter()
                .map(|(_, slots)| ("queue_slots", *slots)),
        );
        slots.extend(
            self.handlers
                .iter()
                .filter_map(|(_, options)| options.slots.map(|slots| ("a handler's slots", slots))),
        );
        for (name, found) in slots {
            if !(1..=100_000).contains(&found) {
                return Err(WorkerError::Setting {
                    name,
                    found: found.to_string(),
                    bounds: "1 to 100000",
                });
            }
        }
        Ok(())
    }

    fn kinds(&mut self) -> Result<Kinds, WorkerError> {
        let total = self.options.slots;
        let mut kinds = Kinds {
            all: Vec::new(),
            queues: Vec::new(),
        };
        for (handler, options) in std::mem::take(&mut self.handlers) {
            let queue = options.queue.unwrap_or_else(|| self.queue.clone());
            let name = handler.kind().to_owned();
            for (field, text) in [("queue", &queue), ("kind", &name)] {
                if text.is_empty() || text.chars().count() > 200 || text.contains('\0') {
                    return Err(WorkerError::Setting {
                        name: field,
                        found: format!("{} characters long", text.chars().count()),
                        bounds: "1 to 200 characters, without NUL",
                    });
                }
            }
            if kinds.find(&queue, &name).is_some() {
                return Err(WorkerError::TwoHandlers { kind: name, queue });
            }
            let known = kinds.queues.iter().position(|(known, _)| *known == queue);
            let queue_index = known.unwrap_or(kinds.queues.len());
            if known.is_none() {
                let slots = self
                    .queue_slots
                    .iter()
                    .find(|(known, _)| *known == queue)
                    .map_or(total, |(_, slots)| *slots);
                kinds.queues.push((queue.clone(), slots));
            }
            kinds.all.push(Arc::new(Kind {
                index: kinds.all.len(),
                queue,
                queue_index,
                name,
                protocols: handler.protocols(),
                slots: options.slots.unwrap_or(total),
                handler,
                pace: Pace::default(),
            }));
        }
        Ok(kinds)
    }
}
