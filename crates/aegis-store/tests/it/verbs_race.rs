//! Changes by people beside workers and each other: judged under the row's lock, or left alone.

use std::time::Duration;

use aegis_model::State;
use aegis_store::Store;
use aegis_store::change::{Answer, Change};
use aegis_store::view::TaskFilter;
use aegis_testkit::{Stepper, wait_until};
use tokio_postgres::Client;
use uuid::Uuid;

use crate::raw;
use crate::support::Bed;
use crate::verbs::by;

/// One verb on one task by SQL, so that it can be stepped.
fn change(verb: &str, id: Uuid, live: &str) -> String {
    format!(
        "select answer from aegis.change_task('{verb}', '{id}', {live}, '{{}}', '{{}}', 'ann', 'why', null, null, false, true)"
    )
}

#[tokio::test]
async fn a_task_that_is_claimed_between_the_look_and_the_lock_is_left_alone() {
    let bed = Bed::new().await;
    let worker = bed.worker(&["k"]).await;
    let stepper = Stepper::new(&bed.db).await;
    let (claimer, person) = (stepper.conn("claimer").await, stepper.conn("person").await);
    let id = bed.submit("k").await;
    claimer.run("begin").await;
    claimer
        .run(&format!(
            "update aegis.task set state = 2, owner = '{}', claim_id = gen_random_uuid(), claimed_at = now(), epoch = epoch + 1,
                floor = i.floor, timeline = i.timeline from aegis.lineage() i where id = '{id}'",
            worker.id
        ))
        .await;
    // Somebody wants to cancel what is ready.
    let pending = person.spawn(&change("cancel", id, "'{1}'"));
    assert_eq!(pending.blocked().await, ["claimer"]);
    claimer.run("commit").await;
    let rows = pending.done().await.unwrap();
    assert_eq!(rows[0].get::<_, String>(0), "moved_on");
    assert_eq!(bed.state(id).await, State::Running);
    assert!(bed.causes(id).await.is_empty(), "nothing was asked of it");
}

#[tokio::test]
async fn a_task_that_completes_during_the_lock_wait_has_ended() {
    let bed = Bed::new().await;
    let worker = bed.worker(&["k"]).await;
    let stepper = Stepper::new(&bed.db).await;
    let (writer, person) = (stepper.conn("writer").await, stepper.conn("person").await);
    for verb in ["cancel", "run_now", "reprioritise", "erase"] {
        let held = bed.claim(&worker).await.held;
        writer.run("begin").await;
        assert!(raw::complete(&writer, held).done().await);
        let pending = person.spawn(
            &change(verb, held.task, "null").replace("null, null, false", "null, 1::int2, false"),
        );
        assert_eq!(pending.blocked().await, ["writer"]);
        writer.run("commit").await;
        let rows = pending.done().await.unwrap();
        // Ended tasks are not among those that were wanted.
        assert_eq!(rows[0].get::<_, String>(0), "moved_on", "{verb}");
        assert_eq!(bed.state(held.task).await, State::Succeeded);
    }
}

/// A lock timeout of this database only: the role's own five seconds are for production.
async fn with_lock_timeout(bed: &Bed, timeout: &str) -> Store {
    bed.sql(&format!(
        "alter role aegis_engine in database {} set lock_timeout = '{timeout}'",
        bed.db.name()
    ))
    .await;
    Bed::store_as(&bed.db, "aegis_engine").await
}

async fn hold(bed: &Bed, id: Uuid) -> Client {
    let holder = bed.db.connect().await;
    let sql = format!("begin; select from aegis.task where id = '{id}' for update");
    holder.batch_execute(&sql).await.unwrap();
    holder
}

#[tokio::test]
async fn a_page_leaves_a_held_row_and_comes_back_to_it_alone() {
    let bed = Bed::new().await;
    let store = with_lock_timeout(&bed, "60s").await;
    let ids = bed.submit_many("k", 3).await;
    let holder = hold(&bed, ids[1]).await;
    let page = ids.clone();
    let pending =
        tokio::spawn(async move { store.change(&page, Change::Cancel, &by("x"), false).await });
    // While it waits for the one, the others are done, and nobody waits for them.
    for id in [ids[0], ids[2]] {
        wait_until(
            "the others are cancelled",
            Duration::from_secs(20),
            async || bed.state(id).await == State::Cancelled,
        )
        .await;
    }
    assert!(!pending.is_finished());
    holder.batch_execute("commit").await.unwrap();
    let done = pending.await.unwrap().unwrap();
    assert!(
        done.iter().all(|one| one.answer == Answer::Cancelled),
        "{done:?}"
    );
}

#[tokio::test]
async fn a_row_that_is_held_for_too_long_is_left_alone_and_told() {
    let bed = Bed::new().await;
    let store = with_lock_timeout(&bed, "300ms").await;
    let ids = bed.submit_many("k", 3).await;
    let holder = hold(&bed, ids[1]).await;
    let done = store
        .change(&ids, Change::Cancel, &by("x"), false)
        .await
        .unwrap();
    let words: Vec<&str> = done.iter().map(|one| one.answer.word()).collect();
    assert_eq!(words, ["cancelled", "busy", "cancelled"]);
    holder.batch_execute("commit").await.unwrap();
    let done = store
        .change(&ids, Change::Cancel, &by("x"), false)
        .await
        .unwrap();
    assert_eq!(done[1].answer, Answer::Cancelled);
}

#[tokio::test]
async fn a_row_that_could_not_be_judged_is_not_told_with_the_state_of_the_one_before_it() {
    let bed = Bed::new().await;
    let ids = bed.submit_many("k", 2).await;
    bed.sql(&format!(
        "create function public.breaks() returns trigger language plpgsql as
            $$ begin if new.task = '{}' then raise exception using errcode = 'check_violation', message = 'it breaks'; end if; return new; end $$;
        create trigger breaks before insert on aegis.task_event for each row execute function public.breaks()",
        ids[1]
    ))
    .await;
    let done = bed
        .store
        .change(&ids, Change::Cancel, &by("x"), false)
        .await
        .unwrap();
    assert_eq!(
        (done[0].state, done[0].answer.word()),
        (Some(State::Ready), "cancelled")
    );
    assert_eq!(
        (done[1].state, done[1].answer.word()),
        (None, "refused"),
        "{done:?}"
    );
}

#[tokio::test]
async fn two_sweeps_at_once_change_each_task_once() {
    let bed = Bed::new().await;
    let ids = bed.submit_many("k", 1200).await;
    let filter = TaskFilter {
        kind: Some("k".to_owned()),
        ..TaskFilter::default()
    };
    let sweep = async |reason: &'static str| {
        let mut sweep = bed
            .store
            .sweep(&filter, Change::Cancel, &by(reason), false)
            .await
            .unwrap();
        let mut changed = 0;
        while let Some(page) = sweep.page(&bed.store).await.unwrap() {
            changed += page
                .iter()
                .filter(|one| one.answer.skip().is_none())
                .count();
        }
        changed
    };
    let (one, other) = tokio::join!(sweep("one"), sweep("other"));
    assert_eq!(one + other, ids.len());
    let twice: i64 = bed
        .value(
            "select count(*) from (select from aegis.task_event group by task having count(*) > 1) x",
            &[],
        )
        .await;
    assert_eq!(twice, 0);
}

#[tokio::test]
async fn a_redrive_and_a_discard_of_one_task_do_not_both_happen() {
    let bed = Bed::new().await;
    let worker = bed.worker(&["k"]).await;
    let stepper = Stepper::new(&bed.db).await;
    let (one, other) = (stepper.conn("one").await, stepper.conn("other").await);
    let held = bed.claim(&worker).await.held;
    let mut fatal = crate::support::failure(held);
    fatal.retryable = false;
    bed.store.fail(vec![fatal]).await.unwrap();
    one.run("begin").await;
    let redrive = change("redrive", held.task, "null").replace("'{}', '{}'", "null, null");
    assert_eq!(one.run(&redrive).await[0].get::<_, String>(0), "redriven");
    let pending =
        other.spawn(&change("discard", held.task, "null").replace("'{}', '{}'", "null, null"));
    assert_eq!(pending.blocked().await, ["one"]);
    one.run("commit").await;
    // It was parked when the other looked; now it is live again, and not lost between the tables.
    assert_eq!(pending.done().await.unwrap()[0].get::<_, String>(0), "live");
    assert_eq!(bed.state(held.task).await, State::Ready);
}

#[tokio::test]
async fn one_row_that_the_database_refuses_holds_up_no_other() {
    let bed = Bed::new().await;
    let ids = bed.submit_many("k", 3).await;
    bed.sql(&format!(
        "create function aegis.no() returns trigger language plpgsql as $$ begin
            if new.task = '{}' then raise exception using errcode = '23514', message = 'not this one'; end if; return new; end $$;
         create trigger no before insert on aegis.task_event for each row execute function aegis.no()",
        ids[1]
    ))
    .await;
    let done = bed
        .store
        .change(&ids, Change::RunNow, &by("x"), false)
        .await
        .unwrap();
    assert!(done.iter().all(|one| one.answer.word() == "ready_already"));
    let done = bed
        .store
        .change(&ids, Change::Cancel, &by("x"), false)
        .await
        .unwrap();
    let words: Vec<&str> = done.iter().map(|one| one.answer.word()).collect();
    assert_eq!(words, ["cancelled", "refused", "cancelled"]);
    assert!(format!("{:?}", done[1].answer).contains("not this one"));
    assert_eq!(bed.state(ids[1]).await, State::Ready);
}
