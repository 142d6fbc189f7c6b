//! Guarded writes beside everything that can move a task's row at the same moment, in both orders.

use aegis_model::{Cause, Class, Resolution, State};
use aegis_testkit::Stepper;

use crate::raw;
use crate::support::Bed;

async fn begin(conn: &aegis_testkit::StepConn) {
    conn.run("begin").await;
}

async fn commit(conn: &aegis_testkit::StepConn) {
    conn.run("commit").await;
}

/// The guard's form with the lease read in the same statement, as the laboratory had it: what the fact is about.
const LEASE_IN_THE_STATEMENT: &str = "with l as materialized (select id, owner from aegis.task where state = 2 for no key update)
    select exists (select from l join aegis.worker w on w.id = l.owner and w.state <= 1
                   join aegis.worker_lease e on e.worker = w.id and e.lease_until > clock_timestamp())";

#[tokio::test]
async fn m06_a_renewal_during_the_lock_wait_is_seen() {
    for (form, is_seen) in [("complete", true), (LEASE_IN_THE_STATEMENT, false)] {
        let bed = Bed::new().await;
        let stepper = Stepper::new(&bed.db).await;
        let (holder, writer) = (stepper.conn("holder").await, stepper.conn("writer").await);
        let worker = bed.worker(&["k"]).await;
        let held = bed.claim(&worker).await.held;
        bed.expire(&worker).await;
        begin(&holder).await;
        holder.run("select from aegis.task for update").await;
        let renewal =
            "update aegis.worker_lease set lease_until = clock_timestamp() + interval '1 min'";
        if is_seen {
            let pending = raw::complete(&writer, held);
            assert_eq!(pending.blocked().await, ["holder"]);
            bed.sql(renewal).await;
            commit(&holder).await;
            assert!(pending.done().await, "a valid completion was dropped");
            assert_eq!(bed.state(held.task).await, State::Succeeded);
        } else {
            let pending = writer.spawn(form);
            assert_eq!(pending.blocked().await, ["holder"]);
            bed.sql(renewal).await;
            commit(&holder).await;
            let rows = pending.done().await.unwrap();
            assert!(
                !rows[0].get::<_, bool>(0),
                "the fact has changed: the statement's own snapshot sees the renewal"
            );
        }
    }
}

#[tokio::test]
async fn m07_a_worker_lost_during_the_lock_wait_is_refused() {
    for (form, refused) in [("complete", true), (LEASE_IN_THE_STATEMENT, false)] {
        let bed = Bed::new().await;
        let stepper = Stepper::new(&bed.db).await;
        let (holder, writer) = (stepper.conn("holder").await, stepper.conn("writer").await);
        let worker = bed.worker(&["k"]).await;
        let held = bed.claim(&worker).await.held;
        begin(&holder).await;
        holder.run("select from aegis.task for update").await;
        let loss = "update aegis.worker set state = 3, ended_at = now()";
        if refused {
            let pending = raw::complete(&writer, held);
            assert_eq!(pending.blocked().await, ["holder"]);
            bed.sql(loss).await;
            commit(&holder).await;
            assert!(!pending.done().await, "a lost worker's write was accepted");
            assert_eq!(bed.state(held.task).await, State::Running);
        } else {
            let pending = writer.spawn(form);
            assert_eq!(pending.blocked().await, ["holder"]);
            bed.sql(loss).await;
            commit(&holder).await;
            let rows = pending.done().await.unwrap();
            assert!(
                rows[0].get::<_, bool>(0),
                "the fact has changed: the statement's own snapshot sees the loss"
            );
        }
    }
}

#[tokio::test]
async fn rl_23_a_lease_that_runs_out_during_the_lock_wait_is_refused() {
    let bed = Bed::new().await;
    let stepper = Stepper::new(&bed.db).await;
    let (holder, writer) = (stepper.conn("holder").await, stepper.conn("writer").await);
    let worker = bed.worker(&["k"]).await;
    let held = bed.claim(&worker).await.held;
    begin(&holder).await;
    holder.run("select from aegis.task for update").await;
    bed.sql("update aegis.worker_lease set lease_until = clock_timestamp() + interval '200 ms'")
        .await;
    let pending = raw::complete(&writer, held);
    assert_eq!(pending.blocked().await, ["holder"]);
    aegis_testkit::wait_until(
        "the lease's end",
        std::time::Duration::from_secs(10),
        async || {
            bed.value::<bool>(
                "select lease_until < clock_timestamp() from aegis.worker_lease",
                &[],
            )
            .await
        },
    )
    .await;
    commit(&holder).await;
    assert!(
        !pending.done().await,
        "judged by the clock of before the wait"
    );
    assert_eq!(bed.state(held.task).await, State::Running);
}

#[tokio::test]
async fn m08_an_edit_of_the_row_during_the_lock_wait_does_not_drop_a_completion() {
    let bed = Bed::new().await;
    let stepper = Stepper::new(&bed.db).await;
    let (editor, writer) = (stepper.conn("editor").await, stepper.conn("writer").await);
    let worker = bed.worker(&["k"]).await;
    for edit in ["cancel", "priority", "ctid"] {
        let held = bed.claim(&worker).await.held;
        let sql = match edit {
            "cancel" => format!("select aegis.cancel_task('{}', 'ann', 'why')", held.task),
            _ => format!(
                "update aegis.task set priority = 1 where id = '{}'",
                held.task
            ),
        };
        begin(&editor).await;
        editor.run(&sql).await;
        if edit == "ctid" {
            // The fact: the same write joined by ctid matches nothing.
            let pending = writer.spawn(&format!(
                "with l as materialized (select ctid as at from aegis.task where id = '{}' for no key update)
                 update aegis.task t set rev = rev + 1 from l where t.ctid = l.at returning 1",
                held.task
            ));
            assert_eq!(pending.blocked().await, ["editor"]);
            commit(&editor).await;
            let rows = pending.done().await.unwrap();
            assert!(rows.is_empty(), "the fact has changed: ctid finds the row");
        } else {
            let pending = raw::complete(&writer, held);
            assert_eq!(pending.blocked().await, ["editor"]);
            commit(&editor).await;
            assert!(pending.done().await, "{edit} dropped a valid completion");
            assert_eq!(bed.state(held.task).await, State::Succeeded, "{edit}");
        }
    }
}

#[tokio::test]
async fn a_cancel_request_beside_a_completion_answers_that_it_has_ended() {
    let bed = Bed::new().await;
    let stepper = Stepper::new(&bed.db).await;
    let (writer, person) = (stepper.conn("writer").await, stepper.conn("person").await);
    let worker = bed.worker(&["k"]).await;
    let held = bed.claim(&worker).await.held;
    begin(&writer).await;
    assert!(raw::complete(&writer, held).done().await);
    let pending = raw::cancel(&person, held.task);
    assert_eq!(pending.blocked().await, ["writer"]);
    commit(&writer).await;
    assert_eq!(pending.done().await, "ended");
    assert_eq!(bed.state(held.task).await, State::Succeeded);
}

#[tokio::test]
async fn te_36_rl_01_the_reaper_leaves_a_row_that_is_being_completed() {
    let bed = Bed::new().await;
    let stepper = Stepper::new(&bed.db).await;
    let (writer, reaper) = (stepper.conn("writer").await, stepper.conn("reaper").await);
    let worker = bed.worker(&["k"]).await;
    let held = bed.claim(&worker).await.held;
    begin(&writer).await;
    assert!(raw::complete(&writer, held).done().await);
    bed.expire(&worker).await;
    assert_eq!(
        raw::number(&reaper, "aegis.expire_workers()").done().await,
        1
    );
    assert_eq!(raw::number(&reaper, "aegis.reap(100)").done().await, 0);
    commit(&writer).await;
    assert_eq!(raw::number(&reaper, "aegis.reap(100)").done().await, 0);
    assert_eq!(bed.state(held.task).await, State::Succeeded);
}

#[tokio::test]
async fn te_42_rl_10_a_completion_that_waits_for_the_reaper_is_fenced() {
    let bed = Bed::new().await;
    let stepper = Stepper::new(&bed.db).await;
    let (writer, reaper) = (stepper.conn("writer").await, stepper.conn("reaper").await);
    let worker = bed.worker(&["k"]).await;
    let held = bed.claim(&worker).await.held;
    bed.expire(&worker).await;
    begin(&reaper).await;
    assert_eq!(
        raw::number(&reaper, "aegis.expire_workers()").done().await,
        1
    );
    assert_eq!(raw::number(&reaper, "aegis.reap(100)").done().await, 1);
    let pending = raw::complete(&writer, held);
    assert_eq!(pending.blocked().await, ["reaper"]);
    commit(&reaper).await;
    assert!(!pending.done().await, "a reaped task was completed");
    assert_eq!(bed.state(held.task).await, State::Ready);
    assert_eq!(bed.live::<i64>(held.task, "epoch").await, held.epoch + 1);
}

/// A result committed after the reaper's statement began is seen when the row's turn comes: nothing is left to decide.
#[tokio::test]
async fn a_late_result_is_seen_by_a_reaper_that_began_before_it() {
    let bed = Bed::new().await;
    let stepper = Stepper::new(&bed.db).await;
    let holder = stepper.conn("holder").await;
    let (writer, reaper) = (stepper.conn("writer").await, stepper.conn("reaper").await);
    let worker = bed.worker(&["k"]).await;
    // A loop over a query takes ten rows first, and the others later: the last row's turn comes after the wait.
    bed.submit_many("k", 12).await;
    let claims = bed.acquire(&worker, 12).await;
    let (first, last) = (&claims[0], &claims[11]);
    bed.dispatch(first, Class::Queryable).await;
    let held = bed.dispatch(last, Class::Blind).await;
    begin(&writer).await;
    assert!(raw::settle(&writer, held, last.lane, "blind").done().await);
    bed.expire(&worker).await;
    begin(&holder).await;
    holder
        .run(&format!(
            "select from aegis.operation where task = '{}' for update",
            first.held.task
        ))
        .await;
    begin(&reaper).await;
    assert_eq!(
        raw::number(&reaper, "aegis.expire_workers()").done().await,
        1
    );
    let pending = raw::number(&reaper, "aegis.reap(100)");
    assert_eq!(pending.blocked().await, ["holder"]);
    commit(&writer).await;
    commit(&holder).await;
    assert_eq!(pending.done().await, 12);
    commit(&reaper).await;
    assert_eq!(bed.live::<i32>(held.task, "open_ops").await, 0);
    assert_eq!(bed.state(held.task).await, State::Ready);
    let ledger = bed.store.ledger(held.task).await.unwrap();
    assert_eq!(ledger[0].state, aegis_model::OperationState::Succeeded);
}

/// The rows that a reaper reaches late may have changed hands meanwhile, to a worker younger than its snapshot.
#[tokio::test]
async fn the_reaper_judges_each_row_with_fresh_eyes() {
    let bed = Bed::new().await;
    let stepper = Stepper::new(&bed.db).await;
    let holder = stepper.conn("holder").await;
    let (reaper, second) = (stepper.conn("reaper").await, stepper.conn("second").await);
    let dead = bed.worker(&["k"]).await;
    bed.submit_many("k", 12).await;
    let claims = bed.acquire(&dead, 12).await;
    bed.dispatch(&claims[0], Class::Queryable).await;
    bed.expire(&dead).await;
    assert_eq!(
        raw::number(&second, "aegis.expire_workers()").done().await,
        1
    );
    begin(&holder).await;
    holder
        .run(&format!(
            "select from aegis.operation where task = '{}' for update",
            claims[0].held.task
        ))
        .await;
    let pending = raw::number(&reaper, "aegis.reap(100)");
    assert_eq!(pending.blocked().await, ["holder"]);
    // The other two change hands while the first reaper hangs at its first row.
    assert_eq!(raw::number(&second, "aegis.reap(100)").done().await, 2);
    let young = bed.worker(&["k"]).await;
    bed.sql("update aegis.task set crashes = 0 where state = 1")
        .await;
    let taken = bed.acquire(&young, 10).await;
    assert_eq!(taken.len(), 2);
    commit(&holder).await;
    assert_eq!(
        pending.done().await,
        10,
        "a live worker's tasks were taken back"
    );
    for claim in taken {
        assert_eq!(bed.state(claim.held.task).await, State::Running);
    }
}

#[tokio::test]
async fn two_people_resolve_the_last_two_operations_at_once() {
    let bed = Bed::new().await;
    let stepper = Stepper::new(&bed.db).await;
    let (ann, bob) = (stepper.conn("ann").await, stepper.conn("bob").await);
    let worker = bed.worker(&["k"]).await;
    let claim = bed.claim(&worker).await;
    let held = bed
        .dispatch_named(claim.held, claim.lane, Class::Blind, "one")
        .await;
    let held = bed
        .dispatch_named(held, claim.lane, Class::Blind, "two")
        .await;
    let after = bed.release(held, Cause::Drain).await;
    assert_eq!(after.applied(), Some(State::Reconciling));
    begin(&ann).await;
    let first = raw::resolve(&ann, held.task, "one", Resolution::Happened);
    assert_eq!(first.done().await, "resolved");
    let pending = raw::resolve(&bob, held.task, "two", Resolution::DidNotHappen);
    assert_eq!(pending.blocked().await, ["ann"]);
    commit(&ann).await;
    assert_eq!(pending.done().await, "resolved");
    assert_eq!(bed.state(held.task).await, State::Ready);
    assert_eq!(bed.live::<i32>(held.task, "open_ops").await, 0);
}

#[tokio::test]
async fn a_resolution_beside_a_completion_waits_and_then_finds_the_doubt() {
    let bed = Bed::new().await;
    let stepper = Stepper::new(&bed.db).await;
    let (writer, person) = (stepper.conn("writer").await, stepper.conn("person").await);
    let worker = bed.worker(&["k"]).await;
    let claim = bed.claim(&worker).await;
    let held = bed.dispatch(&claim, Class::Blind).await;
    begin(&writer).await;
    assert!(raw::complete(&writer, held).done().await);
    let pending = raw::resolve(&person, held.task, "blind", Resolution::Happened);
    assert_eq!(pending.blocked().await, ["writer"]);
    commit(&writer).await;
    // The completion made it unknown, and the resolution, which waited, sees that and settles the task.
    assert_eq!(pending.done().await, "resolved");
    assert_eq!(bed.state(held.task).await, State::Succeeded);

    let claim = bed.claim(&worker).await;
    let held = bed.dispatch(&claim, Class::Blind).await;
    begin(&person).await;
    let early = raw::resolve(&person, held.task, "blind", Resolution::Happened);
    assert_eq!(early.done().await, "not_unknown");
    let pending = raw::complete(&writer, held);
    assert_eq!(pending.blocked().await, ["person"]);
    commit(&person).await;
    assert!(pending.done().await);
    assert_eq!(bed.state(held.task).await, State::Reconciling);
}

/// An answer that was lost while the write is still under way: the read-back waits for the row and then says the truth.
#[tokio::test]
async fn rl_34_a_read_back_waits_for_a_write_under_way() {
    let bed = Bed::new().await;
    let stepper = Stepper::new(&bed.db).await;
    let (writer, reader) = (stepper.conn("writer").await, stepper.conn("reader").await);
    let worker = bed.worker(&["k"]).await;
    let held = bed.claim(&worker).await.held;
    begin(&writer).await;
    assert!(raw::complete(&writer, held).done().await);
    let pending = raw::read_back(&reader, held.task);
    assert_eq!(pending.blocked().await, ["writer"]);
    commit(&writer).await;
    assert_eq!(
        pending.done().await,
        Some((State::Succeeded.number(), Some(1)))
    );

    let held = bed.claim(&worker).await.held;
    begin(&writer).await;
    assert!(raw::complete(&writer, held).done().await);
    let pending = raw::read_back(&reader, held.task);
    assert_eq!(pending.blocked().await, ["writer"]);
    writer.run("rollback").await;
    assert_eq!(pending.done().await, Some((State::Running.number(), None)));
}

/// The reaper charges a crash while the successor registers: whoever comes second sees the other.
#[tokio::test]
async fn a_successor_beside_the_reaper_turns_the_crash_into_an_interruption() {
    let bed = Bed::new().await;
    let stepper = Stepper::new(&bed.db).await;
    let reaper = stepper.conn("reaper").await;
    for reaper_is_first in [true, false] {
        let dead = bed.worker(&["k"]).await;
        let held = bed.claim(&dead).await.held;
        bed.expire(&dead).await;
        assert_eq!(
            raw::number(&reaper, "aegis.expire_workers()").done().await,
            1
        );
        let successor = stepper.conn(&format!("successor {reaper_is_first}")).await;
        let registration = format!(
            "with w as (insert into aegis.worker (id, slots, pid, predecessor, registered_at, name, host, release, build, digest, schema)
               values (gen_random_uuid(), 1, 1, '{0}', now(), 'w', 'h', 'r', 'b', 'none', 7))
             select aegis.succeed_worker('{0}')",
            dead.id
        );
        let forgiven = if reaper_is_first {
            begin(&reaper).await;
            assert_eq!(raw::number(&reaper, "aegis.reap(10)").done().await, 1);
            let pending = successor.spawn(&registration);
            assert_eq!(pending.blocked().await, ["reaper"]);
            commit(&reaper).await;
            pending.done().await.unwrap()
        } else {
            begin(&successor).await;
            let forgiven = successor.run(&registration).await;
            assert_eq!(raw::number(&reaper, "aegis.reap(10)").done().await, 0);
            commit(&successor).await;
            assert_eq!(raw::number(&reaper, "aegis.reap(10)").done().await, 1);
            forgiven
        };
        assert_eq!(forgiven[0].get::<_, i32>(0), i32::from(reaper_is_first));
        assert_eq!(bed.causes(held.task).await, ["interruption"]);
        assert_eq!(bed.live::<i32>(held.task, "crashes").await, 0);
        assert_eq!(bed.live::<i32>(held.task, "interruptions").await, 1);
        bed.store.cancel(held.task, "test", "done").await.unwrap();
    }
}
