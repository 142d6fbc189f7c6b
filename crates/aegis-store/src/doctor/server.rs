//! The server: version, durability, autovacuum, pooler, connections, notifications, standbys, kept log.

use serde_json::json;

use super::look::Look;
use super::verdict::{Severity, Verdict, graded};
use crate::error::StoreError;
use crate::generated::doctor::{self, KeptWalRow, ServerRow, StandbysRow};
use crate::session::Mode;

/// The newest major version that Aegis was made for.
const NEWEST: i32 = 18;
const GIB: f64 = 1024.0 * 1024.0 * 1024.0;

pub(super) async fn version(look: &Look) -> Result<Verdict, StoreError> {
    let row = look.at(async |conn| doctor::server(&conn).await).await?;
    Ok(judge_version(&row))
}

fn judge_version(row: &ServerRow) -> Verdict {
    let major = row.number / 10_000;
    let seen = format!("PostgreSQL {}", row.version);
    let values = json!({ "version": row.version, "number": row.number, "standby": row.standby });
    if major < 15 {
        Verdict::new(Severity::Critical, format!("{seen} is too old"))
            .todo("upgrade the server to PostgreSQL 15 or newer")
    } else if row.standby {
        Verdict::new(
            Severity::Critical,
            format!("{seen} is a standby: nothing can be written here"),
        )
        .todo("point the URL at the primary")
    } else if major > NEWEST {
        Verdict::new(
            Severity::Notice,
            format!("{seen} is newer than what Aegis was made for ({NEWEST})"),
        )
        .todo("read the changelog of Aegis for this version")
    } else {
        Verdict::ok(seen)
    }
    .with(values)
}

pub(super) async fn durability(look: &Look) -> Result<Verdict, StoreError> {
    let row = look.at(async |conn| doctor::server(&conn).await).await?;
    Ok(judge_durability(&row))
}

fn judge_durability(row: &ServerRow) -> Verdict {
    let off: Vec<&str> = [
        ("fsync", &row.fsync),
        ("full_page_writes", &row.full_page_writes),
    ]
    .into_iter()
    .filter(|(_, value)| *value != "on")
    .map(|(name, _)| name)
    .collect();
    let values = json!({ "fsync": row.fsync, "full_page_writes": row.full_page_writes });
    if off.is_empty() {
        return Verdict::ok("fsync and full_page_writes are on").with(values);
    }
    let mut verdict = Verdict::new(Severity::Critical, format!("{} off", are(&off))).with(values);
    for name in off {
        verdict = verdict.todo(format!(
            "ALTER SYSTEM SET {name} = on; SELECT pg_reload_conf()"
        ));
    }
    verdict
}

fn are(names: &[&str]) -> String {
    match names {
        [one] => format!("{one} is"),
        several => format!("{} are", several.join(" and ")),
    }
}

pub(super) async fn autovacuum(look: &Look) -> Result<Verdict, StoreError> {
    let (row, excluded) = look
        .at(async |conn| {
            Ok((
                doctor::server(&conn).await?,
                doctor::autovacuum(&conn).await?,
            ))
        })
        .await?;
    let excluded: Vec<String> = excluded.into_iter().map(|one| one.name).collect();
    Ok(judge_autovacuum(&row, &excluded))
}

fn judge_autovacuum(row: &ServerRow, excluded: &[String]) -> Verdict {
    let values = json!({ "autovacuum": row.autovacuum, "track_counts": row.track_counts, "excluded": excluded });
    if row.autovacuum != "on" || row.track_counts != "on" {
        Verdict::new(Severity::Critical, format!("autovacuum is {}, track_counts is {}", row.autovacuum, row.track_counts))
            .todo("ALTER SYSTEM SET autovacuum = on; ALTER SYSTEM SET track_counts = on; SELECT pg_reload_conf()")
    } else if excluded.is_empty() {
        Verdict::ok("on, for every table of the engine")
    } else {
        let mut verdict = Verdict::new(Severity::Warning, format!("it leaves out {}", excluded.join(", ")));
        for table in excluded {
            verdict = verdict.todo(format!("ALTER TABLE aegis.{table} RESET (autovacuum_enabled)"));
        }
        verdict
    }
    .with(values)
}

/// Two client connections that are served by one process of the server: a transaction pooler is between.
pub(super) async fn pooler(look: &Look) -> Result<Verdict, StoreError> {
    let shared = look
        .store
        .bounded(async |store| {
            let (first, second) = (store.conn().await?, store.conn().await?);
            let mut pids = Vec::new();
            for conn in [&first, &second, &first, &second] {
                pids.push(doctor::backend(&conn.conn()).await?.pid);
            }
            Ok(pids[0] == pids[1] || pids[0] != pids[2] || pids[1] != pids[3])
        })
        .await;
    match shared {
        Ok(shared) => Ok(judge_pooler(shared, look.mode())),
        // What such a pooler does to a named statement.
        Err(StoreError::Database { source })
            if look.mode() == Mode::Named
                && source
                    .code()
                    .is_some_and(|code| ["26000", "42P05"].contains(&code.code())) =>
        {
            Ok(judge_pooler(true, Mode::Named))
        }
        Err(error) => Err(error),
    }
}

fn judge_pooler(shared: bool, mode: Mode) -> Verdict {
    let values = json!({ "pooler_seen": shared, "statements": if mode == Mode::Named { "named" } else { "unnamed" } });
    match (shared, mode) {
        (true, Mode::Named) => Verdict::new(
            Severity::Critical,
            "a transaction pooler is between, and the URL says statements=named",
        )
        .todo("take statements=named out of the URL, or go around the pooler"),
        (true, Mode::Unnamed) => {
            Verdict::ok("a transaction pooler is between, and statements are sent unnamed")
        }
        (false, Mode::Named) => Verdict::ok("no pooler was seen; statements are prepared by name"),
        (false, Mode::Unnamed) => Verdict::new(
            Severity::Notice,
            "no pooler was seen, and statements are planned at each call",
        )
        .todo(
            "add ?statements=named to the URL of the workers if no transaction pooler is between",
        ),
    }
    .with(values)
}

pub(super) async fn connections(look: &Look) -> Result<Verdict, StoreError> {
    let row = look
        .at(async |conn| doctor::connections(&conn).await)
        .await?;
    Ok(judge_connections(row.used, row.most))
}

#[expect(clippy::cast_precision_loss, reason = "a count of connections")]
fn judge_connections(used: i64, most: i64) -> Verdict {
    let share = used as f64 / most.max(1) as f64;
    Verdict::new(graded(share, 0.8, 0.95), format!("{used} of {most} connections are used ({:.0} %)", share * 100.0))
        .with(json!({ "used": used, "most": most }))
        .todo("raise max_connections (and restart), or put a transaction pooler between, or end idle sessions")
}

pub(super) async fn notify_queue(look: &Look) -> Result<Verdict, StoreError> {
    let row = look
        .at(async |conn| doctor::notify_queue(&conn).await)
        .await?;
    Ok(judge_notify_queue(row.usage))
}

fn judge_notify_queue(usage: f64) -> Verdict {
    Verdict::new(graded(usage, 0.1, 0.5), format!("{:.0} % full", usage * 100.0))
        .with(json!({ "usage": usage }))
        .todo("SELECT pid, usename, application_name, xact_start FROM pg_stat_activity ORDER BY xact_start NULLS LAST; end the oldest session that listens")
}

pub(super) async fn standbys(look: &Look) -> Result<Verdict, StoreError> {
    let row = look.at(async |conn| doctor::standbys(&conn).await).await?;
    Ok(judge_standbys(&row))
}

fn judge_standbys(row: &StandbysRow) -> Verdict {
    let (names, needed) = (&row.names, row.needed);
    let commit = row.engine_commit.as_ref().unwrap_or(&row.commit);
    let values = json!({ "synchronous_standby_names": names, "connected": row.connected, "synchronous": row.synchronous,
        "synchronous_commit": commit, "needed": needed });
    let waits = ["on", "remote_apply", "true", "yes", "1"].contains(&commit.as_str());
    if names.is_empty() {
        let severity = if needed { Severity::Warning } else { Severity::Notice };
        let why = if needed { "and queryable or blind operations are dispatched" } else { "which queryable and blind operations would need" };
        Verdict::new(severity, format!("no synchronous standby is configured, {why}"))
            .todo("set synchronous_standby_names to a standby, or accept that an asynchronous failover may lose the last dispatches (docs/guides/honest-limits.md)")
    } else if row.hidden > 0 && row.synchronous == 0 {
        Verdict::unknown(format!("{} standbys are connected; whether one is synchronous may not be seen", row.connected))
            .todo("GRANT pg_read_all_stats to the role that installed the schema")
    } else if row.synchronous == 0 {
        Verdict::new(Severity::Critical, format!("synchronous_standby_names is `{names}` and none of them is connected: every commit hangs"))
            .todo("start the standby, or take it out of synchronous_standby_names and reload")
    } else if waits {
        Verdict::ok(format!("{} synchronous standbys are connected", row.synchronous))
    } else {
        Verdict::new(Severity::Warning, format!("commits of aegis_engine do not wait for the standby: synchronous_commit is `{commit}`"))
            .todo("ALTER ROLE aegis_engine SET synchronous_commit = on")
    }
    .with(values)
}

pub(super) async fn kept_wal(look: &Look) -> Result<Verdict, StoreError> {
    let rows = look.at(async |conn| doctor::kept_wal(&conn).await).await?;
    Ok(judge_kept_wal(&rows))
}

fn judge_kept_wal(rows: &[KeptWalRow]) -> Verdict {
    let values = json!(rows.iter().map(|row| json!({ "slot": row.name, "active": row.active, "status": row.status, "bytes": row.bytes })).collect::<Vec<_>>());
    let all = rows.iter().map(|row| {
        let bytes = row.bytes.unwrap_or_default();
        let mut severity = graded(bytes, 10.0 * GIB, 100.0 * GIB);
        if row
            .status
            .as_deref()
            .is_some_and(|status| status != "reserved" && status != "extended")
        {
            severity = severity.max(Severity::Warning);
        }
        let active = if row.active { "active" } else { "not active" };
        Verdict::new(
            severity,
            format!(
                "slot {} ({active}, {}) keeps {:.1} GiB",
                row.name,
                row.status.as_deref().unwrap_or("no log kept"),
                bytes / GIB
            ),
        )
        .todo(format!(
            "start what reads it, or: SELECT pg_drop_replication_slot('{}')",
            row.name
        ))
    });
    Verdict::worst(all.collect())
        .unwrap_or_else(|| Verdict::ok("there is no replication slot"))
        .with(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(number: i32) -> ServerRow {
        ServerRow {
            version: "x".to_owned(),
            number,
            standby: false,
            fsync: "on".to_owned(),
            full_page_writes: "on".to_owned(),
            autovacuum: "on".to_owned(),
            track_counts: "on".to_owned(),
            sync_names: String::new(),
        }
    }

    #[test]
    fn a_server_is_judged_by_its_version_and_by_what_it_is() {
        let judged = |number| judge_version(&server(number)).severity;
        assert_eq!(judged(140_020), Severity::Critical);
        assert_eq!(judged(150_000), Severity::Ok);
        assert_eq!(judged(180_006), Severity::Ok);
        assert_eq!(judged(190_000), Severity::Notice);
        let standby = ServerRow {
            standby: true,
            ..server(160_000)
        };
        assert_eq!(judge_version(&standby).severity, Severity::Critical);
    }

    #[test]
    fn what_a_crash_would_lose_is_critical() {
        assert_eq!(judge_durability(&server(150_000)).severity, Severity::Ok);
        let off = ServerRow {
            fsync: "off".to_owned(),
            full_page_writes: "off".to_owned(),
            ..server(150_000)
        };
        let verdict = judge_durability(&off);
        assert_eq!(
            (verdict.severity, verdict.todo.len()),
            (Severity::Critical, 2)
        );
    }

    #[test]
    fn autovacuum_off_is_critical_and_one_table_left_out_a_warning() {
        let on = server(150_000);
        assert_eq!(judge_autovacuum(&on, &[]).severity, Severity::Ok);
        assert_eq!(
            judge_autovacuum(&on, &["task".to_owned()]).severity,
            Severity::Warning
        );
        let off = ServerRow {
            track_counts: "off".to_owned(),
            ..on
        };
        assert_eq!(judge_autovacuum(&off, &[]).severity, Severity::Critical);
    }

    #[test]
    fn a_pooler_is_bad_for_named_statements_only() {
        assert_eq!(judge_pooler(true, Mode::Named).severity, Severity::Critical);
        assert_eq!(judge_pooler(true, Mode::Unnamed).severity, Severity::Ok);
        assert_eq!(judge_pooler(false, Mode::Named).severity, Severity::Ok);
        assert_eq!(
            judge_pooler(false, Mode::Unnamed).severity,
            Severity::Notice
        );
    }

    #[test]
    fn connections_and_notifications_have_two_thresholds() {
        let judged: Vec<Severity> = [79, 80, 95]
            .into_iter()
            .map(|used| judge_connections(used, 100).severity)
            .collect();
        assert_eq!(
            judged,
            [Severity::Ok, Severity::Warning, Severity::Critical]
        );
        let judged: Vec<Severity> = [0.0, 0.1, 0.6]
            .into_iter()
            .map(|usage| judge_notify_queue(usage).severity)
            .collect();
        assert_eq!(
            judged,
            [Severity::Ok, Severity::Warning, Severity::Critical]
        );
    }

    #[test]
    fn a_synchronous_standby_is_judged_by_need_and_by_what_may_be_seen() {
        let none = StandbysRow {
            names: String::new(),
            connected: 0,
            synchronous: 0,
            hidden: 0,
            commit: "on".to_owned(),
            engine_commit: None,
            needed: false,
        };
        let judged = |row: StandbysRow| judge_standbys(&row).severity;
        assert_eq!(judged(none.clone()), Severity::Notice);
        assert_eq!(
            judged(StandbysRow {
                needed: true,
                ..none.clone()
            }),
            Severity::Warning
        );
        let named = StandbysRow {
            names: "s1".to_owned(),
            needed: true,
            ..none
        };
        assert_eq!(judged(named.clone()), Severity::Critical);
        assert_eq!(
            judged(StandbysRow {
                connected: 1,
                hidden: 1,
                ..named.clone()
            }),
            Severity::Unknown
        );
        let there = StandbysRow {
            connected: 1,
            synchronous: 1,
            ..named
        };
        assert_eq!(judged(there.clone()), Severity::Ok);
        assert_eq!(
            judged(StandbysRow {
                engine_commit: Some("local".to_owned()),
                ..there
            }),
            Severity::Warning
        );
    }

    #[test]
    fn a_slot_that_keeps_much_or_is_lost_is_told() {
        let slot = KeptWalRow {
            name: "s".to_owned(),
            active: false,
            status: Some("reserved".to_owned()),
            bytes: Some(1.0),
        };
        assert_eq!(judge_kept_wal(&[]).severity, Severity::Ok);
        assert_eq!(
            judge_kept_wal(std::slice::from_ref(&slot)).severity,
            Severity::Ok
        );
        let lost = KeptWalRow {
            status: Some("lost".to_owned()),
            ..slot.clone()
        };
        assert_eq!(
            judge_kept_wal(&[slot.clone(), lost]).severity,
            Severity::Warning
        );
        let full = KeptWalRow {
            bytes: Some(200.0 * GIB),
            ..slot
        };
        assert_eq!(judge_kept_wal(&[full]).severity, Severity::Critical);
    }
}
