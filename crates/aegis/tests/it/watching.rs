//! Watching a worker of the binary: its address, its log lines, and the trace that a submit hands on.

use std::io::{Read, Write};
use std::process::{Child, Stdio};

use aegis_testkit::{process_slot, wait_until};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::support::{BOUND, Place, run};

const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const TRACE_ID: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

/// A worker that ends with its test, and what it wrote to stderr.
struct Watched {
    child: Child,
    log: tempfile::NamedTempFile,
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

impl Watched {
    fn start(place: &Place, words: &[&str]) -> Self {
        let log = tempfile::NamedTempFile::new().unwrap();
        let mut all = vec!["worker", "--log", "info", "--lease-ttl-ms", "2000"];
        all.extend(words);
        let child = place
            .command(&all)
            .stdout(Stdio::null())
            .stderr(log.reopen().unwrap())
            .spawn()
            .unwrap();
        Self { child, log }
    }

    fn said(&self) -> String {
        std::fs::read_to_string(self.log.path()).unwrap()
    }

    /// Where it listens, as it says itself.
    async fn address(&self) -> String {
        let mut found = None;
        wait_until("its address", BOUND, async || {
            let said = self.said();
            found = said
                .split_once("metrics at http://")
                .and_then(|(_, rest)| rest.split_once('/'))
                .map(|(address, _)| address.to_owned());
            found.is_some()
        })
        .await;
        found.unwrap()
    }

    async fn ended(&mut self) -> Option<i32> {
        kill(
            Pid::from_raw(i32::try_from(self.child.id()).unwrap()),
            Signal::SIGTERM,
        )
        .unwrap();
        let mut status = None;
        wait_until("its end", BOUND, async || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        })
        .await;
        status.unwrap().code()
    }
}

async fn get(address: &str, path: &str) -> (u16, String) {
    let answer = reqwest::get(format!("http://{address}{path}"))
        .await
        .unwrap();
    (answer.status().as_u16(), answer.text().await.unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn process_a_worker_says_where_it_listens_and_logs_json_and_nothing_else() {
    let _slot = tokio::task::spawn_blocking(process_slot).await.unwrap();
    let place = Place::new().await;
    let words = [
        "--log-format",
        "json",
        "--environment",
        "test",
        "--release",
        "r7",
        "--handlers",
        "aegis.sleep",
    ];
    let mut worker = Watched::start(&place, &words);
    let address = worker.address().await;
    assert!(address.starts_with("127.0.0.1:"), "{address}");
    wait_until("readiness", BOUND, async || {
        get(&address, "/readyz").await.0 == 200
    })
    .await;
    assert_eq!(get(&address, "/livez").await.0, 200);
    let (status, metrics) = get(&address, "/metrics").await;
    assert_eq!(status, 200);
    let labels =
        r#"environment="test",release="r7",version="none",queue="default",kind="aegis.sleep""#;
    assert!(metrics.contains(labels), "{metrics}");

    let mut submit = place.command(&[
        "task",
        "submit",
        "aegis.sleep",
        "--input",
        r#"{"ms": "s3cret"}"#,
    ]);
    submit.env("TRACEPARENT", PARENT);
    assert_eq!(run(submit).await.code, 0);
    let mut failed = None;
    wait_until("the failure's line", BOUND, async || {
        let said = worker.said();
        failed = said
            .lines()
            .find(|line| line.contains("an attempt failed"))
            .map(str::to_owned);
        failed.is_some()
    })
    .await;
    let failed: Value = serde_json::from_str(&failed.unwrap()).unwrap();
    assert_eq!(failed["trace_id"], TRACE_ID);
    assert_eq!(failed["kind"], "aegis.sleep");
    assert_eq!(failed["queue"], "default");
    assert_eq!(failed["release"], "r7");
    assert_eq!(failed["code"], "input_invalid");
    assert_eq!(failed["epoch"], 1);
    for field in ["task", "worker", "span_id"] {
        assert!(failed[field].is_string(), "{field} is missing in {failed}");
    }

    assert_eq!(worker.ended().await, Some(0));
    let said = worker.said();
    assert!(!said.contains("s3cret"), "a payload is in the log:\n{said}");
    for line in said.lines() {
        let line: Value =
            serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        for field in ["time", "level", "target", "message"] {
            assert!(line[field].is_string(), "{field} is missing in {line}");
        }
    }
    assert!(
        said.lines().last().unwrap().contains("ended: drained"),
        "{said}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn process_a_submit_sends_its_span_and_hands_it_on() {
    let _slot = tokio::task::spawn_blocking(process_slot).await.unwrap();
    let place = Place::new().await;
    let collector = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", collector.local_addr().unwrap());
    let taken = std::thread::spawn(move || {
        let (mut stream, _) = collector.accept().unwrap();
        let mut request = Vec::new();
        let mut part = [0; 4096];
        // One request, of one span: its end is where the span's name and ids have come.
        while !request.windows(12).any(|bytes| bytes == b"aegis.submit") {
            let read = stream.read(&mut part).unwrap();
            assert!(
                read > 0,
                "it ended early: {}",
                String::from_utf8_lossy(&request)
            );
            request.extend_from_slice(&part[..read]);
        }
        stream
            .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
            .unwrap();
        request
    });
    let mut submit = place.command(&[
        "task",
        "submit",
        "aegis.sleep",
        "--traceparent",
        PARENT,
        "-o",
        "json",
    ]);
    submit.env("OTEL_EXPORTER_OTLP_ENDPOINT", &endpoint);
    // An environment's trace stands behind the one that was given.
    submit.env("TRACEPARENT", PARENT.replace("4bf9", "ffff"));
    let ran = run(submit).await;
    assert_eq!(ran.code, 0, "{ran:?}");
    let request = tokio::task::spawn_blocking(|| taken.join().unwrap())
        .await
        .unwrap();
    assert!(String::from_utf8_lossy(&request).starts_with("POST /v1/traces HTTP/1.1"));
    let task: Value = serde_json::from_str(&ran.stdout).unwrap();
    let stored: String = place
        .db
        .admin
        .query_one(
            "SELECT trace FROM aegis.task_input WHERE id = $1::text::uuid",
            &[&task["id"].as_str().unwrap()],
        )
        .await
        .unwrap()
        .get(0);
    let mut parts = stored.split('-');
    assert_eq!((parts.next(), parts.next()), (Some("00"), Some(TRACE_ID)));
    let span = parts.next().unwrap();
    assert_ne!(
        span, "00f067aa0ba902b7",
        "the tasks are below the submit's own span"
    );
    let bytes: Vec<u8> = (0..8)
        .map(|at| u8::from_str_radix(&span[2 * at..2 * at + 2], 16).unwrap())
        .collect();
    assert!(
        request.windows(8).any(|window| window == bytes),
        "the span that the tasks name was not sent"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn process_what_makes_no_sense_about_watching_is_refused_at_once() {
    let place = Place::new().await;
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    for (words, part) in [
        (vec!["worker", "--listen", "9464"], "is no ADDRESS:PORT"),
        (vec!["worker", "--listen", &taken], "cannot listen on"),
        (
            vec!["worker", "--log", "aegis=loud"],
            "the log filter `aegis=loud` makes no sense",
        ),
        (
            vec!["task", "submit", "k", "--traceparent", "00-1"],
            "is no W3C traceparent",
        ),
    ] {
        let ran = place.run(&words).await;
        assert_eq!(ran.code, 2, "{words:?}: {ran:?}");
        assert!(ran.stderr.contains(part), "{words:?}: {ran:?}");
    }
    // An error is one JSON object where log lines are.
    let ran = place
        .run(&["worker", "--log-format", "json", "--listen", &taken])
        .await;
    let line: Value = serde_json::from_str(ran.stderr.trim_end()).unwrap();
    assert_eq!(line["level"], "ERROR");
    let mut wrong = place.command(&["task", "submit", "k"]);
    wrong.env("OTEL_EXPORTER_OTLP_ENDPOINT", "::not a url");
    let ran = run(wrong).await;
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.stderr.contains("spans cannot be sent"), "{ran:?}");
    // Somebody else's environment is no reason to refuse work.
    let mut submit = place.command(&["task", "submit", "k"]);
    submit.env("TRACEPARENT", "nonsense");
    assert_eq!(run(submit).await.code, 0);
}
