//! `aegis worker`: runs, drains, is listed; its exit codes.

use std::process::{Child, Stdio};

use aegis_testkit::{process_slot, wait_until};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;

use crate::support::{BOUND, Place, Ran, ran};

/// A worker that ends with its test.
struct Running(Option<Child>);

impl Running {
    fn start(place: &Place, name: &str, words: &[&str]) -> Self {
        let mut all = vec![
            "worker",
            "--name",
            name,
            "--slots",
            "2",
            "--lease-ttl-ms",
            "2000",
        ];
        all.extend(words);
        let child = place
            .command(&all)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        Self(Some(child))
    }

    fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.0.as_ref().unwrap().id()).unwrap();
        kill(Pid::from_raw(pid), signal).unwrap();
    }

    async fn ended(mut self) -> Ran {
        let child = self.0.take().unwrap();
        let output = tokio::task::spawn_blocking(move || child.wait_with_output().unwrap());
        ran(&tokio::time::timeout(BOUND, output)
            .await
            .expect("the worker ends in time")
            .unwrap())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }
}

async fn accepts(place: &Place) {
    wait_until("the worker accepts work", BOUND, async || {
        let list = place.json(&["worker", "list"]).await;
        list.as_array()
            .unwrap()
            .iter()
            .any(|worker| worker["state"] == "accepting")
    })
    .await;
}

async fn state_of(place: &Place, task: &str) -> String {
    place.json(&["task", "show", task]).await["state"]
        .as_str()
        .unwrap()
        .to_owned()
}

#[tokio::test]
async fn process_tasks_are_executed_waited_for_and_the_worker_drains_by_sigterm() {
    let _slot = process_slot();
    let place = Place::new().await;
    let worker = Running::start(&place, "w-1", &[]);
    accepts(&place).await;
    let done = place
        .json(&[
            "task",
            "submit",
            "aegis.noop",
            "--input",
            r#"{"a":1}"#,
            "--wait",
            "--timeout",
            "20",
        ])
        .await;
    assert_eq!(
        (&done["state"], &done["result"]),
        (&json!("succeeded"), &json!({ "a": 1 }))
    );
    let slept = place
        .json(&[
            "task",
            "submit",
            "aegis.sleep",
            "--input",
            r#"{"ms":30,"steps":3}"#,
            "--wait",
            "--timeout",
            "20",
        ])
        .await;
    assert_eq!(slept["result"], json!({ "slept_ms": 30 }));
    let failed = place
        .run(&[
            "task",
            "submit",
            "aegis.sleep",
            "--input",
            r#"{"nonsense":1}"#,
            "--wait",
            "--timeout",
            "20",
        ])
        .await;
    assert_eq!(failed.code, 7, "{failed:?}");
    assert!(failed.stdout.contains("input_invalid"), "{failed:?}");
    let watched = place
        .run(&["task", "watch", done["id"].as_str().unwrap()])
        .await;
    assert_eq!(watched.code, 0, "{watched:?}");

    worker.signal(Signal::SIGTERM);
    let ended = worker.ended().await;
    assert_eq!(ended.code, 0, "{ended:?}");
    assert!(ended.stdout.is_empty(), "stdout is for programs: {ended:?}");
    assert!(
        ended
            .stderr
            .contains("executes aegis.noop, aegis.sleep, aegis.http")
            && ended.stderr.contains("ended: drained"),
        "{ended:?}"
    );
    let list = place.json(&["worker", "list"]).await;
    assert_eq!(list, json!([]));
    let all = place.json(&["worker", "list", "--all"]).await;
    assert_eq!(
        (&all[0]["name"], &all[0]["state"]),
        (&json!("w-1"), &json!("stopped"))
    );
}

#[tokio::test]
async fn process_a_worker_is_drained_by_its_name_and_hands_back_what_takes_too_long() {
    let _slot = process_slot();
    let place = Place::new().await;
    let worker = Running::start(
        &place,
        "w-1",
        &["--drain-s", "0.2", "--stop-acquiring-s", "2"],
    );
    accepts(&place).await;
    let task = place
        .submit(&["aegis.sleep", "--input", r#"{"ms":600000}"#])
        .await;
    wait_until("the task runs", BOUND, async || {
        state_of(&place, &task).await == "running"
    })
    .await;
    let drained = place.json(&["worker", "drain", "w-1"]).await;
    assert_eq!(drained["drain"], "drains");
    let ended = worker.ended().await;
    assert_eq!(ended.code, 10, "{ended:?}");
    let shown = place.json(&["task", "show", &task]).await;
    assert_eq!(
        (&shown["state"], &shown["interruptions"], &shown["failures"]),
        (&json!("ready"), &json!(1), &json!(0))
    );
    let again = place.run(&["worker", "drain", "w-1"]).await;
    assert_eq!(again.code, 3, "it is not alive any more: {again:?}");
}

#[tokio::test]
async fn process_a_second_sigterm_goes_straight_to_the_cancel_phase() {
    let _slot = process_slot();
    let place = Place::new().await;
    let worker = Running::start(&place, "w-1", &[]);
    accepts(&place).await;
    let task = place
        .submit(&["aegis.sleep", "--input", r#"{"ms":600000}"#])
        .await;
    wait_until("the task runs", BOUND, async || {
        state_of(&place, &task).await == "running"
    })
    .await;
    worker.signal(Signal::SIGTERM);
    wait_until("the worker drains", BOUND, async || {
        place.json(&["worker", "list"]).await[0]["state"] == "draining"
    })
    .await;
    worker.signal(Signal::SIGTERM);
    let ended = worker.ended().await;
    assert_eq!(ended.code, 10, "{ended:?}");
    assert_eq!(state_of(&place, &task).await, "ready");
}

#[tokio::test]
async fn process_what_a_worker_cannot_keep_is_refused_before_it_starts() {
    let _slot = process_slot();
    let place = Place::new().await;
    let grace = place.run(&["worker", "--grace-period-s", "30"]).await;
    assert_eq!(grace.code, 2, "{grace:?}");
    for word in ["AEG-0009", "--drain-s 420", "--grace-period-s 30", "600 s"] {
        assert!(grace.stderr.contains(word), "{word}: {grace:?}");
    }
    for words in [
        vec!["worker", "--handlers", "demo.order"],
        vec!["worker", "--handlers", "nonsense"],
        vec!["worker", "--kind", "nonsense"],
        vec!["worker", "--slots", "0"],
        vec!["worker", "--lease-ttl-ms", "5"],
        vec![
            "worker",
            "--handlers",
            "demo.order",
            "--payments-url",
            "http://127.0.0.1:1",
        ],
        vec!["worker", "--version", "3"],
        vec!["worker", "--drain-s", "-1"],
    ] {
        let ran = place.run(&words).await;
        assert_eq!(ran.code, 2, "{words:?}: {ran:?}");
    }
    let list = place.json(&["worker", "list", "--all"]).await;
    assert_eq!(list, json!([]), "none of them registered");
    let nobody = crate::support::run(crate::support::command(
        Some("postgresql://nobody@127.0.0.1:1/none"),
        &["worker"],
    ))
    .await;
    assert_eq!(nobody.code, 5, "{nobody:?}");
}

#[tokio::test]
async fn process_an_http_operation_goes_only_where_it_may() {
    let _slot = process_slot();
    let place = Place::new().await;
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("record.jsonl").display().to_string();
    let payments = place
        .command(&[
            "demo", "payments", "--record", &record, "--run", "r", "--seed", "1",
        ])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut payments = Running(Some(payments));
    let mut line = String::new();
    let stdout = payments.0.as_mut().unwrap().stdout.as_mut().unwrap();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(stdout), &mut line).unwrap();
    let url = serde_json::from_str::<serde_json::Value>(&line).unwrap()["url"]
        .as_str()
        .unwrap()
        .to_owned();

    let careful = Running::start(
        &place,
        "w-1",
        &["--handlers", "aegis.http", "--queue", "careful"],
    );
    let allowed = Running::start(
        &place,
        "w-2",
        &[
            "--handlers",
            "aegis.http",
            "--queue",
            "a",
            "--queue",
            "b",
            "--allow-private-addresses",
        ],
    );
    let input = json!({ "url": format!("{url}/charges"), "class": "idempotent", "timeout_ms": 600, "retention_ms": 600_000,
                        "body": { "reference": "O-1", "amount": "1.00", "currency": "EUR" } });
    let submit = async |queue: &str, input: &serde_json::Value| {
        place
            .run(&[
                "task",
                "submit",
                "aegis.http",
                "--queue",
                queue,
                "--input",
                &input.to_string(),
                "--wait",
                "--output",
                "json",
            ])
            .await
    };
    let refused = submit("careful", &input).await;
    assert_eq!(refused.code, 7, "{refused:?}");
    assert!(
        refused.stdout.contains("may not call 127.0.0.1"),
        "{refused:?}"
    );
    let paid = submit("b", &input).await;
    assert_eq!(paid.code, 0, "{paid:?}");
    assert!(paid.stdout.contains("\"outcome\":\"charged\""), "{paid:?}");
    let probed = json!({ "url": format!("{url}/payouts"), "class": "queryable", "timeout_ms": 600, "quiet_ms": 1500,
                         "probe_url": format!("{url}/payouts/{{operation}}"), "repeat": 3,
                         "body": { "reference": "O-2", "amount": "1.00", "currency": "EUR" } });
    let done = submit("a", &probed).await;
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(
        done.stdout.matches("\"outcome\":\"paid\"").count(),
        3,
        "{done:?}"
    );
    let contradiction = submit(
        "a",
        &json!({ "url": url, "class": "blind", "probe_url": url }),
    )
    .await;
    assert_eq!(contradiction.code, 7, "{contradiction:?}");

    for worker in [careful, allowed] {
        worker.signal(Signal::SIGTERM);
        assert_eq!(worker.ended().await.code, 0);
    }
    payments.signal(Signal::SIGTERM);
    assert_eq!(payments.ended().await.code, 0);
    let record = std::fs::read_to_string(&record).unwrap();
    assert_eq!(
        record.matches("\"kind\":\"applied\"").count(),
        4,
        "{record}"
    );
    assert!(
        record.lines().last().unwrap().contains("closed"),
        "{record}"
    );
}
