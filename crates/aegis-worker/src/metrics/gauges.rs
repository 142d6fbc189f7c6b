//! What is asked for at each scrape: the worker's own numbers now, and the last look at the database.
//!
//! Invariants: a gauge that was never evaluated is NaN and says so in its companion; a look at the database that failed leaves
//! the one before it, with its age.

use std::fmt;
use std::sync::{Arc, Weak};
use std::time::{Duration, SystemTime};

use aegis_store::observe::{Observed, ObservedKind};
use aegis_telemetry::prometheus_client::collector::Collector;
use aegis_telemetry::prometheus_client::encoding::DescriptorEncoder;
use aegis_telemetry::prometheus_client::metrics::MetricType;
use aegis_telemetry::prometheus_client::metrics::exemplar::Exemplar;
use aegis_telemetry::{Evaluated, Family, Labels};

use crate::shared::{Shared, WorkerHandle, WorkerPhase};

const PHASES: [(WorkerPhase, &str); 5] = [
    (WorkerPhase::Starting, "starting"),
    (WorkerPhase::Accepting, "accepting"),
    (WorkerPhase::Held, "held"),
    (WorkerPhase::Draining, "draining"),
    (WorkerPhase::Ended, "ended"),
];

/// Asks the worker at each scrape, while there is one.
pub(super) struct Gauges(Weak<Shared>);

impl Gauges {
    pub(super) fn of(shared: &Arc<Shared>) -> Self {
        Self(Arc::downgrade(shared))
    }
}

impl fmt::Debug for Gauges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Gauges")
    }
}

impl Collector for Gauges {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let Some(shared) = self.0.upgrade() else {
            return Ok(());
        };
        counters(&shared, &mut encoder)?;
        let build = Family {
            name: "build_info",
            help: "1; which program this is",
            series: vec![(
                vec![
                    ("aegis_version", env!("CARGO_PKG_VERSION").to_owned()),
                    ("digest", shared.options.digest.clone()),
                ],
                Some(Evaluated::now(1.0)),
            )],
        };
        // A fact, not a measurement: it has no companion.
        build.print_alone(&mut encoder)?;
        for family in worker(&shared).into_iter().chain(database(&shared)) {
            family.print(&mut encoder)?;
        }
        Ok(())
    }
}

/// Counters of the whole worker.
fn counters(shared: &Shared, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    let counts = shared.counters.read();
    let spans = shared.tracer.spans();
    let none: &[(&str, &str)] = &[];
    let single = [
        (
            "worker_acquisitions",
            "Acquire calls sent",
            counts.acquisitions,
        ),
        (
            "worker_acquisitions_repeated",
            "Acquire calls whose answer was lost and that were repeated",
            counts.acquire_repeated,
        ),
        (
            "worker_writes_read_back",
            "Guarded writes whose answer was lost and then read back",
            counts.unknown_resolved,
        ),
        (
            "worker_tasks_absent_returned",
            "Tasks that two beats did not name, returned to their lanes",
            counts.absent_returned,
        ),
        ("worker_leases_lost", "Leases lost", counts.leases_lost),
        (
            "worker_self_fenced",
            "Times the worker stopped its executions before the database said so",
            counts.self_fenced,
        ),
        ("worker_ticks", "Ticks of housekeeping sent", counts.ticks),
        (
            "worker_claim_loop_turns",
            "Turns of the claim loop",
            counts.claim_ticks,
        ),
        (
            "worker_progress",
            "Steps, checkpoints, results of operations and calls of progress",
            counts.progress_ticks,
        ),
    ];
    for (name, help, value) in single {
        counter(encoder, name, help, &[(none, value)])?;
    }
    counter(
        encoder,
        "worker_renewals",
        "Renewals of the lease, by outcome",
        &[
            (&[("outcome", "applied")], counts.renewals),
            (&[("outcome", "missed")], counts.renewals_missed),
        ],
    )?;
    counter(
        encoder,
        "worker_spans",
        "Spans of traces: handed in, taken by the collector, lost with an export that failed",
        &[
            (&[("outcome", "recorded")], spans.recorded),
            (&[("outcome", "sent")], spans.sent),
            (&[("outcome", "failed")], spans.failed),
        ],
    )
}

fn counter(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    series: &[(&[(&str, &str)], u64)],
) -> fmt::Result {
    let help = format!("{help}.");
    let mut family = encoder.encode_descriptor(name, &help, None, MetricType::Counter)?;
    let no_exemplar: Option<&Exemplar<Labels, u64>> = None;
    for (labels, value) in series {
        if labels.is_empty() {
            family.encode_counter(value, no_exemplar)?;
        } else {
            family
                .encode_family(&labels.to_vec())?
                .encode_counter(value, no_exemplar)?;
        }
    }
    Ok(())
}

/// The worker itself, now.
fn worker(shared: &Arc<Shared>) -> Vec<Family> {
    let handle = WorkerHandle {
        shared: Arc::clone(shared),
    };
    let snapshot = handle.snapshot();
    let now = |value: f64| Some(Evaluated::now(value));
    let by_kind = |count: fn(&(usize, usize)) -> usize| {
        let loads = shared.executor.load_of_kinds();
        let kinds = shared.kinds.all.iter().zip(&loads);
        kinds
            .map(|(kind, load)| (labels(&kind.queue, &kind.name), now(number(count(load)))))
            .collect()
    };
    let lease_left = shared
        .incarnation()
        .map(|incarnation| Evaluated::now(incarnation.fence.left().as_secs_f64()));
    let still = |still: Option<Duration>| still.map(|still| Evaluated::now(still.as_secs_f64()));
    vec![
        Family::single(
            "worker_slots",
            "Executions that fit at once",
            now(number(shared.options.slots)),
        ),
        Family {
            name: "worker_executing_tasks",
            help: "Handlers that run",
            series: by_kind(|(executing, _)| *executing),
        },
        Family {
            name: "worker_queued_tasks",
            help: "Claimed and not started",
            series: by_kind(|(_, queued)| *queued),
        },
        Family::single(
            "worker_in_flight_tasks",
            "Claimed, and their end is not confirmed by the database",
            now(number(snapshot.in_flight)),
        ),
        Family {
            name: "worker_phase",
            help: "1 for the phase that the worker is in",
            series: PHASES
                .iter()
                .map(|(phase, word)| {
                    let holds = f64::from(u8::from(*phase == snapshot.phase));
                    (vec![("phase", (*word).to_owned())], now(holds))
                })
                .collect(),
        },
        Family::single(
            "worker_ready",
            "1 while the worker claims: registered, eligible, not draining",
            now(f64::from(u8::from(handle.is_ready()))),
        ),
        Family::single(
            "worker_lease_left_seconds",
            "How long the worker believes to be eligible; 0: not any more",
            lease_left,
        ),
        Family::single(
            "worker_runtime_still_seconds",
            "How long the runtime of the handlers has run nothing",
            now(shared.pulse.runtime_still().as_secs_f64()),
        ),
        Family::single(
            "worker_claim_loop_still_seconds",
            "How long the claim loop has not turned",
            still(shared.pulse.claimer.still()),
        ),
    ]
}

/// The database, when it was looked at last.
fn database(shared: &Shared) -> Vec<Family> {
    let last = shared.metrics.last_observed();
    let at = |value: f64| last.as_ref().map(|(at, _)| evaluated(value, *at));
    let whole = |name, help, read: fn(&Observed) -> f64| {
        let value = last.as_ref().and_then(|(_, observed)| at(read(observed)));
        Family::single(name, help, value)
    };
    let by_kind = |name, help, read: fn(&ObservedKind) -> f64| Family {
        name,
        help,
        series: shared
            .kinds
            .all
            .iter()
            .map(|kind| {
                let found = last.as_ref().and_then(|(_, observed)| {
                    let mut kinds = observed.kinds.iter();
                    kinds.find(|one| one.queue == kind.queue && one.kind == kind.name)
                });
                let value = found.and_then(|one| at(read(one)));
                (labels(&kind.queue, &kind.name), value)
            })
            .collect(),
    };
    vec![
        by_kind(
            "database_ready_tasks",
            "Ready tasks that this worker can read; at most 10,000 of a lane are counted",
            |one| float(one.ready),
        ),
        by_kind(
            "database_unreadable_tasks",
            "Ready tasks of a protocol that this worker cannot read; at most 10,000 of a lane are counted",
            |one| float(one.unreadable),
        ),
        by_kind(
            "database_next_waits_seconds",
            "How long the next in line has been ready: of each tenant's next task the one that became ready first; 0: nothing is ready",
            |one| one.next_waits.unwrap_or_default().as_secs_f64(),
        ),
        whole(
            "database_unknown_operations",
            "Operations that wait for a person",
            |observed| float(observed.unknown_operations),
        ),
        whole(
            "database_running_without_lease_tasks",
            "Running rows whose owner's lease is over; at most 10,000 rows are looked at",
            |observed| float(observed.running_without_lease),
        ),
        whole(
            "database_partition_ahead_days",
            "Days ahead of today that have partitions",
            |observed| observed.partition_days_ahead.into(),
        ),
    ]
}

fn labels(queue: &str, kind: &str) -> Labels {
    vec![("queue", queue.to_owned()), ("kind", kind.to_owned())]
}

fn evaluated(value: f64, at: SystemTime) -> Evaluated {
    Evaluated { value, at }
}

/// Counts fit: nobody has 2⁵³ tasks.
#[expect(
    clippy::cast_precision_loss,
    reason = "a gauge is a float, and counts are far below 2⁵³"
)]
fn number(count: usize) -> f64 {
    count as f64
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a gauge is a float, and counts are far below 2⁵³"
)]
fn float(count: i64) -> f64 {
    count as f64
}
