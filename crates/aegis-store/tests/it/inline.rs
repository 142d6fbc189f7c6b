//! Inputs in the task's own row: where they stand in each state, that every way of submitting writes the same, and that a
//! program from before them can neither miss one nor stop the upgrade.

use std::collections::BTreeMap;

use aegis_model::{Cause, State};
use aegis_schema::{install, install_set};
use aegis_store::install::{SCHEMA, switch_inline, verify_against};
use aegis_store::{Config, NewTask, RetryPolicy, Store, StoreError};
use aegis_testkit::TestDb;
use serde_json::Value;
use uuid::Uuid;

use crate::support::Bed;

/// The last schema without inline inputs.
const BEFORE: i32 = 6;

/// Names of the tables that hold the input of a task.
async fn stands_in(bed: &Bed, id: Uuid) -> String {
    bed.value(
        "select string_agg(x.place, ' ') from (
            select 'task' as place from aegis.task where id = $1 and input is not null
            union all select 'parked' from aegis.parked where id = $1 and input is not null
            union all select 'history' from aegis.task_history where id = $1 and input is not null
            union all select 'body' from aegis.task_body where id = $1) x",
        &[&id],
    )
    .await
}

/// As `task show` gives it.
async fn shown(bed: &Bed, id: Uuid) -> (Option<i32>, Option<Vec<u8>>) {
    let task = bed.store.task(id).await.unwrap().unwrap();
    (task.protocol, task.input)
}

fn input(bytes: usize) -> Vec<u8> {
    let mut input = vec![b' '; bytes - 1];
    input.push(b'1');
    input
}

#[tokio::test]
async fn a_small_input_goes_with_its_task_to_the_end() {
    let bed = Bed::new().await;
    let worker = bed.worker(&["k"]).await;
    let wanted = (Some(1), Some(br#"{"n":7}"#.to_vec()));
    let small = |task: &mut NewTask| task.input = br#"{"n":7}"#.to_vec();

    let claim = bed.claim_with(&worker, small).await;
    assert_eq!((Some(claim.protocol), Some(claim.input.clone())), wanted);
    assert_eq!(stands_in(&bed, claim.held.task).await, "task");
    assert_eq!(shown(&bed, claim.held.task).await, wanted);
    assert!(bed.complete(claim.held).await.applied().is_some());
    assert_eq!(stands_in(&bed, claim.held.task).await, "history");
    assert_eq!(shown(&bed, claim.held.task).await, wanted);

    // Handed back, claimed again, given up, sent again, given up for good.
    let claim = bed.claim_with(&worker, small).await;
    assert!(
        bed.release(claim.held, Cause::Drain)
            .await
            .applied()
            .is_some()
    );
    let claim = bed.claim_again(&worker).await;
    assert_eq!((Some(claim.protocol), Some(claim.input.clone())), wanted);
    let id = claim.held.task;
    bed.sql(&format!(
        "select aegis.conclude('{id}', 6::int2, '{{\"code\": \"test\"}}')"
    ))
    .await;
    assert_eq!(stands_in(&bed, id).await, "parked");
    assert_eq!(shown(&bed, id).await, wanted);
    assert!(
        bed.value::<bool>("select aegis.redrive_task($1, 'a', 'r')", &[&id])
            .await
    );
    assert_eq!(stands_in(&bed, id).await, "task");
    let claim = bed.claim_again(&worker).await;
    assert_eq!((Some(claim.protocol), Some(claim.input.clone())), wanted);
    bed.sql(&format!(
        "select aegis.conclude('{id}', 6::int2, '{{\"code\": \"test\"}}'); select aegis.discard_task('{id}', 'a', 'r')"
    ))
    .await;
    assert_eq!(stands_in(&bed, id).await, "history");
    assert_eq!(shown(&bed, id).await, wanted);

    // A suspect.
    let claim = bed.claim_with(&worker, small).await;
    bed.sql(&format!(
        "select aegis.end_attempt('{}', 'crash')",
        claim.held.task
    ))
    .await;
    let suspect = bed.acquire_suspect(&worker).await.unwrap();
    assert_eq!((Some(suspect.protocol), Some(suspect.input)), wanted);
    let read: Value = bed
        .value(
            "select input from aegis.task_input where id = $1",
            &[&claim.held.task],
        )
        .await;
    assert_eq!(read, serde_json::json!({ "n": 7 }));
}

#[tokio::test]
async fn what_is_large_or_labelled_stands_in_the_body() {
    let bed = Bed::new().await;
    let worker = bed.worker(&["k"]).await;
    for (bytes, labels, place) in [
        (256, None, "task"),
        (257, None, "body"),
        (2, Some(serde_json::json!({ "a": "b" })), "body"),
    ] {
        let claim = bed
            .claim_with(&worker, |task| {
                task.input = input(bytes);
                task.labels = labels;
            })
            .await;
        let id = claim.held.task;
        assert_eq!(claim.input, input(bytes), "{bytes}");
        assert_eq!(stands_in(&bed, id).await, place, "{bytes}");
        assert_eq!(shown(&bed, id).await, (Some(1), Some(input(bytes))));
        // The same request again: the first answer.
        let request: Uuid = bed
            .value("select claim_id from aegis.task where id = $1", &[&id])
            .await;
        let engine = bed.engine().await;
        let rows = aegis_store::generated::task::acquired(&engine, worker.id, request).await;
        assert_eq!(rows.unwrap()[0].input, input(bytes));
        assert!(bed.complete(claim.held).await.applied().is_some());
        assert_eq!(shown(&bed, id).await, (Some(1), Some(input(bytes))));
    }
}

/// A batch in which every column differs from row to row.
fn varied(count: usize) -> Vec<NewTask> {
    let now = jiff::Timestamp::now();
    let hours = jiff::SignedDuration::from_hours;
    (0..count)
        .map(|n| {
            let mut task = NewTask::new(format!("k{}", n % 2), format!("{{\"n\":{n}}}"));
            task.tenant = format!("t{}", n % 3);
            task.priority = i16::try_from(n % 10).unwrap();
            task.protocol = 1 + i32::try_from(n % 2).unwrap();
            task.run_at = match n % 3 {
                0 => None,
                1 => Some(now + hours(1)),
                _ => Some(now - hours(1)),
            };
            task.deadline_at = (n % 4 == 0).then(|| now + hours(3));
            task.policy = RetryPolicy {
                schedule_to_start_ms: (n % 5 == 0).then_some(3_600_000),
                ..RetryPolicy::default()
            };
            task.key = (n % 7 == 0).then(|| format!("key{n}"));
            task
        })
        .collect()
}

/// What was written, without what is drawn or timed: deadlines and times to the minute.
async fn written(bed: &Bed, ids: &[Uuid]) -> Vec<String> {
    let rows = bed
        .db
        .admin
        .query(
            "select (row_to_json(x) #>> '{}') || ' ' || y.text from unnest($1::uuid[]) with ordinality u (id, n), lateral (
                select t.lane, t.tenant, t.policy, t.state, t.priority, t.epoch, t.rev, t.owner, t.input_protocol,
                    encode(t.input, 'escape') as input, t.trace, round(extract(epoch from t.run_at - now()) / 60) as run_in,
                    round(extract(epoch from t.deadline_at - now()) / 60) as deadline_in,
                    round(extract(epoch from t.next_deadline - now()) / 60) as next_in,
                    round((t.ord - extract(epoch from now()) * 1000000 + (9 - t.priority) * 60000000) / 60000000) as ord_off
                from aegis.task t where t.id = u.id) x, lateral (
                select b.protocol::text || encode(b.input, 'escape') as text from aegis.input_any b where b.id = u.id) y
             order by u.n",
            &[&ids],
        )
        .await
        .unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

#[tokio::test]
async fn copy_and_insert_write_the_same() {
    // A batch of 32 and more by name is copied; of fewer, or unnamed, it is inserted.
    let mut found = BTreeMap::new();
    for (how, by_name, counts) in [
        ("copied", true, [210].as_slice()),
        ("inserted whole", false, &[210]),
        ("inserted in parts", true, &[30, 30, 30, 30, 30, 30, 30]),
    ] {
        let bed = Bed::new().await;
        let mut url = bed.db.url_as("aegis_engine");
        if by_name {
            url.push_str("&statements=named");
        }
        let store = Store::connect(Config::from_url(&url).unwrap())
            .await
            .unwrap();
        let mut left = varied(210);
        let mut ids = Vec::new();
        for &count in counts {
            let batch = left.drain(..count).collect();
            for one in store.submit_batch(batch).await.unwrap() {
                assert!(one.is_new);
                ids.push(one.task);
            }
        }
        if how != "inserted in parts" {
            let unkeyed: Vec<Uuid> = ids
                .iter()
                .enumerate()
                .filter(|(n, _)| n % 7 != 0)
                .map(|(_, id)| *id)
                .collect();
            assert!(unkeyed.is_sorted(), "{how}: ids follow each other");
        }
        let ascending: bool = bed
            .value(
                "select bool_and(d > 0) from (select t.ord + (9 - t.priority) * 60000000::bigint - lag(t.ord + (9 - t.priority) * 60000000::bigint)
                    over (order by u.n) as d from unnest($1::uuid[]) with ordinality u (id, n) join aegis.task t on t.id = u.id) x",
                &[&ids],
            )
            .await;
        assert!(ascending, "{how}: a batch is served in its order");
        let bodies: i64 = bed.value("select count(*) from aegis.task_body", &[]).await;
        assert_eq!(bodies, 0, "{how}");
        found.insert(how, written(&bed, &ids).await);
        assert_eq!(found[how].len(), 210, "{how}");
        // A key used before answers its task.
        let again = store.submit_batch(varied(1)).await.unwrap();
        assert_eq!((again[0].task, again[0].is_new), (ids[0], false), "{how}");
    }
    for how in ["inserted whole", "inserted in parts"] {
        for (copied, inserted) in found["copied"].iter().zip(&found[how]) {
            assert_eq!(copied, inserted, "{how}");
        }
    }
}

#[tokio::test]
async fn a_copy_is_written_whole_or_not_at_all() {
    let bed = Bed::new().await;
    let url = bed.db.url_as("aegis_engine") + "&statements=named";
    let store = Store::connect(Config::from_url(&url).unwrap())
        .await
        .unwrap();
    // The check of the database's own refuses the last row.
    bed.sql("alter table aegis.task add constraint no_nine check (priority <> 9)")
        .await;
    let mut batch = vec![NewTask::new("k", "{}"); 300];
    batch[299].priority = 9;
    store.submit_batch(batch).await.unwrap_err();
    let left: i64 = bed.value("select count(*) from aegis.task", &[]).await;
    assert_eq!(left, 0);
    // The connection is as good as before.
    let batch = vec![NewTask::new("k", "{}"); 300];
    assert_eq!(store.submit_batch(batch).await.unwrap().len(), 300);
}

/// Where row-level security judges the role, COPY is refused by PostgreSQL: the batch goes the other way.
#[tokio::test]
async fn under_row_level_security_a_batch_is_inserted() {
    let bed = Bed::new().await;
    let url = bed.db.url_as("aegis_engine") + "&statements=named";
    let store = Store::connect(Config::from_url(&url).unwrap())
        .await
        .unwrap();
    bed.sql(
        "alter table aegis.task enable row level security; create policy all_rows on aegis.task using (true)",
    )
    .await;
    let batch = vec![NewTask::new("k", "{}"); 300];
    assert_eq!(store.submit_batch(batch).await.unwrap().len(), 300);
}

#[tokio::test]
async fn ids_of_the_database_and_of_the_copy_are_one_form() {
    let bed = Bed::new().await;
    // Ascending over every carry of the number, version and variant right, none twice.
    let good: bool = bed
        .value(
            "select bool_and(u > l or l is null) and bool_and(substr(u::text, 15, 1) = '7' and substr(u::text, 20, 1) in ('8', '9', 'a', 'b'))
             from (select u, lag(u) over (order by n) l from (
                select n, aegis.uuid7_nth(1234567890123, 4611686018427387903, n) u from generate_series(0, 40000) n) x) y",
            &[],
        )
        .await;
    assert!(good);
    let first: Uuid = bed
        .value(
            "select aegis.uuid7_nth(1234567890123, 81985529216486895, 4099)",
            &[],
        )
        .await;
    // The same number, as src/submit/mint.rs has it: ms | 7 | n >> 2, variant | n & 3 | 60 bits drawn.
    let high = (1_234_567_890_123_u64 << 16) | 0x7000 | (0x1003 >> 2);
    let low = (1 << 63) | ((0x1003 & 3) << 60) | 0x0123_4567_89ab_cdef;
    assert_eq!(first, Uuid::from_u64_pair(high, low));
}

fn config(db: &TestDb) -> Config {
    Config::from_url(&db.url()).unwrap()
}

/// A database of the release before, upgraded: until it is switched everything goes where that release reads it.
#[tokio::test]
async fn an_older_database_waits_for_its_switch() {
    let db = TestDb::empty().await;
    let mut older = aegis_schema::set().unwrap();
    older.lock = older.lock.through(usize::try_from(BEFORE).unwrap());
    install_set(&config(&db), &older, 2).await.unwrap();
    install(&config(&db), 2).await.unwrap();
    // No step raises what a program must know.
    let admitted = "select min_schema from aegis.schema_version";
    let admitted: i32 = db.admin.query_one(admitted, &[]).await.unwrap().get(0);
    assert_eq!(admitted, 0);
    verify_against(&db.admin, BEFORE).await.unwrap();
    let store = Bed::store_as(&db, "aegis_engine").await;
    let bed = Bed { db, store };

    let worker = bed.worker(&["k"]).await;
    let before = bed.claim(&worker).await;
    assert_eq!(stands_in(&bed, before.held.task).await, "body");

    // A worker of the release before, as that one registers.
    let old = "insert into aegis.worker (id, slots, pid, registered_at, name, host, release, build, digest)
               values (gen_random_uuid(), 1, 1, now(), 'elder', 'h', '0.9', 'b', 'd')";
    bed.sql(old).await;
    let refused = switch_inline(&config(&bed.db)).await.unwrap_err();
    assert!(
        matches!(refused, StoreError::OldWorkers { .. }),
        "{refused:?}"
    );
    assert!(
        refused.to_string().contains("elder (release 0.9)"),
        "{refused}"
    );
    let after = bed.submit("k").await;
    assert_eq!(stands_in(&bed, after).await, "body", "nothing was changed");

    bed.sql("update aegis.worker set state = 2, ended_at = now() where name = 'elder'")
        .await;
    assert!(switch_inline(&config(&bed.db)).await.unwrap());
    assert!(!switch_inline(&config(&bed.db)).await.unwrap());
    let after = bed.submit("k").await;
    assert_eq!(stands_in(&bed, after).await, "task");
    // The release before is refused at its start, and at its registration when it had started before.
    let error = verify_against(&bed.db.admin, BEFORE).await.unwrap_err();
    assert!(
        matches!(error, StoreError::BinaryTooOld { .. }),
        "{error:?}"
    );
    let error = bed.db.admin.batch_execute(old).await.unwrap_err();
    let said = error.as_db_error().unwrap();
    assert_eq!(said.code().code(), "AEG09");
    assert!(said.message().contains("elder knows schema 6"), "{said:?}");
    // What it wrote goes on.
    let state = bed.complete(before.held).await;
    assert!(matches!(
        state,
        aegis_model::Outcome::Applied(State::Succeeded)
    ));
    assert_eq!(
        shown(&bed, before.held.task).await,
        (Some(1), Some(b"{}".to_vec()))
    );
}

#[tokio::test]
async fn a_new_database_begins_switched() {
    let db = TestDb::empty().await;
    install(&config(&db), 2).await.unwrap();
    assert!(!switch_inline(&config(&db)).await.unwrap());
    let admitted: i32 = db
        .admin
        .query_one("select min_schema from aegis.schema_version", &[])
        .await
        .unwrap()
        .get(0);
    assert_eq!(admitted, BEFORE + 1);
    const { assert!(SCHEMA > BEFORE) };
}

/// Without the day's partitions nothing could be completed: the submit is refused, not the completion.
#[tokio::test]
async fn without_the_days_partitions_nothing_is_submitted() {
    let bed = Bed::new().await;
    let url = bed.db.url_as("aegis_engine") + "&statements=named";
    let store = Store::connect(Config::from_url(&url).unwrap())
        .await
        .unwrap();
    let today: String = bed
        .value(
            "select to_char(clock_timestamp() at time zone 'UTC', 'YYYYMMDD')",
            &[],
        )
        .await;
    bed.sql(&format!(
        "drop table aegis.task_body_{today}; drop table aegis.task_history_{today}"
    ))
    .await;
    for count in [1, 300] {
        let batch = vec![NewTask::new("k", "{}"); count];
        let error = store.submit_batch(batch).await.unwrap_err();
        assert!(matches!(error, StoreError::NoPartition { .. }), "{error:?}");
    }
    let left: i64 = bed.value("select count(*) from aegis.task", &[]).await;
    assert_eq!(left, 0);
}
