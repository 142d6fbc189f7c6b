//! `aegis task cancel|retry|run-now|reschedule|reprioritise|redrive|discard|erase`: by ids, and by filter.

use aegis_testkit::process_slot;
use serde_json::{Value, json};

use crate::support::Place;
use crate::task_stream::run_with_input;

impl Place {
    /// How many tasks of this kind are in this state.
    async fn count(&self, kind: &str, state: &str) -> usize {
        let found = self
            .json(&[
                "task", "list", "--kind", kind, "--state", state, "--limit", "0",
            ])
            .await;
        found.as_array().unwrap().len()
    }
}

#[tokio::test]
async fn process_a_change_by_filter_is_tried_asked_for_and_done() {
    let _slot = process_slot();
    let place = Place::new().await;
    for n in 0..5 {
        place
            .submit(&["a", "--label", if n < 3 { "batch=1" } else { "batch=2" }])
            .await;
    }
    place.submit(&["b"]).await;
    let cancel = [
        "task", "cancel", "--kind", "a", "--label", "batch=1", "--reason", "void",
    ];
    let with = |more: &[&'static str]| [cancel.as_slice(), more].concat();

    let asked = place.run(&with(&[])).await;
    assert_eq!(asked.code, 2, "{asked:?}");
    assert!(
        asked.stderr.contains("3 tasks would be cancelled"),
        "{asked:?}"
    );
    assert!(
        asked.stderr.contains("--yes") && asked.stderr.contains("--dry-run"),
        "{asked:?}"
    );
    let tried = place.json(&with(&["--dry-run"])).await;
    let tried = tried.as_array().unwrap();
    assert_eq!(tried.len(), 3);
    assert!(
        tried
            .iter()
            .all(|one| one["changed"] == true && one["answer"] == "cancelled"),
        "{tried:?}"
    );
    assert_eq!(
        place.count("a", "ready").await,
        5,
        "nothing was changed so far"
    );

    let done = place
        .run(&with(&["--yes", "--limit", "1", "-o", "name"]))
        .await;
    assert_eq!((done.code, done.stdout.lines().count()), (0, 1), "{done:?}");
    let done = place.run(&with(&["--yes"])).await;
    assert_eq!(done.code, 0, "{done:?}");
    assert!(
        done.stderr.contains("2 cancelled, or asked to stop"),
        "{done:?}"
    );
    assert_eq!(place.count("a", "ready").await, 2);
    assert_eq!(place.count("b", "ready").await, 1);
    let id = place
        .json(&["task", "list", "--kind", "a", "--state", "cancelled"])
        .await[0]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let events = place.json(&["task", "events", &id]).await;
    assert_eq!(events[0]["detail"]["reason"], "void");
    assert_ne!(events[0]["actor"], Value::Null);

    let none = place.run(&with(&["--yes"])).await;
    assert_eq!(none.code, 0, "again is no error: {none:?}");
    // Old enough for nobody.
    let old = with(&["--older-than", "1h", "--dry-run"]);
    assert_eq!(place.json(&old).await, json!([]));
}

#[tokio::test]
async fn process_ids_of_one_command_are_another_ones_input() {
    let _slot = process_slot();
    let place = Place::new().await;
    for _ in 0..3 {
        place.submit(&["a", "--delay", "3600"]).await;
    }
    let names = place
        .run(&["task", "list", "--state", "scheduled", "-o", "name"])
        .await;
    assert_eq!(names.stdout.lines().count(), 3, "{names:?}");
    let words = ["task", "run-now", "-", "--reason", "at once", "-o", "json"];
    let ran = run_with_input(place.command(&words), names.stdout.as_bytes()).await;
    assert_eq!(ran.code, 0, "{ran:?}");
    let all: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert!(
        all.as_array()
            .unwrap()
            .iter()
            .all(|one| one["answer"] == "ready"),
        "{all}"
    );
    assert_eq!(place.count("a", "ready").await, 3);
}

#[tokio::test]
async fn process_what_was_not_done_is_told_and_decides_the_exit_code() {
    let _slot = process_slot();
    let place = Place::new().await;
    let ready = place.submit(&["a"]).await;
    let later = place.submit(&["a", "--delay", "3600"]).await;
    let nobody = "01890000-0000-7000-8000-000000000000";

    let partly = place
        .run(&["task", "run-now", &ready, &later, nobody, "--reason", "x"])
        .await;
    assert_eq!(partly.code, 8, "{partly:?}");
    assert!(
        partly.stderr.contains("2 of 3 tasks were left alone"),
        "{partly:?}"
    );
    assert!(partly.stdout.contains("it is ready already"), "{partly:?}");
    let refused = place
        .run(&["task", "run-now", &ready, &later, "--reason", "x"])
        .await;
    assert_eq!(refused.code, 4, "{refused:?}");
    // Nothing is changed before every id is known to stand for one task.
    let unknown = place
        .run(&["task", "cancel", &ready, "ffff", "--reason", "x"])
        .await;
    assert_eq!(unknown.code, 3, "{unknown:?}");
    assert_eq!(place.count("a", "ready").await, 2);

    let retry = place.run(&["task", "retry", &ready, "--reason", "x"]).await;
    assert_eq!(retry.code, 4, "{retry:?}");
    let live = place.run(&["task", "erase", &ready, "--reason", "x"]).await;
    assert_eq!(live.code, 4, "{live:?}");
    assert!(live.stderr.contains("it has not ended"), "{live:?}");
    for words in [
        vec!["task", "cancel", "--reason", "x"],
        vec!["task", "cancel", &ready],
        vec!["task", "cancel", &ready, "--kind", "a", "--reason", "x"],
        vec!["task", "reschedule", &ready, "--reason", "x"],
        vec![
            "task",
            "reschedule",
            &ready,
            "--in",
            "1h",
            "--at",
            "2030-01-01T00:00:00Z",
            "--reason",
            "x",
        ],
        vec![
            "task",
            "reprioritise",
            &ready,
            "--priority",
            "10",
            "--reason",
            "x",
        ],
        vec!["task", "list", "--state", "asleep"],
        vec!["task", "list", "--older-than", "yesterday"],
        vec!["task", "list", "--label", "nonsense"],
    ] {
        let ran = place.run(&words).await;
        assert_eq!(ran.code, 2, "{words:?}: {ran:?}");
        assert!(ran.stdout.is_empty(), "{ran:?}");
    }
    let blank = place
        .run(&["task", "cancel", &ready, "--reason", " "])
        .await;
    assert_eq!(blank.code, 4, "{blank:?}");
    assert!(blank.stderr.contains("AEG-0017"), "{blank:?}");
}

#[tokio::test]
async fn process_a_task_is_postponed_hurried_put_first_ended_and_erased() {
    let _slot = process_slot();
    let place = Place::new().await;
    let id = place.submit(&["a", "--input", r#"{"who":"ada"}"#]).await;
    let change = async |words: &[&str]| {
        let mut all = vec!["task"];
        all.extend(words);
        all.extend(["--reason", "why", "--actor", "ann"]);
        place.json(&all).await["answer"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    assert_eq!(
        change(&["reschedule", &id, "--in", "2h"]).await,
        "scheduled"
    );
    assert_eq!(
        change(&["reschedule", &id, "--at", "2099-01-01T00:00:00Z"]).await,
        "scheduled"
    );
    let shown = place.json(&["task", "show", &id]).await;
    assert_eq!(shown["run_at"], "2099-01-01T00:00:00Z");
    assert_eq!(change(&["run-now", &id]).await, "ready");
    assert_eq!(
        change(&["reprioritise", &id, "--priority", "0"]).await,
        "reprioritised"
    );
    assert_eq!(change(&["cancel", &id]).await, "cancelled");
    assert_eq!(change(&["erase", &id]).await, "erased");
    let shown = place.json(&["task", "show", &id]).await;
    assert_eq!(shown["input"], Value::Null);
    assert!(shown["erased_at"].is_string(), "{shown}");
    let people = place.run(&["task", "show", &id]).await;
    assert!(people.stdout.contains("(erased)"), "{people:?}");
    let told: Vec<&str> = shown["timeline"]
        .as_array()
        .unwrap()
        .iter()
        .map(|moment| moment["what"].as_str().unwrap())
        .collect();
    assert_eq!(
        told,
        [
            "submitted",
            "rescheduled",
            "rescheduled",
            "run_now",
            "reprioritised",
            "cancel_requested",
            "cancelled",
            "erased"
        ]
    );
}

#[tokio::test]
async fn process_a_change_can_be_waited_for() {
    let _slot = process_slot();
    let place = Place::new().await;
    let ids = [place.submit(&["a"]).await, place.submit(&["a"]).await];
    let one = place
        .run(&[
            "task",
            "cancel",
            &ids[0],
            "--reason",
            "x",
            "--wait",
            "--timeout",
            "10s",
        ])
        .await;
    assert_eq!(one.code, 0, "{one:?}");
    assert!(one.stdout.contains("cancelled"), "{one:?}");
    let later = place.submit(&["a", "--delay", "3600"]).await;
    let late = place
        .run(&[
            "task",
            "run-now",
            &later,
            "--reason",
            "x",
            "--wait",
            "--timeout",
            "0.3",
        ])
        .await;
    assert_eq!(late.code, 6, "{late:?}");
    let all = place
        .json(&["task", "cancel", &ids[1], &later, "--reason", "x", "--wait"])
        .await;
    let all = all.as_array().unwrap();
    assert_eq!(all.len(), 2);
    assert!(all.iter().all(|one| one["state"] == "cancelled"), "{all:?}");
}

#[tokio::test]
async fn process_a_change_that_breaks_off_tells_what_it_has_done() {
    let _slot = process_slot();
    let place = Place::new().await;
    let owner = place.db.connect().await;
    owner
        .batch_execute(
            "create table public.broken (task uuid);
            create function public.breaks() returns trigger language plpgsql security definer as
                $$ begin if exists (select from public.broken where task = new.task) then raise exception 'it breaks'; end if; return new; end $$;
            create trigger breaks before insert on aegis.task_event for each row execute function public.breaks()",
        )
        .await
        .unwrap();
    for by_filter in [true, false] {
        // More than a page, of which the last one cannot be changed.
        let lines = "{\"run_at\": \"2100-01-01T00:00:00Z\"}\n".repeat(501);
        let kind = if by_filter { "by-filter" } else { "by-ids" };
        let submit = place.command(&["task", "submit", kind, "--from", "-", "-o", "name"]);
        let submitted = run_with_input(submit, lines.as_bytes()).await;
        let mut ids: Vec<&str> = submitted.stdout.lines().collect();
        ids.sort_unstable();
        // A filter begins with the newest.
        let last = if by_filter { ids[0] } else { ids[500] };
        owner
            .batch_execute(&format!("insert into public.broken values ('{last}')"))
            .await
            .unwrap();
        let cancel = ["task", "cancel", "--reason", "x", "-o", "json"];
        let ran = if by_filter {
            let words = [&cancel[..], &["--kind", kind, "--yes"]].concat();
            place.run(&words).await
        } else {
            let command = place.command(&[&cancel[..], &["-"]].concat());
            run_with_input(command, submitted.stdout.as_bytes()).await
        };
        assert_eq!(ran.code, 5, "{kind}: {ran:?}");
        assert!(
            ran.stderr.contains("it breaks") && ran.stderr.contains("(500 tasks were cancelled"),
            "{kind}: {}",
            ran.stderr
        );
        if by_filter {
            let told: Value = serde_json::from_str(&ran.stdout).unwrap();
            assert_eq!(told.as_array().unwrap().len(), 500);
        }
        assert_eq!(place.count(kind, "cancelled").await, 500, "{kind}");
    }
}
