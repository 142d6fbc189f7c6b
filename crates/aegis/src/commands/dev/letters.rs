//! The example service of `aegis dev`: takes letters, each once however often it is asked.
//!
//! Invariants: loopback only; a repeated `Idempotency-Key` gets the first receipt again and adds no letter; bounded.
//!
//! Never: anything that lasts. It forgets when it ends, and says so where it is documented.

use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use axum::{Json, Router};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::exit::Exit;
use crate::failure::Failure;

/// More than anybody sends by hand.
const LETTERS_MAX: usize = 100_000;

type Sent = Arc<Mutex<HashMap<String, Value>>>;

/// Starts it on a free port; answers its URL. It ends with the process.
pub(super) async fn start() -> Result<String, Failure> {
    let refuse = |error: std::io::Error| {
        Failure::new(
            Exit::Broken,
            format!("the example service cannot listen on 127.0.0.1: {error}"),
        )
    };
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .await
        .map_err(refuse)?;
    let place = listener.local_addr().map_err(refuse)?;
    let router = Router::new()
        .route("/letters", post(send).get(count))
        .with_state(Sent::default());
    tokio::spawn(async move {
        if let Err(error) = axum::serve(listener, router).await {
            tracing::error!(%error, "the example service has ended");
        }
    });
    Ok(format!("http://{place}/letters"))
}

async fn send(
    State(sent): State<Sent>,
    headers: HeaderMap,
    Json(letter): Json<Value>,
) -> (StatusCode, Json<Value>) {
    let Some(key) = headers
        .get("idempotency-key")
        .and_then(|key| key.to_str().ok())
    else {
        return (
            StatusCode::BAD_REQUEST,
            Json(json!({ "error": "there is no Idempotency-Key" })),
        );
    };
    let mut sent = sent.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(receipt) = sent.get(key) {
        return (StatusCode::OK, Json(receipt.clone()));
    }
    if sent.len() >= LETTERS_MAX {
        return (
            StatusCode::INSUFFICIENT_STORAGE,
            Json(json!({ "error": "the letter box is full; start aegis dev again" })),
        );
    }
    let receipt = json!({ "letter": sent.len() + 1, "to": letter["to"], "sent": true });
    sent.insert(key.to_owned(), receipt.clone());
    (StatusCode::OK, Json(receipt))
}

async fn count(State(sent): State<Sent>) -> Json<Value> {
    let sent = sent.lock().unwrap_or_else(PoisonError::into_inner).len();
    Json(json!({ "letters": sent }))
}
