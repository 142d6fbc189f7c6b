//! A small collector: takes OTLP over HTTP (protobuf), and keeps the spans.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;
use tokio_util::task::AbortOnDropHandle;

type Kept = Arc<Mutex<Vec<Span>>>;

/// A listening collector; ends with the test.
pub(crate) struct Collector {
    url: String,
    spans: Kept,
    _serving: AbortOnDropHandle<()>,
}

impl Collector {
    pub(crate) async fn start() -> Self {
        let socket = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", socket.local_addr().unwrap());
        let spans = Kept::default();
        let router = Router::new()
            .route("/v1/traces", post(take))
            .with_state(Arc::clone(&spans));
        let serving = tokio::spawn(async move { axum::serve(socket, router).await.unwrap() });
        Self {
            url,
            spans,
            _serving: AbortOnDropHandle::new(serving),
        }
    }

    /// For `OTEL_EXPORTER_OTLP_ENDPOINT`.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Of one trace, in the order of their beginnings.
    pub(crate) fn of(&self, trace_id: u128) -> Vec<Span> {
        let mut spans = self.spans.lock().unwrap().clone();
        spans.retain(|span| span.trace_id == trace_id.to_be_bytes());
        spans.sort_by_key(|span| span.start_time_unix_nano);
        spans
    }
}

async fn take(State(kept): State<Kept>, headers: HeaderMap, body: Bytes) -> StatusCode {
    assert_eq!(headers["content-type"], "application/x-protobuf");
    let request = ExportTraceServiceRequest::decode(body).unwrap();
    let spans = request
        .resource_spans
        .into_iter()
        .flat_map(|resource| resource.scope_spans)
        .flat_map(|scope| scope.spans);
    kept.lock().unwrap().extend(spans);
    StatusCode::OK
}

/// A field of a span as text.
pub(crate) fn field(span: &Span, key: &str) -> Option<String> {
    let found = span.attributes.iter().find(|one| one.key == key)?;
    match found.value.as_ref()?.value.as_ref()? {
        Value::StringValue(text) => Some(text.clone()),
        Value::IntValue(number) => Some(number.to_string()),
        other => panic!("{key} is {other:?}"),
    }
}
