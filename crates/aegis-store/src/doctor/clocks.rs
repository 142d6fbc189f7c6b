//! Clocks: the database's, this machine's, the workers'. Only the first decides anything.

use std::time::Instant;

use jiff::Timestamp;
use serde_json::json;

use super::look::Look;
use super::verdict::{Severity, Verdict, lasting};
use crate::error::StoreError;
use crate::generated::doctor::{self, ClockRow, WorkersRow};

/// A difference that people notice in logs, and one that makes them useless.
const NOTICED_S: f64 = 2.0;
const USELESS_S: f64 = 60.0;

pub(super) async fn database(look: &Look) -> Result<Verdict, StoreError> {
    let row = look.at(async |conn| doctor::clock(&conn).await).await?;
    Ok(judge_database(&row))
}

fn judge_database(row: &ClockRow) -> Verdict {
    let values = json!({ "leases": row.leases, "jobs": row.jobs, "up_since": row.ups });
    if row.leases + row.jobs + row.ups == 0 {
        return Verdict::ok("nothing that it wrote lies in its future").with(values);
    }
    Verdict::new(Severity::Critical, format!("the clock was set back: {} leases, {} due times and {} starts lie in its future", row.leases, row.jobs, row.ups))
        .with(values)
        .todo("set the clock of the database's machine by NTP; lost workers are noticed when their leases end, or sooner when they drain")
        .todo("UPDATE aegis.housekeeping SET next_at = clock_timestamp() WHERE next_at > clock_timestamp(), as the owner")
}

pub(super) async fn here(look: &Look) -> Result<Verdict, StoreError> {
    let (before, row, took) = look
        .at(async |conn| {
            // What the first statement of a connection costs beside the trip is not in this one.
            doctor::clock(&conn).await?;
            let (before, begun) = (Timestamp::now(), Instant::now());
            let row = doctor::clock(&conn).await?;
            Ok((before, row, begun.elapsed()))
        })
        .await?;
    let half = took.as_secs_f64() / 2.0;
    let ahead = before.duration_since(row.now).as_secs_f64() + half;
    Ok(judge_ahead("this machine", ahead, half))
}

/// `ahead` seconds, give or take `doubt`.
fn judge_ahead(whose: &str, ahead: f64, doubt: f64) -> Verdict {
    let sure = (ahead.abs() - doubt).max(0.0);
    let word = if ahead < 0.0 { "behind" } else { "ahead of" };
    let severity = if sure >= USELESS_S {
        Severity::Warning
    } else if sure >= NOTICED_S {
        Severity::Notice
    } else {
        Severity::Ok
    };
    Verdict::new(
        severity,
        format!(
            "the clock of {whose} is {:.3} s {word} the database's (± {doubt:.3} s)",
            ahead.abs()
        ),
    )
    .with(json!({ "ahead_s": ahead, "doubt_s": doubt }))
    .todo("set it by NTP; compare times by the database's clock until then")
}

pub(super) async fn workers(look: &Look) -> Result<Verdict, StoreError> {
    let rows = look.at(async |conn| doctor::workers(&conn).await).await?;
    Ok(judge_workers(&rows))
}

#[expect(
    clippy::cast_precision_loss,
    reason = "milliseconds between two clocks"
)]
fn judge_workers(rows: &[WorkersRow]) -> Verdict {
    let mut found = Vec::new();
    let mut values = Vec::new();
    for row in rows.iter().filter(|row| row.beat > 0) {
        let whose = format!("worker {} on {}", row.name, row.host);
        values.push(json!({ "worker": row.id, "ahead_ms": row.clock_ahead_ms }));
        found.push(match row.clock_ahead_ms {
            // What the beat took on its way counts as behind.
            Some(ms) => judge_ahead(&whose, ms as f64 / 1000.0, 0.5),
            None => Verdict::unknown(format!("{whose} (release {}) does not say", row.release))
                .todo("upgrade it"),
        });
    }
    let count = found.len();
    match Verdict::worst(found) {
        None => Verdict::ok("no living worker has sent a beat"),
        Some(worst) if worst.severity == Severity::Ok => {
            Verdict::ok(format!("{count} workers are within {}", lasting(NOTICED_S)))
        }
        Some(worst) => worst,
    }
    .with(json!(values))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_is_judged_by_what_is_sure() {
        let judged = |ahead, doubt| judge_ahead("x", ahead, doubt).severity;
        assert_eq!(judged(0.5, 0.1), Severity::Ok);
        assert_eq!(judged(-3.0, 0.1), Severity::Notice);
        assert_eq!(judged(3.0, 2.5), Severity::Ok);
        assert_eq!(judged(-3600.0, 1.0), Severity::Warning);
    }
}
