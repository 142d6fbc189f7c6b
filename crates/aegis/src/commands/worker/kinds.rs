//! The kinds that this program can execute by itself: the demo's orders, a few for scripts, probes and benchmarks, and the
//! [examples](super::examples) of `aegis dev`.
//!
//! | kind | input | result |
//! | --- | --- | --- |
//! | `demo.order` | an order of the demo | its receipt |
//! | `aegis.noop` | anything | the input |
//! | `aegis.sleep` | `{"ms": 1000, "steps": 10}` | `{"slept_ms": 1000}` |
//! | `aegis.http` | see [`HttpInput`] | the answer; a list of answers with `repeat` |
//! | `aegis.backfill` | a change, see [`moves`](super::moves) | how many rows were seen and changed |

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use aegis_demo::handler::{OrderV1, OrderV2, OrderWork, Shop};
use aegis_demo::run::KIND as ORDER;
use aegis_worker::{
    Class, HandlerOptions, HttpCall, OperationCall, Probe, TaskContext, TaskError, WorkerBuilder,
    handler_fn,
};
use clap::Args;
use serde::Deserialize;
use serde_json::{Value, json};

use super::examples::{COUNT, FLAKY, HELLO, LETTER};
use super::moves::{BACKFILL, MoveArguments};
use super::programs::Programs;
use crate::exit::Exit;
use crate::failure::{Failure, chain};

const NOOP: &str = "aegis.noop";
const SLEEP: &str = "aegis.sleep";
const HTTP: &str = "aegis.http";
/// The most operations that one `aegis.http` task may ask for.
const REPEAT_MAX: u32 = 10_000;

#[derive(Debug, Args)]
pub(super) struct KindArguments {
    /// First: it looks at the places of the words, which the others take out.
    #[command(flatten)]
    pub(super) programs: Programs,
    /// What it can execute.
    #[arg(long, value_delimiter = ',', default_values_t = [NOOP.to_owned(), SLEEP.to_owned(), HTTP.to_owned()],
          value_parser = [ORDER, NOOP, SLEEP, HTTP, BACKFILL, HELLO, COUNT, FLAKY, LETTER])]
    handlers: Vec<String>,
    #[command(flatten)]
    moves: MoveArguments,
    /// Where the payment service of the demo listens; for demo.order.
    #[arg(long, value_name = "URL")]
    payments_url: Option<String>,
    /// Which version of the demo's code: 1 reads and writes protocol 1, 2 reads 1 and 2 and writes 2.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=2))]
    version: u8,
    /// Where the example service of `aegis dev` listens; for letter.
    #[arg(long, value_name = "URL", hide = true)]
    letters_url: Option<String>,
    /// How long demo.order takes over each stage.
    #[arg(long, default_value_t = 0, hide = true)]
    pace_ms: u64,
    /// While this file exists, demo.order keeps finished results in hand.
    #[arg(long, hide = true, value_name = "FILE")]
    hold_results: Option<PathBuf>,
}

/// The input of `aegis.http`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct HttpInput {
    url: String,
    #[serde(default = "post")]
    method: String,
    #[serde(default)]
    body: Value,
    /// `blind` unless said otherwise.
    #[serde(default = "blind")]
    class: Class,
    /// For `queryable`: asked by GET, with `{operation}` replaced by the operation's id. It answers
    /// `{"answer": "happened" | "did_not_happen" | "cannot_tell", "result": …}`; 404 means that it did not happen.
    probe_url: Option<String>,
    #[serde(default = "ten_seconds")]
    timeout_ms: u64,
    #[serde(default = "thirty_seconds")]
    quiet_ms: u64,
    /// For `idempotent`: how long the other side remembers a key; without it, for ever.
    retention_ms: Option<u64>,
    /// So many operations, one after another, with the keys 1, 2, 3 …
    repeat: Option<u32>,
}

#[derive(Debug, Deserialize)]
struct SleepInput {
    ms: u64,
    #[serde(default = "one")]
    steps: u64,
}

fn post() -> String {
    "POST".to_owned()
}

fn blind() -> Class {
    Class::Blind
}

fn ten_seconds() -> u64 {
    10_000
}

fn thirty_seconds() -> u64 {
    30_000
}

fn one() -> u64 {
    1
}

impl KindArguments {
    /// Adds the wanted kinds, for each queue; answers their names.
    pub(super) async fn add_to(
        &self,
        mut builder: WorkerBuilder,
        queues: &[String],
        release: &str,
        may_call_private: bool,
    ) -> Result<(WorkerBuilder, Vec<String>), Failure> {
        if !self.programs.leave_room_for_own() {
            return Ok((builder, Vec::new()));
        }
        let own = &self.programs.own_kinds;
        let wanted = |name: &&String| own.is_empty() || own.contains(name);
        let names: Vec<String> = self.handlers.iter().filter(wanted).cloned().collect();
        if let Some(unknown) = own.iter().find(|kind| !self.handlers.contains(kind)) {
            return Err(Failure::new(
                Exit::Usage,
                format!(
                    "--kind {unknown} is none of --handlers {}; add it there, or name its program with --exec behind it",
                    self.handlers.join(",")
                ),
            ));
        }
        let orders = if names.iter().any(|name| name == ORDER) {
            Some(self.orders().await?)
        } else {
            None
        };
        let client = if may_call_private {
            Some(probe_client()?)
        } else {
            None
        };
        for queue in queues {
            for name in &names {
                let options = HandlerOptions {
                    queue: Some(queue.clone()),
                    slots: None,
                };
                builder = match (name.as_str(), &orders) {
                    (ORDER, Some(work)) if self.version == 1 => {
                        builder.handler_with(OrderV1(Arc::clone(work)), options)
                    }
                    (ORDER, Some(work)) => builder.handler_with(OrderV2(Arc::clone(work)), options),
                    (name, _) if super::examples::NAMES.contains(&name) => {
                        super::examples::add(builder, name, self.letters_url.as_deref(), options)
                    }
                    (BACKFILL, _) => self.moves.add_to(builder, options, release)?,
                    (NOOP, _) => builder.handler_with(handler_fn(NOOP, noop), options),
                    (SLEEP, _) => builder.handler_with(handler_fn(SLEEP, sleep), options),
                    _ => builder.handler_with(
                        handler_fn(HTTP, {
                            let client = client.clone();
                            move |ctx, input| http(ctx, input, client.clone())
                        }),
                        options,
                    ),
                };
            }
        }
        Ok((builder, names))
    }

    async fn orders(&self) -> Result<Arc<OrderWork>, Failure> {
        let url = self.payments_url.as_deref().ok_or_else(|| {
            Failure::new(
                Exit::Usage,
                "demo.order needs --payments-url, where `aegis demo` started its payment service",
            )
        })?;
        let shop = Shop::connect(url)
            .await
            .map_err(|error| Failure::new(Exit::Usage, chain(&error)))?;
        Ok(Arc::new(OrderWork {
            shop,
            pace: Duration::from_millis(self.pace_ms),
            hold: self.hold_results.clone(),
        }))
    }
}

async fn noop(_ctx: TaskContext, input: Value) -> Result<Value, TaskError> {
    std::future::ready(Ok(input)).await
}

async fn sleep(ctx: TaskContext, input: SleepInput) -> Result<Value, TaskError> {
    let steps = input.steps.clamp(1, 10_000);
    for step in 0..steps {
        // What is left over by the division is slept first.
        let ms = input.ms / steps + u64::from(step < input.ms % steps);
        ctx.step("sleep", step, || async {
            ctx.unless_cancelled(tokio::time::sleep(Duration::from_millis(ms)))
                .await
        })
        .await?;
    }
    Ok(json!({ "slept_ms": input.ms }))
}

/// `client`: what probes are asked with; only where a worker may call any address, since it does not vet them.
async fn http(
    ctx: TaskContext,
    input: HttpInput,
    client: Option<reqwest::Client>,
) -> Result<Value, TaskError> {
    let bad = |why: &str| TaskError::terminal("input_invalid", why);
    if input.probe_url.is_some() != (input.class == Class::Queryable) {
        return Err(bad(
            "`probe_url` belongs to class `queryable`, and to no other",
        ));
    }
    if input.probe_url.is_some() && client.is_none() {
        return Err(bad(
            "a probe is only asked by a worker that was started with --allow-private-addresses",
        ));
    }
    let repeat = input.repeat.unwrap_or(1);
    if !(1..=REPEAT_MAX).contains(&repeat) {
        return Err(bad("`repeat` is not between 1 and 10000"));
    }
    let mut answers = Vec::new();
    for key in 1..=repeat {
        answers.push(one_call(&ctx, client.as_ref(), &input, key).await?);
    }
    Ok(match (input.repeat, answers.pop()) {
        (None, Some(answer)) => answer,
        (_, last) => {
            answers.extend(last);
            Value::Array(answers)
        }
    })
}

async fn one_call(
    ctx: &TaskContext,
    client: Option<&reqwest::Client>,
    input: &HttpInput,
    key: u32,
) -> Result<Value, TaskError> {
    let call = HttpCall::new(&input.method, &input.url).json(&input.body);
    let mut operation = ctx
        .operation("http", key)
        .class(input.class)
        .timeout(Duration::from_millis(input.timeout_ms))
        .quiet(Duration::from_millis(input.quiet_ms));
    if let Some(retention) = input.retention_ms.map(Duration::from_millis) {
        operation = operation.key_retention(retention).margin(retention / 10);
    }
    let answer = match client.zip(input.probe_url.as_deref()) {
        Some((client, url)) => {
            operation
                .probe(move |asked| probe(client, url, asked))
                .http(call)
                .await
        }
        None => operation.http(call).await,
    };
    Ok(answer?)
}

fn probe_client() -> Result<reqwest::Client, Failure> {
    reqwest::Client::builder()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .timeout(Duration::from_secs(10))
        .build()
        .map_err(|error| Failure::new(Exit::Broken, format!("no HTTP client can be made: {error}")))
}

/// Asks the other side what became of an operation.
async fn probe(
    client: &reqwest::Client,
    url: &str,
    asked: OperationCall,
) -> Result<Probe<Value>, TaskError> {
    #[derive(Deserialize)]
    struct Answer {
        answer: String,
        #[serde(default)]
        result: Value,
    }
    let failed = |why: String| TaskError::retryable("probe_failed", why);
    let url = url.replace("{operation}", &percent_encoded(&asked.id));
    let response = client
        .get(url)
        .send()
        .await
        .map_err(|error| failed(error.to_string()))?;
    if response.status().as_u16() == 404 {
        return Ok(Probe::DidNotHappen);
    }
    let response = response
        .error_for_status()
        .map_err(|error| failed(error.to_string()))?;
    let answer: Answer = response
        .json()
        .await
        .map_err(|error| failed(error.to_string()))?;
    Ok(match answer.answer.as_str() {
        "happened" => Probe::Happened(answer.result),
        "did_not_happen" => Probe::DidNotHappen,
        _ => Probe::CannotTell,
    })
}

fn percent_encoded(text: &str) -> String {
    text.bytes()
        .fold(String::with_capacity(text.len()), |mut out, byte| {
            if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
                out.push(char::from(byte));
            } else {
                out.extend(['%', hex(byte >> 4), hex(byte & 15)]);
            }
            out
        })
}

fn hex(half: u8) -> char {
    char::from_digit(u32::from(half), 16)
        .unwrap_or('0')
        .to_ascii_uppercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operation_id_is_one_segment_of_a_path() {
        assert_eq!(
            percent_encoded("a-1/charge/x%2Fy/v1"),
            "a-1%2Fcharge%2Fx%252Fy%2Fv1"
        );
    }
}
