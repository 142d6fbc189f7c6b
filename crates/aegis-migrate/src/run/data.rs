//! Rows: the backfill and the reconciliation of a change, as `aegis-backfill` understands them.
//!
//! Invariants: the mutex is not held while rows are moved or counted, so an expand of another change can run; the job and the pass have
//! sessions of their own; after them the mutex is taken again, with a new epoch.

use std::path::Path;
use std::time::Duration;

use aegis_backfill::job::control;
use aegis_backfill::job::{
    self, AtPause, BatchSize, Connecting, JobError, Ports, Report, Spec, Who, Write,
};
use aegis_backfill::pass::{self, Asked, Count, What};
use aegis_backfill::throttle::Limits;
use aegis_catalog::Name;
use serde_json::{Value, json};
use tokio_postgres::Client;

use super::{RunError, baseline, tell};
use crate::change::{CHANGE_FILE, Change, OnUnknown, Part, Throttle};
use crate::ledger;
use crate::mutex::Held;
use crate::session::{Direct, SessionError};
use crate::set::Set;
use crate::standing::{Standing, recorded, standing};
use crate::switch::{self, Side, SwitchError};

/// Hears of progress.
type Told<'a> = &'a mut (dyn FnMut(&Value) + Send);

/// What is done with rows.
#[derive(Debug, Clone, Copy)]
pub(super) enum Rows {
    /// They are moved.
    Backfill,
    /// They are counted.
    Reconcile,
}

impl Rows {
    /// What a part does with rows; none: it is statements.
    pub(super) fn of(part: Part<'_>) -> Option<Self> {
        match part {
            Part::Backfill(_) => Some(Self::Backfill),
            Part::Reconcile(_) => Some(Self::Reconcile),
            Part::Sql { .. } | Part::Sync(_) | Part::EndSync(_) => None,
        }
    }
}

/// Names the file of what the database has refused of `[backfill]`.
fn placed(change: &Change, error: RunError) -> RunError {
    match error {
        RunError::Backfill(JobError::Precondition(said)) => RunError::Backfill(
            JobError::Precondition(format!("{}/change.toml: [backfill]: {said}", change.path)),
        ),
        other => other,
    }
}

/// Moves or counts, without the mutex meanwhile.
pub(super) async fn run(
    held: &mut Held,
    change: &Change,
    rows: Rows,
    told: Told<'_>,
) -> Result<(), RunError> {
    let who = of_run(&held.who);
    held.step_aside().await?;
    let mut wrong = None;
    let done = match rows {
        Rows::Backfill => backfill(&held.session, change, &who, Patience::of_a_command(held.wait), told)
            .await
            .map(|report| json!({ "event": "backfill_done", "change": change.id.to_string(), "report": report })),
        Rows::Reconcile => counted(&held.session, change, &who, told)
            .await
            .map(|counts| {
                wrong = is_wrong(&counts).then(|| words(&counts));
                json!({ "event": "reconciled", "change": change.id.to_string(), "counts": counts })
            }),
    };
    // Also after an error: who ends the run gives back what it holds, and writes the last event under its epoch.
    let back = held.step_back().await;
    let event = done.map_err(|error| placed(change, error))?;
    back?;
    let way_out = match wrong {
        Some(_) => way_out(&held.session.client, change).await?,
        None => String::new(),
    };
    tell(&mut held.session.client, &held.who, told, event).await?;
    match wrong {
        None => Ok(()),
        Some(counted) => Err(RunError::NotZero {
            change: change.id.to_string(),
            counted,
            way_out,
        }),
    }
}

/// What a runner of a backfill waits for.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// How long for another runner of the same job.
    pub wait: Duration,
    /// Whether for the end of a pause.
    pub at_pause: AtPause,
}

impl Patience {
    /// A person looks at it, and may end it.
    pub const fn of_a_command(wait: Duration) -> Self {
        Self {
            wait,
            at_pause: AtPause::Waits,
        }
    }
}

/// Runs the backfill of a change to its end, in sessions of its own.
///
/// # Errors
/// See [`JobError`]; what was committed stays. [`RunError::Evidence`] when the new side is written, and the job is not done, also when
/// the switch was moved while a batch was under way.
pub async fn backfill(
    session: &Direct,
    change: &Change,
    who: &Who,
    patience: Patience,
    told: Told<'_>,
) -> Result<Report, RunError> {
    let spec = spec(change)?;
    let jobs = control::status(&session.client, Some(&spec.change)).await?;
    // One that is done moves nothing.
    if !jobs.iter().any(|job| job.state == "done") {
        refuse_old_over_new(&session.client, &spec.change).await?;
    }
    let again = session.again();
    let name = name("aegis backfill", who);
    let connect = move || -> Connecting {
        let made = again(name.clone());
        Box::pin(async move {
            let direct = made.await.map_err(|error| whole(&error))?;
            Ok(direct.client)
        })
    };
    let limits = || throttle(change).map(|limits| limits_of(&limits));
    let ports = Ports {
        connect: &connect,
        limits: &limits,
        wait: patience.wait,
        at_pause: patience.at_pause,
    };
    match job::run(ports, &spec, who, told).await {
        Err(error @ JobError::NewSide { .. }) => Err(ended(&session.client, error).await?),
        done => Ok(done?),
    }
}

/// The end of a job whose switch was moved, with what to do; as it was told where the switch was moved back meanwhile.
async fn ended(client: &Client, error: JobError) -> Result<RunError, RunError> {
    let JobError::NewSide { change } = &error else {
        return Ok(error.into());
    };
    Ok(match new_side_counts(client, change).await? {
        Some(why) => RunError::Evidence(format!("{error}: {why}")),
        None => error.into(),
    })
}

/// In a session of its own.
async fn counted(
    session: &Direct,
    change: &Change,
    who: &Who,
    told: Told<'_>,
) -> Result<Vec<Count>, RunError> {
    let direct = session.again()(name("aegis reconcile", who)).await?;
    reconcile(direct, change, who, told).await
}

/// Counts what is not right, in a session that is used up by it, and keeps the result.
///
/// # Errors
/// See [`pass::PassError`].
pub async fn reconcile(
    mut session: Direct,
    change: &Change,
    who: &Who,
    told: Told<'_>,
) -> Result<Vec<Count>, RunError> {
    let asked = asked(change)?;
    Ok(pass::run(&mut session.client, &asked, who, told).await?)
}

/// How a folder stands beside what was applied; its rules are those that the trigger was made of.
///
/// # Errors
/// [`RunError::Edited`] when an applied line has another hash here, but in a database of a developer.
pub async fn applied(client: &Client, set: &Set) -> Result<Standing, RunError> {
    let stands = standing(set, &recorded(client).await.map_err(baseline)?);
    let edited: Vec<String> = stands
        .edited()
        .map(|line| line.line.at.to_string())
        .collect();
    let dev = ledger::find(client).await?.is_some_and(|ledger| ledger.dev);
    if edited.is_empty() || dev {
        Ok(stands)
    } else {
        Err(RunError::Edited(edited.join(", ")))
    }
}

/// What to do with rows whose sides are unlike when the new side may be the newer one; none while programs write and read the old one.
///
/// # Errors
/// The server's.
pub async fn new_side_counts(client: &Client, id: &str) -> Result<Option<String>, RunError> {
    let there = "SELECT to_regclass('aegis_migrate.switch') IS NOT NULL";
    if !client.query_one(there, &[]).await?.try_get::<_, bool>(0)? {
        return Ok(None);
    }
    let stands = switch::standing(client, id)
        .await
        .map_err(|error| match error {
            SwitchError::Database(error) => RunError::Database(error),
            other => RunError::Evidence(other.to_string()),
        })?;
    let waits = stands.last.as_ref().filter(|last| !last.counts);
    if (stands.reads, stands.writes) == (Side::Old, Side::Old) && waits.is_none() {
        return Ok(None);
    }
    let from = waits.map_or_else(String::new, |last| {
        format!(", which counts from {}", last.counts_from)
    });
    let quoted = id.replace('\'', "''");
    Ok(Some(format!(
        "the switch of {id} reads {} and writes {}{from}: a row whose sides are unlike may have been written on its new side, and a backfill would write forward of the old side over it. \
         Look at these rows (`aegis migrate reconcile {id}` names some). Where the new side is right, set the old one from [sync.backward] in a transaction with `SET LOCAL aegis_migrate.silent = '{quoted}'`. \
         Only when the old side is right in all that are left: `aegis migrate switch {id} --reads old --writes old --reason TEXT`, and when that counts, `aegis migrate backfill retry --restart {id} --reason TEXT` and `aegis migrate backfill run {id}`",
        stands.reads, stands.writes
    )))
}

/// Refuses to carry the old side over while programs may write the new one.
///
/// # Errors
/// [`RunError::Evidence`] with what to do.
pub async fn refuse_old_over_new(client: &Client, id: &str) -> Result<(), RunError> {
    match new_side_counts(client, id).await? {
        None => Ok(()),
        Some(why) => Err(RunError::Evidence(format!("nothing was moved: {why}"))),
    }
}

/// What to do about rows that are wrong.
///
/// # Errors
/// The server's.
pub async fn way_out(client: &Client, change: &Change) -> Result<String, RunError> {
    let id = &change.id;
    if let Some(why) = new_side_counts(client, id.as_str()).await? {
        return Ok(why);
    }
    Ok(if change.backfill.is_some() {
        format!(
            "`aegis migrate reconcile {id}` names some of them; when their cause is mended, `aegis migrate backfill retry --restart {id} --reason …`, `aegis migrate backfill run {id}`, and this again"
        )
    } else {
        format!("`aegis migrate reconcile {id}` names some of them; mend them, and this again")
    })
}

/// Whether the count that a phase needs is not zero. `forward` is for the switch: before it, a new program may have written already.
pub fn is_wrong(counts: &[Count]) -> bool {
    counts
        .iter()
        .any(|count| count.kind != pass::Kind::Forward && !count.is_zero())
}

/// What was counted, in words.
pub fn words(counts: &[Count]) -> String {
    let words: Vec<String> = counts.iter().map(Count::words).collect();
    words.join("; ")
}

fn of_run(who: &ledger::Who) -> Who {
    Who {
        run: who.run.clone(),
        by: who.by.clone(),
        release: who.release.clone(),
    }
}

/// As it stands in pg_stat_activity, which keeps 63 bytes.
fn name(what: &str, who: &Who) -> String {
    let mut name = format!("{what}/{}/{}", who.release, who.run);
    while name.len() > 63 {
        name.pop();
    }
    name
}

fn whole(error: &SessionError) -> String {
    let mut text = error.to_string();
    let mut below = std::error::Error::source(error);
    while let Some(cause) = below {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        below = cause.source();
    }
    text
}

/// The job of a change.
///
/// # Errors
/// When it has none.
pub fn spec(change: &Change) -> Result<Spec, RunError> {
    let none = || {
        RunError::Backfill(JobError::Precondition(format!(
            "{} has no [backfill]",
            change.id
        )))
    };
    let backfill = change.backfill.as_ref().ok_or_else(none)?;
    let write = match (&backfill.statement, change.sync_rule()) {
        (Some(file), _) => Write::Statement {
            file: format!("{}/{file}", change.path),
            sql: change.file(file).ok_or_else(none)?.text.clone(),
        },
        (None, Some(rule)) => Write::Forward(rule),
        (None, None) => return Err(none()),
    };
    Ok(Spec {
        change: change.id.to_string(),
        schema: change.schema.clone(),
        table: Name::new(&change.schema, change.backfill_table().ok_or_else(none)?),
        key: backfill.key.clone(),
        write,
        run_as: change.run_as.clone(),
        batch: BatchSize {
            start: backfill.batch.start,
            max: backfill.batch.max,
            target_ms: backfill.batch.target_ms,
        },
    })
}

/// What a pass of a change asks.
///
/// # Errors
/// When it has no `[reconcile]`.
pub(crate) fn asked(change: &Change) -> Result<Asked, RunError> {
    let none = || {
        RunError::Pass(pass::PassError::Asked(format!(
            "{} has no [reconcile]",
            change.id
        )))
    };
    let reconcile = change.reconcile.as_ref().ok_or_else(none)?;
    let what = match (&reconcile.sql, change.sync_rule()) {
        (Some(file), trigger) => What::Query {
            file: format!("{}/{file}", change.path),
            sql: change.file(file).ok_or_else(none)?.text.clone(),
            trigger,
        },
        (None, Some(rule)) => What::Sides(rule),
        (None, None) => return Err(none()),
    };
    Ok(Asked {
        change: change.id.to_string(),
        schema: change.schema.clone(),
        run_as: change.run_as.clone(),
        key: change
            .backfill
            .as_ref()
            .map(|backfill| backfill.key.clone())
            .unwrap_or_default(),
        what,
    })
}

/// `[throttle]` as it stands in the file now: it is not hashed, so it may be changed while rows are moved. A change that is not a
/// folder here has the one that it was read with.
fn throttle(change: &Change) -> Result<Throttle, String> {
    let folder = Path::new(&change.path);
    if !folder.join(CHANGE_FILE).is_file() {
        return Ok(change.throttle.clone());
    }
    crate::change::load(folder)
        .map(|now| now.throttle)
        .map_err(|problems| problems.to_string())
}

fn limits_of(throttle: &Throttle) -> Limits {
    Limits {
        max_lag_bytes: throttle.max_lag_bytes,
        max_slot_bytes: throttle.max_slot_bytes,
        max_wal_bytes_s: throttle.max_wal_bytes_s,
        max_active: throttle.max_active,
        autovacuum: throttle.autovacuum.unwrap_or(false),
        query: throttle.query.clone(),
        file: throttle.file.clone(),
        go_on_unknown: throttle.on_unknown == OnUnknown::Continue,
    }
}
