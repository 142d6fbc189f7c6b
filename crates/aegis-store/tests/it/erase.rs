//! `erase`: nothing of a payload is left in any table, and every fact is.

use aegis_model::{Class, Held, Outcome, State};
use aegis_store::change::Change;
use aegis_store::guarded::{Completion, Dispatched, OperationResult, SaveTo, StepValue};
use aegis_store::{NewTask, StoreError};
use serde_json::json;
use uuid::Uuid;

use crate::support::{Bed, all_rows, dispatch, failure};
use crate::verbs::by;

/// Stands in everything that a task brings along.
const SECRET: &str = "s3cr3t-0f-ada";

/// A task that has been everywhere: it failed once, saved, called, and succeeded.
async fn eventful(bed: &Bed, large: bool) -> Uuid {
    let secret = || format!("\"{SECRET}\"").into_bytes();
    let worker = bed.worker(&["k"]).await;
    let pad = "x".repeat(if large { 20_000 } else { 1 });
    let key = if large { "large" } else { "small" };
    let claim = bed
        .claim_with(&worker, |task| {
            task.input = format!("[\"{SECRET}\", \"{pad}\"]").into_bytes();
            task.key = Some(key.to_owned());
            task.labels = large.then(|| json!({ "who": SECRET }));
        })
        .await;
    let id = claim.held.task;
    let mut failed = failure(claim.held);
    SECRET.clone_into(&mut failed.message);
    failed.details = Some(json!({ "who": SECRET }));
    failed.retry_after_ms = Some(600_000);
    bed.store.fail(vec![failed]).await.unwrap();
    bed.store
        .change(&[id], Change::Retry, &by("again"), false)
        .await
        .unwrap();
    let claim = bed.claim_again(&worker).await;
    let to = |held: Held| SaveTo {
        held,
        lane: claim.lane,
        protocol: 1,
        data: secret(),
    };
    let moved = |held: Held, rev: i64| Held { rev, ..held };
    let saved = bed
        .store
        .checkpoint(to(claim.held))
        .await
        .unwrap()
        .applied()
        .unwrap();
    let held = moved(claim.held, saved.rev);
    let step = StepValue {
        name: "step".to_owned(),
        key: "1".to_owned(),
        to: to(held),
    };
    let saved = bed.store.step(step).await.unwrap().applied().unwrap();
    let held = moved(held, saved.rev);
    let mut go = dispatch(held, claim.lane, Class::Idempotent, "call");
    go.request = Some(secret());
    go.fingerprint = SECRET.as_bytes().to_vec();
    let Outcome::Applied(Dispatched::Go { saved, .. }) = bed.store.dispatch(go).await.unwrap()
    else {
        panic!("the dispatch was not applied");
    };
    let held = moved(held, saved.rev);
    let settled = bed
        .store
        .settle(OperationResult {
            held,
            lane: claim.lane,
            operation: "call".to_owned(),
            succeeded: true,
            protocol: 1,
            result: Some(secret()),
            note: Some(SECRET.to_owned()),
        })
        .await
        .unwrap();
    let held = moved(held, settled.applied().unwrap().rev);
    let end = Completion {
        held,
        result: Some(secret()),
    };
    let after = bed.store.complete(vec![end]).await.unwrap().remove(0);
    assert_eq!(after, Outcome::Applied(State::Succeeded));
    id
}

/// The tables that hold the secret, as text or as bytes.
async fn tables_with_secret(bed: &Bed) -> Vec<String> {
    let hex: String = bed
        .value("select encode(convert_to($1, 'UTF8'), 'hex')", &[&SECRET])
        .await;
    all_rows(&bed.db.admin)
        .await
        .into_iter()
        .filter(|(_, rows)| {
            rows.iter()
                .any(|row| row.contains(SECRET) || row.contains(&hex))
        })
        .map(|(table, _)| table)
        .collect()
}

#[tokio::test]
async fn nothing_of_the_payload_is_left_in_any_table_and_the_facts_are() {
    for large in [false, true] {
        let bed = Bed::new().await;
        let id = eventful(&bed, large).await;
        let before = tables_with_secret(&bed).await;
        for table in [
            "attempt_error",
            "checkpoint",
            "operation",
            "step",
            "task_event",
            "task_history",
        ] {
            assert!(before.contains(&table.to_owned()), "{table}: {before:?}");
        }
        let facts = "select format('%s %s %s %s %s %s %s', epoch, rev, owner, claimed_at, finished_at, state, failures)
            from aegis.task_history where id = $1";
        let facts_before: String = bed.value(facts, &[&id]).await;
        let causes_before = bed.causes(id).await;

        let done = bed
            .store
            .change(&[id], Change::Erase, &by("asked by ada"), false)
            .await
            .unwrap();
        assert_eq!(done[0].answer.word(), "erased");
        assert_eq!(
            tables_with_secret(&bed).await,
            Vec::<String>::new(),
            "large {large}"
        );
        assert_eq!(bed.value::<String>(facts, &[&id]).await, facts_before);
        let mut causes = causes_before;
        causes.push("erased".to_owned());
        assert_eq!(bed.causes(id).await, causes);
        let hashes: i64 = bed
            .value(
                "select count(*) from aegis.idempotency where task = $1 and length(payload_hash) > 0",
                &[&id],
            )
            .await;
        assert_eq!(hashes, 0, "a hash of a short payload can be guessed");
        let task = bed.store.task(id).await.unwrap().unwrap();
        assert!(task.erased_at.is_some());
        assert_eq!((task.labels, task.result), (None, None));
        let errors = bed.store.attempt_errors(id).await.unwrap();
        assert_eq!(
            (errors[0].code.as_str(), errors[0].message.as_str()),
            ("broken", "(erased)")
        );
    }
}

#[tokio::test]
async fn a_key_of_an_erased_task_never_makes_a_second_one() {
    let bed = Bed::new().await;
    let id = eventful(&bed, false).await;
    bed.store
        .change(&[id], Change::Erase, &by("x"), false)
        .await
        .unwrap();
    let again = NewTask {
        key: Some("small".to_owned()),
        ..NewTask::new("k", format!("[\"{SECRET}\", \"x\"]"))
    };
    let error = bed.store.submit(again).await.unwrap_err();
    assert!(
        matches!(error, StoreError::KeyConflict { task, .. } if task == id),
        "{error}"
    );
}

#[tokio::test]
async fn a_discarded_task_can_be_erased_and_a_parked_one_not_before() {
    let bed = Bed::new().await;
    let worker = bed.worker(&["k"]).await;
    let claim = bed
        .claim_with(&worker, |task| {
            task.input = format!("\"{SECRET}\"").into_bytes();
        })
        .await;
    let id = claim.held.task;
    let mut fatal = failure(claim.held);
    fatal.retryable = false;
    SECRET.clone_into(&mut fatal.message);
    bed.store.fail(vec![fatal]).await.unwrap();
    bed.store
        .change(&[id], Change::Redrive, &by("once more"), false)
        .await
        .unwrap();
    let mut fatal = failure(bed.claim_again(&worker).await.held);
    fatal.retryable = false;
    SECRET.clone_into(&mut fatal.message);
    bed.store.fail(vec![fatal]).await.unwrap();
    let kept = bed
        .store
        .change(&[id], Change::Erase, &by("x"), false)
        .await
        .unwrap();
    assert_eq!(kept[0].answer.word(), "parked");
    bed.store
        .change(&[id], Change::Discard, &by("x"), false)
        .await
        .unwrap();
    bed.store
        .change(&[id], Change::Erase, &by("x"), false)
        .await
        .unwrap();
    assert_eq!(tables_with_secret(&bed).await, Vec::<String>::new());
}
