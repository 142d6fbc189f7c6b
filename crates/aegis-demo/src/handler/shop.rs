//! The payment service as a worker sees it: what it publishes, and one operation for each of its effects.
//!
//! Each effect is declared with the class that the service's own words allow, and with its figures: how long a key is
//! remembered, and how long a request can live. Must never send what could differ between two attempts.

use std::time::Duration;

use aegis_worker::{Class, HttpCall, OperationCall, Probe, TaskContext, TaskError};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::orders::{Bank, Order};
use crate::payments::{Effect, Policy, ProbeAnswer};

/// One call may take so long. Below the service's lateness, so that a late answer is a lost one.
const TIMEOUT: Duration = Duration::from_millis(600);
/// A key counts as forgotten so much earlier than published.
const MARGIN: Duration = Duration::from_millis(500);

/// Where the service is and what it published.
#[derive(Debug)]
pub struct Shop {
    url: String,
    client: reqwest::Client,
    policy: Policy,
}

/// Why the service cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("the payment service at {url} does not say what may be relied on; is it running?")]
pub struct ShopError {
    url: String,
    #[source]
    source: reqwest::Error,
}

/// What the service answers.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Paid {
    /// `reserved`, `charged`, `paid`, `sent`.
    pub(super) outcome: String,
    /// The service's own number.
    pub(super) receipt: String,
    /// The operation that it was for.
    pub(super) operation_id: String,
}

#[derive(Debug, Deserialize)]
struct Answer {
    answer: ProbeAnswer,
    result: Option<Value>,
}

impl Shop {
    /// Asks the service what may be relied on.
    ///
    /// # Errors
    /// [`ShopError`] when it does not answer.
    pub async fn connect(url: &str) -> Result<Self, ShopError> {
        let url = url.trim_end_matches('/').to_owned();
        let failed = |source| ShopError {
            url: url.clone(),
            source,
        };
        let client = reqwest::Client::builder()
            .no_proxy()
            .timeout(Duration::from_secs(5))
            .build()
            .map_err(failed)?;
        let response = client.get(format!("{url}/policy")).send().await;
        let policy = response
            .and_then(reqwest::Response::error_for_status)
            .map_err(failed)?
            .json()
            .await
            .map_err(failed)?;
        Ok(Self {
            url,
            client,
            policy,
        })
    }

    /// Performs one effect for an order, or answers from the ledger what an earlier attempt was told.
    pub(super) async fn perform<C>(
        &self,
        ctx: &TaskContext<C>,
        order: &Order,
        effect: Effect,
    ) -> Result<Paid, TaskError> {
        let body = body(order, effect);
        let path = route(order, effect);
        // 503 is this service's word for "nothing took place".
        let call = HttpCall::post(format!("{}{path}", self.url), &body).retry_statuses([503]);
        let life = Duration::from_millis(self.policy.max_request_life_ms);
        let operation = ctx
            .operation(effect.name(), &order.order_id)
            .request(&body)
            .timeout(TIMEOUT)
            .quiet(life);
        let done = match effect {
            Effect::Reserve => operation.class(Class::Fenced).http(call).await,
            Effect::Charge => {
                let kept = self.policy.retention.get(path);
                let kept = kept.map_or(Duration::ZERO, |kept| Duration::from_millis(kept.key_ms));
                let operation = operation.class(Class::Idempotent).key_retention(kept);
                operation.margin(MARGIN).http(call).await
            }
            Effect::Payout => operation.probe(|asked| self.probe(asked)).http(call).await,
            Effect::Notify => operation.class(Class::Blind).http(call).await,
        };
        // A person may have resolved it with another result than the service gives: then it is not this service's.
        serde_json::from_value(done?).map_err(|error| {
            TaskError::terminal(
                "answer_invalid",
                format!("the answer to {}: {error}", effect.name()),
            )
        })
    }

    /// Asks what became of a payout.
    async fn probe(&self, asked: OperationCall) -> Result<Probe<Value>, TaskError> {
        let failed =
            |error: reqwest::Error| TaskError::retryable("probe_failed", error.to_string());
        let mut url = reqwest::Url::parse(&self.url)
            .map_err(|error| TaskError::terminal("bad_url", error.to_string()))?;
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(["payouts", &asked.id]);
        }
        let response = self.client.get(url).send().await;
        let answer: Answer = response
            .and_then(reqwest::Response::error_for_status)
            .map_err(failed)?
            .json()
            .await
            .map_err(failed)?;
        Ok(match (answer.answer, answer.result) {
            (ProbeAnswer::Happened, Some(paid)) => Probe::Happened(paid),
            (ProbeAnswer::DidNotHappen, _) => Probe::DidNotHappen,
            _ => Probe::CannotTell,
        })
    }
}

fn route(order: &Order, effect: Effect) -> &'static str {
    let quick = order
        .validate()
        .is_ok_and(|valid| valid.bank == Bank::Quick);
    match effect {
        Effect::Reserve => "/reservations",
        Effect::Charge if quick => "/charges/short",
        Effect::Charge => "/charges",
        Effect::Payout => "/payouts",
        Effect::Notify => "/notifications",
    }
}

/// The same for every attempt and every version.
fn body(order: &Order, effect: Effect) -> Value {
    let reference = &order.order_id;
    match effect {
        Effect::Reserve => json!({ "reference": reference, "item": order.item }),
        Effect::Charge | Effect::Payout => {
            json!({ "reference": reference, "amount": order.amount, "currency": order.currency })
        }
        Effect::Notify => json!({ "reference": reference, "email": order.email }),
    }
}
