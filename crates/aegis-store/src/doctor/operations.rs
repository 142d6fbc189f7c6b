//! The ledger of side effects: what waits for people, and whether it agrees with its tasks.

use serde_json::json;

use super::look::Look;
use super::verdict::{Severity, Verdict, graded, lasting};
use crate::error::StoreError;
use crate::generated::doctor::{self, OpenOperationsRow, UnknownOperationsRow};

/// Untaken for so long: somebody should take it; a day later nobody looks at the queue at all.
const UNTAKEN_S: (f64, f64) = (900.0, 86_400.0);
/// Taken, and not resolved within a day.
const TAKEN_S: f64 = 86_400.0;
/// Quiet periods end by themselves within seconds of a claim.
const OVERDUE_S: f64 = 600.0;

pub(super) async fn unknown(look: &Look) -> Result<Verdict, StoreError> {
    let row = look
        .at(async |conn| doctor::unknown_operations(&conn).await)
        .await?;
    Ok(judge_unknown(&row))
}

fn judge_unknown(row: &UnknownOperationsRow) -> Verdict {
    let values = json!({ "unknown": row.unknown, "untaken": row.untaken, "untaken_s": row.untaken_s, "taken_s": row.taken_s, "example": row.example });
    if row.unknown == 0 {
        return Verdict::ok("no operation is unknown").with(values);
    }
    let untaken_s = row.untaken_s.unwrap_or_default();
    let taken_s = row.taken_s.unwrap_or_default();
    let mut severity = Severity::Notice.max(graded(untaken_s, UNTAKEN_S.0, UNTAKEN_S.1));
    if taken_s >= TAKEN_S {
        severity = severity.max(Severity::Warning);
    }
    let more = if row.unknown > 10_000 {
        "at least "
    } else {
        ""
    };
    let untaken = if row.untaken > 0 {
        format!(" (dispatched up to {} ago)", lasting(untaken_s))
    } else {
        String::new()
    };
    let taken = if row.taken_s.is_some() {
        format!("; taken up to {} ago", lasting(taken_s))
    } else {
        String::new()
    };
    let seen = format!(
        "{more}{} operations are unknown, {} of them taken by nobody{untaken}{taken}",
        row.unknown, row.untaken
    );
    let example = row.example.clone().unwrap_or_default();
    Verdict::new(severity, seen)
        .with(values)
        .todo(format!("aegis operation take {example}; find out whether it happened; aegis operation resolve {example} --as … --evidence …"))
}

pub(super) async fn open(look: &Look) -> Result<Verdict, StoreError> {
    let row = look
        .at(async |conn| doctor::open_operations(&conn).await)
        .await?;
    Ok(judge_open(&row))
}

fn judge_open(row: &OpenOperationsRow) -> Verdict {
    let values = json!({ "overdue": row.overdue, "overdue_s": row.overdue_s, "orphans": row.orphans, "orphan": row.orphan, "wrong": row.wrong });
    let mut found = Vec::new();
    if let Some(id) = &row.orphan {
        found.push(
            Verdict::new(Severity::Critical, format!("{} open operations have no live task, such as {id}", row.orphans))
                .todo(format!("aegis operation show {id}; find out who wrote to the database; report it with the server's log")),
        );
    }
    if let Some(id) = row.wrong {
        found.push(
            Verdict::new(Severity::Critical, format!("task {id} is reconciling and its ledger has no unknown operation, or another count than the task"))
                .todo(format!("aegis task show {id}; report it with the server's log: nobody is asked to decide about it")),
        );
    }
    let overdue_s = row.overdue_s.unwrap_or_default();
    if overdue_s >= OVERDUE_S {
        found.push(
            Verdict::new(
                Severity::Warning,
                format!(
                    "{} dispatched operations may be settled and are not, for up to {}",
                    row.overdue,
                    lasting(overdue_s)
                ),
            )
            .todo("see `stranded`, `workers` and `pauses` here: their tasks wait for a claim"),
        );
    }
    Verdict::worst(found)
        .unwrap_or_else(|| Verdict::ok("the ledger and its tasks agree"))
        .with(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_operation_gets_worse_with_time() {
        let row = |untaken_s, taken_s| UnknownOperationsRow {
            unknown: 1,
            untaken: 1,
            untaken_s,
            taken_s,
            example: None,
        };
        let judged = |untaken_s, taken_s| judge_unknown(&row(untaken_s, taken_s)).severity;
        assert_eq!(judged(Some(10.0), None), Severity::Notice);
        assert_eq!(judged(Some(1000.0), None), Severity::Warning);
        assert_eq!(judged(Some(100_000.0), None), Severity::Critical);
        assert_eq!(judged(None, Some(10.0)), Severity::Notice);
        assert_eq!(judged(None, Some(90_000.0)), Severity::Warning);
        let none = UnknownOperationsRow {
            unknown: 0,
            untaken: 0,
            ..row(None, None)
        };
        assert_eq!(judge_unknown(&none).severity, Severity::Ok);
    }

    #[test]
    fn a_ledger_that_disagrees_is_critical_and_one_that_waits_a_warning() {
        let fine = OpenOperationsRow {
            overdue: 0,
            overdue_s: None,
            orphan: None,
            orphans: 0,
            wrong: None,
        };
        assert_eq!(judge_open(&fine).severity, Severity::Ok);
        let waits = OpenOperationsRow {
            overdue: 1,
            overdue_s: Some(700.0),
            ..fine.clone()
        };
        assert_eq!(judge_open(&waits).severity, Severity::Warning);
        let wrong = OpenOperationsRow {
            wrong: Some(uuid::Uuid::nil()),
            ..waits
        };
        assert_eq!(judge_open(&wrong).severity, Severity::Critical);
        let orphan = OpenOperationsRow {
            orphan: Some("o".to_owned()),
            orphans: 1,
            ..fine
        };
        assert_eq!(judge_open(&orphan).severity, Severity::Critical);
    }
}
