//! `aegis lane`: lists, pauses, resumes.

use aegis_store::install::SCHEMA;
use aegis_testkit::process_slot;
use serde_json::json;

use crate::support::Place;

#[tokio::test]
async fn process_lanes_are_listed_with_what_waits_and_who_reads_it() {
    let _slot = process_slot();
    let place = Place::new().await;
    place.submit(&["resize", "--queue", "pictures"]).await;
    place
        .submit(&["resize", "--queue", "pictures", "--delay", "3600"])
        .await;
    place.submit(&["mail", "--protocol", "2"]).await;
    let lanes = place.json(&["lane", "list"]).await;
    let of = |name: &str| {
        lanes
            .as_array()
            .unwrap()
            .iter()
            .find(|lane| lane["name"] == name)
            .unwrap()
            .clone()
    };
    let pictures = of("pictures/resize 1");
    assert_eq!(
        (
            &pictures["ready"],
            &pictures["scheduled"],
            &pictures["readers"],
            &pictures["state"]
        ),
        (&json!(1), &json!(1), &json!(0), &json!("stranded"))
    );
    assert_eq!(
        (
            &of("default/mail 2")["ready"],
            &of("default/mail 2")["protocol_lo"]
        ),
        (&json!(1), &json!(2))
    );
    let age = pictures["oldest_ready_at"]
        .as_str()
        .unwrap()
        .parse::<jiff::Timestamp>()
        .unwrap();
    let seconds = (jiff::Timestamp::now() - age)
        .total(jiff::Unit::Second)
        .unwrap();
    assert!((-5.0..120.0).contains(&seconds), "{pictures}");
    register_reader(&place).await;
    let read = place.json(&["lane", "list", "--queue", "pictures"]).await;
    assert_eq!(
        (&read[0]["readers"], &read[0]["state"]),
        (&json!(1), &json!("open")),
        "{read}"
    );
    let names = place
        .run(&["lane", "list", "--queue", "pictures", "-o", "name"])
        .await;
    assert_eq!(names.stdout, "pictures/resize 1\n");
}

/// A worker of release r1 that reads pictures/resize 1..2, as its registration leaves it.
async fn register_reader(place: &Place) {
    place
        .db
        .admin
        .batch_execute(&format!(
            "INSERT INTO aegis.worker (id, slots, pid, registered_at, name, host, release, build, digest, schema)
                 VALUES ('00000000-0000-4000-8000-000000000001', 3, 7, clock_timestamp(), 'reader', 'h', 'r1', 'b', 'd', {SCHEMA});
             INSERT INTO aegis.worker_lease (worker, lease_until, ttl_ms, beat_at)
                 VALUES ('00000000-0000-4000-8000-000000000001', clock_timestamp() + interval '1 h', 30000, clock_timestamp());
             INSERT INTO aegis.worker_capability (worker, queue, kind, reads_min, reads_max, writes, slots)
                 VALUES ('00000000-0000-4000-8000-000000000001', 'pictures', 'resize', 1, 2, 2, 3)",
        ))
        .await
        .unwrap();
}

#[tokio::test]
async fn process_what_is_paused_says_by_whom_and_why_until_it_is_resumed() {
    let _slot = process_slot();
    let place = Place::new().await;
    place.submit(&["resize", "--queue", "pictures"]).await;
    register_reader(&place).await;
    let paused = place
        .json(&[
            "lane", "pause", "--queue", "pictures", "--reason", "INC-7", "--actor", "ada",
        ])
        .await;
    assert_eq!(
        (&paused["name"], &paused["who"]),
        (&json!("pictures"), &json!("ada"))
    );
    let lane = place.json(&["lane", "list"]).await;
    assert_eq!(
        (&lane[0]["state"], &lane[0]["paused"]),
        (&json!("paused"), &json!(["queue pictures by ada: INC-7"]))
    );
    for (scope, value) in [
        ("--kind", "resize"),
        ("--release", "r1"),
        ("--tenant", "acme"),
    ] {
        place
            .json(&[
                "lane", "pause", scope, value, "--reason", "why", "--actor", "bob",
            ])
            .await;
    }
    let pauses = place.json(&["lane", "pauses"]).await;
    let scopes: Vec<_> = pauses
        .as_array()
        .unwrap()
        .iter()
        .map(|pause| pause["scope"].as_str().unwrap())
        .collect();
    assert_eq!(scopes, ["queue", "kind", "release", "tenant"]);
    assert_eq!(
        place.json(&["lane", "list"]).await[0]["readers"],
        0,
        "workers of a paused release read nothing"
    );
    // Nothing is claimed of a paused queue: the engine's own rule, looked at here because this is where a person meets it.
    let shown = place.json(&["worker", "show", "reader"]).await;
    assert_eq!(shown["release_paused"], true);
    for (scope, value) in [
        ("--queue", "pictures"),
        ("--kind", "resize"),
        ("--release", "r1"),
        ("--tenant", "acme"),
    ] {
        assert_eq!(
            place.json(&["lane", "resume", scope, value]).await["paused"],
            false
        );
    }
    let kept = place.json(&["db", "changes"]).await;
    let whats: Vec<_> = kept
        .as_array()
        .unwrap()
        .iter()
        .map(|c| c["what"].as_str().unwrap())
        .collect();
    assert_eq!(whats[..4], ["resume"; 4]);
    assert_eq!(whats[4..8], ["pause"; 4]);
    assert_eq!(place.json(&["lane", "pauses"]).await, json!([]));
    assert_eq!(place.json(&["lane", "list"]).await[0]["state"], "open");
}

#[tokio::test]
async fn process_one_pause_is_of_one_thing() {
    let _slot = process_slot();
    let place = Place::new().await;
    let both = place
        .run(&[
            "lane", "pause", "--queue", "a", "--kind", "b", "--reason", "x",
        ])
        .await;
    assert_eq!(both.code, 2, "{both:?}");
    let unknown = place
        .run(&["lane", "pause", "--queue", "tpyo", "--reason", "x"])
        .await;
    assert_eq!(unknown.code, 0, "{unknown:?}");
    assert!(
        unknown
            .stderr
            .contains("no task of queue `tpyo` was ever submitted"),
        "{unknown:?}"
    );
}
