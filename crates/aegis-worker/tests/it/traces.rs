//! Traces of tasks, as a collector gets them; and log lines that name the same ids.

use aegis_store::NewTask;
use aegis_testkit::{process_slot, wait_until};
use aegis_worker::{TraceContext, operation_id};
use nix::sys::signal::Signal;
use opentelemetry_proto::tonic::trace::v1::Span;
use serde_json::{Value, json};

use crate::process::Process;
use crate::support::collector::{Collector, field};
use crate::support::{BOUND, Bench, result};

const TRACE: TraceContext = TraceContext {
    trace_id: 0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736,
    span_id: 0x00f0_67aa_0ba9_02b7,
    sampled: true,
};

fn named<'a>(spans: &'a [Span], name: &str) -> Vec<&'a Span> {
    spans.iter().filter(|span| span.name == name).collect()
}

fn start(bench: &Bench, endpoint: &str) -> Process {
    let environment = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint),
        ("OTEL_BSP_SCHEDULE_DELAY", "50"),
    ];
    Process::start_in(bench, &[], 60_000, 10_000, &environment)
}

/// The values that must appear in no log line.
const SECRET: &str = "s3cret-payload";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_killed_mid_way_leaves_one_trace_with_two_attempts_and_their_operation() {
    let _slot = tokio::task::spawn_blocking(process_slot).await.unwrap();
    let bench = Bench::new().await;
    let collector = Collector::start().await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join(SECRET);
    let mut new = NewTask::new("pay", json!(file).to_string());
    new.trace = Some(TRACE);
    let task = bench.submit_task(new).await;
    let mut process = start(&bench, collector.url());
    wait_until(
        "the settled operation of the first attempt",
        BOUND,
        async || named(&collector.of(TRACE.trace_id), "aegis.settle").len() == 1,
    )
    .await;
    process.signal(Signal::SIGKILL);
    process.ended().await;
    let mut logs = process.said();

    let mut process = start(&bench, collector.url());
    std::fs::write(&file, "").unwrap();
    let ended = bench.ended(task).await;
    let epochs = [1, result(&ended).as_i64().unwrap()];
    process.signal(Signal::SIGTERM);
    assert_eq!(process.ended().await, Some(0));
    logs.push_str(&process.said());

    // Flushed by the drain: nothing has to be waited for.
    let spans = collector.of(TRACE.trace_id);
    let attempts = named(&spans, "aegis.attempt");
    assert_eq!(attempts.len(), 2, "{spans:#?}");
    for (attempt, epoch) in attempts.iter().zip(epochs) {
        assert_eq!(attempt.parent_span_id, TRACE.span_id.to_be_bytes());
        assert_eq!(field(attempt, "aegis.task"), Some(task.to_string()));
        assert_eq!(field(attempt, "aegis.epoch"), Some(epoch.to_string()));
        assert_eq!(field(attempt, "aegis.kind").as_deref(), Some("pay"));
        assert_eq!(field(attempt, "aegis.release").as_deref(), Some("r1"));
    }
    let [lost, second] = attempts[..] else {
        unreachable!("there are two")
    };
    assert_eq!(field(lost, "aegis.outcome").as_deref(), Some("lost"));
    assert!(
        lost.status
            .as_ref()
            .unwrap()
            .message
            .contains("lost with its worker")
    );
    assert_eq!(field(second, "aegis.outcome").as_deref(), Some("completed"));
    assert_eq!(second.links.len(), 1);
    assert_eq!(second.links[0].span_id, lost.span_id);
    assert_eq!(second.links[0].trace_id, TRACE.trace_id.to_be_bytes());

    // The step and the operation belong to the first attempt; the second finds them done, and completes.
    let operation = operation_id(task, "charge", "once", 1);
    for name in ["aegis.dispatch", "aegis.call", "aegis.settle"] {
        let found = named(&spans, name);
        assert_eq!(found.len(), 1, "{name}: {spans:#?}");
        assert_eq!(found[0].parent_span_id, lost.span_id, "{name}");
        assert_eq!(field(found[0], "aegis.operation"), Some(operation.clone()));
    }
    let steps = named(&spans, "aegis.step");
    assert_eq!(steps.len(), 1);
    assert_eq!(steps[0].parent_span_id, lost.span_id);
    assert_eq!(field(steps[0], "aegis.step").as_deref(), Some("prepare"));
    let completions = named(&spans, "aegis.complete");
    assert_eq!(completions.len(), 1);
    assert_eq!(completions[0].parent_span_id, second.span_id);

    every_line_is_json(&logs);
    let of_task: Vec<Value> = logs
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .filter(|line: &Value| line["task"] == json!(task))
        .collect();
    let told: Vec<&Value> = of_task.iter().map(|line| &line["epoch"]).collect();
    assert_eq!(
        told,
        epochs.map(|epoch| json!(epoch)).iter().collect::<Vec<_>>(),
        "the handler's own line, of each attempt"
    );
    for line in &of_task {
        assert_eq!(
            line["trace_id"],
            format!("{:032x}", TRACE.trace_id),
            "{line}"
        );
    }
}

fn every_line_is_json(logs: &str) {
    assert!(!logs.contains(SECRET), "a payload is in a log:\n{logs}");
    assert!(logs.lines().count() > 2, "{logs}");
    for line in logs.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        for name in [
            "time",
            "level",
            "target",
            "message",
            "worker_name",
            "release",
        ] {
            assert!(line[name].is_string(), "`{name}` is missing in {line}");
        }
        assert_eq!(line["release"], "r1");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_collector_that_is_away_costs_a_process_no_task_and_its_trace_is_the_tasks_own() {
    let _slot = tokio::task::spawn_blocking(process_slot).await.unwrap();
    let bench = Bench::new().await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("go");
    std::fs::write(&file, "").unwrap();
    // Somebody listens and never answers.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    let mut process = start(&bench, &url);
    let task = bench.submit("pay", json!(file)).await;
    assert_eq!(result(&bench.ended(task).await), json!(1));
    process.signal(Signal::SIGTERM);
    assert_eq!(process.ended().await, Some(0));
    assert!(process.said().contains("could not be sent in time"));

    // Without a submitter's trace the task's id is the trace, so that all who work on it agree.
    let collector = Collector::start().await;
    let mut process = start(&bench, collector.url());
    let task = bench.submit("pay", json!(file)).await;
    bench.ended(task).await;
    process.signal(Signal::SIGTERM);
    assert_eq!(process.ended().await, Some(0));
    let spans = collector.of(task.as_u128());
    assert_eq!(named(&spans, "aegis.attempt").len(), 1, "{spans:#?}");
    assert!(named(&spans, "aegis.attempt")[0].parent_span_id.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_attempt_of_a_process_is_linked_and_told_by_its_code_and_an_unsampled_trace_stays_silent()
 {
    let _slot = tokio::task::spawn_blocking(process_slot).await.unwrap();
    let bench = Bench::new().await;
    let collector = Collector::start().await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("go");
    std::fs::write(&file, "").unwrap();
    let mut process = start(&bench, collector.url());
    let mut unsampled = NewTask::new("pay", json!(file).to_string());
    unsampled.trace = Some(TraceContext {
        trace_id: 7,
        sampled: false,
        ..TRACE
    });
    let unsampled = bench.submit_task(unsampled).await;
    // A folder that is not there: writing its file fails.
    let lost = folder.path().join("none/go");
    let mut failing = NewTask::new("wait", json!(lost).to_string());
    failing.trace = Some(TRACE);
    failing.policy.backoff_initial_ms = 1;
    failing.policy.max_failures = 2;
    let failing = bench.submit_task(failing).await;
    bench.ended(unsampled).await;
    bench.ended(failing).await;
    process.signal(Signal::SIGTERM);
    assert_eq!(process.ended().await, Some(0));
    let spans = collector.of(TRACE.trace_id);
    let attempts = named(&spans, "aegis.attempt");
    assert_eq!(attempts.len(), 2, "{spans:#?}");
    for attempt in &attempts {
        assert_eq!(field(attempt, "aegis.outcome").as_deref(), Some("failed"));
    }
    assert_eq!(attempts[1].links[0].span_id, attempts[0].span_id);
    assert_eq!(collector.of(7), []);
}
