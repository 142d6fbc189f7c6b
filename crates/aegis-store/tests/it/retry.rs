//! Handlers' errors: back-off, the last attempt, dead letters, redrive, discard, and groups with bad rows.

use aegis_model::limits::{ERROR_BYTES_MAX, PAYLOAD_BYTES_MAX};
use aegis_model::{Cause, Outcome, State};
use aegis_store::StoreError;
use aegis_store::guarded::{Completion, ReadBack};
use uuid::Uuid;

use crate::support::{Bed, failure, release};

async fn make_ready(bed: &Bed) {
    bed.sql("update aegis.task set state = 1, run_at = null where state = 0")
        .await;
}

/// A second, doubled at each failure up to the cap, and a quarter more or less.
#[tokio::test]
async fn back_off_doubles_within_its_jitter_and_its_cap() {
    let bed = Bed::new().await;
    let worker = bed.worker(&["k"]).await;
    let mut spread = Vec::new();
    for _ in 0..8 {
        let id = bed
            .submit_with("k", |task| {
                task.policy.backoff_initial_ms = 10_000;
                task.policy.backoff_cap_ms = 30_000;
            })
            .await;
        for nominal_ms in [10_000.0, 20_000.0, 30_000.0, 30_000.0] {
            let claim = bed.claim_again(&worker).await;
            assert_eq!(bed.fail(claim.held).await.applied(), Some(State::Scheduled));
            // Measured from the event, which was written in the same statement.
            let wait_ms: f64 = bed
                .value(
                    "select (extract(epoch from t.run_at - max(e.at)) * 1000)::float8 from aegis.task t
                     join aegis.task_event e on e.task = t.id where t.id = $1 group by t.run_at",
                    &[&id],
                )
                .await;
            let factor = wait_ms / nominal_ms;
            assert!(
                (0.74..1.26).contains(&factor),
                "{wait_ms} ms for {nominal_ms} ms"
            );
            spread.push(factor);
            make_ready(&bed).await;
        }
        bed.store.cancel(id, "test", "done").await.unwrap();
    }
    let least = spread.iter().copied().fold(f64::INFINITY, f64::min);
    let most = spread.iter().copied().fold(0.0, f64::max);
    assert!(most - least > 0.15, "no jitter: {least} to {most}");
}

#[tokio::test]
async fn a_handler_may_say_when_to_retry() {
    let bed = Bed::new().await;
    let worker = bed.worker(&["k"]).await;
    let claim = bed.claim(&worker).await;
    let mut later = failure(claim.held);
    later.retry_after_ms = Some(3_600_000);
    let after = bed.store.fail(vec![later]).await.unwrap().remove(0);
    assert_eq!(after.applied(), Some(State::Scheduled));
    let soon = "run_at between now() + interval '59 min' and now() + interval '61 min'";
    assert!(bed.live::<bool>(claim.held.task, soon).await);
    make_ready(&bed).await;
    let claim = bed.claim_again(&worker).await;
    let mut at_once = failure(claim.held);
    at_once.retry_after_ms = Some(0);
    let after = bed.store.fail(vec![at_once]).await.unwrap().remove(0);
    assert_eq!(after.applied(), Some(State::Ready));
}

#[tokio::test]
async fn the_last_allowed_failure_parks_the_task_with_every_error_kept() {
    let bed = Bed::new().await;
    let worker = bed.worker(&["k"]).await;
    let id = bed
        .submit_with("k", |task| task.policy.max_failures = 3)
        .await;
    for attempt in 1..=3 {
        let claim = bed.claim_again(&worker).await;
        assert_eq!(claim.failures, attempt - 1);
        let mut error = failure(claim.held);
        error.message = format!("attempt {attempt}");
        error.details = Some(serde_json::json!({ "n": attempt }));
        let after = bed.store.fail(vec![error]).await.unwrap().remove(0);
        let expected = if attempt < 3 {
            State::Scheduled
        } else {
            State::Failed
        };
        assert_eq!(after.applied(), Some(expected));
        make_ready(&bed).await;
    }
    let errors = bed.store.attempt_errors(id).await.unwrap();
    let messages: Vec<&str> = errors.iter().map(|error| error.message.as_str()).collect();
    assert_eq!(messages, ["attempt 1", "attempt 2", "attempt 3"]);
    assert_eq!(errors[2].details, Some(serde_json::json!({ "n": 3 })));
    let task = bed.store.task(id).await.unwrap().unwrap();
    assert_eq!(
        (task.failures, task.error.unwrap()["message"].as_str()),
        (3, Some("attempt 3"))
    );
}

#[tokio::test]
async fn what_is_not_retryable_is_parked_at_once() {
    let bed = Bed::new().await;
    let worker = bed.worker(&["k"]).await;
    let claim = bed.claim(&worker).await;
    let mut error = failure(claim.held);
    error.retryable = false;
    let after = bed.store.fail(vec![error]).await.unwrap().remove(0);
    assert_eq!(after.applied(), Some(State::Failed));
    let read_back = bed.store.read_back(claim.held, None).await.unwrap();
    assert!(matches!(
        read_back,
        ReadBack::Applied {
            state: State::Failed,
            ..
        }
    ));
}

#[tokio::test]
async fn a_redriven_task_counts_its_epoch_on_and_its_failures_anew() {
    let bed = Bed::new().await;
    let worker = bed.worker(&["k"]).await;
    let claim = bed
        .claim_with(&worker, |task| task.policy.max_failures = 1)
        .await;
    let id = claim.held.task;
    assert!(
        !bed.store.redrive(id, "ann", "why").await.unwrap(),
        "it runs"
    );
    bed.fail(claim.held).await.applied().unwrap();
    assert!(
        bed.store
            .redrive(id, "ann", "the bug is fixed")
            .await
            .unwrap()
    );
    assert!(!bed.store.redrive(id, "ann", "again").await.unwrap());
    assert_eq!(bed.state(id).await, State::Ready);
    assert!(
        bed.complete(claim.held).await.applied().is_none(),
        "a stale claim"
    );
    let again = bed.claim_again(&worker).await;
    assert!(again.held.epoch > claim.held.epoch);
    assert!(again.held.rev > claim.held.rev);
    assert_eq!(again.failures, 0);
    assert_eq!(
        bed.complete(again.held).await.applied(),
        Some(State::Succeeded)
    );
    let events = bed.store.events(id).await.unwrap();
    let redriven = events
        .iter()
        .find(|event| event.cause == "redriven")
        .unwrap();
    assert_eq!(redriven.actor.as_deref(), Some("ann"));
}

#[tokio::test]
async fn a_discarded_task_is_history_and_stays_what_it_was() {
    let bed = Bed::new().await;
    let worker = bed.worker(&["k"]).await;
    let claim = bed
        .claim_with(&worker, |task| task.policy.max_failures = 1)
        .await;
    let id = claim.held.task;
    assert!(!bed.store.discard(id, "ann", "why").await.unwrap());
    bed.fail(claim.held).await.applied().unwrap();
    assert!(
        bed.store
            .discard(id, "ann", "nobody needs it")
            .await
            .unwrap()
    );
    assert!(!bed.store.discard(id, "ann", "again").await.unwrap());
    assert!(!bed.store.redrive(id, "ann", "too late").await.unwrap());
    assert_eq!(bed.state(id).await, State::Failed);
    let ended: i64 = bed
        .value("select count(*) from aegis.task_history", &[])
        .await;
    assert_eq!(ended, 1);
}

#[tokio::test]
async fn a_snooze_comes_back_later_without_a_charge() {
    let bed = Bed::new().await;
    let worker = bed.worker(&["k"]).await;
    let claim = bed.claim(&worker).await;
    let id = claim.held.task;
    let mut snooze = release(claim.held, Cause::Snooze);
    snooze.run_after_ms = Some(3_600_000);
    let after = bed.store.release(snooze).await.unwrap();
    assert_eq!(after.applied(), Some(State::Scheduled));
    assert_eq!(bed.live::<i32>(id, "snoozes").await, 1);
    assert_eq!(bed.live::<i32>(id, "failures").await, 0);
    assert!(
        bed.live::<bool>(id, "run_at > now() + interval '59 min'")
            .await
    );
    assert!(bed.acquire(&worker, 1).await.is_empty());
}

#[tokio::test]
async fn what_is_handed_back_is_answered_in_the_order_given() {
    let bed = Bed::new().await;
    let worker = bed.worker(&["k"]).await;
    bed.submit_many("k", 4).await;
    let mut held: Vec<_> = bed
        .acquire(&worker, 4)
        .await
        .iter()
        .map(|c| c.held)
        .collect();
    held.reverse();
    held[1].epoch += 1;
    let answers = bed.store.hand_back(held).await.unwrap();
    let applied: Vec<bool> = answers.into_iter().map(|a| a.applied().is_some()).collect();
    assert_eq!(applied, [true, false, true, true]);
}

/// The newest first, so that the order given is not the order of the ids.
#[tokio::test]
async fn failures_of_a_group_are_answered_in_the_order_given() {
    let bed = Bed::new().await;
    let worker = bed.worker(&["k"]).await;
    bed.submit_many("k", 4).await;
    let mut group: Vec<_> = bed
        .acquire(&worker, 4)
        .await
        .iter()
        .map(|c| failure(c.held))
        .collect();
    group.reverse();
    group[0].retryable = false;
    group[1].held.rev += 1;
    let ids: Vec<Uuid> = group.iter().map(|one| one.held.task).collect();
    let answers = bed.store.fail(group).await.unwrap();
    let states: Vec<_> = answers.into_iter().map(Outcome::applied).collect();
    let scheduled = Some(State::Scheduled);
    assert_eq!(states, [Some(State::Failed), None, scheduled, scheduled]);
    assert_eq!(bed.state(ids[0]).await, State::Failed);
    assert_eq!(bed.state(ids[1]).await, State::Running);
}

#[tokio::test]
async fn an_error_that_a_text_cannot_hold_is_stored_without_that() {
    let bed = Bed::new().await;
    let worker = bed.worker(&["k"]).await;
    bed.submit_many("k", 2).await;
    let mut group: Vec<_> = bed
        .acquire(&worker, 2)
        .await
        .iter()
        .map(|c| failure(c.held))
        .collect();
    group[0].message = format!("nul \0 {}", "x".repeat(ERROR_BYTES_MAX));
    group[0].details = Some(serde_json::json!({ "bytes": "a\0b", "\0": 1 }));
    let id = group[0].held.task;
    for answer in bed.store.fail(group).await.unwrap() {
        assert_eq!(answer.applied(), Some(State::Scheduled));
    }
    let errors = bed.store.attempt_errors(id).await.unwrap();
    assert!(errors[0].message.starts_with("nul \u{fffd}"));
    assert!(errors[0].message.len() <= ERROR_BYTES_MAX);
}

/// One row's result that the database refuses: the others of the group are completed, and that one is charged.
#[tokio::test]
async fn a_data_error_in_a_group_is_charged_to_its_row_alone() {
    let bed = Bed::new().await;
    let worker = bed.worker(&["k"]).await;
    bed.submit_many("k", 7).await;
    let claims = bed.acquire(&worker, 7).await;
    let bad = claims[4].held.task;
    bed.sql(&format!(
        "alter table aegis.task_history add constraint refused check (id <> '{bad}')"
    ))
    .await;
    let group = claims
        .iter()
        .map(|claim| Completion {
            held: claim.held,
            result: Some(b"1".to_vec()),
        })
        .collect();
    let answers = bed.store.complete(group).await.unwrap();
    for (claim, answer) in claims.iter().zip(answers) {
        let expected = if claim.held.task == bad {
            State::Scheduled
        } else {
            State::Succeeded
        };
        assert_eq!(answer.applied(), Some(expected));
        assert_eq!(bed.state(claim.held.task).await, expected);
    }
    assert_eq!(bed.live::<i32>(bad, "failures").await, 1);
    let errors = bed.store.attempt_errors(bad).await.unwrap();
    assert_eq!(errors[0].code, "result_refused");
    let said = "the database refused the result: new row for relation";
    assert!(errors[0].message.starts_with(said), "{}", errors[0].message);
}

/// What the database cannot store of an error is left out; the failure is charged all the same, to each by itself.
#[tokio::test]
async fn an_error_that_the_database_refuses_is_charged_without_what_it_refused() {
    let bed = Bed::new().await;
    let worker = bed.worker(&["k"]).await;
    bed.submit_many("k", 4).await;
    bed.sql(
        "alter table aegis.attempt_error add constraint no_poison
            check (message <> 'poison' and not coalesce(details ? 'poison', false))",
    )
    .await;
    let claims = bed.acquire(&worker, 4).await;
    let mut group: Vec<_> = claims.iter().map(|claim| failure(claim.held)).collect();
    group[0].message = "poison".to_owned();
    group[1].details = Some(serde_json::json!({ "poison": 1 }));
    // Longer than any interval of PostgreSQL.
    group[2].retry_after_ms = Some(i64::MAX);
    group[3].details = Some(serde_json::json!({ "kept": 1 }));
    for answer in bed.store.fail(group).await.unwrap() {
        assert_eq!(answer.applied(), Some(State::Scheduled));
    }
    let refused = "the database refused the error: ";
    let check = "violates check constraint";
    for (claim, said) in claims
        .iter()
        .zip([check, check, "out of range", "it broke"])
    {
        let errors = bed.store.attempt_errors(claim.held.task).await.unwrap();
        let [error] = &errors[..] else {
            panic!("charged {} times", errors.len());
        };
        let good = said == "it broke";
        assert_eq!(error.code, "broken");
        assert!(error.message.contains(said), "{}", error.message);
        assert_eq!(error.message.starts_with(refused), !good, "{said}");
        assert_eq!(error.details.is_some(), good, "{said}");
        assert_eq!(bed.live::<i32>(claim.held.task, "failures").await, 1);
    }
}

/// An error that no row's data is to blame for is the whole call's: nothing is charged and nothing is sent again.
#[tokio::test]
async fn an_error_that_no_row_is_to_blame_for_is_the_calls() {
    let bed = Bed::new().await;
    let worker = bed.worker(&["k"]).await;
    bed.submit_many("k", 2).await;
    bed.sql(
        "create function public.refuse() returns trigger language plpgsql as $$ begin raise exception 'out of order'; end $$;
         create trigger refuse before insert on aegis.task_history for each row execute function public.refuse();
         create trigger refuse before insert on aegis.attempt_error for each row when (new.message = 'it broke')
            execute function public.refuse()",
    )
    .await;
    let claims = bed.acquire(&worker, 2).await;
    let before = bed.rows().await;
    let done = claims.iter().map(|claim| Completion {
        held: claim.held,
        result: None,
    });
    let completed = bed.store.complete(done.collect()).await;
    let broken = claims.iter().map(|claim| failure(claim.held));
    let failed = bed.store.fail(broken.collect()).await;
    for answer in [completed, failed] {
        let Err(StoreError::Database { source }) = &answer else {
            panic!("{answer:?}");
        };
        assert_eq!(source.as_db_error().unwrap().message(), "out of order");
    }
    assert_eq!(bed.rows().await, before);
}

#[tokio::test]
async fn a_result_over_its_limit_is_refused_before_anything_is_sent() {
    let bed = Bed::new().await;
    let worker = bed.worker(&["k"]).await;
    let held = bed.claim(&worker).await.held;
    let before = bed.rows().await;
    let result = Some(vec![b'1'; PAYLOAD_BYTES_MAX + 1]);
    let error = bed
        .store
        .complete(vec![Completion { held, result }])
        .await
        .unwrap_err();
    assert!(matches!(
        error,
        StoreError::TooLarge {
            bytes: 262_145,
            limit: 262_144,
            ..
        }
    ));
    assert!(error.to_string().contains("262144"), "{error}");
    assert_eq!(bed.rows().await, before);
    let result = Some(vec![b'1'; PAYLOAD_BYTES_MAX]);
    let just = bed.store.complete(vec![Completion { held, result }]).await;
    assert_eq!(just.unwrap(), [Outcome::Applied(State::Succeeded)]);
}

#[tokio::test]
async fn a_completion_that_is_sent_again_is_recognised() {
    let bed = Bed::new().await;
    let worker = bed.worker(&["k"]).await;
    let held = bed.claim(&worker).await.held;
    let one = Completion {
        held,
        result: Some(b"{}".to_vec()),
    };
    let read = |digest| bed.store.read_back(held, Some(digest));
    assert_eq!(read(one.digest()).await.unwrap(), ReadBack::NotApplied);
    bed.complete(held).await.applied().unwrap();
    let state = State::Succeeded;
    let applied = ReadBack::Applied {
        rev: held.rev,
        state,
    };
    assert_eq!(read(one.digest()).await.unwrap(), applied);
    assert!(matches!(read(1).await.unwrap(), ReadBack::Fenced(_)));
    // Sent again in spite of that it is refused, and history has it once.
    assert!(bed.complete(held).await.applied().is_none());
}
