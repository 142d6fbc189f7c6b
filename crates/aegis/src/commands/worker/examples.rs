//! Kinds to try things with, which `aegis dev` executes.
//!
//! | kind | input | result |
//! | --- | --- | --- |
//! | `hello` | `{"name": "Ada"}` | `{"greeting": "Hello, Ada"}` |
//! | `count` | `{"to": 20, "ms": 500}` | `{"counted": 20}`; each number is a memoised step, so it survives `kill -9` |
//! | `flaky` | `{"failures": 2}` | fails twice, then `{"attempts": 3}` |
//! | `letter` | `{"to": "Ada", "text": "Hi"}` | the receipt of the example service: an operation of class idempotent |

use std::time::Duration;

use aegis_worker::{
    Class, HandlerOptions, HttpCall, TaskContext, TaskError, WorkerBuilder, handler_fn,
};
use serde::Deserialize;
use serde_json::{Value, json};

pub(super) const HELLO: &str = "hello";
pub(super) const COUNT: &str = "count";
pub(super) const FLAKY: &str = "flaky";
pub(super) const LETTER: &str = "letter";

/// The kinds of this file.
pub(crate) const NAMES: [&str; 4] = [HELLO, COUNT, FLAKY, LETTER];

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Hello {
    #[serde(default = "world")]
    name: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Count {
    #[serde(default = "twenty")]
    to: u32,
    #[serde(default = "half_a_second")]
    ms: u64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Flaky {
    #[serde(default = "two")]
    failures: i32,
}

#[derive(Debug, Deserialize, serde::Serialize)]
#[serde(deny_unknown_fields)]
struct Letter {
    to: String,
    #[serde(default)]
    text: String,
}

fn world() -> String {
    "world".to_owned()
}

fn twenty() -> u32 {
    20
}

fn half_a_second() -> u64 {
    500
}

fn two() -> i32 {
    2
}

/// Adds one of [`NAMES`]; another name adds nothing.
pub(super) fn add(
    builder: WorkerBuilder,
    name: &str,
    letters_url: Option<&str>,
    options: HandlerOptions,
) -> WorkerBuilder {
    match name {
        HELLO => builder.handler_with(handler_fn(HELLO, hello), options),
        COUNT => builder.handler_with(handler_fn(COUNT, count), options),
        FLAKY => builder.handler_with(handler_fn(FLAKY, flaky), options),
        LETTER => {
            let url = letters_url.map(str::to_owned);
            builder.handler_with(
                handler_fn(LETTER, move |ctx, input| letter(ctx, input, url.clone())),
                options,
            )
        }
        _ => builder,
    }
}

async fn hello(_ctx: TaskContext, input: Hello) -> Result<Value, TaskError> {
    std::future::ready(Ok(json!({ "greeting": format!("Hello, {}", input.name) }))).await
}

async fn count(ctx: TaskContext, input: Count) -> Result<Value, TaskError> {
    let to = input.to.clamp(1, 10_000);
    for number in 1..=to {
        ctx.step("count", number, || async {
            ctx.unless_cancelled(tokio::time::sleep(Duration::from_millis(input.ms)))
                .await
        })
        .await?;
    }
    Ok(json!({ "counted": to }))
}

async fn flaky(ctx: TaskContext, input: Flaky) -> Result<Value, TaskError> {
    let failed = ctx.failures();
    let outcome = if failed < input.failures {
        Err(TaskError::retryable(
            "flaky",
            format!("failure {} of {}, as asked for", failed + 1, input.failures),
        ))
    } else {
        Ok(json!({ "attempts": failed + 1 }))
    };
    std::future::ready(outcome).await
}

async fn letter(ctx: TaskContext, input: Letter, url: Option<String>) -> Result<Value, TaskError> {
    let url = url.ok_or_else(|| {
        TaskError::terminal(
            "no_letters",
            "this worker was started without --letters-url",
        )
    })?;
    let operation = ctx.operation("send", 1).class(Class::Idempotent);
    Ok(operation.http(HttpCall::post(url, &input)).await?)
}
