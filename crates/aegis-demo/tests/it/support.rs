//! A payment service on a free port with its record in a temp folder, and a caller that speaks to it like a worker.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use aegis_demo::payments::record::{Event, RecordLine, read_so_far};
use aegis_demo::payments::{
    Effect, Faults, HEADER_IDEMPOTENCY_KEY, HEADER_OPERATION, HEADER_TASK, HEADER_TOKEN, Served,
    ServiceOptions, serve,
};
use reqwest::{Client, Response};
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

pub(crate) const RUN: &str = "run-it";

/// A service that runs inside the test.
pub(crate) struct Service {
    pub(crate) record: PathBuf,
    url: String,
    client: Client,
    stop: oneshot::Sender<()>,
    served: JoinHandle<Served>,
    _folder: tempfile::TempDir,
}

/// Starts one in which nothing goes wrong, except what `change` sets.
pub(crate) async fn start(change: impl FnOnce(&mut ServiceOptions)) -> Service {
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("record.jsonl");
    let mut options = ServiceOptions::new(record.clone(), RUN, 7);
    options.faults = Faults::none();
    change(&mut options);
    let (stop, stopped) = oneshot::channel();
    let (ready, addr) = oneshot::channel::<SocketAddr>();
    let served = tokio::spawn(async move {
        let stopped = async { drop(stopped.await) };
        serve(options, stopped, |addr| ready.send(addr).unwrap())
            .await
            .unwrap()
    });
    let addr = addr.await.unwrap();
    assert!(addr.ip().is_loopback());
    let client = Client::builder()
        .timeout(Duration::from_secs(10))
        .build()
        .unwrap();
    Service {
        record,
        url: format!("http://{addr}"),
        client,
        stop,
        served,
        _folder: folder,
    }
}

/// A call like the worker's.
#[derive(Clone)]
pub(crate) struct Sent {
    pub(crate) route: &'static str,
    pub(crate) operation: String,
    pub(crate) task: String,
    pub(crate) token: Option<&'static str>,
    pub(crate) body: Value,
}

/// The call of an effect for an order; its task and operation are named after the order.
pub(crate) fn call(effect: Effect, order: &str) -> Sent {
    let route = match effect {
        Effect::Reserve => "/reservations",
        Effect::Charge => "/charges",
        Effect::Payout => "/payouts",
        Effect::Notify => "/notifications",
    };
    Sent {
        route,
        operation: format!("op-{}-{order}", effect.name()),
        task: format!("task-{order}"),
        token: Some("0.1.1"),
        body: json!({ "reference": order, "amount": "12.50", "currency": "EUR" }),
    }
}

impl Service {
    pub(crate) async fn try_post(&self, sent: &Sent) -> reqwest::Result<Response> {
        let mut request = self
            .client
            .post(format!("{}{}", self.url, sent.route))
            .header(HEADER_OPERATION, &sent.operation)
            .header(HEADER_IDEMPOTENCY_KEY, &sent.operation)
            .header(HEADER_TASK, &sent.task)
            .json(&sent.body);
        if let Some(token) = sent.token {
            request = request.header(HEADER_TOKEN, token);
        }
        request.send().await
    }

    /// Status, body, and whether it was answered from memory.
    pub(crate) async fn post(&self, sent: &Sent) -> (u16, Value, bool) {
        let response = self.try_post(sent).await.unwrap();
        let replayed = response.headers().contains_key("idempotent-replayed");
        (
            response.status().as_u16(),
            response.json().await.unwrap(),
            replayed,
        )
    }

    pub(crate) async fn get(&self, path: &str) -> (u16, Value) {
        let response = self
            .client
            .get(format!("{}{path}", self.url))
            .send()
            .await
            .unwrap();
        (response.status().as_u16(), response.json().await.unwrap())
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// What stands in the record now, without the first line.
    pub(crate) fn events(&self) -> Vec<Event> {
        read_so_far(&self.record)
            .unwrap()
            .into_iter()
            .skip(1)
            .map(|line| line.event)
            .collect()
    }

    /// Stops the service in order and returns the whole record.
    pub(crate) async fn stop(self) -> Vec<RecordLine> {
        self.stop_and(|_| {}).await
    }

    /// The same, with a look at the record file before its folder goes.
    pub(crate) async fn stop_and(self, look: impl FnOnce(&Path)) -> Vec<RecordLine> {
        self.stop.send(()).unwrap();
        let served = self.served.await.unwrap();
        look(&self.record);
        let lines = read_so_far(&self.record).unwrap();
        assert_eq!(served.record_lines, lines.len() as u64);
        assert!(matches!(lines.last().unwrap().event, Event::Closed {}));
        lines
    }
}

/// The kinds of the events, as words.
pub(crate) fn kinds(events: &[Event]) -> Vec<&'static str> {
    events
        .iter()
        .map(|event| match event {
            Event::Applied { .. } => "applied",
            Event::Replayed { .. } => "replayed",
            Event::Refused { .. } => "refused",
            Event::Dropped { .. } => "dropped",
            Event::Probed { .. } => "probed",
            _ => "other",
        })
        .collect()
}
