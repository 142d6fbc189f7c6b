//! `aegis task`: submit, list, show, watch, cancel, redrive, discard.

use std::collections::BTreeMap;
use std::io::Read;
use std::time::Duration;

use aegis_model::limits::PAYLOAD_BYTES_MAX;
use aegis_model::{ErrorCode, State};
use aegis_store::overrides::Cancelled;
use aegis_store::view::{TaskDetail, TaskFilter, TaskSummary};
use aegis_store::{NewTask, RetryPolicy, Store};
use clap::{Args, Subcommand};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::commands::find;
use crate::database::DatabaseArguments;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{Output, at, line, maybe_at, payload};

#[derive(Debug, Args)]
pub(crate) struct TaskArguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Submits a task.
    Submit(Box<SubmitArguments>),
    /// Lists tasks, the newest first.
    List {
        /// Of these states.
        #[arg(long, value_delimiter = ',', value_parser = state)]
        state: Vec<State>,
        #[arg(long)]
        queue: Option<String>,
        #[arg(long)]
        kind: Option<String>,
        #[arg(long)]
        tenant: Option<String>,
        /// Older than this task: the next page.
        #[arg(long)]
        before: Option<uuid::Uuid>,
        /// At most so many.
        #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(i64).range(1..=100_000))]
        limit: i64,
    },
    /// Shows one task's life: what it was asked, who ran it at which epoch, its errors, operations and end.
    Show {
        /// Its id, or the beginning of it.
        id: String,
    },
    /// Prints a task's state whenever it changes, until it has ended.
    Watch {
        /// Its id, or the beginning of it.
        id: String,
        /// Gives up after so many seconds (exit code 6).
        #[arg(long, default_value_t = 3600.0, value_parser = seconds)]
        timeout: f64,
    },
    /// Asks for a task's end. A running one is told, and ended for it when it does not stop.
    Cancel(OverrideArguments),
    /// Sends a failed or quarantined task again.
    Redrive(OverrideArguments),
    /// Gives a failed or quarantined task up for good.
    Discard(OverrideArguments),
}

#[derive(Debug, Args)]
struct OverrideArguments {
    /// Its id, or the beginning of it.
    id: String,
    /// Why; kept with the task.
    #[arg(long)]
    reason: String,
    /// Who; default: the user of the shell.
    #[arg(long)]
    actor: Option<String>,
}

#[derive(Debug, Args)]
struct SubmitArguments {
    /// The kind of the task.
    kind: String,
    /// The input: JSON, @FILE, or - for standard input.
    #[arg(long, default_value = "{}")]
    input: String,
    #[arg(long, default_value = "default")]
    queue: String,
    #[arg(long, default_value = "default")]
    tenant: String,
    /// The protocol of the input.
    #[arg(long, default_value_t = 1)]
    protocol: i32,
    /// The same key with the same payload gives the same task.
    #[arg(long)]
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
    /// For filters, NAME=VALUE; repeatable.
    #[arg(long, value_name = "NAME=VALUE")]
    label: Vec<String>,
    /// Handler errors until it is given up.
    #[arg(long, default_value_t = aegis_model::limits::MAX_FAILURES)]
    max_failures: i32,
    /// Waits for the end and prints the result; exit code 7 when it did not succeed, 6 when --timeout has passed.
    #[arg(long)]
    wait: bool,
    /// How long --wait waits, in seconds.
    #[arg(long, default_value_t = 60.0, value_parser = seconds)]
    timeout: f64,
}

fn state(word: &str) -> Result<State, String> {
    State::from_word(word).ok_or_else(|| {
        let words: Vec<&str> = aegis_model::state::STATES
            .into_iter()
            .map(State::word)
            .collect();
        format!("`{word}` is no state; use one of {}", words.join(", "))
    })
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() && (0.0..=3.2e8).contains(&value) => Ok(value),
        Ok(value) => Err(format!("{value} is not between 0 and 320000000 seconds")),
        Err(error) => Err(error.to_string()),
    }
}

pub(crate) async fn run(
    arguments: TaskArguments,
    database: &DatabaseArguments,
    output: Output,
) -> Result<Exit, Failure> {
    match arguments.verb {
        Verb::Submit(submit) => return submit_one(*submit, database, output).await,
        Verb::List {
            state,
            queue,
            kind,
            tenant,
            before,
            limit,
        } => {
            let filter = TaskFilter {
                states: state,
                queue,
                kind,
                tenant,
                before,
                limit,
            };
            let found = database.connect().await?.tasks(&filter).await?;
            output.list(
                &[
                    "id",
                    "state",
                    "queue/kind",
                    "protocol",
                    "tenant",
                    "epoch",
                    "failures",
                    "interruptions",
                    "crashes",
                    "snoozes",
                    "submitted",
                ],
                found.iter().map(row).collect(),
                found.iter().map(summary).collect(),
            );
        }
        Verb::Show { id } => show(&database.connect().await?, &id, output).await?,
        Verb::Watch { id, timeout } => {
            return watch(&database.connect().await?, &id, timeout, output).await;
        }
        Verb::Cancel(wanted) => {
            let store = database.connect().await?;
            let id = find::task(&store, &wanted.id).await?;
            let answer = store
                .cancel(id, &find::actor(wanted.actor), &wanted.reason)
                .await?;
            let (word, text) = match answer {
                Cancelled::Now => ("cancelled", "cancelled; it had not started"),
                Cancelled::Requested => (
                    "requested",
                    "asked to stop; it is ended for it when it does not",
                ),
                Cancelled::Pending => (
                    "pending",
                    "an operation is open; it is cancelled when that is settled",
                ),
                Cancelled::Ended | Cancelled::Parked => {
                    return Err(Failure::new(
                        Exit::Refused,
                        format!("task {id} has ended already; see `aegis task show {id}`"),
                    ));
                }
                Cancelled::Missing => return Err(missing(&wanted.id)),
            };
            output.one(
                &[("task", id.to_string()), ("cancel", text.to_owned())],
                &json!({ "id": id, "cancel": word }),
            );
        }
        Verb::Redrive(wanted) => {
            let store = database.connect().await?;
            let id = find::task(&store, &wanted.id).await?;
            let done = store
                .redrive(id, &find::actor(wanted.actor), &wanted.reason)
                .await?;
            parked(done, id, "redriven", output)?;
        }
        Verb::Discard(wanted) => {
            let store = database.connect().await?;
            let id = find::task(&store, &wanted.id).await?;
            let done = store
                .discard(id, &find::actor(wanted.actor), &wanted.reason)
                .await?;
            parked(done, id, "discarded", output)?;
        }
    }
    Ok(Exit::Done)
}

fn parked(done: bool, id: uuid::Uuid, word: &str, output: Output) -> Result<(), Failure> {
    if !done {
        return Err(Failure::new(
            Exit::Refused,
            format!("task {id} is neither failed nor quarantined; see `aegis task show {id}`"),
        ));
    }
    output.one(&[(word, id.to_string())], &json!({ "id": id, word: true }));
    Ok(())
}

fn missing(prefix: &str) -> Failure {
    Failure::new(Exit::NotFound, format!("there is no task `{prefix}`"))
        .with_code(ErrorCode::NOT_FOUND)
}

fn in_range(delay: f64) -> Result<f64, Failure> {
    if (0.0..=3.2e8).contains(&delay) {
        return Ok(delay);
    }
    Err(Failure::new(
        Exit::Refused,
        format!("--delay {delay} is not between 0 and 320000000 seconds; leave it out for now"),
    )
    .with_code(ErrorCode::BAD_SUBMIT))
}

async fn submit_one(
    arguments: SubmitArguments,
    database: &DatabaseArguments,
    output: Output,
) -> Result<Exit, Failure> {
    let mut labels = BTreeMap::new();
    for label in &arguments.label {
        let (name, value) = label.split_once('=').ok_or_else(|| {
            Failure::new(
                Exit::Refused,
                format!("--label {label} has no `=`; write NAME=VALUE"),
            )
            .with_code(ErrorCode::BAD_SUBMIT)
        })?;
        labels.insert(name.to_owned(), value.to_owned());
    }
    let run_at = match arguments.delay {
        // The database's clock decides what is due; a delay is only as good as this machine's clock.
        Some(delay) => Some(Timestamp::now() + Duration::from_secs_f64(in_range(delay)?)),
        None => arguments.run_at,
    };
    let task = NewTask {
        queue: arguments.queue,
        tenant: arguments.tenant,
        protocol: arguments.protocol,
        key: arguments.key,
        run_at,
        priority: arguments.priority,
        deadline_at: arguments.deadline,
        labels: (!labels.is_empty()).then(|| json!(labels)),
        policy: RetryPolicy {
            max_failures: arguments.max_failures,
            ..RetryPolicy::default()
        },
        ..NewTask::new(arguments.kind, input(&arguments.input)?)
    };
    let store = database.connect().await?;
    let submitted = store.submit(task).await?;
    if !arguments.wait {
        let word = if submitted.is_new {
            "submitted"
        } else {
            "known"
        };
        output.one(
            &[(word, submitted.task.to_string())],
            &json!({ "id": submitted.task, "new": submitted.is_new }),
        );
        return Ok(Exit::Done);
    }
    match store
        .wait(submitted.task, Duration::from_secs_f64(arguments.timeout))
        .await?
    {
        None => Err(Failure::new(
            Exit::TimedOut,
            format!(
                "task {} has not ended within {} s; it goes on; see `aegis task watch`",
                submitted.task, arguments.timeout
            ),
        )),
        Some(task) => Ok(ended(&task, output)),
    }
}

fn ended(task: &TaskDetail, output: Output) -> Exit {
    let state = State::from_number(task.state);
    let result = task.result.as_deref().map(payload);
    output.one(
        &[
            ("task", task.id.to_string()),
            ("state", state.to_string()),
            (
                "result",
                result.as_ref().map(Value::to_string).unwrap_or_default(),
            ),
            (
                "error",
                task.error
                    .as_ref()
                    .map(Value::to_string)
                    .unwrap_or_default(),
            ),
        ],
        &json!({ "id": task.id, "state": state.word(), "result": result, "error": task.error }),
    );
    if state == State::Succeeded {
        Exit::Done
    } else {
        Exit::TaskFailed
    }
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

fn row(t: &TaskSummary) -> Vec<String> {
    vec![
        t.id.to_string(),
        State::from_number(t.state).to_string(),
        format!("{}/{}", t.queue, t.kind),
        protocols(t.lo, t.hi),
        t.tenant.clone(),
        t.epoch.to_string(),
        t.failures.to_string(),
        t.interruptions.to_string(),
        t.crashes.to_string(),
        t.snoozes.to_string(),
        at(t.submitted_at),
    ]
}

fn summary(t: &TaskSummary) -> Value {
    json!({
        "id": t.id, "state": State::from_number(t.state).word(), "queue": t.queue, "kind": t.kind, "protocol_lo": t.lo, "protocol_hi": t.hi,
        "tenant": t.tenant, "epoch": t.epoch, "failures": t.failures, "interruptions": t.interruptions, "crashes": t.crashes,
        "snoozes": t.snoozes, "owner": t.owner, "run_at": t.run_at.map(|x| x.to_string()), "submitted_at": t.submitted_at.to_string(),
        "finished_at": t.finished_at.map(|x| x.to_string()), "error": t.error,
    })
}

fn protocols(lo: i32, hi: i32) -> String {
    if lo == hi {
        lo.to_string()
    } else {
        format!("{lo}..{hi}")
    }
}

async fn show(store: &Store, prefix: &str, output: Output) -> Result<(), Failure> {
    let id = find::task(store, prefix).await?;
    let task = store.task(id).await?.ok_or_else(|| missing(prefix))?;
    let events = store.events(id).await?;
    let errors = store.attempt_errors(id).await?;
    let operations = store
        .operations(&[0, 1, 2, 3, 4, 5], Some(id), 1000)
        .await?;
    let state = State::from_number(task.state);
    let input = task.input.as_deref().map(payload);
    let result = task.result.as_deref().map(payload);
    let operation_json: Vec<Value> = operations
        .iter()
        .map(|o| {
            let state = aegis_model::OperationState::from_number(o.state).map_or("other", aegis_model::OperationState::word);
            json!({ "id": o.id, "name": o.name, "key": o.key, "state": state, "dispatches": o.dispatches, "epoch": o.epoch,
                    "dispatched_at": o.dispatched_at.map(|x| x.to_string()), "evidence": o.evidence, "note": o.note })
        })
        .collect();
    let document = json!({
        "id": task.id, "state": state.word(), "queue": task.queue, "kind": task.kind, "tenant": task.tenant,
        "protocol": task.protocol, "protocol_lo": task.lo, "protocol_hi": task.hi, "priority": task.priority,
        "epoch": task.epoch, "rev": task.rev, "owner": task.owner, "failures": task.failures, "interruptions": task.interruptions,
        "crashes": task.crashes, "snoozes": task.snoozes, "open_operations": task.open_ops,
        "pending": task.pending.map(|p| State::from_number(p).word()), "submitted_at": task.submitted_at.to_string(),
        "run_at": task.run_at.map(|x| x.to_string()), "claimed_at": task.claimed_at.map(|x| x.to_string()),
        "finished_at": task.finished_at.map(|x| x.to_string()), "checkpoint_protocol": task.checkpoint_protocol, "checkpoint_seq": task.checkpoint_seq,
        "labels": task.labels, "submitter": task.submitter, "input": input, "result": result, "error": task.error,
        "events": events.iter().map(|e| json!({ "at": e.at.to_string(), "epoch": e.epoch, "cause": e.cause, "owner": e.owner, "actor": e.actor, "detail": e.detail })).collect::<Vec<_>>(),
        "errors": errors.iter().map(|e| json!({ "epoch": e.epoch, "at": e.at.to_string(), "code": e.code, "message": e.message, "retryable": e.retryable })).collect::<Vec<_>>(),
        "operations": operation_json,
    });
    let text = |value: &Option<Value>| value.as_ref().map(Value::to_string).unwrap_or_default();
    output.one(
        &[
            ("id", task.id.to_string()),
            ("state", state.to_string()),
            ("queue/kind", format!("{}/{}", task.queue, task.kind)),
            ("tenant", task.tenant.clone()),
            ("protocols stored", protocols(task.lo, task.hi)),
            ("epoch, rev", format!("{}, {}", task.epoch, task.rev)),
            (
                "owner",
                task.owner.map(|x| x.to_string()).unwrap_or_default(),
            ),
            (
                "counters",
                format!(
                    "failures {}, interruptions {}, crashes {}, snoozes {}",
                    task.failures, task.interruptions, task.crashes, task.snoozes
                ),
            ),
            ("open operations", task.open_ops.to_string()),
            ("submitted", at(task.submitted_at)),
            ("run at", maybe_at(task.run_at)),
            ("claimed", maybe_at(task.claimed_at)),
            ("finished", maybe_at(task.finished_at)),
            (
                "checkpoint",
                task.checkpoint_seq
                    .map(|seq| {
                        format!(
                            "number {seq}, protocol {}",
                            task.checkpoint_protocol.unwrap_or_default()
                        )
                    })
                    .unwrap_or_default(),
            ),
            ("input", text(&input)),
            ("result", text(&result)),
            ("error", text(&task.error)),
        ],
        &document,
    );
    if output == Output::Table {
        for event in &events {
            let actor = event
                .actor
                .as_deref()
                .map(|actor| format!(" by {actor}"))
                .unwrap_or_default();
            line(&format!(
                "{}  epoch {}  {}{actor}  {}",
                at(event.at),
                event.epoch,
                event.cause,
                text(&event.detail)
            ));
        }
        for error in &errors {
            line(&format!(
                "{}  epoch {}  error {}: {}",
                at(error.at),
                error.epoch,
                error.code,
                error.message
            ));
        }
        for operation in &operation_json {
            line(&format!("operation {operation}"));
        }
    }
    Ok(())
}

async fn watch(store: &Store, prefix: &str, timeout: f64, output: Output) -> Result<Exit, Failure> {
    let id = find::task(store, prefix).await?;
    let mut seen = None;
    let watching = async {
        loop {
            let task = store.task(id).await?.ok_or_else(|| missing(prefix))?;
            let state = State::from_number(task.state);
            if seen != Some((state, task.epoch)) {
                seen = Some((state, task.epoch));
                if output == Output::Table {
                    line(&format!(
                        "{}  {state} at epoch {}",
                        at(Timestamp::now()),
                        task.epoch
                    ));
                }
            }
            if state.is_terminal() {
                return Ok(ended(&task, output));
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    };
    match tokio::time::timeout(Duration::from_secs_f64(timeout), watching).await {
        Ok(exit) => exit,
        Err(_) => Err(Failure::new(
            Exit::TimedOut,
            format!("task {id} has not ended within {timeout} s; it goes on"),
        )),
    }
}
