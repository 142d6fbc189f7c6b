//! Partitions by the day in a task's id: made ahead, missed with a clear error, removed when nothing lives there.

use std::time::Duration;

use aegis_model::{ErrorCode, State};
use aegis_store::guarded::Completion;
use aegis_store::maintain::maintain;
use aegis_store::{Config, StoreError};
use aegis_testkit::{Stepper, wait_until};

use crate::support::Bed;

const PARENTS: [&str; 7] = [
    "task_body",
    "task_history",
    "checkpoint",
    "step",
    "operation",
    "attempt_error",
    "task_event",
];

fn owner(bed: &Bed) -> Config {
    Config::from_url(&bed.db.url()).unwrap()
}

/// Partitions for a day so many days ago, as they were made then. Answers its name.
async fn make_day(bed: &Bed, ago: i32) -> String {
    let day: String = bed
        .value(
            "select to_char(now() at time zone 'UTC' - $1 * interval '1 day', 'YYYYMMDD')",
            &[&f64::from(ago)],
        )
        .await;
    for parent in PARENTS {
        bed.sql(&format!(
            "create table aegis.{parent}_{day} (like aegis.{parent} including all);
             do $$ begin execute format('alter table aegis.{parent} attach partition aegis.{parent}_{day} for values from (%L) to (%L)',
                aegis.uuid7_floor('{day}'::timestamp at time zone 'UTC'), aegis.uuid7_floor('{day}'::timestamp at time zone 'UTC' + interval '1 day'));
             end $$"
        ))
        .await;
    }
    day
}

/// A task of that day which ended so many days ago.
async fn ended_task(bed: &Bed, day: &str, ended_ago: i32) {
    bed.sql(&format!(
        "insert into aegis.task_history (id, lane, tenant, state, failures, interruptions, crashes, snoozes, open_ops, epoch, rev, finished_at)
         values (aegis.uuid7_floor('{day}'::timestamp at time zone 'UTC' + interval '1 h'), 1, 1, 5, 0, 0, 0, 0, 0, 1, 1,
                 now() - {ended_ago} * interval '1 day')"
    ))
    .await;
}

async fn days(bed: &Bed, parent: &str) -> Vec<String> {
    let sql = "select right(inhrelid::regclass::text, 8) from pg_inherits where inhparent = $1::text::regclass order by 1";
    let parent = format!("aegis.{parent}");
    let rows = bed.db.admin.query(sql, &[&parent]).await.unwrap();
    rows.into_iter().map(|row| row.get(0)).collect()
}

#[tokio::test]
async fn partitions_are_made_ahead_once() {
    let bed = Bed::new().await;
    let made = maintain(&owner(&bed), 14, 30).await.unwrap();
    // Up to two days ahead are there from the install.
    assert_eq!((made.made, made.removed_days.len()), (12 * 7, 0));
    assert_eq!(maintain(&owner(&bed), 14, 30).await.unwrap().made, 0);
    let until: String = bed
        .value("select ((now() at time zone 'UTC')::date + 14)::text", &[])
        .await;
    let status = bed.store.database_status().await.unwrap();
    assert_eq!(status.partitions_until, Some(until));
    for parent in PARENTS {
        assert_eq!(days(&bed, parent).await.len(), 16, "{parent}");
    }
}

#[tokio::test]
async fn a_day_goes_when_nothing_of_it_lives_or_is_parked_or_ended_lately() {
    let bed = Bed::new().await;
    let (long_gone, late, live, parked, young) = (
        make_day(&bed, 60).await,
        make_day(&bed, 59).await,
        make_day(&bed, 58).await,
        make_day(&bed, 57).await,
        make_day(&bed, 20).await,
    );
    ended_task(&bed, &long_gone, 31).await;
    ended_task(&bed, &late, 29).await;
    ended_task(&bed, &young, 20).await;
    bed.sql(&format!(
        "insert into aegis.task (id, lane, tenant, state, ord) values (aegis.uuid7_floor('{live}'::timestamp at time zone 'UTC'), 1, 1, 1, 0);
         insert into aegis.parked (id, lane, tenant, policy, state, priority, failures, interruptions, crashes, snoozes, open_ops, parts, epoch,
            rev, parked_at, error)
         values (aegis.uuid7_floor('{parked}'::timestamp at time zone 'UTC' + interval '23:59:59.999'), 1, 1, 0, 6, 5, 1, 0, 0, 0, 0, false, 1, 1,
            now() - interval '57 days', '{{}}')"
    ))
    .await;
    let removed = maintain(&owner(&bed), 2, 30).await.unwrap().removed_days;
    assert_eq!(removed, std::slice::from_ref(&long_gone));
    for parent in PARENTS {
        assert!(!days(&bed, parent).await.contains(&long_gone), "{parent}");
        let table = format!("aegis.{parent}_{long_gone}");
        let there: bool = bed
            .value("select to_regclass($1) is not null", &[&table])
            .await;
        assert!(!there, "{table} is detached and not dropped");
    }
    bed.sql("delete from aegis.task; delete from aegis.parked; update aegis.task_history set finished_at = now() - interval '31 days'")
        .await;
    let removed = maintain(&owner(&bed), 2, 30).await.unwrap().removed_days;
    assert_eq!(removed, [late, live, parked]);
    let removed = maintain(&owner(&bed), 2, 19).await.unwrap().removed_days;
    assert_eq!(removed, [young]);
}

/// Somebody reads an old day for long. Dropping it would make every statement on the other days wait behind that reader.
#[tokio::test]
async fn m01_one_reader_of_an_old_day_does_not_hold_up_the_other_days() {
    let bed = Bed::new().await;
    let stepper = Stepper::new(&bed.db).await;
    let (reader, dropper, other) = (
        stepper.conn("reader").await,
        stepper.conn("dropper").await,
        stepper.conn("other").await,
    );
    let day = make_day(&bed, 60).await;
    let worker = bed.worker(&["k"]).await;
    let read = format!(
        "select count(*) from aegis.task_body where id < aegis.uuid7_floor('{day}'::timestamp at time zone 'UTC' + interval '1 day')"
    );
    let insert = "insert into aegis.task_body (id, tenant, protocol, input) values (aegis.uuid7(), 1, 1, '') returning 1";

    // The fact.
    reader.run("begin").await;
    reader.run(&read).await;
    let dropping = dropper.spawn(&format!("drop table aegis.task_body_{day}"));
    assert_eq!(dropping.blocked().await, ["reader"]);
    let waiting = other.spawn(insert);
    assert_eq!(
        waiting.blocked().await,
        ["dropper"],
        "the fact has changed: other days go on beside a DROP"
    );
    let cancelled: bool = bed
        .value("select pg_cancel_backend($1)", &[&dropper.pid()])
        .await;
    assert!(cancelled);
    assert!(dropping.done().await.is_err());
    waiting.done().await.unwrap();

    // What maintenance does instead.
    let config = owner(&bed);
    let maintaining = tokio::spawn(async move { maintain(&config, 2, 30).await });
    let detaching = "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'
        and query like '%CONCURRENTLY%'";
    wait_until(
        "the detach that waits for the reader",
        Duration::from_secs(20),
        async || bed.value::<i64>(detaching, &[]).await == 1,
    )
    .await;
    let held = bed.claim(&worker).await.held;
    assert_eq!(bed.complete(held).await.applied(), Some(State::Succeeded));
    other.run(insert).await;
    assert_eq!(
        bed.value::<i64>(detaching, &[]).await,
        1,
        "the detach waited no longer"
    );
    reader.run("commit").await;
    let maintained = maintaining.await.unwrap().unwrap();
    assert_eq!(maintained.removed_days, [day]);
}

/// A detach that was interrupted is finished by the next run, before any other day's.
#[tokio::test]
async fn an_interrupted_detach_is_finished_by_the_next_run() {
    let bed = Bed::new().await;
    let stepper = Stepper::new(&bed.db).await;
    let (reader, detacher) = (stepper.conn("reader").await, stepper.conn("detacher").await);
    let earlier = make_day(&bed, 61).await;
    let day = make_day(&bed, 60).await;
    reader.run("begin").await;
    reader
        .run(&format!("select count(*) from aegis.step_{day}"))
        .await;
    let detaching = detacher.spawn(&format!(
        "alter table aegis.step detach partition aegis.step_{day} concurrently"
    ));
    assert_eq!(detaching.blocked().await, ["reader"]);
    let cancelled: bool = bed
        .value("select pg_cancel_backend($1)", &[&detacher.pid()])
        .await;
    assert!(cancelled);
    assert!(detaching.done().await.is_err());
    reader.run("commit").await;
    let pending: i64 = bed
        .value(
            "select count(*) from pg_inherits where inhdetachpending",
            &[],
        )
        .await;
    assert_eq!(pending, 1, "nothing was interrupted");
    let maintained = maintain(&owner(&bed), 2, 30).await.unwrap();
    assert_eq!(maintained.removed_days, [earlier, day]);
}

#[tokio::test]
async fn m02_a_missing_partition_fails_completion_and_submit_with_a_clear_error() {
    let bed = Bed::new().await;
    let worker = bed.worker(&["k"]).await;
    bed.submit_many("k", 3).await;
    let claims = bed.acquire(&worker, 3).await;
    let today: String = bed
        .value("select to_char(now() at time zone 'UTC', 'YYYYMMDD')", &[])
        .await;
    bed.sql(&format!("drop table aegis.task_history_{today}"))
        .await;
    let group: Vec<Completion> = claims
        .iter()
        .map(|claim| Completion {
            held: claim.held,
            result: None,
        })
        .collect();
    let before = bed.rows().await;
    let error = bed.store.complete(group.clone()).await.unwrap_err();
    assert!(matches!(error, StoreError::NoPartition { .. }), "{error:?}");
    assert_eq!(error.code(), Some(ErrorCode::NO_PARTITION));
    assert!(error.to_string().contains("aegis db maintain"), "{error}");
    assert_eq!(
        bed.rows().await,
        before,
        "a task was charged for a missing partition"
    );
    bed.sql(&format!("drop table aegis.task_body_{today}"))
        .await;
    let error = bed
        .store
        .submit(aegis_store::NewTask::new("k", "{}"))
        .await
        .unwrap_err();
    assert!(matches!(error, StoreError::NoPartition { .. }), "{error:?}");
    maintain(&owner(&bed), 2, 30).await.unwrap();
    for answer in bed.store.complete(group).await.unwrap() {
        assert_eq!(answer.applied(), Some(State::Succeeded));
    }
}

#[tokio::test]
async fn an_id_lies_in_the_partition_of_the_databases_day() {
    let bed = Bed::new().await;
    for sql in [
        // Every bound, and the last moment before it.
        "select bool_and(aegis.uuid7_time(aegis.uuid7_floor(d)) = d and aegis.uuid7_floor(d - interval '1 ms') < aegis.uuid7_floor(d))
         from generate_series('2026-01-01 00:00 UTC'::timestamptz, '2036-01-01', '1 day') d",
        "select abs(extract(epoch from aegis.uuid7_time(aegis.uuid7()) - clock_timestamp())) < 1",
        "select bool_and(substr(u::text, 15, 1) = '7' and substr(u::text, 20, 1) in ('8', '9', 'a', 'b'))
         from (select aegis.uuid7() u from generate_series(1, 100)) x",
        "select bool_and(substr(u::text, 15, 1) = '7' and substr(u::text, 20, 1) in ('8', '9', 'a', 'b')) and count(distinct u) = 10000
         from (select aegis.uuid7_nth(1234567890123, 4611686018427387903, n) u from generate_series(1, 10000) n) x",
    ] {
        assert!(bed.value::<bool>(sql, &[]).await, "{sql}");
    }
}

/// A fleet without a cron job must not run out of days: whoever is alive makes one more, with the installer's rights.
#[tokio::test]
async fn whoever_is_alive_makes_the_next_day() {
    let bed = Bed::new().await;
    let worker = bed.worker(&["k"]).await;
    let sql =
        "select count(*)::int4 from pg_inherits where inhparent = 'aegis.task_history'::regclass";
    let before: i32 = bed.value(sql, &[]).await;
    for made in 1..=2 {
        bed.sql("update aegis.housekeeping set next_at = '-infinity' where job = 'partition'")
            .await;
        bed.store.tick(worker.id).await.unwrap();
        assert_eq!(bed.value::<i32>(sql, &[]).await, before + made);
    }
    // What cannot be made is warned about, and the tick goes on.
    bed.sql(
        "update aegis.housekeeping set next_at = '-infinity' where job = 'partition';
         alter table aegis.step rename to step_gone",
    )
    .await;
    bed.store.tick(worker.id).await.unwrap();
}
