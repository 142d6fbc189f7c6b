//! `aegis worker`: runs one, until a signal or a drain.

use std::net::SocketAddr;
use std::time::Duration;

use aegis_model::{ErrorCode, limits};
use aegis_store::Store;
use aegis_worker::{Budgets, HttpPolicy, Tuning, Worker, WorkerBuilder, WorkerError};
use clap::Args;

use super::kinds::KindArguments;
use super::{floor, programs};
use crate::database::DatabaseArguments;
use crate::exit::Exit;
use crate::failure::{Failure, chain};
use crate::output::note;
use crate::traced;

const KILL_AFTER_MS: u64 = limits::KILL_AFTER_MS.unsigned_abs();

const DRAIN: &str = "Draining";
const GATHER: &str = "How much is gathered";
const NAMES: &str = "What it is called";
const LEASE: &str = "Lease and ends";

#[derive(Debug, Args)]
pub(super) struct RunArguments {
    #[command(flatten)]
    kinds: KindArguments,
    #[command(flatten)]
    schema: floor::FloorArguments,
    /// The queues it works for; repeatable.
    #[arg(long, default_value = "default")]
    queue: Vec<String>,
    /// Executions at once.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    slots: u16,
    /// What people call it.
    #[arg(help_heading = NAMES, long, default_value = "worker")]
    name: String,
    /// The release that it belongs to.
    #[arg(help_heading = NAMES, long, env = "AEGIS_RELEASE", default_value = "none")]
    release: String,
    /// The identity of its build.
    #[arg(help_heading = NAMES, long, env = "AEGIS_BUILD", default_value = "none")]
    build: String,
    /// Its lease: after a crash its tasks are taken over when it has run out.
    #[arg(help_heading = LEASE, long, default_value_t = limits::LEASE_TTL_MS, value_parser = clap::value_parser!(u64).range(100..=3_600_000))]
    lease_ttl_ms: u64,
    /// How old a claim has to be before it counts as lost when this worker does not name it; default: half of the lease.
    #[arg(help_heading = LEASE, long, value_parser = clap::value_parser!(u64).range(1..=3_600_000))]
    start_ttl_ms: Option<u64>,
    /// How long an execution may go on after it was asked to stop, before the worker gives up on it.
    #[arg(help_heading = LEASE, long, default_value_t = KILL_AFTER_MS, value_parser = clap::value_parser!(u64).range(0..=86_400_000))]
    kill_after_ms: u64,
    /// The time between SIGTERM and SIGKILL; the four budgets below have to fit into it.
    #[arg(help_heading = DRAIN, long, env = "AEGIS_GRACE_PERIOD_S", value_parser = seconds)]
    grace_period_s: Option<Duration>,
    /// After SIGTERM: for closing the gate.
    #[arg(help_heading = DRAIN, long, default_value = "10", value_parser = seconds)]
    stop_acquiring_s: Duration,
    /// Then: for what runs, until it is asked to stop.
    #[arg(help_heading = DRAIN, long, default_value = "420", value_parser = seconds)]
    drain_s: Duration,
    /// Then: for stopping and saving.
    #[arg(help_heading = DRAIN, long, default_value = "30", value_parser = seconds)]
    cancel_s: Duration,
    /// Then: for reporting and ending.
    #[arg(help_heading = DRAIN, long, default_value = "140", value_parser = seconds)]
    exit_margin_s: Duration,
    /// How long a finished execution waits for others to be written with.
    #[arg(help_heading = GATHER, long, default_value_t = limits::COMPLETION_GROUP_MS, value_parser = clap::value_parser!(u64).range(0..=1000))]
    completion_group_ms: u64,
    /// The most finished executions that are written together.
    #[arg(help_heading = GATHER, long, default_value_t = 200, value_parser = clap::value_parser!(u16).range(1..=500))]
    completion_group_rows: u16,
    /// So much work is claimed ahead where tasks are very short; 0: none.
    #[arg(help_heading = GATHER, long, default_value_t = limits::LOCAL_QUEUE_WORK_MS, value_parser = clap::value_parser!(u64).range(0..=10_000))]
    local_queue_ms: u64,
    /// The most tasks that are claimed at once.
    #[arg(help_heading = GATHER, long, default_value_t = 500, value_parser = clap::value_parser!(u16).range(1..=500))]
    claim_max: u16,
    /// How long handlers may block every thread before the worker gives its lease up and ends with code 14.
    #[arg(help_heading = LEASE, long, default_value = "60", value_parser = seconds)]
    stuck_after_s: Duration,
    /// Where health (/livez, /readyz) and metrics (/metrics) are shown, without a password: ADDRESS:PORT, port 0 for a free
    /// one; `none`: nowhere.
    #[arg(long, default_value = "127.0.0.1:0", value_parser = listen, value_name = "ADDRESS")]
    listen: Listen,
    /// Which installation this is, such as production: a label of its metrics.
    #[arg(help_heading = NAMES, long, env = "AEGIS_ENVIRONMENT", default_value = "none")]
    environment: String,
    /// Operations may call loopback and private networks too, not public addresses only.
    #[arg(long)]
    allow_private_addresses: bool,
}

impl RunArguments {
    fn tuning(&self) -> Tuning {
        let mut tuning = Tuning::default();
        tuning.completion_group = Duration::from_millis(self.completion_group_ms);
        tuning.completion_group_max = self.completion_group_rows.into();
        tuning.local_queue = Duration::from_millis(self.local_queue_ms);
        tuning.claim_max = self.claim_max.into();
        tuning
    }
}

/// An address, or none.
#[derive(Debug, Clone, Copy)]
struct Listen(Option<SocketAddr>);

fn listen(text: &str) -> Result<Listen, String> {
    if text == "none" {
        return Ok(Listen(None));
    }
    text.parse()
        .map(|address| Listen(Some(address)))
        .map_err(|_| {
            "is no ADDRESS:PORT such as 127.0.0.1:9464 or [::1]:0, and not `none`".to_owned()
        })
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

/// Runs a worker to its end.
pub(super) async fn work(
    arguments: RunArguments,
    database: &DatabaseArguments,
) -> Result<Exit, Failure> {
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
    let stop_within = budgets
        .cancel_and_save
        .min(Duration::from_millis(arguments.kill_after_ms));
    let programs = arguments.kinds.programs.checked(stop_within).await?;
    let floor = floor::admitted(&arguments.schema, database).await?;
    let config = database
        .config()?
        .with_pool_size(usize::from(arguments.slots).clamp(4, 16));
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
        .slots(arguments.slots.into())
        .release(&arguments.release)
        .build_id(&arguments.build)
        .lease_ttl(Duration::from_millis(arguments.lease_ttl_ms))
        .kill_after(Duration::from_millis(arguments.kill_after_ms))
        .tuning(arguments.tuning())
        .stuck_after(arguments.stuck_after_s)
        .listen(arguments.listen.0)
        .environment(&arguments.environment)
        .tracer(traced::tracer(vec![
            ("deployment.environment.name", arguments.environment.clone()),
            ("service.version", arguments.build.clone()),
            ("aegis.release", arguments.release.clone()),
            ("aegis.worker.name", arguments.name.clone()),
        ])?)
        .budgets(budgets)
        .grace_period(arguments.grace_period_s)
        .http_policy(policy);
    let builder = match arguments.start_ttl_ms {
        Some(ms) => builder.start_ttl(Duration::from_millis(ms)),
        None => builder,
    };
    let (builder, mut names): (WorkerBuilder, Vec<String>) = arguments
        .kinds
        .add_to(
            builder,
            &arguments.queue,
            &arguments.release,
            arguments.allow_private_addresses,
        )
        .await?;
    let (builder, of_programs) = programs::add_to(builder, &arguments.queue, &programs);
    names.extend(of_programs);
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
    if let Some(address) = handle.listening() {
        note(&format!(
            "worker {} shows its health and metrics at http://{address}/ (livez, readyz, metrics)",
            arguments.name
        ));
    }
    let (exit, too_old) = floor::beside(floor, &handle, Box::pin(worker.run_until_signal())).await;
    let exit = exit?;
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
    Ok(Exit::Worker(floor::code(exit.code(), too_old.is_some())))
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
