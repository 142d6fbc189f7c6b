//! Each check goes from ok to bad by one change of the database, and back when it is undone.

use aegis_store::doctor::Severity::{self, Critical, Notice, Unknown, Warning};

use super::Patient;

/// One change: what breaks it, how bad that is, what mends it.
type Flip = (&'static str, &'static str, Severity, &'static str);

/// `$w` is the worker, `$d` the database's name.
async fn flip(patient: &Patient, flips: &[Flip]) {
    let fill = |sql: &str| {
        sql.replace("$w", &format!("'{}'", patient.worker.id))
            .replace("$d", patient.bed.db.name())
    };
    for (id, broken, severity, mend) in flips {
        let before = patient.one(id).await;
        assert!(
            before.severity <= Notice,
            "{id} before `{broken}`: {before:?}"
        );
        patient.bed.sql(&fill(broken)).await;
        let after = patient.one(id).await;
        assert_eq!(
            after.severity, *severity,
            "{id} after `{broken}`: {after:?}"
        );
        assert!(
            !after.todo.is_empty() && after.seen != before.seen,
            "{id}: {after:?}"
        );
        patient.bed.sql(&fill(mend)).await;
        let mended = patient.one(id).await;
        assert_eq!(
            mended.severity, before.severity,
            "{id} after `{mend}`: {mended:?}"
        );
    }
}

#[tokio::test]
async fn checks_of_the_database_flip() {
    let patient = Patient::new().await;
    flip(
        &patient,
        &[
            ("autovacuum", "alter table aegis.task set (autovacuum_enabled = off)", Warning, "alter table aegis.task reset (autovacuum_enabled)"),
            ("schema", "update aegis.schema_version set schema = schema - 1", Critical, "update aegis.schema_version set schema = schema + 1"),
            ("schema", "update aegis.schema_version set schema = schema + 1; insert into aegis.schema_step (version, name, checksum) select schema, 'x', 'x' from aegis.schema_version",
                Notice, "delete from aegis.schema_step where name = 'x'; update aegis.schema_version set schema = schema - 1"),
            ("schema", "alter table aegis.schema_version rename to s", Critical, "alter table aegis.s rename to schema_version"),
            ("lineage", "update aegis.database set system_identifier = system_identifier + 1", Critical, "update aegis.database set system_identifier = system_identifier - 1"),
            ("lineage", "update aegis.database set closed_at = now(), closed_why = 'restored'", Critical, "update aegis.database set closed_at = null, closed_why = null"),
            ("lineage", "revoke execute on function pg_control_system() from public", Critical, "grant execute on function pg_control_system() to public"),
            ("lineage", "grant execute on function pg_control_system() to aegis_engine, aegis_lease, aegis_submitter; revoke execute on function pg_control_system() from public",
                Unknown, "grant execute on function pg_control_system() to public"),
            ("role-settings", "alter role aegis_engine in database $d set jit = on", Critical, "alter role aegis_engine in database $d reset jit"),
            ("role-settings", "alter role aegis_lease in database $d set default_transaction_isolation = 'repeatable read'", Critical, "alter role aegis_lease in database $d reset all"),
            ("role-settings", "alter role aegis_submitter in database $d set lock_timeout = 0", Warning, "alter role aegis_submitter in database $d reset lock_timeout"),
            ("clock-database", "update aegis.worker_lease set lease_until = lease_until + interval '1 day'", Critical, "update aegis.worker_lease set lease_until = lease_until - interval '1 day'"),
            ("clock-database", "update aegis.housekeeping set next_at = now() + interval '2 hours' where job = 'reap'", Critical, "update aegis.housekeeping set next_at = now() where job = 'reap'"),
            ("indexes", "drop index aegis.task_resting", Critical, "create index task_resting on aegis.task (lane, id) where state in (0, 3, 4)"),
            ("indexes", "update pg_index set indisvalid = false where indexrelid = 'aegis.task_ready'::regclass", Critical, "update pg_index set indisvalid = true where indexrelid = 'aegis.task_ready'::regclass"),
            ("expired-keys", "insert into aegis.idempotency select 1, 'k', n::text, aegis.uuid7(), '', now() - interval '2 days' from generate_series(1, 5) n", Notice, "truncate aegis.idempotency"),
            ("expired-keys", "insert into aegis.idempotency select 1, 'k', n::text, gen_random_uuid(), '', now() - interval '2 days' from generate_series(1, 10001) n", Warning, "truncate aegis.idempotency"),
        ],
    )
    .await;
}

#[tokio::test]
async fn checks_of_partitions_flip() {
    let patient = Patient::new().await;
    // The day in the name is found by the server, so that this holds at midnight too.
    let day = |days: i32, rest: &str| {
        format!(
            "do $x$ declare p text := 'step_' || to_char((clock_timestamp() at time zone 'UTC')::date + {days}, 'YYYYMMDD');
             begin execute format('{rest}', p); end $x$"
        )
    };
    let detach = "alter table aegis.step detach partition aegis.%I";
    for (days, severity) in [(6, Warning), (1, Critical), (0, Critical)] {
        assert!(patient.one("partitions").await.severity <= Notice);
        patient.bed.sql(&day(days, detach)).await;
        let found = patient.one("partitions").await;
        assert_eq!(found.severity, severity, "{days}: {found:?}");
        patient.bed.sql(&day(days, "drop table aegis.%I")).await;
        patient.bed.sql("select aegis.make_partitions(14)").await;
    }
    for (days, severity) in [(-60, Notice), (-100, Warning)] {
        patient.bed.sql(&day(days, &format!(
            "create table aegis.%I partition of aegis.step for values from (''0000000{}-0000-0000-0000-000000000000'') to (''0000000{}-0000-0000-0000-000000000000'')",
            -days / 20, -days / 20 + 1
        ))).await;
        let found = patient.one("old-partitions").await;
        assert_eq!(found.severity, severity, "{days}: {found:?}");
    }
    patient.bed.sql("drop table aegis.step cascade").await;
    assert_eq!(patient.one("partitions").await.severity, Unknown);
}

#[tokio::test]
async fn checks_of_workers_flip() {
    let patient = Patient::new().await;
    let fresh = "update aegis.worker_lease set beat_at = now(), claim_moved_at = now(), progress_moved_at = now(), executing = 0, clock_ahead_ms = 0";
    flip(
        &patient,
        &[
            ("clock-workers", "update aegis.worker_lease set clock_ahead_ms = -4000", Notice, fresh),
            ("clock-workers", "update aegis.worker_lease set clock_ahead_ms = 120000", Warning, fresh),
            ("clock-workers", "update aegis.worker_lease set clock_ahead_ms = null", Unknown, fresh),
            ("workers", "update aegis.worker set state = 1", Warning, "update aegis.worker set state = 0"),
            ("workers", "update aegis.worker_lease set lease_until = lease_until - interval '1 day'", Warning, "update aegis.worker_lease set lease_until = lease_until + interval '1 day'"),
            ("renewals", "update aegis.worker_lease set beat_at = now() - interval '400 s'", Warning, fresh),
            ("renewals", "update aegis.worker_lease set beat_at = now() - interval '580 s'", Critical, fresh),
            ("claim-loops", "update aegis.worker_lease set claim_moved_at = beat_at - interval '2 min'", Warning, fresh),
            ("claim-loops", "update aegis.worker_lease set claim_moved_at = beat_at - interval '10 min'", Critical, fresh),
            ("claim-loops", "update aegis.worker_lease set claim_moved_at = null", Unknown, fresh),
            ("executions", "update aegis.worker_lease set executing = 2, progress_moved_at = beat_at - interval '1 h'", Warning, fresh),
            ("executions", "update aegis.worker_lease set progress_moved_at = null", Unknown, fresh),
            ("slots", "insert into aegis.task (id, lane, tenant, state, ord, owner, claim_id, claimed_at, floor, timeline)
                select aegis.uuid7(), aegis.lane_id('default', 'k', 1, 1), aegis.tenant_id('t'), 2, 1, $w, gen_random_uuid(), now(), i.floor, i.timeline from aegis.lineage() i, generate_series(1, 501)",
                Warning, "truncate aegis.task"),
            ("drains", "update aegis.worker set state = 1, draining_at = now() - interval '1 h'", Warning, "update aegis.worker set state = 0, draining_at = null"),
            ("housekeeping", "update aegis.housekeeping set next_at = now() - interval '2 min' where job = 'reap'", Warning, "update aegis.housekeeping set next_at = now()"),
            ("housekeeping", "update aegis.housekeeping set next_at = now() - interval '1 h' where job = 'reap'", Critical, "update aegis.housekeeping set next_at = now()"),
            ("housekeeping", "update aegis.housekeeping set next_at = '-infinity' where job = 'promote'", Notice, "update aegis.housekeeping set next_at = now()"),
        ],
    )
    .await;
}

const OPERATION: &str = "insert into aegis.operation (task, id, tenant, name, key, class, state, dispatches, protocol, epoch, timeout_ms, quiet_ms,
    first_dispatched_at, dispatched_at, quiet_until, fingerprint)
    select t.id, t.id || '/o', t.tenant, 'o', '1', 3, 4, 1, 1, 1, 1, 1, now(), now(), now(), '' from aegis.task t";

#[tokio::test]
async fn checks_of_tasks_flip() {
    let patient = Patient::new().await;
    let running = "insert into aegis.task (id, lane, tenant, state, ord, owner, claim_id, claimed_at, floor, timeline)
        select aegis.uuid7(), aegis.lane_id('default', 'k', 1, 1), aegis.tenant_id('t'), 2, 1, gen_random_uuid(), gen_random_uuid(), now() - interval ";
    let lost: Vec<String> = ["'20 s'", "'5 min'"]
        .iter()
        .map(|age| format!("{running}{age}, i.floor, i.timeline from aegis.lineage() i"))
        .collect();
    let old = "insert into aegis.task (id, lane, tenant, state, ord)
        values (aegis.uuid7_floor(now() - interval '1 h') , aegis.lane_id('default', 'z', 1, 1), aegis.tenant_id('t'), 1, 1)";
    // An id of a UUIDv7, whose version says so.
    let old = old.replace("aegis.uuid7_floor(now() - interval '1 h')", "overlay(overlay(aegis.uuid7_floor(now() - interval '1 h')::text placing '7' from 15 for 1) placing '8' from 20 for 1)::uuid");
    let unread = "insert into aegis.task (id, lane, tenant, state, ord) values (aegis.uuid7(), aegis.lane_id('default', 'z', 1, 1), aegis.tenant_id('t'), 1, 1)";
    let parked = |state: i32| {
        format!(
            "insert into aegis.parked (id, lane, tenant, policy, state, priority, failures, interruptions, crashes, snoozes, open_ops, parts, epoch, rev, parked_at, error)
             values (aegis.uuid7(), 1, 1, 0, {state}, 5, 1, 0, 0, 0, 0, false, 1, 1, now(), '{{}}')"
        )
    };
    let none = "truncate aegis.task, aegis.parked, aegis.operation";
    let leak = |text: &str| -> &'static str { Box::leak(text.to_owned().into_boxed_str()) };
    let twice = format!(
        "{unread}; {}; update aegis.parked set id = (select id from aegis.task)",
        parked(6)
    );
    flip(
        &patient,
        &[
            ("expired-running", leak(&lost[0]), Warning, none),
            ("expired-running", leak(&lost[1]), Critical, none),
            ("stranded", unread, Warning, none),
            ("stranded", leak(&old), Critical, none),
            ("stranded", leak(&format!("{unread}; update aegis.database set closed_at = now(), closed_why = 'x'; update aegis.worker_capability set kind = 'z'")),
                Unknown, "truncate aegis.task; update aegis.database set closed_at = null, closed_why = null; update aegis.worker_capability set kind = 'k'"),
            ("pauses", "insert into aegis.pause values ('queue', 'q', 'ann', 'why')", Notice, "truncate aegis.pause"),
            ("pauses", "insert into aegis.pause values ('queue', 'q', 'ann', 'why', now() - interval '2 days')", Warning, "truncate aegis.pause"),
            ("parked", leak(&parked(6)), Notice, none),
            ("parked", leak(&parked(8)), Warning, none),
            ("twice", leak(&twice), Critical, none),
        ],
    )
    .await;
}

#[tokio::test]
async fn checks_of_operations_flip() {
    let patient = Patient::new().await;
    let task = "insert into aegis.task (id, lane, tenant, state, ord, open_ops) values (aegis.uuid7(), aegis.lane_id('default', 'k', 1, 1), aegis.tenant_id('t'), 4, 1, 1)";
    let with = |change: &str| -> &'static str {
        Box::leak(format!("{task}; {OPERATION}; {change}").into_boxed_str())
    };
    let none = "truncate aegis.task, aegis.operation";
    flip(
        &patient,
        &[
            ("unknown-operations", with("select"), Notice, none),
            ("unknown-operations", with("update aegis.operation set dispatched_at = now() - interval '1 h'"), Warning, none),
            ("unknown-operations", with("update aegis.operation set dispatched_at = now() - interval '2 days'"), Critical, none),
            ("unknown-operations", with("update aegis.operation set taken_by = 'ann', taken_at = now() - interval '2 days'"), Warning, none),
            ("open-operations", with("truncate aegis.task"), Critical, none),
            ("open-operations", with("truncate aegis.operation"), Critical, none),
            ("open-operations", with("update aegis.task set open_ops = 2"), Critical, none),
            ("open-operations", with("update aegis.operation set state = 1, quiet_until = now() - interval '1 h'; update aegis.task set state = 1"), Warning, none),
            ("sync-standby", with("select"), Warning, none),
        ],
    )
    .await;
}

#[tokio::test]
async fn a_held_snapshot_is_seen_with_who_and_since_when() {
    let patient = Patient::new().await;
    assert_eq!(patient.one("oldest-snapshot").await.severity, Severity::Ok);
    let mut holder = patient.bed.db.connect_as("aegis_engine").await;
    let transaction = holder
        .build_transaction()
        .isolation_level(tokio_postgres::IsolationLevel::RepeatableRead)
        .start()
        .await
        .unwrap();
    let pid: String = transaction
        .query_one("select pg_backend_pid()::text", &[])
        .await
        .unwrap()
        .get(0);
    let found = patient.one("oldest-snapshot").await;
    let seen = found
        .values
        .as_array()
        .unwrap()
        .iter()
        .find(|one| one["name"].as_str() == Some(pid.as_str()))
        .unwrap_or_else(|| panic!("{found:?}"));
    // Although the reader itself may not see other sessions.
    assert!(
        seen["since_s"]
            .as_f64()
            .is_some_and(|since_s| (0.0..60.0).contains(&since_s)),
        "{seen}"
    );
    assert_eq!(
        (&seen["role"], &seen["holder"]),
        (&"aegis_engine".into(), &"session".into())
    );
    transaction.rollback().await.unwrap();
    // Five minutes are not waited for: what the window shows is replaced, and judged by the same check.
    let shows = |since: &str, xids: i32| {
        format!(
        "create or replace function aegis.snapshot_holders() returns table (holder text, name text, role text, application text, since timestamptz, xids bigint)
         language sql stable as $$ select 'session', '12', 'ann', 'psql', {since}, {xids}::bigint $$"
    )
    };
    for (since, xids, severity) in [
        ("now() - interval '10 min'", 1, Warning),
        ("now() - interval '2 h'", 1, Critical),
        ("null::timestamptz", 50_000, Unknown),
        ("null::timestamptz", 2_000_000, Warning),
    ] {
        patient.bed.sql(&shows(since, xids)).await;
        let found = patient.one("oldest-snapshot").await;
        assert_eq!(found.severity, severity, "{found:?}");
        assert!(
            found
                .todo
                .iter()
                .any(|step| step.contains("pg_terminate_backend(12)")),
            "{found:?}"
        );
    }
}

#[tokio::test]
async fn te_64_dead_rows_are_seen() {
    let patient = Patient::new().await;
    assert_eq!(patient.one("dead-rows").await.severity, Severity::Ok);
    patient
        .bed
        .sql(
            "alter table aegis.idempotency set (autovacuum_enabled = off);
             insert into aegis.idempotency select 1, 'k', n::text, gen_random_uuid(), '', now() from generate_series(1, 60000) n;
             delete from aegis.idempotency",
        )
        .await;
    patient.bed.sql("select pg_stat_force_next_flush()").await;
    aegis_testkit::wait_until("the server's figures", super::BOUND, async || {
        patient.one("dead-rows").await.severity == Warning
    })
    .await;
    let found = patient.one("dead-rows").await;
    assert!(found.seen.contains("idempotency: 60000 dead"), "{found:?}");
}
