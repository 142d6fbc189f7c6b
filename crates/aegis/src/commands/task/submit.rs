//! `aegis task submit`: one task from the command line; a file of them goes through `stream`.

use std::collections::BTreeMap;
use std::io::Read;
use std::time::Duration;

use aegis_model::limits::{KILL_AFTER_MS, MAX_CRASHES, MAX_FAILURES, PAYLOAD_BYTES_MAX};
use aegis_model::{ErrorCode, State, TraceContext};
use aegis_store::{NewTask, RetryPolicy};
use clap::Args;
use jiff::Timestamp;
use serde_json::json;

use super::filter::duration_ms;
use super::stream::{self, StreamArguments};
use super::wait;
use crate::database::DatabaseArguments;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Output;
use crate::traced::SubmitSpan;

pub(super) const EXAMPLES: &str = r#"Examples:
  aegis task submit resize --input '{"path": "a.png"}' --key a.png --wait
  aegis task submit resize --input @job.json --delay 30
  aegis task submit --from tasks.jsonl -o json > answers.jsonl

Each line of --from is one JSON object; the options are what a line leaves out:
  {"kind": "resize", "input": {"path": "a.png"}, "key": "a.png", "labels": {"batch": "7"}}"#;

#[derive(Debug, Args)]
pub(super) struct SubmitArguments {
    /// The kind of the task; with --from, of the lines that name none.
    #[arg(required_unless_present = "from")]
    kind: Option<String>,
    /// The input: JSON, @FILE, or - for standard input.
    #[arg(long, default_value = "{}")]
    input: String,
    #[command(flatten)]
    stream: StreamArguments,
    /// Where it waits.
    #[arg(long, default_value = "default")]
    queue: String,
    /// Who it belongs to.
    #[arg(long, default_value = "default")]
    tenant: String,
    /// The protocol of the input.
    #[arg(long, default_value_t = 1)]
    protocol: i32,
    /// The same key with the same payload gives the same task.
    #[arg(long, conflicts_with = "from")]
    key: Option<String>,
    /// Not before this moment (RFC 3339).
    #[arg(long, conflicts_with = "delay")]
    run_at: Option<Timestamp>,
    /// Not before so many seconds from now.
    #[arg(long, allow_negative_numbers = true)]
    delay: Option<f64>,
    /// 0 first, 9 last.
    #[arg(long, default_value_t = 5, allow_negative_numbers = true)]
    priority: i16,
    /// Ended or failed by this moment (RFC 3339).
    #[arg(long)]
    deadline: Option<Timestamp>,
    /// The trace that it belongs to (W3C traceparent); default: the environment's TRACEPARENT.
    #[arg(long, value_name = "TRACEPARENT")]
    traceparent: Option<TraceContext>,
    /// For filters, NAME=VALUE; repeatable.
    #[arg(long, value_name = "NAME=VALUE")]
    label: Vec<String>,
    #[command(flatten)]
    policy: PolicyArguments,
    /// Waits for the end and prints the result; exit code 7 when it did not succeed, 6 when --timeout has passed.
    #[arg(long, conflicts_with = "from")]
    wait: bool,
    /// How long --wait waits, in seconds or with a unit.
    #[arg(long, default_value = "60s", value_parser = duration_ms, value_name = "DURATION")]
    timeout: i64,
}

/// When it is tried again, given up, set aside, and how long it may take.
#[derive(Debug, Args)]
#[command(next_help_heading = "Retries and deadlines")]
struct PolicyArguments {
    /// Handler errors until it is given up.
    #[arg(long, default_value_t = MAX_FAILURES)]
    max_failures: i32,
    /// Crashes alone until it is quarantined.
    #[arg(long, default_value_t = MAX_CRASHES)]
    max_crashes: i32,
    /// The first back-off; doubled at each failure.
    #[arg(long, default_value = "1s", value_parser = duration_ms, value_name = "DURATION")]
    backoff_initial: i64,
    /// The longest back-off.
    #[arg(long, default_value = "10m", value_parser = duration_ms, value_name = "DURATION")]
    backoff_cap: i64,
    /// From submit, or its time, to the first start.
    #[arg(long, value_parser = duration_ms, value_name = "DURATION")]
    schedule_to_start: Option<i64>,
    /// One attempt.
    #[arg(long, value_parser = duration_ms, value_name = "DURATION")]
    start_to_close: Option<i64>,
    /// From a cancel request or a deadline until the execution is ended for it, in milliseconds.
    #[arg(long, default_value_t = KILL_AFTER_MS, value_name = "MS")]
    kill_after_ms: i64,
}

impl PolicyArguments {
    fn policy(&self) -> RetryPolicy {
        RetryPolicy {
            max_failures: self.max_failures,
            max_crashes: self.max_crashes,
            backoff_initial_ms: self.backoff_initial,
            backoff_cap_ms: self.backoff_cap,
            schedule_to_start_ms: self.schedule_to_start,
            start_to_close_ms: self.start_to_close,
            kill_after_ms: self.kill_after_ms,
        }
    }
}

fn refused(message: String) -> Failure {
    Failure::new(Exit::Refused, message).with_code(ErrorCode::BAD_SUBMIT)
}

pub(super) async fn run(
    arguments: SubmitArguments,
    database: &DatabaseArguments,
    output: Output,
) -> Result<Exit, Failure> {
    let mut labels = BTreeMap::new();
    for label in &arguments.label {
        let (name, value) = label
            .split_once('=')
            .ok_or_else(|| refused(format!("--label {label} has no `=`; write NAME=VALUE")))?;
        if name.is_empty() {
            return Err(refused(format!("--label {label} has no name before `=`")));
        }
        if labels.insert(name.to_owned(), value.to_owned()).is_some() {
            return Err(refused(format!(
                "--label {name} was given twice; a label has one value"
            )));
        }
    }
    let run_at = match arguments.delay {
        Some(delay) if !(0.0..=3.2e8).contains(&delay) => {
            return Err(refused(format!(
                "--delay {delay} is not between 0 and 320000000 seconds; leave it out for now"
            )));
        }
        // The database's clock decides what is due; a delay is only as good as this machine's clock.
        Some(delay) => Some(Timestamp::now() + Duration::from_secs_f64(delay)),
        None => arguments.run_at,
    };
    let span = SubmitSpan::begin(arguments.traceparent)?;
    let fields = vec![("aegis.queue", arguments.queue.as_str().into())];
    let trace = span.context();
    let outcome = submit(arguments, labels, run_at, trace, database, output).await;
    span.end(fields, &outcome);
    outcome
}

async fn submit(
    arguments: SubmitArguments,
    labels: BTreeMap<String, String>,
    run_at: Option<Timestamp>,
    trace: Option<TraceContext>,
    database: &DatabaseArguments,
    output: Output,
) -> Result<Exit, Failure> {
    let task = NewTask {
        trace,
        queue: arguments.queue,
        tenant: arguments.tenant,
        protocol: arguments.protocol,
        key: arguments.key,
        run_at,
        priority: arguments.priority,
        deadline_at: arguments.deadline,
        labels: (!labels.is_empty()).then(|| json!(labels)),
        policy: arguments.policy.policy(),
        ..NewTask::new(arguments.kind.unwrap_or_default(), input(&arguments.input)?)
    };
    if arguments.stream.is_given() {
        return stream::run(arguments.stream, task, database, output).await;
    }
    let store = database.connect().await?;
    let submitted = store.submit(task).await?;
    if arguments.wait {
        let timeout = Duration::from_millis(u64::try_from(arguments.timeout).unwrap_or_default());
        return wait::one(&store, submitted.task, timeout, State::Succeeded, output).await;
    }
    let word = if submitted.is_new {
        "submitted"
    } else {
        "known"
    };
    output.one(
        &[(word, submitted.task.to_string())],
        &json!({ "id": submitted.task, "new": submitted.is_new }),
    );
    Ok(Exit::Done)
}

/// The input: a JSON text, a file's, or standard input's; read no further than the limit.
fn input(given: &str) -> Result<Vec<u8>, Failure> {
    let limit = PAYLOAD_BYTES_MAX as u64 + 1;
    let mut bytes = Vec::new();
    let read = match given {
        "-" => std::io::stdin().take(limit).read_to_end(&mut bytes),
        _ => match given.strip_prefix('@') {
            Some(path) => {
                std::fs::File::open(path).and_then(|file| file.take(limit).read_to_end(&mut bytes))
            }
            None => return Ok(given.as_bytes().to_vec()),
        },
    };
    match read {
        Ok(_) => Ok(bytes),
        Err(error) => Err(Failure::new(
            Exit::Refused,
            format!("--input {given} cannot be read: {error}"),
        )),
    }
}
