//! Tasks: lost ones that nobody reaps, stranded, paused, parked, doubled; and the jobs that keep house.

use aegis_model::State;
use jiff::Timestamp;
use serde_json::json;
use uuid::Uuid;

use super::look::Look;
use super::verdict::{Severity, Verdict, graded, lasting};
use crate::error::StoreError;
use crate::generated::doctor::{
    self, ExpiredRunningRow, HousekeepingRow, ParkedRow, PausesRow, TwiceRow,
};
use crate::generated::lane;
use crate::lane_check::{self, Answer, Checked};

/// Stranded for less than this may be a rollout that is under way.
const STRANDED_S: f64 = 300.0;
const DAY_S: f64 = 86_400.0;

pub(super) async fn expired_running(look: &Look) -> Result<Verdict, StoreError> {
    let row = look
        .at(async |conn| doctor::expired_running(&conn).await)
        .await?;
    Ok(judge_expired(&row))
}

fn judge_expired(row: &ExpiredRunningRow) -> Verdict {
    let oldest_s = row.oldest_s.unwrap_or_default();
    let values = json!({ "tasks": row.tasks, "oldest_s": row.oldest_s, "example": row.example });
    if row.tasks == 0 {
        return Verdict::ok("every running row has a live owner").with(values);
    }
    let severity = if oldest_s < 5.0 {
        Severity::Ok
    } else {
        graded(oldest_s, 5.0, 60.0)
    };
    let example = row.example.map(|id| id.to_string()).unwrap_or_default();
    Verdict::new(severity, format!("{} running rows have no live owner, the oldest for {}, such as {example}", bounded(row.tasks), lasting(oldest_s)))
        .with(values)
        .todo("start a worker of any kind: whoever is alive reaps")
        .todo("with workers alive: see `housekeeping` here, and the warnings `could not be reaped` in the server's log")
}

fn bounded(count: i64) -> String {
    if count > 10_000 {
        "at least 10,000".to_owned()
    } else {
        count.to_string()
    }
}

pub(super) async fn stranded(look: &Look) -> Result<Verdict, StoreError> {
    let row = look
        .at(async |conn| lane::stranded(&conn, 100).await)
        .await?;
    Ok(judge_stranded(&lane_check::all_read(row)?))
}

fn judge_stranded(checked: &Checked) -> Verdict {
    let reasons = match &checked.answer {
        Answer::Yes => {
            return Verdict::ok(format!(
                "every stored task has a reader; {}",
                checked.remarks.join("; ")
            ));
        }
        Answer::Unknown(why) => return Verdict::unknown(why.join("; ")).todo("see `lineage`"),
        Answer::No(reasons) => reasons,
    };
    // The clock of ids is the database's.
    let oldest_s = reasons
        .tasks
        .iter()
        .filter_map(|task| submitted(task.id))
        .map(|at| checked.at.duration_since(at).as_secs_f64())
        .fold(0.0, f64::max);
    let unread_s = reasons
        .lanes
        .iter()
        .map(|lane| {
            lane.unread_since.map_or(f64::INFINITY, |since| {
                checked.at.duration_since(since).as_secs_f64()
            })
        })
        .fold(0.0, f64::max);
    let long_s = oldest_s.min(unread_s);
    let mut names: Vec<String> = reasons
        .lanes
        .iter()
        .take(3)
        .map(|lane| format!("{} (could read it: {})", lane.name(), lane.readers()))
        .collect();
    if reasons.lanes_total > 3 {
        names.push(format!("and {} more", reasons.lanes_total - 3));
    }
    let more = if reasons.at_least { "at least " } else { "" };
    let severity = if long_s >= STRANDED_S {
        Severity::Critical
    } else {
        Severity::Warning
    };
    Verdict::new(
        severity,
        format!(
            "{more}{} tasks in {} lanes have no reader, for {} or longer: {}",
            reasons.tasks_counted,
            reasons.lanes_total,
            lasting(long_s),
            names.join("; ")
        ),
    )
    .with(json!(reasons))
    .todo("aegis lane check stranded")
    .todo("start a worker of a release that reads them")
}

/// When a task was submitted, by its id.
fn submitted(id: Uuid) -> Option<Timestamp> {
    let (seconds, nanos) = id.get_timestamp()?.to_unix();
    Timestamp::new(i64::try_from(seconds).ok()?, i32::try_from(nanos).ok()?).ok()
}

pub(super) async fn pauses(look: &Look) -> Result<Verdict, StoreError> {
    let rows = look.at(async |conn| doctor::pauses(&conn).await).await?;
    Ok(judge_pauses(&rows))
}

fn judge_pauses(rows: &[PausesRow]) -> Verdict {
    let values = json!(rows.iter().map(|row| json!({ "scope": row.scope, "value": row.value, "who": row.who, "why": row.why, "age_s": row.age_s })).collect::<Vec<_>>());
    let all = rows.iter().map(|row| {
        let severity = if row.age_s >= DAY_S {
            Severity::Warning
        } else {
            Severity::Notice
        };
        Verdict::new(
            severity,
            format!(
                "{} {} by {} for {}: {}",
                row.scope,
                row.value,
                row.who,
                lasting(row.age_s),
                row.why
            ),
        )
        .todo(format!("aegis lane resume --{} {}", row.scope, row.value))
    });
    Verdict::worst(all.collect())
        .unwrap_or_else(|| Verdict::ok("nothing is paused"))
        .with(values)
}

pub(super) async fn parked(look: &Look) -> Result<Verdict, StoreError> {
    let row = look.at(async |conn| doctor::parked(&conn).await).await?;
    Ok(judge_parked(&row))
}

fn judge_parked(row: &ParkedRow) -> Verdict {
    let values =
        json!({ "failed": row.failed, "quarantined": row.quarantined, "oldest": row.oldest });
    let (severity, state) = match (row.failed, row.quarantined) {
        (0, 0) => return Verdict::ok("no task is parked").with(values),
        (_, 0) => (Severity::Notice, State::Failed),
        _ => (Severity::Warning, State::Quarantined),
    };
    let more = if row.failed + row.quarantined > 10_000 {
        "at least "
    } else {
        ""
    };
    Verdict::new(
        severity,
        format!(
            "{more}{} failed and {} quarantined tasks wait",
            row.failed, row.quarantined
        ),
    )
    .with(values)
    .todo(format!(
        "aegis task list --state {}; then aegis task redrive or discard, with a reason",
        state.word()
    ))
}

pub(super) async fn twice(look: &Look) -> Result<Verdict, StoreError> {
    let row = look.at(async |conn| doctor::twice(&conn).await).await?;
    Ok(judge_twice(&row))
}

fn judge_twice(row: &TwiceRow) -> Verdict {
    let values = json!({ "tasks": row.tasks, "example": row.example });
    match row.example {
        None => Verdict::ok("no task stands in two places"),
        Some(id) => Verdict::new(
            Severity::Critical,
            format!("{} parked tasks are live as well, such as {id}", row.tasks),
        )
        .todo(format!(
            "aegis task show {id}; find out who wrote it; report it with the server's log"
        )),
    }
    .with(values)
}

pub(super) async fn housekeeping(look: &Look) -> Result<Verdict, StoreError> {
    let rows = look
        .at(async |conn| doctor::housekeeping(&conn).await)
        .await?;
    Ok(judge_housekeeping(&rows))
}

#[expect(clippy::cast_precision_loss, reason = "a period in milliseconds")]
fn judge_housekeeping(rows: &[HousekeepingRow]) -> Verdict {
    let values = json!(
        rows.iter()
            .map(|row| json!({ "job": row.job, "late_s": row.late_s, "workers": row.workers }))
            .collect::<Vec<_>>()
    );
    if rows.is_empty() {
        return Verdict::unknown("there is no job at all").todo("aegis db install");
    }
    let all = rows.iter().map(|row| {
        let Some(late_s) = row.late_s else {
            let severity = if row.workers > 0 { Severity::Notice } else { Severity::Ok };
            return Verdict::new(severity, format!("{} has never run", row.job)).todo("look again in a minute");
        };
        let slack_s = 10.0 * row.period_ms as f64 / 1000.0;
        let severity = graded(late_s, slack_s + 30.0, slack_s + 600.0);
        // Nobody is there: that is what `workers` tells, and nothing is lost that a worker would not find.
        let severity = if row.workers == 0 { severity.min(Severity::Warning) } else { severity };
        Verdict::new(severity, format!("{} is {} late ({} workers are alive)", row.job, lasting(late_s), row.workers))
            .todo("start a worker; with workers alive, see `claim-loops` here and the logs of workers for `a tick failed`")
    });
    match Verdict::worst(all.collect()) {
        Some(worst) if worst.severity == Severity::Ok => {
            Verdict::ok(format!("{} jobs are in time", rows.len()))
        }
        Some(worst) => worst,
        None => Verdict::unknown("there is no job at all"),
    }
    .with(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_that_is_just_being_reaped_is_no_finding() {
        let judged = |tasks, oldest| {
            judge_expired(&ExpiredRunningRow {
                tasks,
                oldest_s: oldest,
                example: None,
            })
            .severity
        };
        assert_eq!(judged(0, None), Severity::Ok);
        assert_eq!(judged(3, Some(0.4)), Severity::Ok);
        assert_eq!(judged(3, Some(10.0)), Severity::Warning);
        assert_eq!(judged(3, Some(100.0)), Severity::Critical);
    }

    #[test]
    fn a_job_is_late_by_its_own_period() {
        let judged = |late_s, workers| {
            judge_housekeeping(&[HousekeepingRow {
                job: "reap".to_owned(),
                period_ms: 1000,
                late_s,
                workers,
            }])
            .severity
        };
        assert_eq!(judged(Some(-1.0), 1), Severity::Ok);
        assert_eq!(judged(Some(39.0), 1), Severity::Ok);
        assert_eq!(judged(Some(41.0), 1), Severity::Warning);
        assert_eq!(judged(Some(700.0), 1), Severity::Critical);
        assert_eq!(judged(Some(700.0), 0), Severity::Warning);
        assert_eq!(
            (judged(None, 1), judged(None, 0)),
            (Severity::Notice, Severity::Ok)
        );
        assert_eq!(judge_housekeeping(&[]).severity, Severity::Unknown);
    }

    #[test]
    fn an_id_tells_when_it_was_submitted() {
        let id = Uuid::now_v7();
        let age = Timestamp::now()
            .duration_since(submitted(id).unwrap())
            .as_secs_f64();
        assert!((-1.0..60.0).contains(&age), "{age}");
        assert!(submitted(Uuid::new_v4()).is_none());
    }
}
