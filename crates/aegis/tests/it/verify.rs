//! `aegis demo verify`: a clean run passes; a lost, a doubled and an accepted stale effect are each found; evidence that is
//! not whole never passes.

use std::path::PathBuf;

use aegis_demo::payments::record::{Call, Event, RecordLine, VERSION};
use aegis_demo::payments::{Behaviour, Effect, FencingToken};
use aegis_demo::run::{KIND, Run};
use aegis_store::{Config, Store};
use aegis_testkit::process_slot;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::Place;

/// A run of two good orders and a bad one, as a worker and the payment service would have left it. The first order was taken
/// over once.
struct Played {
    place: Place,
    folder: TempDir,
    run: Run,
    events: Vec<Event>,
    /// The tasks, good, good, bad.
    tasks: Vec<String>,
}

impl Played {
    async fn new() -> Self {
        let place = Place::new().await;
        let run = Run::new();
        let owner = Store::connect_unverified(Config::from_url(&place.db.url()).unwrap()).unwrap();
        run.write_down(&owner, 1).await.unwrap();
        let mut played = Self {
            place,
            folder: tempfile::tempdir().unwrap(),
            run,
            events: Vec::new(),
            tasks: Vec::new(),
        };
        for (order, epoch, amount) in [
            ("O-1", 2, "10.00"),
            ("O-2", 1, "20.00"),
            ("O-3", 1, "-5.00"),
        ] {
            let task = played.task(order, epoch, amount).await;
            played.tasks.push(task);
        }
        let first = played.tasks[0].clone();
        played.sql(&format!(
            "INSERT INTO aegis.task_event (task, at, tenant, epoch, cause, owner, claimed_at, detail)
             SELECT id, clock_timestamp(), tenant, 1, 'crash', gen_random_uuid(), clock_timestamp() - interval '1 s', '{{\"lane\": 1}}'
             FROM aegis.task_history WHERE id = '{first}'"
        ))
        .await;
        played
    }

    async fn sql(&self, text: &str) {
        self.place.db.admin.batch_execute(text).await.unwrap();
    }

    async fn one(&self, sql: &str) -> String {
        self.place
            .db
            .admin
            .query_one(sql, &[])
            .await
            .unwrap()
            .get(0)
    }

    /// An ended task with its ledger rows and its lines in the record.
    async fn task(&mut self, order: &str, epoch: u64, amount: &str) -> String {
        let good = !amount.starts_with('-');
        let input = json!({ "order_id": order, "customer": "Ada", "email": "ada@example.com", "item": "lamp",
                            "amount": amount, "currency": "EUR", "bank": "northbank" });
        let (tenant, queue) = (&self.run.tenant, &self.run.queue);
        let task = self
            .one(&format!("SELECT aegis.submit('{KIND}', '{input}', '{queue}', '{tenant}', 1, '{order}')::text"))
            .await;
        let end = if good {
            format!(
                "INSERT INTO aegis.task_history (id, lane, tenant, state, failures, interruptions, crashes, snoozes, open_ops, epoch,
                     rev, claimed_at, finished_at)
                 SELECT id, lane, tenant, 5, 0, 0, 0, 0, 0, {epoch}, 9, clock_timestamp(), clock_timestamp() FROM aegis.task
                 WHERE id = '{task}';
                 INSERT INTO demo.receipt (queue, task, order_id, reservation, charge, payout, notification, epoch, written_by)
                 VALUES ('{queue}', '{task}', '{order}', 'R', 'C', 'P', 'N', {epoch}, 'version 1')"
            )
        } else {
            format!(
                "INSERT INTO aegis.parked (id, lane, tenant, policy, state, priority, failures, interruptions, crashes, snoozes,
                     open_ops, parts, epoch, rev, parked_at, error)
                 SELECT id, lane, tenant, policy, 6, priority, 1, 0, 0, 0, 0, false, {epoch}, 2, clock_timestamp(),
                     '{{\"code\": \"order_invalid\"}}' FROM aegis.task WHERE id = '{task}'"
            )
        };
        self.sql(&format!(
            "{end}; DELETE FROM aegis.task WHERE id = '{task}'"
        ))
        .await;
        for effect in Effect::ALL.into_iter().filter(|_| good) {
            let id = operation(&task, effect);
            let class = aegis_model_class(effect);
            self.sql(&format!(
                "INSERT INTO aegis.operation (task, id, tenant, name, key, class, state, dispatches, protocol, epoch, timeout_ms,
                     quiet_ms, first_dispatched_at, dispatched_at, finished_at, fingerprint)
                 SELECT id, '{id}', tenant, '{}', '{order}', {class}, 2, 1, 1, {epoch}, 600, 0, clock_timestamp(),
                     clock_timestamp(), clock_timestamp(), '\\x00' FROM aegis.task_history WHERE id = '{task}'",
                effect.name()
            ))
            .await;
            self.events.push(applied(&task, order, effect, epoch));
        }
        task
    }

    /// The record as it stands, closed in order.
    fn record(&self) -> PathBuf {
        let opened = Event::Opened {
            run: self.run.id.clone(),
            seed: 1,
            doubles: false,
        };
        let text: String = std::iter::once(opened)
            .chain(self.events.iter().cloned())
            .chain([Event::Closed {}])
            .zip(0..)
            .map(|(event, seq)| {
                serde_json::to_string(&RecordLine {
                    v: VERSION,
                    seq,
                    at_ms: 0,
                    event,
                })
                .unwrap()
                    + "\n"
            })
            .collect();
        let path = self.folder.path().join("record.jsonl");
        std::fs::write(&path, text).unwrap();
        path
    }

    /// Verifies, and gives the exit code and the object.
    async fn verify(&self) -> (i32, Value) {
        let record = self.record();
        let ran = self
            .place
            .run(&[
                "demo",
                "verify",
                "--json",
                "--record",
                &record.display().to_string(),
            ])
            .await;
        assert_eq!(ran.stdout.lines().count(), 1, "{ran:?}");
        (ran.code, serde_json::from_str(&ran.stdout).unwrap())
    }

    /// Verifies, and asks for a failure that is about this.
    async fn finds(&self, kind: &str, count: &str) -> Value {
        let (code, found) = self.verify().await;
        assert_eq!((code, &found["verdict"]), (1, &json!("fail")), "{found}");
        let kinds: Vec<&str> = found["breaches"]
            .as_array()
            .unwrap()
            .iter()
            .map(|b| b["kind"].as_str().unwrap())
            .collect();
        assert!(
            !kinds.is_empty() && kinds.iter().all(|k| *k == kind),
            "{kind} expected: {found}"
        );
        assert!(found[count].as_u64().unwrap() > 0, "{count}: {found}");
        found
    }
}

fn operation(task: &str, effect: Effect) -> String {
    format!("{task}/{}/O/v1", effect.name())
}

fn aegis_model_class(effect: Effect) -> i16 {
    match effect {
        Effect::Charge => 0,
        Effect::Reserve => 1,
        Effect::Payout => 2,
        Effect::Notify => 3,
    }
}

fn applied(task: &str, order: &str, effect: Effect, epoch: u64) -> Event {
    let call = Call {
        effect,
        class: effect.class(),
        operation_id: operation(task, effect),
        task: task.to_owned(),
        reference: order.to_owned(),
        fencing_token: Some(FencingToken {
            floor: 0,
            timeline: 1,
            epoch,
        }),
        request_sha256: "00".to_owned(),
        call: 1,
    };
    Event::Applied {
        call,
        receipt: "R".to_owned(),
        amount: None,
        currency: None,
        behaviour: Behaviour::Good,
    }
}

#[tokio::test]
async fn process_a_clean_run_passes() {
    let _slot = process_slot();
    let played = Played::new().await;
    let (code, found) = played.verify().await;
    assert_eq!((code, &found["verdict"]), (0, &json!("pass")), "{found}");
    for (what, count) in [
        ("submitted", 3),
        ("succeeded", 2),
        ("failed_as_expected", 1),
        ("takeovers", 1),
        ("effects_applied", 8),
        ("receipts", 2),
        ("effects_lost", 0),
        ("effects_duplicated", 0),
        ("stale_accepted", 0),
        ("unknown_left", 0),
    ] {
        assert_eq!(found[what], json!(count), "{what}: {found}");
    }
    let table = played
        .place
        .run(&[
            "demo",
            "verify",
            "--record",
            &played.record().display().to_string(),
        ])
        .await;
    assert_eq!(table.code, 0, "{table:?}");
    assert!(
        table.stdout.contains("effects lost")
            && table.stdout.contains("pass: every promise was kept"),
        "{table:?}"
    );
}

#[tokio::test]
async fn process_a_lost_effect_is_found() {
    let _slot = process_slot();
    let mut played = Played::new().await;
    played.events.remove(1);
    let found = played.finds("effect_lost", "effects_lost").await;
    assert!(
        found["breaches"][0]["sentence"]
            .as_str()
            .unwrap()
            .contains(&played.tasks[0]),
        "{found}"
    );
}

#[tokio::test]
async fn process_a_doubled_effect_is_found() {
    let _slot = process_slot();
    let mut played = Played::new().await;
    let Event::Applied {
        mut call,
        receipt,
        amount,
        currency,
        behaviour,
    } = played.events[1].clone()
    else {
        panic!("not applied")
    };
    call.call = 2;
    played.events.push(Event::Applied {
        call,
        receipt,
        amount,
        currency,
        behaviour,
    });
    played
        .finds("effect_duplicated", "effects_duplicated")
        .await;
}

#[tokio::test]
async fn process_an_effect_with_a_stale_token_is_found() {
    let _slot = process_slot();
    let mut played = Played::new().await;
    // The service has seen epoch 2 of this task and takes the reservation of epoch 1 afterwards.
    let Event::Applied { call, .. } = applied(&played.tasks[0], "O-1", Effect::Reserve, 1) else {
        panic!("not applied")
    };
    played.events.push(Event::Replayed {
        call,
        of_seq: 1,
        behaviour: Behaviour::Good,
    });
    played.finds("stale_accepted", "stale_accepted").await;
}

#[tokio::test]
async fn process_an_end_written_by_a_lost_worker_is_found() {
    let _slot = process_slot();
    let played = Played::new().await;
    let first = &played.tasks[0];
    played
        .sql(&format!(
            "UPDATE aegis.task_history SET epoch = 1 WHERE id = '{first}'"
        ))
        .await;
    let found = played.finds("stale_accepted", "stale_accepted").await;
    assert!(
        found["breaches"][0]["sentence"]
            .as_str()
            .unwrap()
            .contains(first),
        "{found}"
    );
}

#[tokio::test]
async fn process_a_task_that_is_gone_a_receipt_too_many_and_an_unknown_result_are_found() {
    let _slot = process_slot();
    let played = Played::new().await;
    let second = &played.tasks[1];
    played
        .sql(&format!(
            "INSERT INTO demo.receipt SELECT * FROM demo.receipt WHERE task = '{second}'"
        ))
        .await;
    played.finds("receipt_mismatch", "receipts").await;

    let played = Played::new().await;
    let second = &played.tasks[1];
    played
        .sql(&format!(
            "UPDATE aegis.operation SET state = 4 WHERE task = '{second}' AND name = 'notify'"
        ))
        .await;
    played.finds("operation_open", "unknown_left").await;

    let mut played = Played::new().await;
    let second = played.tasks[1].clone();
    played
        .sql(&format!(
            "DELETE FROM aegis.task_history WHERE id = '{second}'; DELETE FROM aegis.operation WHERE task = '{second}';
             DELETE FROM demo.receipt WHERE task = '{second}'"
        ))
        .await;
    played
        .events
        .retain(|event| event.call().is_none_or(|call| call.task != second));
    played.finds("task_lost", "tasks_lost").await;
}

#[tokio::test]
async fn process_what_people_decided_is_read_from_the_events() {
    let _slot = process_slot();
    let mut played = Played::new().await;
    let (first, second) = (played.tasks[0].clone(), played.tasks[1].clone());
    let notify = |task: &str| operation(task, Effect::Notify);
    // One was found to have happened; one not, and was called again.
    for (task, state, resolution) in [
        (
            &first,
            "state = 5, resolution = 0, resolved_by = 'ada', resolved_at = now(), evidence = 'x'",
            0,
        ),
        (&second, "dispatches = 2", 1),
    ] {
        let id = notify(task);
        played
            .sql(&format!(
                "UPDATE aegis.operation SET {state} WHERE id = '{id}';
                 INSERT INTO aegis.task_event (task, at, tenant, epoch, cause, actor, detail)
                 SELECT id, clock_timestamp(), tenant, 1, 'operation_resolved', 'ada',
                     '{{\"operation\": \"{id}\", \"resolution\": {resolution}}}' FROM aegis.task_history WHERE id = '{task}'"
            ))
            .await;
    }
    let at = played
        .events
        .iter()
        .position(|event| {
            event
                .call()
                .is_some_and(|call| call.operation_id == notify(&second))
        })
        .unwrap();
    let lost = played.events[at].call().unwrap().clone();
    if let Event::Applied { call, .. } = &mut played.events[at] {
        call.call = 2;
    }
    played.events.insert(
        at,
        Event::Dropped {
            call: lost,
            behaviour: Behaviour::LostRequest,
        },
    );
    let (code, found) = played.verify().await;
    assert_eq!((code, &found["verdict"]), (0, &json!("pass")), "{found}");
    assert_eq!(
        (&found["unknown_opened"], &found["unknown_resolved"]),
        (&json!(2), &json!(2)),
        "{found}"
    );
    // Without the person's word the second call is a breach.
    played
        .sql("DELETE FROM aegis.task_event WHERE cause = 'operation_resolved'")
        .await;
    played.finds("blind_repeated", "unknown_opened").await;
}

#[tokio::test]
async fn process_a_wait_for_a_protocol_is_read_from_lanes_and_workers() {
    let _slot = process_slot();
    let played = Played::new().await;
    let (first, queue) = (&played.tasks[0], &played.run.queue);
    // Its lease ended a minute ago; its successor claimed it now. Meanwhile somebody accepted work who reads protocol 1.
    played
        .sql(&format!(
            "UPDATE aegis.task_event SET at = clock_timestamp() - interval '60 s', claimed_at = clock_timestamp() - interval '70 s',
                 detail = jsonb_build_object('lane', aegis.lane_id('{queue}', '{KIND}', 1, 2)) WHERE task = '{first}';
             INSERT INTO aegis.worker (id, state, slots, pid, registered_at, draining_at, ended_at, name, host, release, build, digest, schema)
             SELECT '00000000-0000-7000-8000-000000000001', 2, 1, 1, clock_timestamp() - interval '50 s',
                 clock_timestamp() - interval '40 s', clock_timestamp(), 'w', 'h', 'r', 'b', 'd', 7;
             INSERT INTO aegis.worker_capability (worker, queue, kind, reads_min, reads_max, writes, slots)
             VALUES ('00000000-0000-7000-8000-000000000001', '{queue}', '{KIND}', 1, 1, 1, 1)"
        ))
        .await;
    let (_, found) = played.verify().await;
    assert_eq!(found["waited_for_protocol"], json!(1), "{found}");
    // One who reads protocol 2 as well ends the wait before it began.
    played
        .sql("UPDATE aegis.worker_capability SET reads_max = 2")
        .await;
    let (_, found) = played.verify().await;
    assert_eq!(found["waited_for_protocol"], json!(0), "{found}");
}

#[tokio::test]
async fn process_evidence_that_is_not_whole_never_passes() {
    let _slot = process_slot();
    let played = Played::new().await;
    let record = played.record();
    let whole = std::fs::read_to_string(&record).unwrap();
    let other_run = whole.replacen(&played.run.id, "run-other", 1);
    let lines: Vec<&str> = whole.lines().collect();
    let not_closed = lines[..lines.len() - 1].join("\n") + "\n";
    for (text, why) in [
        (other_run, "other_run"),
        (not_closed, "not_closed"),
        (String::new(), "empty"),
    ] {
        std::fs::write(&record, text).unwrap();
        let ran = played
            .place
            .run(&[
                "demo",
                "verify",
                "--json",
                "--record",
                &record.display().to_string(),
            ])
            .await;
        let found: Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!(
            (ran.code, &found["verdict"]),
            (1, &json!("inconclusive")),
            "{why}: {found}"
        );
        assert!(
            found["doubts"]
                .as_array()
                .unwrap()
                .iter()
                .any(|doubt| doubt["kind"] == why),
            "{why}: {found}"
        );
    }
    let missing = played
        .place
        .run(&["demo", "verify", "--record", "/nowhere/record.jsonl"])
        .await;
    assert_eq!(missing.code, 1, "{missing:?}");
    assert!(missing.stdout.contains("inconclusive"), "{missing:?}");
    let bare = Place::new().await;
    let ran = bare
        .run(&["demo", "verify", "--record", &record.display().to_string()])
        .await;
    assert_eq!(ran.code, 5, "a database that no demo has used: {ran:?}");
}
