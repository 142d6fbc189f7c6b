//! `aegis worker list`, `show` and `drain`.

use aegis_store::install::SCHEMA;
use aegis_testkit::process_slot;
use serde_json::json;

use crate::support::Place;

const IDS: [&str; 3] = [
    "aaaa0000-0000-4000-8000-000000000001",
    "aaaa0000-0000-4000-8000-000000000002",
    "bbbb0000-0000-4000-8000-000000000003",
];

/// Two of release r1 with ids that begin alike, one of r2 that was stopped; and a task that the first holds.
async fn fleet(place: &Place) -> String {
    let task = place.submit(&["mail"]).await;
    let [a, b, c] = IDS;
    place
        .db
        .admin
        .batch_execute(&format!(
            "INSERT INTO aegis.worker (id, slots, pid, registered_at, name, host, release, build, digest, state, ended_at, predecessor, schema) VALUES
                 ('{a}', 3, 7, clock_timestamp(), 'twin', 'h', 'r1', 'b', 'd', 0, NULL, '{c}', {SCHEMA}),
                 ('{b}', 3, 8, clock_timestamp(), 'twin', 'h', 'r1', 'b', 'd', 0, NULL, NULL, {SCHEMA}),
                 ('{c}', 3, 9, clock_timestamp(), 'old', 'h', 'r2', 'b', 'd', 2, clock_timestamp(), NULL, {SCHEMA});
             INSERT INTO aegis.worker_lease (worker, lease_until, ttl_ms, beat_at)
                 SELECT id, clock_timestamp() + interval '1 h', 30000, clock_timestamp() FROM aegis.worker;
             INSERT INTO aegis.worker_capability (worker, queue, kind, reads_min, reads_max, writes, slots)
                 VALUES ('{a}', 'default', 'mail', 1, 1, 1, 3);
             UPDATE aegis.task SET state = 2, owner = '{a}', claim_id = gen_random_uuid(), claimed_at = clock_timestamp(), floor = 0,
                 timeline = 1, epoch = 1 WHERE id = '{task}'"
        ))
        .await
        .unwrap();
    task
}

#[tokio::test]
async fn process_workers_are_found_by_release_queue_and_kind() {
    let _slot = process_slot();
    let place = Place::new().await;
    fleet(&place).await;
    let cases = [
        (&[][..], 2),
        (&["--all"], 3),
        (&["--release", "r2"], 0),
        (&["--release", "r2", "--all"], 1),
        (&["--kind", "mail"], 1),
        (&["--queue", "default", "--kind", "other"], 0),
    ];
    for (filter, count) in cases {
        let mut words = vec!["worker", "list"];
        words.extend(filter);
        assert_eq!(
            place.json(&words).await.as_array().unwrap().len(),
            count,
            "{filter:?}"
        );
    }
}

#[tokio::test]
async fn process_one_worker_is_shown_with_what_it_holds() {
    let _slot = process_slot();
    let place = Place::new().await;
    let task = fleet(&place).await;
    let shown = place.json(&["worker", "show", IDS[0]]).await;
    assert_eq!(
        (&shown["running"], &shown["tasks"][0]["id"]),
        (&json!(1), &json!(task))
    );
    assert_eq!(
        (&shown["predecessor"], &shown["state"]),
        (&json!(IDS[2]), &json!("accepting"))
    );
    let old = place.json(&["worker", "show", "bbbb"]).await;
    assert_eq!(
        (&old["state"], &old["successor"]),
        (&json!("stopped"), &json!(IDS[0]))
    );
    let table = place.run(&["worker", "show", IDS[0]]).await;
    assert!(
        table.stdout.contains("default/mail at epoch 1") && table.stdout.contains("process"),
        "{table:?}"
    );
    for twin in ["twin", "aaaa"] {
        let ran = place.run(&["worker", "show", twin]).await;
        assert_eq!(ran.code, 4, "{ran:?}");
        assert!(
            ran.stderr.contains(IDS[0]) && ran.stderr.contains(IDS[1]),
            "{ran:?}"
        );
    }
    assert_eq!(
        place.run(&["worker", "show", "aaa"]).await.code,
        3,
        "three characters stand for nobody"
    );
}

#[tokio::test]
async fn process_a_release_is_drained_after_a_dry_run() {
    let _slot = process_slot();
    let place = Place::new().await;
    fleet(&place).await;
    let would = place
        .json(&["worker", "drain", "--release", "r1", "--dry-run"])
        .await;
    assert_eq!(would.as_array().unwrap().len(), 2);
    let accepting = async || {
        let all = place.json(&["worker", "list"]).await;
        all.as_array()
            .unwrap()
            .iter()
            .filter(|worker| worker["state"] == "accepting")
            .count()
    };
    assert_eq!(accepting().await, 2, "a dry run changes nothing");
    let one_unknown = place.run(&["worker", "drain", IDS[0], "nobody"]).await;
    assert_eq!(
        (one_unknown.code, accepting().await),
        (3, 2),
        "nothing half done: {one_unknown:?}"
    );
    let nobody = ["worker", "drain", "--release", "r9", "--reason", "x"];
    let nobody = place.run(&nobody).await;
    assert_eq!(nobody.code, 3, "{nobody:?}");
    assert!(
        nobody.stderr.contains("no worker of release r9 is alive"),
        "{nobody:?}"
    );
    let words = [
        "worker",
        "drain",
        "--release",
        "r1",
        "--actor",
        "ada",
        "--reason",
        "it charges twice",
    ];
    let done = place.json(&words).await;
    assert_eq!(done[0]["drain"], "drains");
    let kept = place.json(&["db", "changes"]).await;
    assert_eq!(kept.as_array().unwrap().len(), 2, "{kept}");
    for change in kept.as_array().unwrap() {
        assert_eq!(
            (&change["what"], &change["actor"], &change["reason"]),
            (&"drain".into(), &"ada".into(), &"it charges twice".into())
        );
    }
    assert_eq!(accepting().await, 0);
    let again = place.json(&["worker", "drain", IDS[0], IDS[1]]).await;
    assert_eq!(again[1]["drain"], "drained before");
    let late = place
        .run(&["worker", "drain", IDS[0], "--wait", "--timeout", "0.3"])
        .await;
    assert_eq!(late.code, 6, "{late:?}");
    place
        .db
        .admin
        .batch_execute(
            "UPDATE aegis.worker SET state = 2, ended_at = clock_timestamp() WHERE state = 1",
        )
        .await
        .unwrap();
}
