//! Spans, sent as OTLP over HTTP (protobuf) when `OTEL_EXPORTER_OTLP_ENDPOINT` (or `…_TRACES_ENDPOINT`) is set, and nowhere
//! otherwise.
//!
//! Invariants: a span is handed in when it has ended, with the ids that its maker chose: so the attempts of a task in different
//! processes name each other without asking anybody. Recording is one try at a bounded queue; a thread of the SDK sends. A
//! collector that is away is told once in the log, and once when it is back; spans are lost meanwhile, and counted.
//!
//! Never: a payload in a span's fields; a wait for the collector on a task's way.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use opentelemetry::trace::{
    Link, SpanContext, SpanId, SpanKind, Status, TraceFlags, TraceId, TraceState,
};
use opentelemetry::{Array, InstrumentationScope, KeyValue, StringValue};
use opentelemetry_otlp::SpanExporter;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{
    BatchConfigBuilder, BatchSpanProcessor, SpanData, SpanEvents, SpanLinks, SpanProcessor,
};

/// Between two sendings, unless `OTEL_BSP_SCHEDULE_DELAY` says otherwise: a killed process loses what it had not sent.
const SEND_EVERY: Duration = Duration::from_secs(1);
/// Any of these set to something turns spans on.
const ENDPOINTS: [&str; 2] = [
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
];

/// Why spans cannot be sent.
#[derive(Debug, thiserror::Error)]
#[error(
    "spans cannot be sent to the collector that OTEL_EXPORTER_OTLP_ENDPOINT names; correct it (http://HOST:4318) or unset it"
)]
pub struct TraceError(#[from] opentelemetry_otlp::ExporterBuildError);

/// A place in a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The trace; 0 is none.
    pub trace_id: u128,
    /// The span; 0 is none.
    pub span_id: u64,
    /// Only what is sampled is recorded.
    pub sampled: bool,
}

/// Which side of a conversation a span is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Work of one's own.
    Internal,
    /// Hands work to a queue.
    Producer,
    /// Takes work from a queue.
    Consumer,
    /// Asks somebody outside.
    Client,
}

/// A field's value.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Text.
    Text(String),
    /// A number.
    Number(i64),
    /// Several texts.
    Texts(Vec<String>),
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Self::Number(number)
    }
}

/// A span that goes on.
#[derive(Debug)]
pub struct Open {
    tracer: Tracer,
    place: Place,
    parent: Option<Place>,
    name: &'static str,
    role: Role,
    began: SystemTime,
}

impl Open {
    /// Where it is: what belongs to it names this place as its parent.
    pub fn place(&self) -> Place {
        self.place
    }

    /// It has ended.
    pub fn end(self, fields: Vec<(&'static str, Value)>, error: Option<String>) {
        self.tracer.record(SpanRecord {
            place: self.place,
            parent: self.parent.map_or(0, |parent| parent.span_id),
            parent_is_remote: false,
            name: self.name,
            role: self.role,
            began: self.began,
            ended: SystemTime::now(),
            fields,
            links: Vec::new(),
            error,
        });
    }
}

/// A span that has ended.
#[derive(Debug, Clone)]
pub struct SpanRecord {
    /// Its own place.
    pub place: Place,
    /// The span around it; 0: it is the first of its trace.
    pub parent: u64,
    /// Another process made the parent.
    pub parent_is_remote: bool,
    /// What was done.
    pub name: &'static str,
    /// Which side it is.
    pub role: Role,
    /// When it began.
    pub began: SystemTime,
    /// When it ended.
    pub ended: SystemTime,
    /// What is known about it.
    pub fields: Vec<(&'static str, Value)>,
    /// Spans that it has to do with.
    pub links: Vec<Place>,
    /// What went wrong.
    pub error: Option<String>,
}

/// How many spans were recorded, sent, and not sent because sending failed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Spans {
    /// Handed in.
    pub recorded: u64,
    /// Taken by the collector.
    pub sent: u64,
    /// Lost with an export that failed. What a full queue dropped is in neither.
    pub failed: u64,
}

#[derive(Debug, Default)]
struct Counted {
    recorded: AtomicU64,
    sent: AtomicU64,
    failed: AtomicU64,
    failing: AtomicBool,
}

#[derive(Debug)]
struct Inner {
    processor: BatchSpanProcessor,
    scope: InstrumentationScope,
    counted: Arc<Counted>,
    /// The share of new traces that are recorded.
    sample_ratio: f64,
}

/// Takes spans. Cheap to clone; off by default.
#[derive(Debug, Clone, Default)]
pub struct Tracer(Option<Arc<Inner>>);

impl Tracer {
    /// One that records nothing.
    pub fn off() -> Self {
        Self::default()
    }

    /// As the environment says, by OpenTelemetry's own variables: on when an endpoint is set, unless `OTEL_SDK_DISABLED` is
    /// `true` or `OTEL_TRACES_EXPORTER` is `none`. `fields` describe the process, `service` names it unless
    /// `OTEL_SERVICE_NAME` does.
    ///
    /// # Errors
    /// [`TraceError`]: an endpoint that is no address.
    pub fn from_env(
        service: &str,
        fields: Vec<(&'static str, String)>,
    ) -> Result<Self, TraceError> {
        let set = |name: &str| std::env::var(name).ok().filter(|text| !text.is_empty());
        let wanted = ENDPOINTS.iter().any(|name| set(name).is_some())
            && set("OTEL_SDK_DISABLED").is_none_or(|text| !text.eq_ignore_ascii_case("true"))
            && set("OTEL_TRACES_EXPORTER").is_none_or(|text| text != "none");
        if !wanted {
            return Ok(Self::off());
        }
        let mut resource = Resource::builder().with_attributes(
            fields
                .into_iter()
                .map(|(key, value)| KeyValue::new(key, value)),
        );
        if set("OTEL_SERVICE_NAME").is_none() {
            resource = resource.with_service_name(service.to_owned());
        }
        let counted = Arc::new(Counted::default());
        let exporter = Watched {
            exporter: SpanExporter::builder().with_http().build()?,
            counted: Arc::clone(&counted),
        };
        let mut config = BatchConfigBuilder::default();
        if set("OTEL_BSP_SCHEDULE_DELAY").is_none() {
            config = config.with_scheduled_delay(SEND_EVERY);
        }
        let mut processor = BatchSpanProcessor::builder(exporter)
            .with_batch_config(config.build())
            .build();
        processor.set_resource(&resource.build());
        let scope = InstrumentationScope::builder("aegis")
            .with_version(env!("CARGO_PKG_VERSION"))
            .build();
        Ok(Self(Some(Arc::new(Inner {
            processor,
            scope,
            counted,
            sample_ratio: sample_ratio(
                set("OTEL_TRACES_SAMPLER").as_deref(),
                set("OTEL_TRACES_SAMPLER_ARG").as_deref(),
            ),
        }))))
    }

    /// Begins a span with an id of its own, below `parent` or as the first of a new trace.
    pub fn begin(&self, parent: Option<Place>, name: &'static str, role: Role) -> Open {
        let trace_id = parent.map_or_else(|| rand::random::<u128>().max(1), |one| one.trace_id);
        Open {
            tracer: self.clone(),
            place: Place {
                trace_id,
                span_id: rand::random::<u64>().max(1),
                sampled: parent.map_or_else(|| self.samples(trace_id), |one| one.sampled),
            },
            parent,
            name,
            role,
            began: SystemTime::now(),
        }
    }

    /// Is a trace that begins here recorded? All are, unless `OTEL_TRACES_SAMPLER` names a ratio (`traceidratio` or
    /// `parentbased_traceidratio`) and `OTEL_TRACES_SAMPLER_ARG` gives it. Every process decides the same of one trace.
    pub fn samples(&self, trace_id: u128) -> bool {
        self.0.as_ref().is_some_and(|inner| {
            // The random part of a trace id is at its end, as in a task's.
            let low = u32::try_from(trace_id & u128::from(u32::MAX)).unwrap_or(0);
            f64::from(low) / f64::from(u32::MAX) < inner.sample_ratio || inner.sample_ratio >= 1.0
        })
    }

    /// Is anything recorded?
    pub fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Queues a span to be sent. Never waits.
    pub fn record(&self, span: SpanRecord) {
        let Some(inner) = self.0.as_ref().filter(|_| span.place.sampled) else {
            return;
        };
        inner.counted.recorded.fetch_add(1, Ordering::Relaxed);
        let mut links = SpanLinks::default();
        links.links = span
            .links
            .into_iter()
            .map(|place| Link::with_context(context(place, true)))
            .collect();
        inner.processor.on_end(SpanData {
            span_context: context(span.place, false),
            parent_span_id: SpanId::from_bytes(span.parent.to_be_bytes()),
            parent_span_is_remote: span.parent_is_remote,
            span_kind: match span.role {
                Role::Internal => SpanKind::Internal,
                Role::Producer => SpanKind::Producer,
                Role::Consumer => SpanKind::Consumer,
                Role::Client => SpanKind::Client,
            },
            name: span.name.into(),
            start_time: span.began,
            end_time: span.ended,
            attributes: span
                .fields
                .into_iter()
                .map(|(key, value)| key_value(key, value))
                .collect(),
            dropped_attributes_count: 0,
            events: SpanEvents::default(),
            links,
            status: span.error.map_or(Status::Unset, Status::error),
            instrumentation_scope: inner.scope.clone(),
        });
    }

    /// What became of the spans so far.
    pub fn spans(&self) -> Spans {
        self.0.as_ref().map_or_else(Spans::default, |inner| {
            let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
            Spans {
                recorded: read(&inner.counted.recorded),
                sent: read(&inner.counted.sent),
                failed: read(&inner.counted.failed),
            }
        })
    }

    /// Sends what is queued, and waits for it at most `within`. Blocks its thread. False: not all was sent in time.
    pub fn flush(&self, within: Duration) -> bool {
        let Some(inner) = &self.0 else {
            return true;
        };
        let inner = Arc::clone(inner);
        let (done, flushed) = std::sync::mpsc::channel();
        // The SDK waits for as long as it likes; this caller does not.
        let flushing = std::thread::Builder::new()
            .name("aegis-flush".to_owned())
            .spawn(move || done.send(inner.processor.force_flush().is_ok()));
        flushing.is_ok() && flushed.recv_timeout(within).unwrap_or(false)
    }
}

/// The share of new traces that are recorded, as OpenTelemetry's variables say; what they do not say well is all.
fn sample_ratio(sampler: Option<&str>, ratio: Option<&str>) -> f64 {
    match sampler {
        Some("always_off" | "parentbased_always_off") => 0.0,
        Some("traceidratio" | "parentbased_traceidratio") => ratio
            .and_then(|text| text.parse().ok())
            .filter(|ratio| (0.0..=1.0).contains(ratio))
            .unwrap_or(1.0),
        _ => 1.0,
    }
}

fn context(place: Place, is_remote: bool) -> SpanContext {
    SpanContext::new(
        TraceId::from_bytes(place.trace_id.to_be_bytes()),
        SpanId::from_bytes(place.span_id.to_be_bytes()),
        if place.sampled {
            TraceFlags::SAMPLED
        } else {
            TraceFlags::default()
        },
        is_remote,
        TraceState::NONE,
    )
}

fn key_value(key: &'static str, value: Value) -> KeyValue {
    match value {
        Value::Text(text) => KeyValue::new(key, text),
        Value::Number(number) => KeyValue::new(key, number),
        Value::Texts(texts) => {
            let texts = texts.into_iter().map(StringValue::from).collect();
            KeyValue::new(key, opentelemetry::Value::Array(Array::String(texts)))
        }
    }
}

/// The exporter, with an eye on whether it works.
#[derive(Debug)]
struct Watched {
    exporter: SpanExporter,
    counted: Arc<Counted>,
}

impl opentelemetry_sdk::trace::SpanExporter for Watched {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let spans = batch.len() as u64;
        let exported = self.exporter.export(batch).await;
        match &exported {
            Ok(()) => {
                self.counted.sent.fetch_add(spans, Ordering::Relaxed);
                if self.counted.failing.swap(false, Ordering::Relaxed) {
                    tracing::info!("the collector takes spans again");
                }
            }
            Err(error) => {
                self.counted.failed.fetch_add(spans, Ordering::Relaxed);
                if !self.counted.failing.swap(true, Ordering::Relaxed) {
                    tracing::warn!(spans, error = %error, "spans are lost: the collector does not take them; tasks go on");
                }
            }
        }
        exported
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.exporter.force_flush()
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.exporter.set_resource(resource);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_is_taken_as_the_variables_say() {
        let close = |found: f64, wanted: f64| (found - wanted).abs() < f64::EPSILON;
        assert!(close(sample_ratio(None, Some("0.1")), 1.0));
        assert!(close(sample_ratio(Some("traceidratio"), Some("0.1")), 0.1));
        assert!(close(sample_ratio(Some("traceidratio"), Some("7")), 1.0));
        assert!(close(
            sample_ratio(Some("parentbased_always_off"), None),
            0.0
        ));
    }

    #[test]
    fn one_that_is_off_takes_everything_and_says_so() {
        let tracer = Tracer::off();
        let now = SystemTime::now();
        tracer.record(SpanRecord {
            place: Place {
                trace_id: 1,
                span_id: 1,
                sampled: true,
            },
            parent: 0,
            parent_is_remote: false,
            name: "nothing",
            role: Role::Internal,
            began: now,
            ended: now,
            fields: vec![("text", "a".into()), ("number", 1.into())],
            links: Vec::new(),
            error: None,
        });
        assert!(!tracer.is_on());
        assert_eq!(tracer.spans(), Spans::default());
        assert!(tracer.flush(Duration::ZERO));
    }
}
