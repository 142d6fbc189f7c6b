//! The description of an HTTP call.

use aegis_model::limits::PAYLOAD_BYTES_MAX;
use serde::Serialize;
use serde_json::{Value, json};

/// An HTTP call with a JSON body.
///
/// Sent with `Idempotency-Key` and `Aegis-Operation` (the operation's id), `Aegis-Task` and `Fencing-Token`
/// (`floor.timeline.epoch`). What the answer means:
///
/// | answer | meaning |
/// | --- | --- |
/// | 2xx | succeeded; the JSON body is the result (`null` when it is empty, text when it is not JSON) |
/// | 401, 403, 407; an address or header that may not be sent | turned away: failed, or doubtful when an earlier call may have left |
/// | any other 4xx but 408, 409, 423, 425, 429 | failed, for sure |
/// | a status in `retry_statuses`; no connection could be made | surely not applied: tried again |
/// | anything else, a cut connection, a timeout, an answer over the limit | doubtful: the operation's class decides |
#[derive(Debug, Clone)]
pub struct HttpCall {
    pub(crate) method: String,
    pub(crate) url: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Value,
    pub(crate) retry_statuses: Vec<u16>,
    pub(crate) answer_bytes_max: usize,
}

impl HttpCall {
    /// A call; `method` as in HTTP, such as `POST`.
    pub fn new(method: impl Into<String>, url: impl Into<String>) -> Self {
        Self {
            method: method.into(),
            url: url.into(),
            headers: Vec::new(),
            body: Value::Null,
            retry_statuses: Vec::new(),
            answer_bytes_max: PAYLOAD_BYTES_MAX,
        }
    }

    /// A `POST` of a JSON body.
    pub fn post(url: impl Into<String>, body: &(impl Serialize + ?Sized)) -> Self {
        Self::new("POST", url).json(body)
    }

    /// One more header. Headers are no part of the operation's request: secrets may stand there.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// The JSON body.
    #[must_use]
    pub fn json(mut self, body: &(impl Serialize + ?Sized)) -> Self {
        self.body = serde_json::to_value(body)
            .unwrap_or_else(|error| Value::String(format!("not JSON: {error}")));
        self
    }

    /// Statuses with which this downstream says that nothing was applied, such as 429 or 503.
    #[must_use]
    pub fn retry_statuses(mut self, statuses: impl IntoIterator<Item = u16>) -> Self {
        self.retry_statuses = statuses.into_iter().collect();
        self
    }

    /// The most that is read of an answer, in bytes; 256 KiB unless said otherwise.
    #[must_use]
    pub fn answer_bytes_max(mut self, bytes: usize) -> Self {
        self.answer_bytes_max = bytes;
        self
    }

    /// What the operation is recognised by.
    pub(crate) fn as_request(&self) -> Value {
        json!({ "method": self.method, "url": self.url, "body": self.body })
    }
}
