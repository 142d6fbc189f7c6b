//! The database's checks and functions restate the state machine of `aegis_model::state`.

use std::collections::BTreeSet;

use aegis_model::state::{STATES, TRANSITIONS};
use aegis_model::{Cause, Class, Resolution, State};
use aegis_store::change::Change;
use tokio_postgres::error::SqlState;
use uuid::Uuid;

use crate::support::{Bed, failure, release};

/// Does the database take this statement? Only a check may refuse it.
async fn accepts(bed: &Bed, sql: &str) -> bool {
    let client = &bed.db.admin;
    client.batch_execute("begin").await.unwrap();
    let result = client.batch_execute(sql).await;
    client.batch_execute("rollback").await.unwrap();
    match result {
        Ok(()) => true,
        Err(error) => {
            assert_eq!(
                error.code(),
                Some(&SqlState::CHECK_VIOLATION),
                "{sql}: {error:?}"
            );
            false
        }
    }
}

#[tokio::test]
async fn each_table_takes_the_states_that_live_in_it_and_no_other() {
    let bed = Bed::new().await;
    for number in -1..=10 {
        let state = State::from_number(number);
        let known = STATES.contains(&state);
        let live = known && !state.is_terminal();
        let (holder, open) = (
            if number == 2 {
                "gen_random_uuid()"
            } else {
                "null"
            },
            i32::from(number == 4),
        );
        let owned = if number == 2 {
            "now(), 0, 1"
        } else {
            "null, null, null"
        };
        let task = format!(
            "insert into aegis.task (id, lane, tenant, state, ord, run_at, owner, claim_id, claimed_at, floor, timeline, open_ops)
             values (gen_random_uuid(), 1, 1, {number}, 0, now(), {holder}, {holder}, {owned}, {open})"
        );
        assert_eq!(accepts(&bed, &task).await, live, "task, state {number}");
        let parked = format!(
            "insert into aegis.parked (id, lane, tenant, policy, state, priority, failures, interruptions, crashes, snoozes, open_ops,
                parts, epoch, rev, parked_at, error)
             values (gen_random_uuid(), 1, 1, 0, {number}, 5, 0, 0, 0, 0, 0, false, 0, 0, now(), '{{}}')"
        );
        assert_eq!(
            accepts(&bed, &parked).await,
            known && state.is_parked(),
            "parked, state {number}"
        );
        let history = format!(
            "insert into aegis.task_history (id, lane, tenant, state, failures, interruptions, crashes, snoozes, open_ops, epoch, rev, finished_at)
             values (aegis.uuid7(), 1, 1, {number}, 0, 0, 0, 0, 0, 0, 0, now())"
        );
        assert_eq!(
            accepts(&bed, &history).await,
            known && state.is_terminal(),
            "history, state {number}"
        );
        let pending = format!(
            "insert into aegis.pending_outcome (task, tenant, state, epoch, rev, at) values (gen_random_uuid(), 1, {number}, 0, 0, now())"
        );
        assert_eq!(
            accepts(&bed, &pending).await,
            known && state.is_terminal(),
            "pending, state {number}"
        );
    }
}

/// Shapes that no state has.
#[tokio::test]
async fn shapes_that_make_no_sense_are_refused() {
    let bed = Bed::new().await;
    let worker = bed.worker(&["k"]).await;
    let ready = bed.submit("k").await;
    let running = bed
        .claim_with(&worker, |task| task.priority = 0)
        .await
        .held
        .task;
    assert_eq!(bed.state(ready).await, State::Ready);
    for (id, change) in [
        (running, "owner = null"),
        (running, "claim_id = null"),
        (running, "claimed_at = null"),
        (running, "floor = null"),
        (running, "timeline = null"),
        (running, "state = 1"),
        (running, "pending = 4"),
        (running, "pending = 9"),
        (ready, "state = 2"),
        (ready, "owner = gen_random_uuid()"),
        (ready, "claim_id = gen_random_uuid()"),
        (ready, "state = 0"),
        (ready, "state = 4"),
        (ready, "open_ops = -1"),
        (ready, "failures = -1"),
        (ready, "crashes = -1"),
        (ready, "priority = 10"),
        (ready, "epoch = -1"),
    ] {
        let sql = format!("update aegis.task set {change} where id = '{id}'");
        assert!(!accepts(&bed, &sql).await, "{change} was accepted");
    }
    for change in ["state = 4", "state = 3", "state = 2"] {
        let sql = format!("update aegis.worker set {change}");
        assert!(!accepts(&bed, &sql).await, "worker: {change} was accepted");
    }
}

/// Records where each task stands at the end of each transaction that touches it.
const RECORDER: &str = "
    create table public.stood (n bigint generated always as identity, tx xid8 default pg_current_xact_id(), id uuid, state smallint);
    grant all on public.stood to public;
    create function public.record() returns trigger language plpgsql as $$ begin
        insert into public.stood (id, state) values (new.id, new.state); return null; end $$;
    create trigger record after insert or update of state on aegis.task for each row execute function public.record();
    create trigger record after insert on aegis.parked for each row execute function public.record();
    create trigger record after insert on aegis.task_history for each row execute function public.record();";

/// Every change that the engine makes stands in the table, and everything in the table that has no `waiting` in it is made.
#[tokio::test]
async fn the_changes_that_the_database_makes_are_those_of_the_table() {
    let bed = Bed::new().await;
    bed.sql(RECORDER).await;
    live_through_everything(&bed).await;
    let rows = bed
        .db
        .admin
        .query(
            "with last as (select distinct on (id, tx) id, tx, state, n from public.stood order by id, tx, n desc),
                  pairs as (select lag(state) over (partition by id order by n) as a, state as b from last)
             select distinct a, b from pairs where a is not null and a <> b",
            &[],
        )
        .await
        .unwrap();
    let made: BTreeSet<(State, State)> = rows
        .iter()
        .map(|row| {
            (
                State::from_number(row.get(0)),
                State::from_number(row.get(1)),
            )
        })
        .collect();
    let legal: BTreeSet<(State, State)> = TRANSITIONS
        .iter()
        .map(|(from, _, to)| (*from, *to))
        .filter(|(from, to)| from != to)
        .collect();
    let illegal: Vec<_> = made.difference(&legal).collect();
    assert!(illegal.is_empty(), "not in the table: {illegal:?}");
    let unmade: Vec<_> = legal
        .difference(&made)
        .filter(|(from, to)| ![*from, *to].contains(&State::Waiting))
        .collect();
    assert!(unmade.is_empty(), "never made: {unmade:?}");
}

async fn make_ready(bed: &Bed) {
    bed.sql("update aegis.task set run_at = now() - interval '1 s' where state = 0")
        .await;
    let keeper = bed.worker(&["nothing"]).await;
    bed.tick(&keeper).await;
}

async fn let_deadlines_pass(bed: &Bed) {
    bed.sql("update aegis.task set next_deadline = now(), deadline_at = now() where next_deadline is not null")
        .await;
    let keeper = bed.worker(&["nothing"]).await;
    bed.tick(&keeper).await;
}

/// A life of each kind, through the store's own verbs.
async fn live_through_everything(bed: &Bed) {
    let hour = jiff::Timestamp::now() + jiff::SignedDuration::from_hours(1);
    let keeper = bed.worker(&["nothing"]).await;
    let worker = bed.worker(&["k"]).await;
    // Submitted, promoted, failed and retried, snoozed, handed back, completed.
    let later = bed.submit_with("k", |task| task.run_at = Some(hour)).await;
    make_ready(bed).await;
    bed.fail(bed.claim_again(&worker).await.held)
        .await
        .applied()
        .unwrap();
    make_ready(bed).await;
    let mut snooze = release(bed.claim_again(&worker).await.held, Cause::Snooze);
    snooze.run_after_ms = Some(3_600_000);
    bed.store.release(snooze).await.unwrap().applied().unwrap();
    make_ready(bed).await;
    bed.release(bed.claim_again(&worker).await.held, Cause::Drain)
        .await
        .applied()
        .unwrap();
    let last = bed.claim_again(&worker).await.held;
    assert_eq!(last.task, later);
    bed.complete(last).await.applied().unwrap();
    // Postponed, and started before its time.
    let id = bed.submit("k").await;
    let by = crate::verbs::by("why");
    for change in [Change::Reschedule { run_at: hour }, Change::RunNow] {
        let done = bed.store.change(&[id], change, &by, false).await.unwrap();
        assert!(done[0].answer.skip().is_none(), "{done:?}");
    }
    bed.complete(bed.claim_again(&worker).await.held)
        .await
        .applied()
        .unwrap();
    // Cancelled and out of time while it waits or runs.
    for run_at in [None, Some(hour)] {
        let id = bed.submit_with("k", |task| task.run_at = run_at).await;
        bed.store.cancel(id, "ann", "why").await.unwrap();
        bed.submit_with("k", |task| {
            task.run_at = run_at;
            task.deadline_at = Some(hour + jiff::SignedDuration::from_hours(1));
        })
        .await;
        let_deadlines_pass(bed).await;
    }
    let held = bed.claim(&worker).await.held;
    bed.store.cancel(held.task, "ann", "why").await.unwrap();
    bed.release(held, Cause::Cancelled).await.applied().unwrap();
    // Given up, redriven, given up again, discarded.
    let claim = bed
        .claim_with(&worker, |task| task.policy.max_failures = 1)
        .await;
    bed.fail(claim.held).await.applied().unwrap();
    bed.store
        .redrive(claim.held.task, "ann", "why")
        .await
        .unwrap();
    bed.fail(bed.claim_again(&worker).await.held)
        .await
        .applied()
        .unwrap();
    bed.store
        .discard(claim.held.task, "ann", "why")
        .await
        .unwrap();
    // Every outcome through a doubt.
    for end in ["ready", "complete", "fail", "cancel"] {
        let claim = bed.claim(&worker).await;
        let held = bed.dispatch(&claim, Class::Blind).await;
        match end {
            "ready" => drop(bed.release(held, Cause::Drain).await.applied().unwrap()),
            "complete" => drop(bed.complete(held).await.applied().unwrap()),
            "fail" => {
                let mut error = failure(held);
                error.retryable = false;
                bed.store
                    .fail(vec![error])
                    .await
                    .unwrap()
                    .remove(0)
                    .applied()
                    .unwrap();
            }
            _ => {
                bed.store.cancel(held.task, "ann", "why").await.unwrap();
                bed.release(held, Cause::Cancelled).await.applied().unwrap();
            }
        }
        resolve(bed, held.task).await;
        if end == "ready" {
            bed.complete(bed.claim_again(&worker).await.held)
                .await
                .applied()
                .unwrap();
        }
    }
    // Quarantined at the first crash, with and without a doubt, and redriven.
    for doubts in [false, true] {
        let dead = bed.worker(&["k"]).await;
        let claim = bed
            .claim_with(&dead, |task| task.policy.max_crashes = 1)
            .await;
        let id = claim.held.task;
        bed.expire(&dead).await;
        bed.tick(&keeper).await;
        let dead = bed.worker(&["k"]).await;
        let claim = bed.acquire_suspect(&dead).await.unwrap();
        if doubts {
            bed.dispatch(&claim, Class::Blind).await;
        }
        bed.expire(&dead).await;
        bed.tick(&keeper).await;
        if doubts {
            resolve(bed, id).await;
        } else {
            bed.store.redrive(id, "ann", "why").await.unwrap();
            bed.complete(bed.claim_again(&worker).await.held)
                .await
                .applied()
                .unwrap();
        }
    }
    assert_eq!(
        bed.value::<i64>("select count(*) from aegis.task", &[])
            .await,
        0,
        "a life has no end"
    );
}

async fn resolve(bed: &Bed, id: Uuid) {
    let happened = Resolution::Happened;
    bed.store
        .resolve_operation(id, "blind", happened, None, "ann", "seen")
        .await
        .unwrap();
}
