//! Submit: batches whole or not at all, idempotency keys, the caller's transaction, the SQL function, hints.

use std::collections::BTreeSet;
use std::time::Duration;

use aegis_model::State;
use aegis_model::limits::{PAYLOAD_BYTES_MAX, SUBMIT_BATCH_MAX};
use aegis_store::listen::Listener;
use aegis_store::{Config, NewTask, StoreError};
use tokio_postgres::Client;
use uuid::Uuid;

use crate::support::Bed;

fn keyed(key: &str, input: &str) -> NewTask {
    let mut task = NewTask::new("k", input);
    task.key = Some(key.to_owned());
    task
}

async fn count(bed: &Bed, table: &str) -> i64 {
    bed.value(&format!("select count(*) from aegis.{table}"), &[])
        .await
}

/// Tasks, inputs and keys: what a refused submit must not have left.
async fn written(bed: &Bed) -> [i64; 3] {
    [
        count(bed, "task").await,
        count(bed, "input_any").await,
        count(bed, "idempotency").await,
    ]
}

type Change = Box<dyn Fn(&mut NewTask)>;

#[tokio::test]
async fn a_batch_with_one_bad_task_writes_nothing() {
    let bed = Bed::new().await;
    let hour = jiff::SignedDuration::from_hours(1);
    let now = jiff::Timestamp::now();
    let changes: [(&str, Change); 12] = [
        ("kind", Box::new(|task| task.kind.clear())),
        ("kind", Box::new(|task| task.kind = "a\0b".to_owned())),
        ("queue", Box::new(|task| task.queue = "q".repeat(201))),
        ("tenant", Box::new(|task| task.tenant.clear())),
        ("key", Box::new(|task| task.key = Some("k".repeat(256)))),
        ("input", Box::new(|task| task.input = b"{".to_vec())),
        ("protocol", Box::new(|task| task.protocol = 0)),
        ("priority", Box::new(|task| task.priority = 10)),
        ("policy", Box::new(|task| task.policy.max_failures = 0)),
        ("policy", Box::new(|task| task.policy.kill_after_ms = -1)),
        (
            "policy",
            Box::new(|task| task.policy.start_to_close_ms = Some(0)),
        ),
        (
            "deadline_at",
            Box::new(move |task| {
                task.run_at = Some(now + hour);
                task.deadline_at = Some(now + hour);
            }),
        ),
    ];
    for (name, change) in changes {
        let mut batch = vec![NewTask::new("k", "{}"); 3];
        change(&mut batch[1]);
        let error = bed.store.submit_batch(batch).await.unwrap_err();
        let StoreError::BadTask {
            field, position, ..
        } = error
        else {
            panic!("{name}: {error:?}");
        };
        assert_eq!((field, position), (name, 1));
    }
    let mut batch = vec![NewTask::new("k", "{}"); 3];
    batch[2].input = vec![b' '; PAYLOAD_BYTES_MAX + 1];
    let error = bed.store.submit_batch(batch).await.unwrap_err();
    assert!(
        error
            .to_string()
            .contains("the input of task 2 has 262145 bytes; the limit is 262144"),
        "{error}"
    );
    let batch = vec![NewTask::new("k", "{}"); SUBMIT_BATCH_MAX + 1];
    let error = bed.store.submit_batch(batch).await.unwrap_err();
    assert!(error.to_string().contains("10000"), "{error}");
    assert_eq!(written(&bed).await, [0, 0, 0]);
}

#[tokio::test]
async fn the_largest_batch_is_answered_in_order() {
    let bed = Bed::new().await;
    let mut batch: Vec<NewTask> = (0..SUBMIT_BATCH_MAX)
        .map(|n| NewTask::new("k", n.to_string()))
        .collect();
    batch[7].key = Some("seven".to_owned());
    let answers = bed.store.submit_batch(batch).await.unwrap();
    let ids: Vec<Uuid> = answers.iter().map(|one| one.task).collect();
    let distinct: BTreeSet<Uuid> = ids.iter().copied().collect();
    assert_eq!(distinct.len(), SUBMIT_BATCH_MAX);
    for n in [0, 7, 4095, 4096, 9999] {
        let task = bed.store.task(ids[n]).await.unwrap().unwrap();
        assert_eq!(task.input.unwrap(), n.to_string().into_bytes());
        assert_eq!(ids[n].get_version_num(), 7);
    }
}

#[tokio::test]
async fn the_same_key_and_payload_is_the_same_task() {
    let bed = Bed::new().await;
    let first = bed
        .store
        .submit(keyed("x", r#"{"a":1,"b":[1,2]}"#))
        .await
        .unwrap();
    assert!(first.is_new);
    let same = bed
        .store
        .submit(keyed("x", r#"{ "b": [1, 2], "a": 1 }"#))
        .await
        .unwrap();
    assert_eq!((same.task, same.is_new), (first.task, false));
    // Another tenant, or another kind, has keys of its own.
    let mut other = keyed("x", "{}");
    other.tenant = "other".to_owned();
    assert!(bed.store.submit(other).await.unwrap().is_new);
    let mut other = keyed("x", "{}");
    other.kind = "other".to_owned();
    assert!(bed.store.submit(other).await.unwrap().is_new);
}

#[tokio::test]
async fn another_payload_under_a_key_is_a_conflict_and_writes_nothing() {
    let bed = Bed::new().await;
    let first = bed.store.submit(keyed("x", "1")).await.unwrap();
    let before = written(&bed).await;
    let batch = vec![NewTask::new("k", "{}"), keyed("new", "{}"), keyed("x", "2")];
    let error = bed.store.submit_batch(batch).await.unwrap_err();
    assert!(
        matches!(error, StoreError::KeyConflict { task, .. } if task == first.task),
        "{error:?}"
    );
    // Another protocol is another payload too.
    let mut other = keyed("x", "1");
    other.protocol = 2;
    assert!(matches!(
        bed.store.submit(other).await,
        Err(StoreError::KeyConflict { .. })
    ));
    assert_eq!(written(&bed).await, before);
}

#[tokio::test]
async fn twins_in_one_batch_are_one_task() {
    let bed = Bed::new().await;
    let batch = vec![
        keyed("x", "1"),
        NewTask::new("k", "{}"),
        keyed("x", " 1"),
        keyed("y", "1"),
    ];
    let answers = bed.store.submit_batch(batch).await.unwrap();
    assert_eq!(answers[0].task, answers[2].task);
    let new: Vec<bool> = answers.iter().map(|one| one.is_new).collect();
    assert_eq!(new, [true, true, false, true]);
    assert_eq!(written(&bed).await, [3, 3, 2]);
    let batch = vec![keyed("z", "1"), keyed("z", "2")];
    let error = bed.store.submit_batch(batch).await.unwrap_err();
    assert!(matches!(error, StoreError::KeyConflict { .. }));
    assert_eq!(written(&bed).await, [3, 3, 2]);
}

/// rl_15 and te_15: the first run goes on undisturbed by a second use of its key, and so does its end.
#[tokio::test]
async fn rl_15_a_used_key_does_not_touch_the_first_task() {
    let bed = Bed::new().await;
    let worker = bed.worker(&["k"]).await;
    let claim = bed
        .claim_with(&worker, |task| task.key = Some("x".to_owned()))
        .await;
    let before = bed.rows().await;
    assert!(bed.store.submit(keyed("x", "2")).await.is_err());
    let same = bed.store.submit(keyed("x", "{}")).await.unwrap();
    assert_eq!(same.task, claim.held.task);
    assert_eq!(bed.rows().await, before);
    bed.complete(claim.held).await.applied().unwrap();
    let same = bed.store.submit(keyed("x", "{}")).await.unwrap();
    assert_eq!((same.task, same.is_new), (claim.held.task, false));
}

#[tokio::test]
async fn a_key_expires_no_earlier_than_its_task_ends() {
    let bed = Bed::new().await;
    let worker = bed.worker(&["k"]).await;
    let claim = bed
        .claim_with(&worker, |task| {
            task.key = Some("x".to_owned());
            task.policy.max_failures = 1;
        })
        .await;
    let kept = "expires_at between now() + interval '29 days' and now() + interval '31 days'";
    assert!(
        bed.value::<bool>(&format!("select {kept} from aegis.idempotency"), &[])
            .await
    );
    bed.sql("update aegis.idempotency set expires_at = now() - interval '1 s'")
        .await;
    bed.tick(&worker).await;
    assert_eq!(count(&bed, "idempotency").await, 1, "the task is live");
    bed.fail(claim.held).await.applied().unwrap();
    bed.tick(&worker).await;
    assert_eq!(count(&bed, "idempotency").await, 1, "the task is parked");
    bed.store
        .discard(claim.held.task, "ann", "why")
        .await
        .unwrap();
    bed.tick(&worker).await;
    assert_eq!(count(&bed, "idempotency").await, 0);
    assert!(bed.store.submit(keyed("x", "{}")).await.unwrap().is_new);
}

/// A key that expires between the two statements of a submit is reserved anew: never an answer without a task.
#[tokio::test]
async fn a_key_that_expires_midway_makes_a_new_task() {
    let bed = Bed::new().await;
    let old = bed.store.submit(keyed("x", "{}")).await.unwrap();
    bed.sql(&format!(
        "create function expire() returns trigger language plpgsql as $$ begin
            delete from aegis.idempotency where task = '{}'; return null; end $$;
         create trigger expire after insert on aegis.idempotency for each statement execute function expire()",
        old.task
    ))
    .await;
    let answer = bed.store.submit(keyed("x", "{}")).await.unwrap();
    assert!(answer.is_new);
    assert_ne!(answer.task, old.task);
    assert_eq!(bed.state(answer.task).await, State::Ready);
}

#[tokio::test]
async fn a_submit_in_the_callers_transaction_stands_and_falls_with_it() {
    let bed = Bed::new().await;
    let mut client = bed.engine().await;
    for commits in [false, true] {
        let transaction = client.transaction().await.unwrap();
        let batch = vec![keyed("x", "{}"), NewTask::new("k", "{}")];
        let answers = bed.store.submit_in(&transaction, batch).await.unwrap();
        assert!(answers.iter().all(|one| one.is_new));
        assert!(
            bed.store.task(answers[0].task).await.unwrap().is_none(),
            "seen before the commit"
        );
        if commits {
            transaction.commit().await.unwrap();
            assert_eq!(written(&bed).await, [2, 2, 1]);
            assert_eq!(bed.state(answers[0].task).await, State::Ready);
        } else {
            transaction.rollback().await.unwrap();
            assert_eq!(written(&bed).await, [0, 0, 0]);
        }
    }
}

async fn sql_submit(client: &Client, arguments: &str) -> Result<Uuid, (String, String)> {
    let row = client
        .query_one(&format!("select aegis.submit({arguments})"), &[])
        .await;
    row.map(|row| row.get(0)).map_err(|error| {
        let error = error.as_db_error().unwrap();
        (error.code().code().to_owned(), error.message().to_owned())
    })
}

#[tokio::test]
async fn the_sql_function_submits_for_the_submitter_role_in_any_transaction() {
    let bed = Bed::new().await;
    let client = bed.db.connect_as("aegis_submitter").await;
    client.batch_execute("begin").await.unwrap();
    let lost = sql_submit(
        &client,
        "'new', '{}', queue => 'mail', tenant => 'acme', protocol => 3",
    )
    .await
    .unwrap();
    client.batch_execute("rollback").await.unwrap();
    assert!(bed.store.task(lost).await.unwrap().is_none());
    let id = sql_submit(
        &client,
        "'new', '{\"to\": \"ann\"}', queue => 'mail', tenant => 'acme', protocol => 3, priority => 2, labels => '{\"a\": \"b\"}'",
    )
    .await
    .unwrap();
    let task = bed.store.task(id).await.unwrap().unwrap();
    assert_eq!(
        (
            task.queue.as_str(),
            task.kind.as_str(),
            task.tenant.as_str()
        ),
        ("mail", "new", "acme")
    );
    assert_eq!((task.lo, task.hi, task.priority), (3, 3, Some(2)));
    assert_eq!(task.submitter.as_deref(), Some("aegis_submitter"));
    assert_eq!(task.labels.unwrap()["a"], "b");
    let later = sql_submit(&client, "'new', '{}', run_at => now() + interval '1 h'")
        .await
        .unwrap();
    assert_eq!(bed.state(later).await, State::Scheduled);
}

#[tokio::test]
async fn the_sql_function_and_the_library_share_their_keys() {
    let bed = Bed::new().await;
    let client = bed.db.connect_as("aegis_submitter").await;
    let by_sql = sql_submit(&client, "'k', '{\"b\": 2, \"a\": 1}', key => 'x'")
        .await
        .unwrap();
    let again = sql_submit(&client, "'k', '{\"a\": 1, \"b\": 2}', key => 'x'")
        .await
        .unwrap();
    assert_eq!(by_sql, again);
    let by_library = bed
        .store
        .submit(keyed("x", r#"{"a":1,"b":2}"#))
        .await
        .unwrap();
    assert_eq!((by_library.task, by_library.is_new), (by_sql, false));
    let (code, message) = sql_submit(&client, "'k', '{\"a\": 2}', key => 'x'")
        .await
        .unwrap_err();
    assert_eq!(code, "AEG05");
    assert!(message.contains(&by_sql.to_string()), "{message}");
    assert_eq!(written(&bed).await, [1, 1, 1]);
}

#[tokio::test]
async fn the_sql_function_refuses_what_makes_no_sense_with_a_code() {
    let bed = Bed::new().await;
    let client = bed.db.connect_as("aegis_submitter").await;
    for (arguments, code) in [
        ("'k', null", "AEG01"),
        ("'k', to_jsonb(repeat('x', 262144))", "AEG02"),
        ("'k', '{}', protocol => 0", "AEG03"),
        ("'k', '{}', priority => 10", "AEG04"),
        (
            "'k', '{}', run_at => now() + interval '2 h', deadline_at => now() + interval '1 h'",
            "AEG06",
        ),
        ("'', '{}'", "23514"),
        ("'k', '{}', key => ''", "23514"),
    ] {
        let error = sql_submit(&client, arguments).await.unwrap_err();
        assert_eq!(error.0, code, "{arguments}: {}", error.1);
    }
    assert_eq!(written(&bed).await, [0, 0, 0]);
}

#[tokio::test]
async fn a_submit_wakes_those_who_listen_to_its_queue() {
    let bed = Bed::new().await;
    let named = format!("{}&statements=named", bed.db.url_as("aegis_engine"));
    let config = Config::from_url(&named).unwrap();
    let queue = "woken".to_owned();
    let mut listener = Listener::connect(&config, std::slice::from_ref(&queue))
        .await
        .unwrap()
        .unwrap();
    bed.submit("k").await;
    bed.submit_with("k", |task| task.queue.clone_from(&queue))
        .await;
    let hint = tokio::time::timeout(Duration::from_secs(10), listener.hint()).await;
    assert!(hint.expect("nobody was woken"));
    // Another queue's hint is none, and the function's is one when it was asked for.
    let another = tokio::time::timeout(Duration::from_millis(50), listener.hint()).await;
    assert!(another.is_err(), "woken by another queue");
    let client = bed.db.connect_as("aegis_submitter").await;
    sql_submit(&client, "'k', '{}', queue => 'woken', notify => true")
        .await
        .unwrap();
    assert!(
        tokio::time::timeout(Duration::from_secs(10), listener.hint())
            .await
            .unwrap()
    );
    // Where a transaction pooler may be between there is no listening: polling is the truth.
    let unnamed = Config::from_url(&bed.db.url_as("aegis_engine")).unwrap();
    assert!(
        Listener::connect(&unnamed, &[queue])
            .await
            .unwrap()
            .is_none()
    );
}

/// A burst is told twice: at its beginning, and when it is over. The last of it waits for no poll.
#[tokio::test]
async fn a_submit_right_behind_another_wakes_too() {
    let bed = Bed::new().await;
    let named = format!("{}&statements=named", bed.db.url_as("aegis_engine"));
    let config = Config::from_url(&named).unwrap();
    let queue = "burst".to_owned();
    let mut listener = Listener::connect(&config, std::slice::from_ref(&queue))
        .await
        .unwrap()
        .unwrap();
    for _ in 0..2 {
        bed.submit_with("k", |task| task.queue.clone_from(&queue))
            .await;
        let hint = tokio::time::timeout(Duration::from_secs(10), listener.hint()).await;
        assert!(hint.expect("nobody was woken"));
    }
}
