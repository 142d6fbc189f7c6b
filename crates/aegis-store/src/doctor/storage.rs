//! What makes claims slow or writes fail: snapshots, dead rows, transaction ids, indexes, partitions, keys.

use serde_json::json;

use super::look::Look;
use super::verdict::{Severity, Verdict, graded, lasting};
use crate::error::StoreError;
use crate::generated::doctor::{
    self, DeadRowsRow, IndexesRow, PartitionsRow, SnapshotsRow, XidAgeRow,
};

/// A statement of the engine ends after 30 s; a dump takes minutes.
const SNAPSHOT_S: (f64, f64) = (300.0, 3600.0);
/// A batch of 100 tasks takes two transactions or so.
const SNAPSHOT_XIDS: (f64, f64) = (1_000_000.0, 100_000_000.0);
/// Younger than this nothing has been held back that matters.
const YOUNG_XIDS: i64 = 10_000;
/// What is partitioned by day.
const PARTITIONED: usize = 7;
/// The indexes of the live tasks.
const OF_TASK: [&str; 8] = [
    "task_deadline",
    "task_owner",
    "task_pkey",
    "task_ready",
    "task_reconciling",
    "task_resting",
    "task_scheduled",
    "task_suspect",
];

pub(super) async fn snapshots(look: &Look) -> Result<Verdict, StoreError> {
    let rows = look.at(async |conn| doctor::snapshots(&conn).await).await?;
    Ok(judge_snapshots(&rows))
}

fn judge_snapshots(rows: &[SnapshotsRow]) -> Verdict {
    let values = json!(rows.iter().map(|row| json!({ "holder": row.holder, "name": row.name, "role": row.role, "application": row.application,
        "since_s": row.since_s, "xids": row.xids })).collect::<Vec<_>>());
    match Verdict::worst(rows.iter().map(judge_snapshot).collect()) {
        None => Verdict::ok("nobody holds one"),
        Some(worst) if worst.severity == Severity::Ok => {
            Verdict::ok(format!("{} are held, none for long", rows.len()))
        }
        Some(worst) => worst,
    }
    .with(values)
}

#[expect(clippy::cast_precision_loss, reason = "transaction ids have 32 bits")]
fn judge_snapshot(row: &SnapshotsRow) -> Verdict {
    let name = row.name.as_deref().unwrap_or_default();
    let xids = row.xids.unwrap_or_default();
    let by_age = graded(xids as f64, SNAPSHOT_XIDS.0, SNAPSHOT_XIDS.1);
    let who = match row.holder.as_str() {
        "session" | "standby" => format!(
            "{} {name} of role {} ({})",
            row.holder,
            row.role.as_deref().unwrap_or("?"),
            row.application.as_deref().unwrap_or_default()
        ),
        holder => format!("{holder} {name}"),
    };
    let seen = |how_long: &str| format!("{who} {how_long}; {xids} transactions were begun since");
    let verdict = match row.since_s {
        Some(since_s) => Verdict::new(
            by_age.max(graded(since_s, SNAPSHOT_S.0, SNAPSHOT_S.1)),
            seen(&format!("holds it since {} ago", lasting(since_s))),
        ),
        None if row.holder == "replication slot" || by_age > Severity::Ok => {
            Verdict::new(by_age, seen("holds it"))
        }
        None if xids < YOUNG_XIDS => Verdict::ok(seen("holds it")),
        None => Verdict::unknown(seen("holds it; since when may not be seen"))
            .todo("GRANT pg_read_all_stats to the role that installed the schema"),
    };
    match row.holder.as_str() {
        "session" => verdict.todo(format!("SELECT pg_terminate_backend({name}) when nobody needs it; set idle_in_transaction_session_timeout for its role")),
        "prepared transaction" => verdict.todo(format!("COMMIT PREPARED '{name}' or ROLLBACK PREPARED '{name}', as its owner says")),
        "replication slot" => verdict.todo(format!("start what reads it, or: SELECT pg_drop_replication_slot('{name}')")),
        _ => verdict.todo("set hot_standby_feedback = off on that standby, or end its long query"),
    }
}

pub(super) async fn dead_rows(look: &Look) -> Result<Verdict, StoreError> {
    let rows = look.at(async |conn| doctor::dead_rows(&conn).await).await?;
    Ok(judge_dead_rows(&rows))
}

#[expect(clippy::cast_precision_loss, reason = "an estimate of rows")]
fn judge_dead_rows(rows: &[DeadRowsRow]) -> Verdict {
    let values = json!(rows.iter().map(|row| json!({ "table": row.name, "live": row.live, "dead": row.dead, "vacuumed": row.vacuumed })).collect::<Vec<_>>());
    if rows.is_empty() {
        return Verdict::unknown("the server has no figures of these tables")
            .todo("see `autovacuum` here");
    }
    let all = rows.iter().map(|row| {
        let (live, dead) = (row.live as f64, row.dead as f64);
        let severity = if dead > 500_000.0 + 2.0 * live {
            Severity::Critical
        } else if dead > 50_000.0 + 0.2 * live {
            Severity::Warning
        } else {
            Severity::Ok
        };
        let vacuumed = row.vacuumed.map_or_else(
            || "never vacuumed".to_owned(),
            |at| format!("last vacuumed {at:.0}"),
        );
        Verdict::new(
            severity,
            format!(
                "{}: {} dead beside {} live rows, {vacuumed}",
                row.name, row.dead, row.live
            ),
        )
        .todo("see `oldest-snapshot` here first: what it holds back no vacuum removes")
        .todo(format!("VACUUM (VERBOSE) aegis.{}", row.name))
    });
    match Verdict::worst(all.collect()) {
        Some(worst) if worst.severity > Severity::Ok => worst,
        _ => Verdict::ok(format!(
            "{} hot tables, at most {} dead rows",
            rows.len(),
            rows.iter().map(|row| row.dead).max().unwrap_or_default()
        )),
    }
    .with(values)
}

pub(super) async fn xid_age(look: &Look) -> Result<Verdict, StoreError> {
    let row = look.at(async |conn| doctor::xid_age(&conn).await).await?;
    Ok(judge_xid_age(&row))
}

#[expect(clippy::cast_precision_loss, reason = "transaction ids have 32 bits")]
fn judge_xid_age(row: &XidAgeRow) -> Verdict {
    Verdict::new(
        graded(row.xids as f64, 1.0e9, 1.6e9),
        format!(
            "{} transaction ids are in use, of about 2,100,000,000",
            row.xids
        ),
    )
    .with(json!({ "xids": row.xids, "freeze_at": row.freeze_at }))
    .todo("see `oldest-snapshot` and `autovacuum` here; then vacuumdb --freeze this database")
}

pub(super) async fn indexes(look: &Look) -> Result<Verdict, StoreError> {
    let row = look.at(async |conn| doctor::indexes(&conn).await).await?;
    Ok(judge_indexes(&row))
}

fn judge_indexes(row: &IndexesRow) -> Verdict {
    let missing: Vec<&str> = OF_TASK
        .into_iter()
        .filter(|name| !row.of_task.iter().any(|found| found == name))
        .collect();
    let values = json!({ "invalid": row.invalid, "missing": missing });
    if !row.invalid.is_empty() {
        Verdict::new(
            Severity::Critical,
            format!("not valid: {}", row.invalid.join(", ")),
        )
        .todo(format!(
            "REINDEX INDEX CONCURRENTLY aegis.{}",
            row.invalid[0]
        ))
    } else if !missing.is_empty() {
        Verdict::new(
            Severity::Critical,
            format!("missing: {}", missing.join(", ")),
        )
        .todo(
            "make it again as crates/aegis-store/migrations has it, with CREATE INDEX CONCURRENTLY",
        )
    } else {
        Verdict::ok("all are there and valid")
    }
    .with(values)
}

async fn parts(look: &Look) -> Result<Vec<PartitionsRow>, StoreError> {
    look.at(async |conn| doctor::partitions(&conn).await).await
}

pub(super) async fn partitions(look: &Look) -> Result<Verdict, StoreError> {
    Ok(judge_partitions(&parts(look).await?))
}

fn judge_partitions(rows: &[PartitionsRow]) -> Verdict {
    let values = json!(
        rows.iter()
            .map(|row| (row.name.clone(), json!(row.days)))
            .collect::<serde_json::Map<_, _>>()
    );
    let Some(first) = rows
        .iter()
        .min_by_key(|row| row.days)
        .filter(|_| rows.len() >= PARTITIONED)
    else {
        return Verdict::unknown(format!(
            "{} of {PARTITIONED} partitioned tables were found",
            rows.len()
        ))
        .todo("aegis db install")
        .with(values);
    };
    let severity = match first.days {
        ..=2 => Severity::Critical,
        3..=7 => Severity::Warning,
        _ => Severity::Ok,
    };
    let seen = match first.days {
        0 => format!("{} has none for today", first.name),
        days => format!("today and {} days ahead ({})", days - 1, first.name),
    };
    Verdict::new(severity, seen)
        .with(values)
        .todo("aegis db maintain, as the owner of the tables")
        .todo("workers make them too, with the installer's rights: look for `no partition could be made ahead` in the server's log")
}

pub(super) async fn old_partitions(look: &Look) -> Result<Verdict, StoreError> {
    Ok(judge_old_partitions(&parts(look).await?))
}

fn judge_old_partitions(rows: &[PartitionsRow]) -> Verdict {
    let behind = rows.iter().map(|row| row.behind).max().unwrap_or_default();
    let detaching: i64 = rows.iter().map(|row| row.detaching).sum();
    let values = json!({ "days_behind": behind, "detaching": detaching });
    let maintain = "aegis db maintain --retention-days N from a daily cron job, as the owner";
    if detaching > 0 {
        Verdict::new(
            Severity::Warning,
            format!("{detaching} partitions are half detached"),
        )
        .todo(maintain)
    } else if behind > 90 {
        Verdict::new(
            Severity::Warning,
            format!("the oldest day is {behind} days back"),
        )
        .todo(maintain)
    } else if behind > 45 {
        Verdict::new(
            Severity::Notice,
            format!("the oldest day is {behind} days back; retention is 30 days unless set"),
        )
        .todo(maintain)
    } else {
        Verdict::ok(format!("the oldest day is {behind} days back"))
    }
    .with(values)
}

pub(super) async fn expired_keys(look: &Look) -> Result<Verdict, StoreError> {
    let row = look
        .at(async |conn| doctor::expired_keys(&conn).await)
        .await?;
    Ok(judge_expired_keys(row.keys))
}

fn judge_expired_keys(keys: i64) -> Verdict {
    let more = if keys > 10_000 { "at least " } else { "" };
    let severity = match keys {
        0 => Severity::Ok,
        1..=10_000 => Severity::Notice,
        _ => Severity::Warning,
    };
    Verdict::new(
        severity,
        format!("{more}{keys} keys expired more than a day ago"),
    )
    .with(json!({ "keys": keys }))
    .todo("see `housekeeping` here: `expire` removes 1,000 a minute while a worker is alive")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(since_s: Option<f64>, xids: i64) -> SnapshotsRow {
        SnapshotsRow {
            holder: "session".to_owned(),
            name: Some("12".to_owned()),
            role: Some("r".to_owned()),
            application: None,
            since_s,
            xids: Some(xids),
        }
    }

    #[test]
    fn a_snapshot_is_judged_by_time_where_that_is_seen_and_never_taken_for_young() {
        let judged = |since_s, xids| judge_snapshots(&[session(since_s, xids)]).severity;
        assert_eq!(judged(Some(1.0), 5), Severity::Ok);
        assert_eq!(judged(Some(400.0), 5), Severity::Warning);
        assert_eq!(judged(Some(4000.0), 5), Severity::Critical);
        assert_eq!(judged(None, 5), Severity::Ok);
        assert_eq!(judged(None, 50_000), Severity::Unknown);
        assert_eq!(judged(None, 2_000_000), Severity::Warning);
        assert_eq!(judge_snapshots(&[]).severity, Severity::Ok);
        let slot = SnapshotsRow {
            holder: "replication slot".to_owned(),
            ..session(None, 200_000_000)
        };
        let verdict = judge_snapshots(&[slot]);
        assert!(
            verdict.severity == Severity::Critical
                && verdict.todo[0].contains("pg_drop_replication_slot"),
            "{verdict:?}"
        );
    }

    #[test]
    fn dead_rows_are_judged_beside_the_live_ones() {
        let judged = |live, dead| {
            judge_dead_rows(&[DeadRowsRow {
                name: "task".to_owned(),
                live,
                dead,
                vacuumed: None,
            }])
            .severity
        };
        assert_eq!(judged(1_000_000, 200_000), Severity::Ok);
        assert_eq!(judged(1_000_000, 260_000), Severity::Warning);
        assert_eq!(judged(100, 600_000), Severity::Critical);
        assert_eq!(judge_dead_rows(&[]).severity, Severity::Unknown);
    }

    #[test]
    fn transaction_ids_have_two_thresholds() {
        let judged: Vec<Severity> = [1, 1_100_000_000, 1_700_000_000]
            .into_iter()
            .map(|xids| judge_xid_age(&XidAgeRow { xids, freeze_at: 1 }).severity)
            .collect();
        assert_eq!(
            judged,
            [Severity::Ok, Severity::Warning, Severity::Critical]
        );
    }

    fn days(days: i64, behind: i32) -> Vec<PartitionsRow> {
        let mut rows = vec![
            PartitionsRow {
                name: "t".to_owned(),
                days: 15,
                oldest: None,
                behind: 1,
                detaching: 0
            };
            PARTITIONED
        ];
        rows[3] = PartitionsRow {
            days,
            behind,
            ..rows[3].clone()
        };
        rows
    }

    #[test]
    fn the_table_with_the_fewest_days_decides() {
        let judged = |ahead| judge_partitions(&days(ahead, 1)).severity;
        assert_eq!(
            (judged(15), judged(8), judged(7)),
            (Severity::Ok, Severity::Ok, Severity::Warning)
        );
        assert_eq!(
            (judged(2), judged(0)),
            (Severity::Critical, Severity::Critical)
        );
        assert_eq!(
            judge_partitions(&days(15, 1)[1..]).severity,
            Severity::Unknown
        );
    }

    #[test]
    fn days_past_their_retention_are_told() {
        let judged = |behind| judge_old_partitions(&days(15, behind)).severity;
        assert_eq!(
            (judged(31), judged(60), judged(100)),
            (Severity::Ok, Severity::Notice, Severity::Warning)
        );
        let mut half = days(15, 1);
        half[0].detaching = 1;
        assert_eq!(judge_old_partitions(&half).severity, Severity::Warning);
        let keys: Vec<Severity> = [0, 5, 10_001]
            .into_iter()
            .map(|keys| judge_expired_keys(keys).severity)
            .collect();
        assert_eq!(keys, [Severity::Ok, Severity::Notice, Severity::Warning]);
    }
}
