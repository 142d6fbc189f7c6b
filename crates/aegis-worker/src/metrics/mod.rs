//! What a worker has measured, for Prometheus.
//!
//! Invariants: every series exists from the start, with 0, for each (queue, kind) that the worker serves and each outcome,
//! reason and class that there is; labels are bounded (never a task, a tenant or a message); counting is an atomic addition on
//! a handle that was made at the start. The names are a promise: `docs/guides/observing.md` lists each of them, and a test
//! compares.
//!
//! Never: decide anything by a metric.

mod ended;
mod gauges;
mod kind;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use aegis_store::observe::Observed;
use aegis_telemetry::Labels;
use aegis_telemetry::prometheus_client::metrics::family::{Family, MetricConstructor};
use aegis_telemetry::prometheus_client::metrics::histogram::Histogram;
use aegis_telemetry::prometheus_client::registry::Registry;

pub(crate) use ended::Ended;
pub(crate) use kind::{Answered, KindMetrics};

use crate::kinds::Kinds;
use crate::metrics::gauges::Gauges;
use crate::metrics::kind::Families;
use crate::shared::Shared;

/// Bounds of what a database takes, in seconds.
const STATEMENT_S: [f64; 12] = [
    0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0,
];
/// Bounds of what tasks take, in seconds: from a millisecond to a day.
const RUN_S: [f64; 14] = [
    0.001, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0, 14_400.0, 86_400.0,
];
/// Bounds of groups of completions.
const GROUP: [f64; 9] = [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 150.0, 200.0];

/// The guarded writes, by the word that they are counted under.
pub(crate) const WRITES: [&str; 9] = [
    "step",
    "checkpoint",
    "dispatch",
    "settle",
    "withdraw",
    "complete",
    "fail",
    "release",
    "hand_back",
];

/// Makes histograms with given bounds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Buckets(&'static [f64]);

impl MetricConstructor<Histogram> for Buckets {
    fn new_metric(&self) -> Histogram {
        Histogram::new(self.0.iter().copied())
    }
}

/// All of them.
#[derive(Debug)]
pub(crate) struct Metrics {
    kinds: Vec<KindMetrics>,
    families: Families,
    /// From an acquire call to its answer.
    claim: Histogram,
    write: Family<Labels, Histogram, Buckets>,
    writes: Vec<Histogram>,
    /// From a renewal to its answer.
    renewal: Histogram,
    completion_group: Histogram,
    observed: Mutex<Option<(SystemTime, Observed)>>,
}

impl Metrics {
    pub(crate) fn new(kinds: &Kinds) -> Self {
        let families = Families::new();
        let write = Family::new_with_constructor(Buckets(&STATEMENT_S));
        Self {
            kinds: kinds.all.iter().map(|kind| families.of(kind)).collect(),
            families,
            claim: Buckets(&STATEMENT_S).new_metric(),
            writes: WRITES
                .iter()
                .map(|word| {
                    let labels: Labels = vec![("verb", (*word).to_owned())];
                    write.get_or_create_owned(&labels)
                })
                .collect(),
            write,
            renewal: Buckets(&STATEMENT_S).new_metric(),
            completion_group: Buckets(&GROUP).new_metric(),
            observed: Mutex::new(None),
        }
    }

    /// Those of one kind, by its index.
    pub(crate) fn kind(&self, index: usize) -> &KindMetrics {
        &self.kinds[index]
    }

    /// An acquire call was answered.
    pub(crate) fn claim_took(&self, took: Duration) {
        self.claim.observe(took.as_secs_f64());
    }

    /// A guarded write was answered. `verb` is one of [`WRITES`].
    pub(crate) fn write_took(&self, verb: &str, took: Duration) {
        let at = WRITES.iter().position(|word| *word == verb);
        debug_assert!(at.is_some(), "{verb} is no write");
        if let Some(histogram) = at.and_then(|at| self.writes.get(at)) {
            histogram.observe(took.as_secs_f64());
        }
    }

    /// A renewal was answered.
    pub(crate) fn renewal_took(&self, took: Duration) {
        self.renewal.observe(took.as_secs_f64());
    }

    /// A group of completions is sent.
    pub(crate) fn completion_group(&self, tasks: usize) {
        self.completion_group
            .observe(u32::try_from(tasks).unwrap_or(u32::MAX).into());
    }

    /// The database was looked at.
    pub(crate) fn observed(&self, observed: Observed) {
        *self.observed.lock().unwrap_or_else(PoisonError::into_inner) =
            Some((SystemTime::now(), observed));
    }

    /// The last look.
    fn last_observed(&self) -> Option<(SystemTime, Observed)> {
        self.observed
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Everything under its name. `shared` is asked for the gauges at each scrape.
    pub(crate) fn registry(shared: &Arc<Shared>) -> Registry {
        let metrics = &shared.metrics;
        let options = &shared.options;
        let labels = [
            ("environment", &options.environment),
            ("release", &options.release),
            ("version", &options.build),
        ];
        let mut registry = Registry::with_prefix_and_labels(
            "aegis",
            labels
                .into_iter()
                .map(|(key, value)| (key.into(), value.clone().into())),
        );
        metrics.families.register(&mut registry);
        registry.register(
            "worker_claim_seconds",
            "From an acquire call to its answer",
            metrics.claim.clone(),
        );
        registry.register(
            "worker_write_seconds",
            "From a guarded write to its answer, lost answers included, by verb",
            metrics.write.clone(),
        );
        registry.register(
            "worker_renewal_seconds",
            "From a renewal to its answer",
            metrics.renewal.clone(),
        );
        registry.register(
            "worker_completion_group_tasks",
            "Completions in one statement",
            metrics.completion_group.clone(),
        );
        registry.register_collector(Box::new(Gauges::of(shared)));
        registry
    }
}
