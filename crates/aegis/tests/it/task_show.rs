//! `aegis task show` and `events`: one task's life, for people and for programs.

use std::process::Stdio;

use aegis_testkit::{process_slot, wait_until};
use serde_json::Value;

use crate::support::{BOUND, Place, ran};

#[tokio::test]
async fn process_show_tells_a_life_on_one_time_line() {
    let _slot = process_slot();
    let place = Place::new().await;
    let (task, operation) = place.unknown_operation().await;
    let resolve = [
        "operation",
        "resolve",
        &operation,
        "--as",
        "happened",
        "--evidence",
        "seen in the log",
        "--actor",
        "bob",
    ];
    assert_eq!(place.run(&resolve).await.code, 0);
    place
        .json(&[
            "task", "cancel", &task, "--reason", "enough", "--actor", "ann",
        ])
        .await;
    let people = place.run(&["task", "show", &task]).await;
    assert_eq!(people.code, 0, "{people:?}");
    for told in [
        "SINCE SUBMIT",
        "submitted",
        "operation_dispatched",
        "operation_resolved",
        "bob",
        "seen in the log",
        "cancel_requested",
        "enough",
        "ann",
        "ended",
    ] {
        assert!(
            people.stdout.contains(told),
            "{told} is missing:\n{}",
            people.stdout
        );
    }
    let line = |what: &str| people.stdout.lines().position(|line| line.contains(what));
    assert!(line("operation_dispatched") < line("operation_resolved"));
    assert!(line("operation_resolved") < line("cancel_requested"));

    let whole = place.json(&["task", "show", &task]).await;
    assert_eq!(whole["operations"][0]["resolution"], "happened");
    assert_eq!(whole["operations"][0]["resolved_by"], "bob");
    let timeline = whole["timeline"].as_array().unwrap();
    assert_eq!(timeline.last().unwrap()["what"], "cancelled");
    let yaml = place.run(&["task", "show", &task, "-o", "yaml"]).await;
    assert!(yaml.stdout.contains("timeline:"), "{yaml:?}");
    let name = place.run(&["task", "show", &task, "-o", "name"]).await;
    assert_eq!(name.stdout.trim(), task);
}

#[tokio::test]
async fn process_failed_tasks_say_whether_somebody_still_decides() {
    let _slot = process_slot();
    let place = Place::new().await;
    let ids = [place.submit(&["a"]).await, place.submit(&["a"]).await];
    for id in &ids {
        place
            .db
            .admin
            .execute(
                "select aegis.conclude($1::text::uuid, 6::smallint, '{\"code\": \"broken\"}')",
                &[id],
            )
            .await
            .unwrap();
    }
    place
        .json(&["task", "discard", &ids[0], "--reason", "void"])
        .await;
    let listed = place.run(&["task", "list", "--state", "failed"]).await;
    assert!(listed.stdout.contains("failed (parked)"), "{listed:?}");
    assert!(listed.stdout.contains("failed (discarded)"), "{listed:?}");
    for (word, id) in [("parked", &ids[1]), ("discarded", &ids[0])] {
        let found = place.json(&["task", "list", "--state", word]).await;
        assert_eq!(found.as_array().unwrap().len(), 1, "{word}: {found}");
        assert_eq!(found[0]["id"].as_str().unwrap(), id);
        assert_eq!(found[0]["parked"], word == "parked");
    }
}

#[tokio::test]
async fn process_events_are_followed_until_the_task_has_ended() {
    let _slot = process_slot();
    let place = Place::new().await;
    let id = place.submit(&["a"]).await;
    let mut command = place.command(&["task", "events", &id, "--follow", "-o", "json"]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let follower = tokio::task::spawn_blocking(move || ran(&command.output().unwrap()));
    place
        .json(&[
            "task",
            "reprioritise",
            &id,
            "--priority",
            "1",
            "--reason",
            "first",
        ])
        .await;
    wait_until("the edit is stored", BOUND, async || {
        place
            .json(&["task", "events", &id])
            .await
            .as_array()
            .unwrap()
            .len()
            == 1
    })
    .await;
    place
        .json(&["task", "cancel", &id, "--reason", "enough"])
        .await;
    let ran = follower.await.unwrap();
    assert_eq!(ran.code, 0, "{ran:?}");
    let causes: Vec<String> = ran
        .stdout
        .lines()
        .map(|line| {
            let event: Value = serde_json::from_str(line).unwrap();
            event["cause"].as_str().unwrap().to_owned()
        })
        .collect();
    assert_eq!(causes, ["reprioritised", "cancel_requested"]);
    let waiting = place.submit(&["a"]).await;
    let late = place
        .run(&["task", "events", &waiting, "--follow", "--timeout", "0.3"])
        .await;
    assert_eq!(late.code, 6, "{late:?}");
}
