//! The service's HTTP: what a caller sends and what it is told.
//!
//! A call is carried out by a task of its own, so that a caller that hangs up changes nothing about what takes place.
//! Must never answer a call before its effect stands in the record.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use axum::body::Bytes;
use axum::extract::{ConnectInfo, DefaultBodyLimit, Path, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio_util::task::TaskTracker;

use super::behaviour::fingerprint;
use super::ledger::{Asked, Ledger, LedgerError, Outcome};
use super::wire::Wire;
use super::{Behaviour, Effect, EffectClass, FencingToken};

/// The header with the key under which an idempotent effect takes place once.
pub const HEADER_IDEMPOTENCY_KEY: &str = "idempotency-key";
/// The header with the operation id.
pub const HEADER_OPERATION: &str = "aegis-operation";
/// The header with the task id.
pub const HEADER_TASK: &str = "aegis-task";
/// The header with the fencing token.
pub const HEADER_TOKEN: &str = "fencing-token";
/// The largest request body, in bytes.
pub const MAX_BODY_BYTES: usize = 64 * 1024;

/// What callers may rely on: the answer of `GET /policy`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Policy {
    /// After this no request that was sent can still be applied, in milliseconds.
    pub max_request_life_ms: u64,
    /// Key retention by route.
    pub retention: BTreeMap<String, Retention>,
}

/// How long a route remembers an idempotency key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retention {
    /// From the first time that the key took effect, in milliseconds.
    pub key_ms: u64,
}

/// What the service knows about an operation that somebody asks about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProbeAnswer {
    /// It took place; its result comes along.
    Happened,
    /// It did not take place until now.
    DidNotHappen,
    /// The service does not know.
    CannotTell,
}

/// What the handlers share.
#[derive(Debug, Clone)]
pub(super) struct App {
    pub(super) ledger: Arc<Ledger>,
    /// Calls that are being carried out, of callers that have gone too.
    pub(super) calls: TaskTracker,
}

#[derive(Debug, Clone, Copy)]
enum Route {
    Reservations,
    Charges,
    ChargesShort,
    Payouts,
    Notifications,
}

pub(super) fn router(app: App) -> Router {
    let effect = |route: Route| {
        post(
            move |state: State<App>, wire: ConnectInfo<Wire>, headers: HeaderMap, body: Bytes| async move {
                take(state.0, &wire.0, route, &headers, &body).await
            },
        )
    };
    Router::new()
        .route("/reservations", effect(Route::Reservations))
        .route("/charges", effect(Route::Charges))
        .route("/charges/short", effect(Route::ChargesShort))
        .route("/payouts", effect(Route::Payouts))
        .route("/payouts/{operation_id}", get(probe))
        .route("/notifications", effect(Route::Notifications))
        .route("/policy", get(policy))
        .route("/healthz", get(|| async { "ok" }))
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
        .with_state(app)
}

async fn take(app: App, wire: &Wire, route: Route, headers: &HeaderMap, body: &[u8]) -> Response {
    let asked = match asked(&app, route, headers, body) {
        Ok(asked) => asked,
        Err(message) => return problem(StatusCode::BAD_REQUEST, "invalid_request", &message),
    };
    let ledger = Arc::clone(&app.ledger);
    match app
        .calls
        .spawn(async move { carry_out(&ledger, asked).await })
        .await
    {
        Ok(Ok(Some(response))) => response,
        Ok(Ok(None)) => {
            wire.cut();
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
        Ok(Err(error)) => unavailable(&error),
        Err(error) => problem(
            StatusCode::INTERNAL_SERVER_ERROR,
            "internal_error",
            &error.to_string(),
        ),
    }
}

/// Carries a call out; `None` when its caller hears nothing.
async fn carry_out(ledger: &Ledger, asked: Asked) -> Result<Option<Response>, LedgerError> {
    let (call, behaviour) = ledger.arrive(&asked)?;
    match behaviour {
        Behaviour::LostRequest => return Ok(None),
        Behaviour::ErrorBefore => {
            let text = "the service is busy; nothing took place";
            return Ok(Some(problem(StatusCode::SERVICE_UNAVAILABLE, "busy", text)));
        }
        Behaviour::Late => tokio::time::sleep(ledger.options().late_by).await,
        Behaviour::Good | Behaviour::LostAnswer | Behaviour::ErrorAfter => {}
    }
    let outcome = ledger.decide(&asked, call, behaviour)?;
    Ok(match behaviour {
        _ if outcome == Outcome::TooOld => None,
        Behaviour::LostAnswer => None,
        Behaviour::ErrorAfter => Some(problem(
            StatusCode::INTERNAL_SERVER_ERROR,
            "internal_error",
            "something went wrong",
        )),
        _ => told(outcome),
    })
}

/// `None`: nothing is said.
fn told(outcome: Outcome) -> Option<Response> {
    Some(match outcome {
        Outcome::TooOld => return None,
        Outcome::Applied(result) => Json(result).into_response(),
        Outcome::Replayed(result) => {
            let mark = (
                HeaderName::from_static("idempotent-replayed"),
                HeaderValue::from_static("true"),
            );
            ([mark], Json(result)).into_response()
        }
        Outcome::Stale(newest) => {
            let text = format!(
                "a newer fencing token of this task is known ({newest}); stop this execution"
            );
            problem(StatusCode::CONFLICT, "stale_token", &text)
        }
        Outcome::KeyReused => {
            let text = "this operation is known with another request; use a new operation for a new request";
            problem(StatusCode::UNPROCESSABLE_ENTITY, "key_reused", text)
        }
    })
}

async fn probe(State(app): State<App>, Path(operation_id): Path<String>) -> Response {
    match app.ledger.probe(&operation_id) {
        Ok((answer, Some(result))) => {
            Json(json!({ "answer": answer, "result": result })).into_response()
        }
        Ok((answer, None)) => Json(json!({ "answer": answer })).into_response(),
        Err(error) => unavailable(&error),
    }
}

async fn policy(State(app): State<App>) -> Json<Policy> {
    let options = app.ledger.options();
    let ms = |d: std::time::Duration| u64::try_from(d.as_millis()).unwrap_or(u64::MAX);
    let retention = [
        ("/charges", options.retention),
        ("/charges/short", options.short_retention),
    ];
    Json(Policy {
        max_request_life_ms: ms(options.max_request_life),
        retention: retention
            .map(|(route, keep)| (route.to_owned(), Retention { key_ms: ms(keep) }))
            .into(),
    })
}

fn unavailable(error: &LedgerError) -> Response {
    problem(
        StatusCode::SERVICE_UNAVAILABLE,
        "unavailable",
        &error.to_string(),
    )
}

fn problem(status: StatusCode, code: &str, message: &str) -> Response {
    (status, Json(json!({ "code": code, "message": message }))).into_response()
}

fn asked(app: &App, route: Route, headers: &HeaderMap, body: &[u8]) -> Result<Asked, String> {
    let options = app.ledger.options();
    let (effect, retention) = match route {
        Route::Reservations => (Effect::Reserve, None),
        Route::Charges => (Effect::Charge, Some(options.retention)),
        Route::ChargesShort => (Effect::Charge, Some(options.short_retention)),
        Route::Payouts => (Effect::Payout, None),
        Route::Notifications => (Effect::Notify, None),
    };
    let operation_id =
        header(headers, HEADER_OPERATION)?.ok_or_else(|| missing(HEADER_OPERATION))?;
    let task = header(headers, HEADER_TASK)?.ok_or_else(|| missing(HEADER_TASK))?;
    let token = header(headers, HEADER_TOKEN)?
        .map(|text| {
            text.parse::<FencingToken>()
                .map_err(|error| error.to_string())
        })
        .transpose()?;
    match effect.class() {
        EffectClass::Fenced if token.is_none() => return Err(missing(HEADER_TOKEN)),
        EffectClass::Idempotent => match header(headers, HEADER_IDEMPOTENCY_KEY)? {
            None => return Err(missing(HEADER_IDEMPOTENCY_KEY)),
            Some(key) if key != operation_id => {
                return Err(format!(
                    "the key `{key}` is not the operation `{operation_id}`; send the operation's id"
                ));
            }
            Some(_) => {}
        },
        _ => {}
    }
    let sent: Value =
        serde_json::from_slice(body).map_err(|error| format!("the body is not JSON: {error}"))?;
    let text = |field: &str| match sent.get(field) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) if !text.is_empty() => Ok(Some(text.clone())),
        Some(other) => Err(format!(
            "the field `{field}` is {other}; send a text that is not empty"
        )),
    };
    let reference =
        text("reference")?.ok_or("the field `reference` is missing; send the order's id")?;
    let (amount, currency) = (text("amount")?, text("currency")?);
    if matches!(effect, Effect::Charge | Effect::Payout) && (amount.is_none() || currency.is_none())
    {
        return Err("the fields `amount` and `currency` are needed here; send both as text".into());
    }
    let request_sha256 = fingerprint(body);
    Ok(Asked {
        effect,
        operation_id,
        task,
        reference,
        token,
        request_sha256,
        amount,
        currency,
        retention,
        arrived: Instant::now(),
    })
}

fn header(headers: &HeaderMap, name: &str) -> Result<Option<String>, String> {
    headers
        .get(name)
        .map(|value| match value.to_str() {
            Ok(text) if !text.is_empty() && text.len() <= 512 => Ok(text.to_owned()),
            _ => Err(format!(
                "the header `{name}` is not 1 to 512 visible characters; correct it"
            )),
        })
        .transpose()
}

fn missing(name: &str) -> String {
    format!("the header `{name}` is missing; every call here needs it")
}
