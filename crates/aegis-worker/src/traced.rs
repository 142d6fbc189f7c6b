//! The trace of one attempt.
//!
//! Invariants: an attempt's span id is computed from task and epoch, so another process can name the attempt before its own
//! without asking anybody; its parent is the submitter's span, and without one the task's id is the trace's. An attempt that
//! was lost with its worker sends nothing any more, so the next one tells it, from what the database kept. Steps, calls and
//! writes are told as they end, below the attempt: a killed process loses what it had not sent for a second, not more.
//!
//! Never: a payload; a statement for a trace that is not recorded.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use aegis_model::{Cause, TraceContext};
use aegis_store::Claim;
use aegis_store::observe::LastAttempt;
use aegis_telemetry::{Place, Role, SpanRecord, Tracer, Value};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::execution::Execution;
use crate::metrics::Ended;

/// What came before is not worth more of an attempt's time.
const LOOK_BACK_MAX: Duration = Duration::from_secs(1);

/// Fields of a span.
pub(crate) type Fields = Vec<(&'static str, Value)>;

/// Where one attempt stands in its trace.
#[derive(Debug)]
pub(crate) struct Traced {
    place: Place,
    /// The submitter's span.
    parent: Option<u64>,
    began: SystemTime,
    before: Mutex<Option<Place>>,
    error: Mutex<Option<String>>,
}

impl Traced {
    pub(crate) fn of(claim: &Claim, tracer: &Tracer) -> Self {
        // A context that makes no sense was not stored by this program.
        let submitter: Option<TraceContext> =
            claim.trace.as_deref().and_then(|text| text.parse().ok());
        let task = claim.held.task;
        let trace_id = submitter.map_or(task.as_u128(), |context| context.trace_id);
        Self {
            place: Place {
                trace_id,
                span_id: span_of(task, claim.held.epoch),
                sampled: tracer.is_on()
                    && submitter.map_or_else(|| tracer.samples(trace_id), |one| one.sampled),
            },
            parent: submitter.map(|context| context.span_id),
            began: SystemTime::now(),
            before: Mutex::new(None),
            error: Mutex::new(None),
        }
    }

    /// Is it recorded?
    pub(crate) fn is_recorded(&self) -> bool {
        self.place.sampled
    }

    /// As log lines name it.
    pub(crate) fn trace_id(&self) -> String {
        format!("{:032x}", self.place.trace_id)
    }

    /// As log lines name it.
    pub(crate) fn span_id(&self) -> String {
        format!("{:016x}", self.place.span_id)
    }

    /// What a request on behalf of this attempt carries: `span`, or the attempt itself. `None`: nobody traces it.
    pub(crate) fn context(&self, span: Option<u64>) -> Option<TraceContext> {
        (self.place.sampled || self.parent.is_some()).then(|| TraceContext {
            trace_id: self.place.trace_id,
            span_id: span.unwrap_or(self.place.span_id),
            sampled: self.place.sampled,
        })
    }

    /// Why it failed, in a code.
    pub(crate) fn failed(&self, code: &str) {
        if self.is_recorded() {
            *self.error.lock().unwrap_or_else(PoisonError::into_inner) = Some(code.to_owned());
        }
    }
}

/// The span of a task's attempt at an epoch.
fn span_of(task: Uuid, epoch: i64) -> u64 {
    let mut hash = Sha256::new();
    hash.update(b"aegis attempt");
    hash.update(task.as_bytes());
    hash.update(epoch.to_be_bytes());
    let digest = hash.finalize();
    let first = digest.iter().take(8);
    first
        .fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte))
        .max(1)
}

/// An id for a span below an attempt.
pub(crate) fn new_span() -> u64 {
    rand::random::<u64>().max(1)
}

impl Execution {
    /// Looks for the attempt before this one, so that the two are linked; tells it when it was lost with its worker.
    pub(crate) async fn look_back(&self) {
        let held = &self.claim.held;
        if !self.traced.is_recorded() || held.epoch <= 1 {
            return;
        }
        let looking = self.shared.store.last_attempt(held.task, held.epoch);
        let before = match tokio::time::timeout(LOOK_BACK_MAX, looking).await {
            Ok(Ok(Some(before))) => before,
            Ok(Ok(None)) | Err(_) => return,
            Ok(Err(error)) => {
                tracing::debug!(error = %error, "the attempt before this one cannot be read; its span is not linked");
                return;
            }
        };
        let place = Place {
            span_id: span_of(held.task, before.epoch),
            ..self.traced.place
        };
        *self
            .traced
            .before
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = Some(place);
        if was_lost(&before.cause) {
            self.tell_lost(place, &before);
        }
    }

    /// On behalf of a worker that cannot any more.
    fn tell_lost(&self, place: Place, before: &LastAttempt) {
        let ended: SystemTime = before.ended_at.into();
        let mut fields = self.named(before.epoch);
        fields.push(("aegis.outcome", "lost".into()));
        fields.push(("aegis.cause", before.cause.as_str().into()));
        if let Some(owner) = before.owner {
            fields.push(("aegis.worker", owner.to_string().into()));
        }
        self.shared.tracer.record(SpanRecord {
            place,
            parent: self.traced.parent.unwrap_or(0),
            parent_is_remote: true,
            name: "aegis.attempt",
            role: Role::Consumer,
            began: before.claimed_at.map_or(ended, Into::into),
            ended,
            fields,
            links: Vec::new(),
            error: Some(format!("lost with its worker: {}", before.cause)),
        });
    }

    /// The attempt has ended. One that is lost is told by whoever takes its task over.
    pub(crate) fn tell_ended(&self, outcome: Ended) {
        if !self.traced.is_recorded() || outcome == Ended::Lost {
            return;
        }
        let traced = &self.traced;
        let take =
            |cell: &Mutex<Option<Place>>| *cell.lock().unwrap_or_else(PoisonError::into_inner);
        let code = traced
            .error
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let mut fields = self.named(self.claim.held.epoch);
        fields.push(("aegis.outcome", outcome.word().into()));
        fields.push(("aegis.worker", self.incarnation.id.to_string().into()));
        self.shared.tracer.record(SpanRecord {
            place: traced.place,
            parent: traced.parent.unwrap_or(0),
            parent_is_remote: true,
            name: "aegis.attempt",
            role: Role::Consumer,
            began: traced.began,
            ended: SystemTime::now(),
            fields,
            links: take(&traced.before).into_iter().collect(),
            error: (outcome == Ended::Failed).then(|| code.unwrap_or_else(|| "failed".to_owned())),
        });
    }

    /// Something below the attempt has ended: `span` is its id when somebody was told it before.
    pub(crate) fn tell(
        &self,
        name: &'static str,
        role: Role,
        span: Option<u64>,
        began: SystemTime,
        fields: impl FnOnce() -> Fields,
        error: Option<String>,
    ) {
        if !self.traced.is_recorded() {
            return;
        }
        self.shared.tracer.record(SpanRecord {
            place: Place {
                span_id: span.unwrap_or_else(new_span),
                ..self.traced.place
            },
            parent: self.traced.place.span_id,
            parent_is_remote: false,
            name,
            role,
            began,
            ended: SystemTime::now(),
            fields: fields(),
            links: Vec::new(),
            error,
        });
    }

    /// A guarded write was answered.
    pub(crate) fn tell_write(
        &self,
        verb: &'static str,
        operation: Option<&str>,
        began: SystemTime,
        error: Option<String>,
    ) {
        let name = match verb {
            "dispatch" => "aegis.dispatch",
            "settle" => "aegis.settle",
            "withdraw" => "aegis.withdraw",
            "checkpoint" => "aegis.checkpoint",
            // A step's span covers its write.
            _ => return,
        };
        let fields = || {
            operation
                .map(|id| ("aegis.operation", id.into()))
                .into_iter()
                .collect()
        };
        self.tell(name, Role::Internal, None, began, fields, error);
    }

    fn named(&self, epoch: i64) -> Fields {
        vec![
            ("aegis.task", self.claim.held.task.to_string().into()),
            ("aegis.epoch", epoch.into()),
            ("aegis.kind", self.kind.name.as_str().into()),
            ("aegis.queue", self.kind.queue.as_str().into()),
            ("aegis.release", self.shared.options.release.as_str().into()),
        ]
    }
}

/// Did nobody tell the attempt's end but the database?
fn was_lost(cause: &str) -> bool {
    [
        Cause::Crash,
        Cause::Interruption,
        Cause::Absent,
        Cause::Kill,
    ]
    .iter()
    .any(|lost| lost.word() == cause)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_have_spans_of_their_own_and_always_the_same() {
        let (one, other) = (Uuid::from_u128(1), Uuid::from_u128(2));
        assert_eq!(span_of(one, 3), span_of(one, 3));
        assert_ne!(span_of(one, 3), span_of(one, 4));
        assert_ne!(span_of(one, 3), span_of(other, 3));
        // Other programs and later versions compute the same.
        assert_eq!(format!("{:016x}", span_of(one, 1)), "56f7afe588f39b51");
    }

    #[test]
    fn only_what_its_worker_could_not_tell_is_told_for_it() {
        for (cause, lost) in [
            ("crash", true),
            ("kill", true),
            ("failure", false),
            ("drain", false),
        ] {
            assert_eq!(was_lost(cause), lost, "{cause}");
        }
    }
}
