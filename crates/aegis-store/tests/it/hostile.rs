//! What a hostile review of the statements found: each was a defect, reproduced by hand, before it was a test.

use aegis_model::{Class, FenceReason, Outcome, State};
use aegis_store::RetryPolicy;
use aegis_store::overrides::PauseScope;
use aegis_testkit::Stepper;

use crate::raw;
use crate::support::Bed;

/// Adding a day to a timestamptz adds 23 or 25 hours in a session whose zone changes its clocks.
#[tokio::test]
async fn partitions_follow_each_other_where_clocks_change() {
    let bed = Bed::new().await;
    let today: i32 = bed
        .value(
            "select extract(doy from clock_timestamp() at time zone 'UTC')::int",
            &[],
        )
        .await;
    // A zone of our own (POSIX) whose clocks change in three days and change back four days later.
    let (there, back) = ((today + 3) % 360 + 1, (today + 7) % 360 + 1);
    bed.sql(&format!("set timezone = 'STD0DST-1,J{there}/2,J{back}/2'"))
        .await;
    for days in [6, 12] {
        bed.sql(&format!("select aegis.make_partitions({days})"))
            .await;
    }
    bed.sql(
        "insert into aegis.task_body (id, tenant, protocol, input)
         select aegis.uuid7_floor(clock_timestamp() + h * interval '1 hour'), 1, 1, '{}' from generate_series(0, 12 * 24 - 24) h",
    )
    .await;
}

/// One task's policy must not make the claims of its whole lane fail.
#[tokio::test]
async fn a_duration_without_end_is_refused_at_submit() {
    let bed = Bed::new().await;
    for change in [
        |policy: &mut RetryPolicy| policy.start_to_close_ms = Some(i64::MAX),
        |policy: &mut RetryPolicy| policy.schedule_to_start_ms = Some(i64::MAX),
    ] {
        let mut task = aegis_store::NewTask::new("k", "{}");
        change(&mut task.policy);
        assert!(bed.store.submit(task).await.is_err());
    }
    let refused = bed
        .db
        .admin
        .batch_execute(
            "select aegis.policy_id(10, 3, 1000, 600000, null, 9223372036854775807, 30000)",
        )
        .await;
    assert!(refused.is_err(), "the table took it");
}

/// Infinity minus now is an error, and the tick that met it rolled back with all its jobs.
#[tokio::test]
async fn an_infinite_time_is_refused_and_would_not_stop_a_tick() {
    let bed = Bed::new().await;
    let worker = bed.worker(&["k"]).await;
    for field in ["run_at", "deadline_at"] {
        let sql = format!("select aegis.submit('k', '{{}}', {field} => 'infinity')");
        let error = bed.db.admin.batch_execute(&sql).await.unwrap_err();
        assert_eq!(
            error.code().map(tokio_postgres::error::SqlState::code),
            Some("AEG07"),
            "{field}"
        );
    }
    let task = bed.submit("k").await;
    bed.sql(&format!(
        "alter table aegis.task drop constraint task_times_are_finite;
         update aegis.task set state = 0, run_at = 'infinity' where id = '{task}'"
    ))
    .await;
    assert!(bed.tick(&worker).await.next_due_ms <= 60_000);
}

/// With an open operation its quarantine was only stored, and every claim that was to settle it killed a worker.
#[tokio::test]
async fn a_poison_task_with_an_open_operation_waits_for_a_person() {
    let bed = Bed::new().await;
    let alive = bed.worker(&["k"]).await;
    let first = bed.worker(&["k"]).await;
    let claim = bed.claim(&first).await;
    let id = claim.held.task;
    bed.dispatch(&claim, Class::Idempotent).await;
    bed.expire(&first).await;
    bed.tick(&alive).await;
    for _ in 0..3 {
        let next = bed.worker(&["k"]).await;
        assert!(
            bed.acquire_suspect(&next).await.is_some(),
            "it was not given alone"
        );
        bed.expire(&next).await;
        bed.tick(&alive).await;
    }
    assert_eq!(bed.state(id).await, State::Reconciling);
    let next = bed.worker(&["k"]).await;
    assert!(
        bed.acquire_suspect(&next).await.is_none(),
        "it was given to a fifth worker"
    );
}

/// A suspect that nobody may take must not keep a worker from everything else.
#[tokio::test]
async fn a_suspect_of_a_paused_tenant_puts_nobody_on_duty() {
    let bed = Bed::new().await;
    let worker = bed.worker(&["k"]).await;
    let suspect = bed
        .submit_with("k", |task| task.tenant = "paused".to_owned())
        .await;
    bed.sql(&format!(
        "update aegis.task set crashes = 1, ord = ord - 120000000 where id = '{suspect}'"
    ))
    .await;
    bed.store
        .pause(PauseScope::Tenant, "paused", "somebody", "a test")
        .await
        .unwrap();
    let tick = bed.tick(&worker).await;
    assert!(!tick.suspects && !tick.duty, "{tick:?}");
    bed.store
        .resume(PauseScope::Tenant, "paused", "ann", "it is over")
        .await
        .unwrap();
    let tick = bed.tick(&worker).await;
    assert!(tick.suspects && tick.duty, "{tick:?}");
}

/// A guarded write that waited for a row lock while the database was adopted belongs to the life before.
#[tokio::test]
async fn an_adoption_during_the_lock_wait_fences() {
    let bed = Bed::new().await;
    let stepper = Stepper::new(&bed.db).await;
    let (holder, writer) = (stepper.conn("holder").await, stepper.conn("writer").await);
    let worker = bed.worker(&["k"]).await;
    let held = bed.claim(&worker).await.held;
    holder.run("begin").await;
    holder.run("select from aegis.task for update").await;
    let pending = raw::complete(&writer, held);
    assert_eq!(pending.blocked().await, ["holder"]);
    bed.store.adopt("ann", "restored").await.unwrap();
    holder.run("commit").await;
    assert!(
        !pending.done().await,
        "a write of the life before was accepted"
    );
    assert_eq!(
        bed.complete(held).await,
        Outcome::Fenced(FenceReason::Lineage)
    );
    assert_eq!(bed.state(held.task).await, State::Running);
}
