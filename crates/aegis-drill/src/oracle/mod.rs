//! The oracle of effects: a service outside of the database under test that says what really happened.
//!
//! | endpoint | what it promises its callers |
//! | --- | --- |
//! | `POST /idempotent` | the same key is one effect, for ever |
//! | `POST /fenced` | an older token is refused, a known operation is answered with its first result |
//! | `POST /queryable`, `GET /queryable/{id}` | nothing; it can be asked what became of an operation |
//! | `POST /blind` | nothing |
//!
//! How a call goes wrong is drawn by seed, operation and number of the call ([`behaviour`]). Invariant: what happened is in
//! the synced file before anybody is answered. Must never remember a key for `queryable` and `blind`: a second request there
//! is a second effect.

pub mod behaviour;
pub mod record;
mod state;

use std::future::pending;
use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Path as UrlPath, State as Shared};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use crate::error::DrillError;
use behaviour::Behaviour;
use state::{Answer, State};

/// The classes, as they stand in URLs and reports; the order is the ledger's.
pub const CLASSES: [&str; 4] = ["idempotent", "fenced", "queryable", "blind"];
/// No request takes effect later than this after it arrived.
pub const REQUEST_LIFE: Duration = Duration::from_millis(400);
/// A call with this header goes well, whatever is drawn.
pub const CALM: &str = "drill-calm";
/// How late a late effect comes.
const LATE: Duration = Duration::from_millis(350);

/// Serves until the process ends; `ready` hears the address.
///
/// # Errors
/// Loopback cannot be listened on, or the record cannot be made.
pub async fn serve(record: &Path, seed: u64, ready: impl FnOnce(String)) -> Result<(), DrillError> {
    let state = Arc::new(State::open(record, seed)?);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .await
        .map_err(DrillError::system("listen on 127.0.0.1"))?;
    let address = listener
        .local_addr()
        .map_err(DrillError::system("listen on 127.0.0.1"))?;
    let router = Router::new()
        .route("/{class}", post(perform))
        .route("/queryable/{operation}", get(probe))
        .with_state(state);
    ready(format!("http://{address}"));
    axum::serve(listener, router)
        .await
        .map_err(DrillError::system("serve"))
}

/// What a call brings along.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) class: &'static str,
    pub(crate) operation: String,
    pub(crate) task: String,
    /// Floor, timeline, epoch.
    pub(crate) token: Option<(i64, i64, i64)>,
}

async fn perform(
    Shared(state): Shared<Arc<State>>,
    UrlPath(class): UrlPath<String>,
    headers: HeaderMap,
) -> Response {
    let Some(asked) = asked(&class, &headers) else {
        return (
            StatusCode::BAD_REQUEST,
            "a class, an operation, a task, and a token",
        )
            .into_response();
    };
    let (call, drawn) = state.arrived(&asked);
    let behaviour = if headers.contains_key(CALM) {
        Behaviour::Applied
    } else {
        drawn
    };
    match behaviour {
        Behaviour::Applied => answer(carry_out(&state, asked, call, behaviour).await),
        Behaviour::AnswerLost => {
            carry_out(&state, asked, call, behaviour).await;
            pending().await
        }
        Behaviour::ErrorAfter => {
            carry_out(&state, asked, call, behaviour).await;
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
        Behaviour::RequestLost => {
            note_lost(&state, asked, call).await;
            pending().await
        }
        Behaviour::Late => {
            // A task of its own: the caller gives up first, and the effect comes all the same.
            tokio::spawn(async move {
                tokio::time::sleep(LATE).await;
                carry_out(&state, asked, call, behaviour).await;
            });
            pending().await
        }
    }
}

/// Applies or refuses, and writes it, whoever still listens.
async fn carry_out(state: &Arc<State>, asked: Asked, call: u32, how: Behaviour) -> Option<Answer> {
    let (done, waits) = oneshot::channel();
    let state = Arc::clone(state);
    // The write and its sync block, and must not end with the caller's connection.
    tokio::task::spawn_blocking(move || done.send(state.apply(&asked, call, how)).ok());
    waits.await.ok()?.ok()
}

async fn note_lost(state: &Arc<State>, asked: Asked, call: u32) {
    let state = Arc::clone(state);
    tokio::task::spawn_blocking(move || state.lost(&asked, call).ok())
        .await
        .ok();
}

fn answer(answer: Option<Answer>) -> Response {
    match answer {
        Some(Answer::Receipt(seq)) => Json(json!({ "receipt": seq })).into_response(),
        Some(Answer::Refused) => (StatusCode::CONFLICT, "an older token").into_response(),
        // The record could not be written: nobody knows.
        None => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

async fn probe(
    Shared(state): Shared<Arc<State>>,
    UrlPath(operation): UrlPath<String>,
) -> Json<Value> {
    let receipt = tokio::task::spawn_blocking(move || state.probe(&operation))
        .await
        .ok()
        .and_then(Result::ok);
    Json(match receipt {
        Some(Some(seq)) => json!({ "answer": "happened", "result": { "receipt": seq } }),
        Some(None) => json!({ "answer": "did_not_happen" }),
        None => json!({ "answer": "cannot_tell" }),
    })
}

fn asked(class: &str, headers: &HeaderMap) -> Option<Asked> {
    let text = |name: &str| Some(headers.get(name)?.to_str().ok()?.to_owned());
    let class = CLASSES.into_iter().find(|one| *one == class)?;
    let token = text("fencing-token").and_then(|token| record::token(&token));
    Some(Asked {
        class,
        operation: text("aegis-operation")?,
        task: text("aegis-task")?,
        token,
    })
}
