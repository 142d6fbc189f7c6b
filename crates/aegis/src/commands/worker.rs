//! `aegis worker`: runs one; lists and drains them.
//!
//! A worker ends with a code of its own: 0 drained; 2 its arguments make no sense, the budgets and the grace period among
//! them; 5 the database; 10 executions were handed back; 11 executions were left to their lease; 12 no slot was left that
//! stops when asked; 13 an execution outlived its lease.

mod kinds;

use std::time::Duration;

use aegis_model::{ErrorCode, WorkerState};
use aegis_store::Store;
use aegis_store::view::WorkerSummary;
use aegis_worker::{Budgets, HttpPolicy, Worker, WorkerBuilder, WorkerError};
use clap::{Args, Subcommand};
use serde_json::{Value, json};

use crate::database::DatabaseArguments;
use crate::exit::Exit;
use crate::failure::{Failure, chain};
use crate::output::{Output, at, note};

use kinds::KindArguments;

const EXIT_CODES: &str = "Exit codes of a worker: 0 drained; 2 its arguments make no sense, or its budgets do not fit into the \
    grace period; 5 the database; 10 executions were handed back, uncharged; 11 executions were left to their lease; 12 no \
    slot was left that stops when asked; 13 an execution outlived its lease. A second SIGTERM goes straight to the cancel phase.";

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, after_help = EXIT_CODES)]
pub(crate) struct WorkerArguments {
    #[command(subcommand)]
    verb: Option<Verb>,
    #[command(flatten)]
    run: RunArguments,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Lists workers, the newest first.
    List {
        /// The stopped and the lost ones too.
        #[arg(long)]
        all: bool,
        /// At most so many.
        #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(i64).range(1..=100_000))]
        limit: i64,
    },
    /// Asks a worker to drain: no more claims from now on; it ends when what it executes has ended.
    Drain {
        /// Its id, the beginning of it, or its name.
        worker: String,
    },
}

#[derive(Debug, Args)]
struct RunArguments {
    #[command(flatten)]
    kinds: KindArguments,
    /// The queues it works for; repeatable.
    #[arg(long, default_value = "default")]
    queue: Vec<String>,
    /// Executions at once.
    #[arg(long, default_value_t = 10)]
    slots: usize,
    /// What people call it.
    #[arg(long, default_value = "worker")]
    name: String,
    /// The release that it belongs to.
    #[arg(long, env = "AEGIS_RELEASE", default_value = "none")]
    release: String,
    /// The identity of its build.
    #[arg(long, env = "AEGIS_BUILD", default_value = "none")]
    build: String,
    /// Its lease: after a crash its tasks are taken over when it has run out.
    #[arg(long, default_value_t = aegis_model::limits::LEASE_TTL_MS)]
    lease_ttl_ms: u64,
    /// The time between SIGTERM and SIGKILL; the four budgets below have to fit into it.
    #[arg(long, env = "AEGIS_GRACE_PERIOD_S", value_parser = seconds)]
    grace_period_s: Option<Duration>,
    /// After SIGTERM: for closing the gate.
    #[arg(long, default_value = "10", value_parser = seconds)]
    stop_acquiring_s: Duration,
    /// Then: for what runs, until it is asked to stop.
    #[arg(long, default_value = "420", value_parser = seconds)]
    drain_s: Duration,
    /// Then: for stopping and saving.
    #[arg(long, default_value = "30", value_parser = seconds)]
    cancel_s: Duration,
    /// Then: for reporting and ending.
    #[arg(long, default_value = "140", value_parser = seconds)]
    exit_margin_s: Duration,
    /// Operations may call loopback and private networks too, not public addresses only.
    #[arg(long)]
    allow_private_addresses: bool,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let value: f64 = text
        .parse()
        .map_err(|error: std::num::ParseFloatError| error.to_string())?;
    if (0.0..=86_400.0).contains(&value) {
        Ok(Duration::from_secs_f64(value))
    } else {
        Err(format!("{value} is not between 0 and 86400 seconds"))
    }
}

/// Runs a worker, or looks after those that run.
pub(crate) async fn run(
    arguments: WorkerArguments,
    database: &DatabaseArguments,
    output: Output,
) -> Result<Exit, Failure> {
    match arguments.verb {
        None => work(arguments.run, database).await,
        Some(Verb::List { all, limit }) => {
            let found = database.connect().await?.workers(all, limit).await?;
            let columns = [
                "id",
                "name",
                "state",
                "release",
                "host/pid",
                "running",
                "lease until",
                "capabilities",
            ];
            output.list(
                &columns,
                found.iter().map(row).collect(),
                found.iter().map(summary).collect(),
            );
            Ok(Exit::Done)
        }
        Some(Verb::Drain { worker }) => drain(&database.connect().await?, &worker, output).await,
    }
}

async fn work(arguments: RunArguments, database: &DatabaseArguments) -> Result<Exit, Failure> {
    let budgets = Budgets {
        stop_acquiring: arguments.stop_acquiring_s,
        drain: arguments.drain_s,
        cancel_and_save: arguments.cancel_s,
        exit_margin: arguments.exit_margin_s,
    };
    if let Some(grace) = arguments
        .grace_period_s
        .filter(|grace| budgets.total() > *grace)
    {
        // Before anything is connected to: what is written wrong needs no database to be seen.
        return Err(
            Failure::new(Exit::Usage, too_long(&budgets, grace)).with_code(ErrorCode::BUDGETS)
        );
    }
    let config = database
        .config()?
        .with_pool_size(arguments.slots.clamp(4, 16));
    let store =
        Store::connect(config.with_application_name(&format!("aegis worker {}", arguments.name)))
            .await?;
    let policy = HttpPolicy::public_only();
    let policy = if arguments.allow_private_addresses {
        policy.allow_loopback().allow_private()
    } else {
        policy
    };
    let builder = Worker::builder(store)
        .name(&arguments.name)
        .slots(arguments.slots)
        .release(&arguments.release)
        .build_id(&arguments.build)
        .lease_ttl(Duration::from_millis(arguments.lease_ttl_ms))
        .budgets(budgets)
        .grace_period(arguments.grace_period_s)
        .http_policy(policy);
    let (builder, names): (WorkerBuilder, Vec<String>) = arguments
        .kinds
        .add_to(builder, &arguments.queue, arguments.allow_private_addresses)
        .await?;
    let worker = builder.build()?;
    let handle = worker.handle();
    note(&format!(
        "worker {} (process {}) executes {} of queue {}, {} at once, with a lease of {} ms; SIGTERM drains it within {} s",
        arguments.name,
        std::process::id(),
        names.join(", "),
        arguments.queue.join(", "),
        arguments.slots,
        arguments.lease_ttl_ms,
        budgets.total().as_secs_f64()
    ));
    let exit = worker.run_until_signal().await?;
    let counts = handle.snapshot().counts;
    note(&format!(
        "worker {} ended: {exit}. Claimed {}, completed {}, failed {}, postponed {}, handed back {}; {} of its writes were refused",
        arguments.name,
        counts.claimed,
        counts.completed,
        counts.failed,
        counts.released,
        counts.handed_back,
        counts.fenced
    ));
    Ok(Exit::Worker(exit.code()))
}

fn too_long(budgets: &Budgets, grace: Duration) -> String {
    format!(
        "--stop-acquiring-s {} + --drain-s {} + --cancel-s {} + --exit-margin-s {} = {} s do not fit into --grace-period-s {}: \
         the platform would kill the worker in the middle of its drain; shorten a budget, or give it more time",
        budgets.stop_acquiring.as_secs_f64(),
        budgets.drain.as_secs_f64(),
        budgets.cancel_and_save.as_secs_f64(),
        budgets.exit_margin.as_secs_f64(),
        budgets.total().as_secs_f64(),
        grace.as_secs_f64()
    )
}

impl From<WorkerError> for Failure {
    fn from(error: WorkerError) -> Self {
        let exit = if matches!(error, WorkerError::Register { .. }) {
            Exit::Database
        } else {
            Exit::Usage
        };
        let failure = Self::new(exit, chain(&error));
        match error.code() {
            Some(code) => failure.with_code(code),
            None => failure,
        }
    }
}

async fn drain(store: &Store, wanted: &str, output: Output) -> Result<Exit, Failure> {
    let alive = store.workers(false, 100_000).await?;
    let by_name: Vec<&WorkerSummary> = alive
        .iter()
        .filter(|worker| worker.name == wanted)
        .collect();
    let by_id: Vec<&WorkerSummary> = alive
        .iter()
        .filter(|worker| worker.id.to_string().starts_with(wanted))
        .collect();
    let found = if by_name.is_empty() && wanted.len() >= 4 {
        by_id
    } else {
        by_name
    };
    let worker = match found.as_slice() {
        [one] => one,
        [] => {
            return Err(Failure::new(Exit::NotFound, format!("no worker is alive whose name is `{wanted}` or whose id starts so; see `aegis worker list`"))
                .with_code(ErrorCode::NOT_FOUND));
        }
        several => {
            let ids: Vec<String> = several.iter().map(|worker| worker.id.to_string()).collect();
            return Err(Failure::new(
                Exit::Refused,
                format!(
                    "`{wanted}` stands for {} workers; give one of the ids {}",
                    ids.len(),
                    ids.join(", ")
                ),
            ));
        }
    };
    let closed = store.drain(worker.id).await?;
    let word = if closed { "drains" } else { "drained before" };
    output.one(
        &[(word, format!("{} {}", worker.id, worker.name))],
        &json!({ "id": worker.id, "name": worker.name, "drain": word }),
    );
    Ok(Exit::Done)
}

fn row(w: &WorkerSummary) -> Vec<String> {
    vec![
        w.id.to_string(),
        w.name.clone(),
        state(w).to_owned(),
        w.release.clone(),
        format!("{}/{}", w.host, w.pid),
        w.running.to_string(),
        at(w.lease_until),
        w.capabilities.join(", "),
    ]
}

/// What its row says, and whether its lease bears it out.
fn state(w: &WorkerSummary) -> &'static str {
    match WorkerState::from_number(w.state) {
        WorkerState::Accepting if w.alive => "accepting",
        WorkerState::Draining if w.alive => "draining",
        WorkerState::Accepting | WorkerState::Draining => "silent",
        WorkerState::Stopped => "stopped",
        WorkerState::Lost => "lost",
    }
}

fn summary(w: &WorkerSummary) -> Value {
    json!({
        "id": w.id, "name": w.name, "state": state(w), "alive": w.alive, "release": w.release, "build": w.build, "host": w.host,
        "pid": w.pid, "slots": w.slots, "running": w.running, "executing": w.executing, "registered_at": w.registered_at.to_string(),
        "ended_at": w.ended_at.map(|t| t.to_string()), "lease_until": w.lease_until.to_string(), "beat_at": w.beat_at.to_string(),
        "predecessor": w.predecessor, "capabilities": w.capabilities,
    })
}
