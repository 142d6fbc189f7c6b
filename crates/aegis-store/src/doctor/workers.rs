//! Workers: alive, late, deaf, stuck, holding too much, draining for too long.

use serde_json::{Value, json};

use super::look::Look;
use super::verdict::{Severity, Verdict, graded, lasting};
use crate::error::StoreError;
use crate::generated::doctor::{self, DrainingRow, WorkersRow};

/// A claim loop goes round at least once a second or so, and a call of it ends after 35 s.
const DEAF_S: (f64, f64) = (60.0, 300.0);
/// Handlers may well work for long without a word; half an hour is what a person should hear of.
const STUCK_S: f64 = 1800.0;
/// What a worker may hold beyond its slots: the local queue.
const LOCAL_QUEUE: i64 = 500;
/// Longer than the default budgets of a drain together.
const DRAIN_S: f64 = 600.0;

async fn rows(look: &Look) -> Result<Vec<WorkersRow>, StoreError> {
    look.at(async |conn| doctor::workers(&conn).await).await
}

fn name(row: &WorkersRow) -> String {
    format!(
        "worker {} ({}, {} pid {}, release {})",
        row.name, row.id, row.host, row.pid, row.release
    )
}

/// The worst of the verdicts on each worker; without any, `none`.
fn over(rows: &[WorkersRow], fine: &str, judge: impl Fn(&WorkersRow) -> Verdict) -> Verdict {
    let all: Vec<Verdict> = rows.iter().map(judge).collect();
    let values: Vec<Value> = rows
        .iter()
        .zip(&all)
        .filter(|(_, verdict)| verdict.severity > Severity::Ok)
        .map(|(row, verdict)| json!({ "worker": row.id, "name": row.name, "severity": verdict.severity.word(), "seen": verdict.values }))
        .collect();
    match Verdict::worst(all) {
        None => Verdict::ok("no worker is alive"),
        Some(worst) if worst.severity == Severity::Ok => {
            Verdict::ok(format!("{} workers: {fine}", rows.len()))
        }
        Some(worst) => worst,
    }
    .with(json!(values))
}

pub(super) async fn alive(look: &Look) -> Result<Verdict, StoreError> {
    Ok(judge_alive(&rows(look).await?))
}

fn judge_alive(rows: &[WorkersRow]) -> Verdict {
    let accepting = rows.iter().filter(|row| row.state == 0).count();
    let mut releases: Vec<&str> = rows
        .iter()
        .filter(|row| row.state == 0)
        .map(|row| row.release.as_str())
        .collect();
    releases.sort_unstable();
    releases.dedup();
    let values =
        json!({ "accepting": accepting, "draining": rows.len() - accepting, "releases": releases });
    if accepting == 0 {
        Verdict::new(
            Severity::Warning,
            format!("no worker accepts tasks; {} drain", rows.len()),
        )
        .todo("start a worker")
    } else {
        Verdict::ok(format!(
            "{accepting} accept tasks (release {})",
            releases.join(", ")
        ))
    }
    .with(values)
}

pub(super) async fn renewals(look: &Look) -> Result<Verdict, StoreError> {
    Ok(over(
        &rows(look).await?,
        "each renewed in time",
        judge_renewal,
    ))
}

#[expect(clippy::cast_precision_loss, reason = "a lease in milliseconds")]
fn judge_renewal(row: &WorkersRow) -> Verdict {
    let ttl_s = row.ttl_ms as f64 / 1000.0;
    Verdict::new(
        graded(row.beat_s / ttl_s, 0.5, 0.9),
        format!("{} sent its last beat {} ago, of a lease of {}", name(row), lasting(row.beat_s), lasting(ttl_s)),
    )
    .with(json!({ "beat_s": row.beat_s, "ttl_ms": row.ttl_ms }))
    .todo("look at that machine: is the process stopped, its CPU throttled, its way to the database cut?")
}

pub(super) async fn claim_loops(look: &Look) -> Result<Verdict, StoreError> {
    Ok(over(
        &rows(look).await?,
        "each claim loop moves",
        judge_claim_loop,
    ))
}

fn judge_claim_loop(row: &WorkersRow) -> Verdict {
    let Some(still_s) = row.claim_still_s else {
        return unsaid(row);
    };
    // Up to its last beat: what happened since is not known.
    let still_s = still_s - row.beat_s;
    let ready = if row.ready {
        ", while tasks that it may take are ready"
    } else {
        ""
    };
    Verdict::new(
        graded(still_s, DEAF_S.0, DEAF_S.1),
        format!(
            "the claim loop of {} has stood still for {}{ready}",
            name(row),
            lasting(still_s)
        ),
    )
    .with(json!({ "still_s": still_s, "ready": row.ready }))
    .todo(format!(
        "aegis worker drain {}; restart the process; keep its logs, this is a defect",
        row.id
    ))
}

/// Before its first beat nothing is expected; an older release never says it.
fn unsaid(row: &WorkersRow) -> Verdict {
    if row.beat == 0 {
        Verdict::ok("just started")
    } else {
        Verdict::unknown(format!("{} does not say when its loops moved", name(row)))
            .todo("upgrade it")
    }
}

pub(super) async fn executions(look: &Look) -> Result<Verdict, StoreError> {
    Ok(over(
        &rows(look).await?,
        "executions move, or there are none",
        judge_executions,
    ))
}

fn judge_executions(row: &WorkersRow) -> Verdict {
    let Some(still_s) = row.progress_still_s else {
        return unsaid(row);
    };
    let still_s = still_s - row.beat_s;
    if row.executing == 0 || still_s < STUCK_S {
        return Verdict::ok("moves");
    }
    Verdict::new(
        Severity::Warning,
        format!(
            "{} executions of {} have reported nothing for {}",
            row.executing,
            name(row),
            lasting(still_s)
        ),
    )
    .with(json!({ "still_s": still_s, "executing": row.executing }))
    .todo(format!(
        "aegis task list --state running, then aegis task show of those of {}",
        row.id
    ))
    .todo("call progress() in handlers that are slow, or set start_to_close on what they execute")
}

pub(super) async fn slots(look: &Look) -> Result<Verdict, StoreError> {
    Ok(over(
        &rows(look).await?,
        "none holds more than it has room for",
        judge_slots,
    ))
}

fn judge_slots(row: &WorkersRow) -> Verdict {
    let room = i64::from(row.slots) + LOCAL_QUEUE;
    let seen = format!(
        "{} has {} slots, executes {} and holds {} running rows",
        name(row),
        row.slots,
        row.executing,
        row.running
    );
    let unknown_to_it = row.running - i64::from(row.executing);
    let severity = if row.running > room || unknown_to_it > LOCAL_QUEUE {
        Severity::Warning
    } else {
        Severity::Ok
    };
    Verdict::new(severity, seen)
        .with(json!({ "slots": row.slots, "executing": row.executing, "running": row.running, "absent": row.absent }))
        .todo(format!("aegis worker drain {}: what it does not execute goes back to its lanes", row.id))
}

pub(super) async fn drains(look: &Look) -> Result<Verdict, StoreError> {
    let rows = look.at(async |conn| doctor::draining(&conn).await).await?;
    Ok(judge_drains(&rows))
}

fn judge_drains(rows: &[DrainingRow]) -> Verdict {
    let values = json!(
        rows.iter()
            .map(|row| json!({ "worker": row.id, "draining_s": row.draining_s }))
            .collect::<Vec<_>>()
    );
    let long = rows.iter().filter(|row| row.draining_s > DRAIN_S).map(|row| {
        Verdict::new(Severity::Warning, format!("worker {} ({}, release {}) has been draining for {}", row.name, row.id, row.release, lasting(row.draining_s)))
            .todo("send its process a second SIGTERM: it cancels at once; SIGKILL leaves its tasks to lease expiry")
    });
    Verdict::worst(long.collect())
        .unwrap_or_else(|| Verdict::ok(format!("{} workers drain, none for long", rows.len())))
        .with(values)
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    fn worker() -> WorkersRow {
        WorkersRow {
            id: Uuid::nil(),
            name: "w".to_owned(),
            host: "h".to_owned(),
            pid: 1,
            release: "r".to_owned(),
            state: 0,
            slots: 10,
            ttl_ms: 30_000,
            beat: 5,
            executing: 3,
            beat_s: 5.0,
            age_s: 100.0,
            claim_still_s: Some(6.0),
            progress_still_s: Some(6.0),
            clock_ahead_ms: Some(0),
            absent: 0,
            running: 3,
            ready: false,
        }
    }

    #[test]
    fn standing_still_counts_up_to_the_last_beat_only() {
        let judged = |still, beat_s| {
            judge_claim_loop(&WorkersRow {
                claim_still_s: still,
                beat_s,
                ..worker()
            })
            .severity
        };
        assert_eq!(judged(Some(64.0), 5.0), Severity::Ok);
        assert_eq!(judged(Some(66.0), 5.0), Severity::Warning);
        assert_eq!(judged(Some(400.0), 5.0), Severity::Critical);
        assert_eq!(judged(None, 5.0), Severity::Unknown);
        let fresh = WorkersRow {
            claim_still_s: None,
            beat: 0,
            ..worker()
        };
        assert_eq!(judge_claim_loop(&fresh).severity, Severity::Ok);
    }

    #[test]
    fn only_what_executes_can_be_stuck() {
        let judged = |executing, still| {
            judge_executions(&WorkersRow {
                executing,
                progress_still_s: Some(still),
                ..worker()
            })
            .severity
        };
        assert_eq!(judged(3, 4000.0), Severity::Warning);
        assert_eq!(judged(0, 4000.0), Severity::Ok);
        assert_eq!(judged(3, 100.0), Severity::Ok);
    }

    #[test]
    fn a_late_beat_is_judged_by_the_lease() {
        let judged = |beat_s| judge_renewal(&WorkersRow { beat_s, ..worker() }).severity;
        assert_eq!(
            (judged(8.0), judged(16.0), judged(28.0)),
            (Severity::Ok, Severity::Warning, Severity::Critical)
        );
    }

    #[test]
    fn rows_beyond_slots_and_local_queue_are_told() {
        let judged = |running, executing| {
            judge_slots(&WorkersRow {
                executing,
                running,
                ..worker()
            })
            .severity
        };
        assert_eq!(judged(500, 10), Severity::Ok);
        assert_eq!(judged(511, 510), Severity::Warning);
        assert_eq!(judged(510, 3), Severity::Warning);
    }

    #[test]
    fn one_bad_worker_decides_and_nobody_is_a_warning() {
        let deaf = WorkersRow {
            claim_still_s: Some(1000.0),
            ..worker()
        };
        let verdict = over(&[worker(), deaf], "fine", judge_claim_loop);
        assert_eq!(
            (verdict.severity, verdict.values.as_array().unwrap().len()),
            (Severity::Critical, 1)
        );
        assert_eq!(judge_alive(&[]).severity, Severity::Warning);
        assert_eq!(
            judge_alive(&[WorkersRow {
                state: 1,
                ..worker()
            }])
            .severity,
            Severity::Warning
        );
        assert_eq!(judge_alive(&[worker()]).severity, Severity::Ok);
    }
}
