//! What is counted for each (queue, kind).

use std::time::Duration;

use aegis_model::{Class, FenceReason};
use aegis_telemetry::Labels;
use aegis_telemetry::prometheus_client::metrics::counter::Counter;
use aegis_telemetry::prometheus_client::metrics::family::Family;
use aegis_telemetry::prometheus_client::metrics::histogram::Histogram;
use aegis_telemetry::prometheus_client::registry::Registry;

use crate::kinds::Kind;
use crate::metrics::ended::{ENDED, Ended};
use crate::metrics::{Buckets, RUN_S, STATEMENT_S};
use crate::operation::CallError;

/// What becomes of a call of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answered {
    /// It happened.
    Succeeded,
    /// The downstream refused it for good.
    Failed,
    /// For sure nothing was applied.
    NotApplied,
    /// The answer was lost.
    Doubtful,
}

impl Answered {
    /// The label.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::NotApplied => "not_applied",
            Self::Doubtful => "doubtful",
        }
    }

    /// What a call came to; the outer error is its timeout.
    pub(crate) fn of<T, E>(called: &Result<Result<T, CallError>, E>) -> Self {
        match called {
            Ok(Ok(_)) => Self::Succeeded,
            Ok(Err(CallError::Failed { .. } | CallError::TurnedAway { .. })) => Self::Failed,
            Ok(Err(CallError::NotApplied { .. })) => Self::NotApplied,
            Ok(Err(CallError::Doubtful { .. })) | Err(_) => Self::Doubtful,
        }
    }
}

const ANSWERED: [Answered; 4] = [
    Answered::Succeeded,
    Answered::Failed,
    Answered::NotApplied,
    Answered::Doubtful,
];

/// All reasons of a fence; what they carry does not matter here.
const REASONS: [FenceReason; 8] = [
    FenceReason::Gone,
    FenceReason::Epoch { current: 0 },
    FenceReason::NotRunning,
    FenceReason::Owner,
    FenceReason::Claim,
    FenceReason::Rev { current: 0 },
    FenceReason::Lineage,
    FenceReason::Lease,
];

/// A write was refused, and why could not be read.
const UNREAD: &str = "unread";

/// The series of all kinds.
#[derive(Debug, Clone)]
pub(super) struct Families {
    claimed: Family<Labels, Counter>,
    ended: Family<Labels, Counter>,
    fenced: Family<Labels, Counter>,
    dispatched: Family<Labels, Counter>,
    answered: Family<Labels, Counter>,
    start: Family<Labels, Histogram, Buckets>,
    run: Family<Labels, Histogram, Buckets>,
}

impl Families {
    pub(super) fn new() -> Self {
        Self {
            claimed: Family::default(),
            ended: Family::default(),
            fenced: Family::default(),
            dispatched: Family::default(),
            answered: Family::default(),
            start: Family::new_with_constructor(Buckets(&STATEMENT_S)),
            run: Family::new_with_constructor(Buckets(&RUN_S)),
        }
    }

    pub(super) fn register(&self, registry: &mut Registry) {
        let mut counter = |name, help, family: &Family<Labels, Counter>| {
            registry.register(name, help, family.clone());
        };
        counter("worker_tasks_claimed", "Tasks claimed", &self.claimed);
        counter(
            "worker_attempts_ended",
            "Attempts that ended here, by outcome",
            &self.ended,
        );
        counter(
            "worker_writes_fenced",
            "Guarded writes that the database refused, by the reason of the fence",
            &self.fenced,
        );
        counter(
            "worker_operations_dispatched",
            "Dispatch commits of operations, repeats included, by class",
            &self.dispatched,
        );
        counter(
            "worker_operations_answered",
            "What became of calls of operations, by class and answer",
            &self.answered,
        );
        registry.register(
            "worker_start_seconds",
            "From the claim's arrival to the start of its handler",
            self.start.clone(),
        );
        registry.register(
            "worker_run_seconds",
            "How long handlers ran",
            self.run.clone(),
        );
    }

    /// Makes all series of one kind.
    pub(super) fn of(&self, kind: &Kind) -> KindMetrics {
        let with = |more: &[(&'static str, &str)]| {
            let mut labels: Labels =
                vec![("queue", kind.queue.clone()), ("kind", kind.name.clone())];
            labels.extend(more.iter().map(|(key, value)| (*key, (*value).to_owned())));
            labels
        };
        let plain = with(&[]);
        KindMetrics {
            claimed: self.claimed.get_or_create_owned(&plain),
            ended: ENDED
                .iter()
                .map(|ended| {
                    self.ended
                        .get_or_create_owned(&with(&[("outcome", ended.word())]))
                })
                .collect(),
            fenced: REASONS
                .iter()
                .map(|reason| reason.word())
                .chain([UNREAD])
                .map(|word| {
                    let labels = with(&[("reason", word)]);
                    (word, self.fenced.get_or_create_owned(&labels))
                })
                .collect(),
            operations: [
                Class::Idempotent,
                Class::Fenced,
                Class::Queryable,
                Class::Blind,
            ]
            .into_iter()
            .map(|class| {
                let dispatched = self
                    .dispatched
                    .get_or_create_owned(&with(&[("class", class.word())]));
                let answered = ANSWERED
                    .iter()
                    .map(|answered| {
                        let labels = with(&[("class", class.word()), ("answer", answered.word())]);
                        (*answered, self.answered.get_or_create_owned(&labels))
                    })
                    .collect();
                Operations {
                    class,
                    dispatched,
                    answered,
                }
            })
            .collect(),
            start: self.start.get_or_create_owned(&plain),
            run: self.run.get_or_create_owned(&plain),
        }
    }
}

#[derive(Debug)]
struct Operations {
    class: Class,
    dispatched: Counter,
    answered: Vec<(Answered, Counter)>,
}

/// The series of one (queue, kind).
#[derive(Debug)]
pub(crate) struct KindMetrics {
    claimed: Counter,
    ended: Vec<Counter>,
    fenced: Vec<(&'static str, Counter)>,
    operations: Vec<Operations>,
    start: Histogram,
    run: Histogram,
}

impl KindMetrics {
    /// One more task of it was claimed.
    pub(crate) fn claimed(&self) {
        self.claimed.inc();
    }

    /// An attempt has ended.
    pub(crate) fn ended(&self, ended: Ended) {
        if let Some(counter) = self.ended.get(ended as usize) {
            counter.inc();
        }
    }

    /// A guarded write was refused; `None`: why could not be read.
    pub(crate) fn fenced(&self, reason: Option<FenceReason>) {
        let reason = reason.map_or(UNREAD, FenceReason::word);
        let found = self.fenced.iter().find(|(word, _)| *word == reason);
        if let Some((_, counter)) = found {
            counter.inc();
        }
    }

    /// A dispatch was committed.
    pub(crate) fn dispatched(&self, class: Class) {
        if let Some(of_class) = self.of_class(class) {
            of_class.dispatched.inc();
        }
    }

    /// A call came to its end.
    pub(crate) fn answered(&self, class: Class, answered: Answered) {
        let found = self
            .of_class(class)
            .and_then(|of_class| of_class.answered.iter().find(|(one, _)| *one == answered));
        if let Some((_, counter)) = found {
            counter.inc();
        }
    }

    fn of_class(&self, class: Class) -> Option<&Operations> {
        self.operations.iter().find(|one| one.class == class)
    }

    /// A handler is started so long after its claim arrived.
    pub(crate) fn started_after(&self, waited: Duration) {
        self.start.observe(waited.as_secs_f64());
    }

    /// A handler has returned.
    pub(crate) fn ran_for(&self, took: Duration) {
        self.run.observe(took.as_secs_f64());
    }
}
