//! `aegis.backfill`: the rows of a change moved as a task of the engine, so that its leases, drains and queues are a backfill's too.
//!
//! Input `{"change": "20261129T1030_split_name"}`; result `{"rows_seen": …, "rows_changed": …}`. The changes and the database are the
//! worker's, never the task's: who may submit a task may not choose where it writes.
//!
//! Invariants: the job's own epoch fences it in the target, so a worker that lost its lease writes nothing after its successor has
//! begun; what is dropped in the middle is a batch that is not committed.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use aegis_backfill::job::{AtPause, JobError, Who};
use aegis_migrate::change::{Change, ChangeId, Phase, PhaseOf};
use aegis_migrate::run::{RunError, data};
use aegis_migrate::session::Direct;
use aegis_migrate::set::Set;
use aegis_migrate::standing::State;
use aegis_store::Config;
use aegis_worker::{HandlerOptions, TaskContext, TaskError, WorkerBuilder, handler_fn};
use clap::Args;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::commands::migrate::on_target;
use crate::exit::Exit;
use crate::failure::{Failure, chain};

/// The kind.
pub(super) const BACKFILL: &str = "aegis.backfill";

/// How long another runner of the same job is waited for; then the task is postponed.
const WAIT: Duration = Duration::from_secs(5);
/// How long it is postponed then, and while something that must come before is missing.
const LATER: Duration = Duration::from_secs(30);
/// How long while a person has paused the job: its slot is somebody else's meanwhile.
const PAUSED: Duration = Duration::from_secs(15);

#[derive(Debug, Clone, Args)]
pub(super) struct MoveArguments {
    /// For aegis.backfill: the folder of the changes, with migrations.lock.
    #[arg(long, env = "AEGIS_MIGRATE_DIR", value_name = "FOLDER")]
    migrate_dir: Option<PathBuf>,
    /// For aegis.backfill: the database whose rows are moved, around a transaction pooler.
    #[arg(
        long,
        env = "AEGIS_MIGRATE_DATABASE_URL",
        hide_env_values = true,
        value_name = "URL"
    )]
    migrate_database_url: Option<String>,
}

/// Where rows are moved.
#[derive(Debug)]
struct Target {
    dir: PathBuf,
    config: Config,
    /// The worker's, for the job's row.
    release: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Input {
    change: String,
}

impl MoveArguments {
    /// Adds the kind for each queue.
    pub(super) fn add_to(
        &self,
        builder: WorkerBuilder,
        options: HandlerOptions,
        release: &str,
    ) -> Result<WorkerBuilder, Failure> {
        let (Some(dir), Some(url)) = (&self.migrate_dir, &self.migrate_database_url) else {
            return Err(Failure::new(
                Exit::Usage,
                format!("{BACKFILL} needs --migrate-dir and --migrate-database-url"),
            ));
        };
        let config =
            on_target::config(url).map_err(|error| Failure::new(Exit::Usage, chain(&error)))?;
        let target = Arc::new(Target {
            dir: dir.clone(),
            config,
            release: release.to_owned(),
        });
        let handler = handler_fn(BACKFILL, move |ctx, input| {
            backfill(ctx, input, Arc::clone(&target))
        });
        Ok(builder.handler_with(handler, options))
    }
}

async fn backfill(ctx: TaskContext, input: Input, target: Arc<Target>) -> Result<Value, TaskError> {
    let id: ChangeId = input
        .change
        .parse()
        .map_err(|why| TaskError::terminal("input_invalid", format!("`change`: {why}")))?;
    let dir = target.dir.clone();
    let set = tokio::task::spawn_blocking(move || Set::read(&dir))
        .await
        .map_err(|error| TaskError::retryable("folder_unread", error.to_string()))?
        .map_err(|problems| TaskError::retryable("folder_invalid", problems.to_string()))?;
    let change = sealed(&set, &id)?;
    let who = Who {
        run: ctx.task_id().simple().to_string()[20..].to_owned(),
        by: format!("task {}", ctx.task_id()),
        release: target.release.clone(),
    };
    let name = format!("aegis backfill/{}", who.run);
    let session = on_target::session(&target.config, &name)
        .await
        .map_err(|error| TaskError::retryable("no_connection", chain(&error)))?;
    expanded(&set, change, &session).await?;
    let mut told = |_: &Value| ctx.progress();
    let patience = data::Patience {
        wait: WAIT,
        at_pause: AtPause::Ends,
    };
    let work = data::backfill(&session, change, &who, patience, &mut told);
    match ctx.unless_cancelled(work).await? {
        Ok(report) => Ok(json!({
            "change": input.change,
            "rows_seen": report.rows_seen,
            "rows_changed": report.rows_changed,
        })),
        Err(error) => Err(ended(&error)),
    }
}

/// The change, when it has a backfill that was sealed and not edited.
fn sealed<'a>(set: &'a Set, id: &ChangeId) -> Result<&'a Change, TaskError> {
    set.sealed()
        .map_err(|problems| TaskError::terminal("not_sealed", problems.to_string()))?;
    let change = set.changes.get(id).ok_or_else(|| {
        TaskError::terminal(
            "no_such_change",
            format!("there is no change {id} in {}", set.root()),
        )
    })?;
    let at = PhaseOf {
        id: id.clone(),
        phase: Phase::Migrate,
    };
    if change.backfill.is_none() || set.lock.line(&at).is_none() {
        return Err(TaskError::terminal(
            "no_backfill",
            format!("{id} has no [backfill] that is sealed"),
        ));
    }
    Ok(change)
}

/// Postpones the task until what the backfill stands on is applied.
async fn expanded(set: &Set, change: &Change, session: &Direct) -> Result<(), TaskError> {
    let at = PhaseOf {
        id: change.id.clone(),
        phase: Phase::Expand,
    };
    if set.lock.line(&at).is_none() {
        return Ok(());
    }
    let stands = data::applied(&session.client, set)
        .await
        .map_err(|error| ended(&error))?;
    if stands.of(&at).is_some_and(State::is_done) {
        return Ok(());
    }
    tracing::info!(change = %change.id, "its expand phase is not applied yet; the backfill is postponed");
    Err(TaskError::snooze(LATER))
}

/// What a job's end means for the task.
fn ended(error: &RunError) -> TaskError {
    let said = chain(error);
    let job = match error {
        RunError::Backfill(job) => job,
        RunError::Edited(_) => return TaskError::terminal("edited", said),
        RunError::Evidence(_) => return TaskError::terminal("new_side_is_written", said),
        _ => return TaskError::retryable("not_run", said),
    };
    match job {
        // A switch that was moved there and back by now; as it is, it would be evidence.
        JobError::Busy { .. } | JobError::Fenced { .. } | JobError::NewSide { .. } => {
            TaskError::snooze(LATER)
        }
        JobError::Paused { .. } => TaskError::snooze(PAUSED),
        JobError::Precondition(_) => TaskError::terminal("precondition", said),
        JobError::OtherSpec { .. } => TaskError::terminal("other_backfill", said),
        JobError::Cancelled { .. } => TaskError::terminal("backfill_cancelled", said),
        JobError::Failed { .. } => TaskError::terminal("backfill_failed", said),
        // No connection, a lost one, and whatever a later release calls by a name of its own.
        _ => TaskError::retryable("connection_lost", said),
    }
}
