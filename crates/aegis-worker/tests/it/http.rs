//! The built-in HTTP call, against a server of the test's own on loopback.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use aegis_testkit::wait_until;
use aegis_worker::{
    Class, HttpCall, HttpPolicy, OperationError, TaskContext, TaskError, handler_fn, operation_id,
};
use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use crate::support::{BOUND, Bench, Running, quick_task, result};

type Seen = Arc<Mutex<Vec<(String, BTreeMap<String, String>, String)>>>;

/// A server that answers by its path and writes down what it gets.
async fn serve(seen: &Seen) -> String {
    async fn answer(
        State(seen): State<Seen>,
        uri: Uri,
        headers: HeaderMap,
        body: String,
    ) -> Response {
        let headers = headers
            .iter()
            .map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()))
            .collect();
        let path = uri.path().to_owned();
        let before = {
            let mut seen = seen.lock().unwrap();
            seen.push((path.clone(), headers, body));
            seen.iter().filter(|(known, ..)| *known == path).count()
        };
        match path.as_str() {
            "/ok" => (StatusCode::CREATED, r#"{"receipt":7}"#).into_response(),
            "/empty" => StatusCode::NO_CONTENT.into_response(),
            "/refuse" => (StatusCode::UNPROCESSABLE_ENTITY, r#"{"why":"no"}"#).into_response(),
            "/flaky" if before == 1 => StatusCode::BAD_GATEWAY.into_response(),
            "/busy" if before <= 2 => StatusCode::SERVICE_UNAVAILABLE.into_response(),
            "/redirect" => (StatusCode::FOUND, [("location", "/ok")]).into_response(),
            "/large" => "x".repeat(1000).into_response(),
            "/lost-then-conflict" if before == 2 => StatusCode::CONFLICT.into_response(),
            "/lost-then-401" if before == 2 => StatusCode::UNAUTHORIZED.into_response(),
            "/lost-then-401" | "/lost-then-conflict" if before == 1 => {
                StatusCode::BAD_GATEWAY.into_response()
            }
            "/unauthorized" => StatusCode::UNAUTHORIZED.into_response(),
            "/conflict" => StatusCode::CONFLICT.into_response(),
            "/slow" if before == 1 => std::future::pending().await,
            _ => (StatusCode::OK, format!("{before}")).into_response(),
        }
    }
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let app = Router::new().fallback(answer).with_state(Arc::clone(seen));
    tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
    format!("http://{address}")
}

/// What one call ended as: `[tag, value]`.
async fn outcome(policy: HttpPolicy, class: Class, call: HttpCall) -> Value {
    let bench = Bench::new().await;
    let handler = handler_fn("call", move |ctx: TaskContext, (): ()| {
        let call = call.clone();
        async move {
            let answer = ctx
                .operation("call", 1)
                .class(class)
                .timeout(Duration::from_millis(500))
                .http::<Value>(call)
                .await;
            match answer {
                Ok(value) => Ok(json!(["ok", value])),
                Err(OperationError::Failed {
                    message, detail, ..
                }) => Ok(json!(["failed", message, detail])),
                Err(error) => Err(TaskError::from(error)),
            }
        }
    });
    let worker = Running::start(bench.worker().handler(handler).http_policy(policy));
    let task = bench.submit_task(quick_task("call")).await;
    // Ended, or left to a person.
    wait_until("an outcome", BOUND, async || {
        let detail = bench.store.task(task).await.unwrap().unwrap();
        detail.state >= 4
    })
    .await;
    let detail = bench.store.task(task).await.unwrap().unwrap();
    let ended = match detail.state {
        4 => json!(["state", 4]),
        _ => result(&detail),
    };
    worker.handle.cancel_now();
    worker.exit().await;
    ended
}

fn open() -> HttpPolicy {
    HttpPolicy::public_only().allow_loopback()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_carries_its_key_and_its_token_and_its_answer_is_kept() {
    let bench = Bench::new().await;
    let seen = Seen::default();
    let url = serve(&seen).await;
    let handler = handler_fn("call", move |ctx: TaskContext, (): ()| {
        let call = HttpCall::post(format!("{url}/ok"), &json!({ "cents": 5 }))
            .header("x-own", "mine")
            .header("idempotency-key", "not this one");
        async move {
            let token = ctx.fencing_token().to_string();
            let value: Value = ctx.operation("call", "a b").http(call).await?;
            Ok(json!([value, token]))
        }
    });
    let worker = Running::start(bench.worker().handler(handler).http_policy(open()));
    let task = bench.submit("call", json!(null)).await;
    let ended = result(&bench.ended(task).await);
    assert_eq!(ended[0], json!({ "receipt": 7 }));
    worker.drain().await;
    let seen = seen.lock().unwrap();
    let (_, headers, body) = &seen[0];
    let id = operation_id(task, "call", "a b", 1);
    assert_eq!(headers["idempotency-key"], id);
    assert_eq!(headers["aegis-operation"], id);
    assert_eq!(headers["aegis-task"], task.to_string());
    assert_eq!(json!(headers["fencing-token"]), ended[1]);
    assert_eq!(headers["x-own"], "mine");
    assert_eq!(headers["content-type"], "application/json");
    assert_eq!(body, r#"{"cents":5}"#);
    assert_eq!(seen.len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_an_answer_means() {
    let seen = Seen::default();
    let url = serve(&seen).await;
    let post = |path: &str| HttpCall::post(format!("{url}{path}"), &json!({}));
    let (blind, idempotent) = (Class::Blind, Class::Idempotent);
    let cases = [
        (blind, post("/empty"), json!(["ok", null]), 1),
        (
            blind,
            post("/refuse"),
            json!(["failed", "HTTP 422 Unprocessable Entity", { "status": 422, "body": { "why": "no" } }]),
            1,
        ),
        (idempotent, post("/flaky"), json!(["ok", 2]), 2),
        (idempotent, post("/slow"), json!(["ok", 2]), 2),
        // What a repeat is told says nothing about the call whose answer was lost.
        (idempotent, post("/lost-then-conflict"), json!(["ok", 3]), 3),
        (idempotent, post("/lost-then-401"), json!(["ok", 3]), 3),
        (
            blind,
            post("/unauthorized"),
            json!(["failed", "HTTP 401 Unauthorized", { "status": 401, "body": null }]),
            1,
        ),
        (blind, post("/conflict"), json!(["state", 4]), 1),
        (
            blind,
            post("/busy").retry_statuses([503]),
            json!(["ok", 3]),
            3,
        ),
        // Not followed, and no refusal: it may follow an effect.
        (blind, post("/redirect"), json!(["state", 4]), 1),
        (
            blind,
            post("/large").answer_bytes_max(999),
            json!(["state", 4]),
            1,
        ),
        (
            blind,
            post("/large").answer_bytes_max(1000),
            json!(["ok", "x".repeat(1000)]),
            2,
        ),
    ];
    for (class, call, expected, times) in cases {
        let shown = format!("{call:?}");
        let path = shown.split(&url).nth(1).unwrap();
        let path = path.split('"').next().unwrap().to_owned();
        let ended = outcome(open(), class, call).await;
        assert_eq!(ended, expected, "{shown}");
        let seen = seen.lock().unwrap();
        let count = seen.iter().filter(|(known, ..)| *known == path).count();
        assert_eq!(count, times, "{shown}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rl_37_addresses_that_are_not_public_are_refused_unless_they_are_allowed() {
    let seen = Seen::default();
    let url = serve(&seen).await;
    let port = url.rsplit(':').next().unwrap();
    for host in ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]"] {
        let call = HttpCall::post(format!("http://{host}:{port}/ok"), &json!({}));
        let ended = outcome(HttpPolicy::public_only(), Class::Blind, call).await;
        assert_eq!(ended[0], "failed", "{host}: {ended}");
    }
    assert!(seen.lock().unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_downstream_that_cannot_be_connected_to_was_surely_not_called() {
    let seen = Seen::default();
    let bench = Bench::new().await;
    // A port that was free a moment ago.
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let handler = handler_fn("call", move |ctx: TaskContext, (): ()| async move {
        let call = HttpCall::post(format!("http://{address}/ok"), &json!({}));
        let answer = ctx
            .operation("call", 1)
            .repeats(1)
            .http::<Value>(call)
            .await;
        Ok(answer?)
    });
    let worker = Running::start(bench.worker().handler(handler).http_policy(open()));
    let task = bench
        .submit_task(aegis_store::NewTask {
            policy: aegis_store::RetryPolicy {
                max_failures: 2,
                ..crate::support::quick_retries()
            },
            ..aegis_store::NewTask::new("call", "null")
        })
        .await;
    // Given up as failed, not as unknown: blind, and yet nobody has to look.
    let ended = bench.ended(task).await;
    assert_eq!(ended.state, 6, "{ended:?}");
    assert_eq!(ended.error.unwrap()["code"], "operation_not_applied");
    assert!(seen.lock().unwrap().is_empty());
    worker.drain().await;
}
