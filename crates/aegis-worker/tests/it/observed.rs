//! What a worker shows: health, and metrics that are all there from the start.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::Duration;

use aegis_testkit::wait_until;
use aegis_worker::{Class, TaskContext, TaskError, handler_fn};
use serde_json::json;

use crate::support::proxy::{Line, Proxy};
use crate::support::{BOUND, Bench, Running, store_at_unnamed, worker_on};

async fn get(address: SocketAddr, path: &str) -> (u16, String) {
    let answer = reqwest::get(format!("http://{address}{path}"))
        .await
        .unwrap();
    (answer.status().as_u16(), answer.text().await.unwrap())
}

/// Series by name with labels, `environment`, `release` and `version` left out.
async fn series(address: SocketAddr) -> BTreeMap<String, f64> {
    let (status, text) = get(address, "/metrics").await;
    assert_eq!(status, 200);
    let mut series = BTreeMap::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (name, value) = line.rsplit_once(' ').unwrap();
        let common = r#"environment="test",release="r7",version="b1""#;
        assert!(name.contains(common), "{name} lacks the common labels");
        let name = name
            .replace(&format!("{common},"), "")
            .replace(&format!("{{{common}}}"), "");
        assert!(
            series
                .insert(name.clone(), value.parse().unwrap())
                .is_none(),
            "{name} is there twice"
        );
    }
    series
}

fn listening(bench: &Bench) -> aegis_worker::WorkerBuilder {
    bench
        .worker()
        .environment("test")
        .release("r7")
        .build_id("b1")
        .listen(Some("127.0.0.1:0".parse().unwrap()))
}

/// Runs the handler's way: ends well, fails, calls an operation.
async fn act(ctx: TaskContext, what: String) -> Result<String, TaskError> {
    match what.as_str() {
        "fail" => Err(TaskError::terminal("no", "not today")),
        "operate" => {
            ctx.operation("charge", 1)
                .class(Class::Idempotent)
                .key_retention(Duration::from_hours(1))
                .execute(|_| async { Ok(1) })
                .await?;
            Ok(what)
        }
        _ => Ok(what),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_series_is_there_from_the_start_and_only_values_move() {
    let bench = Bench::new().await;
    let worker = Running::start(listening(&bench).handler(handler_fn("act", act)));
    let address = worker.handle.listening().unwrap();
    let before = series(address).await;
    let own = r#"queue="default",kind="act""#;
    for (name, value) in &before {
        let counts = name.contains("_total") || name.contains("_count") || name.contains("_sum");
        let runs_already = [
            "ticks",
            "claim_loop",
            "renewal",
            "acquisitions",
            "claim_seconds",
        ];
        if counts && !runs_already.iter().any(|part| name.contains(part)) {
            assert!(value.abs() < f64::EPSILON, "{name} starts with {value}");
        }
    }
    let mut tasks = Vec::new();
    for what in ["end", "fail", "operate"] {
        tasks.push(bench.submit("act", json!(what)).await);
    }
    for task in tasks {
        bench.ended(task).await;
    }
    let observed = "aegis_database_partition_ahead_days_last_evaluated_timestamp_seconds";
    wait_until("the look at the database", BOUND, async || {
        series(address).await[observed] > 0.0
    })
    .await;
    let after = series(address).await;
    assert_eq!(
        before.keys().collect::<BTreeSet<_>>(),
        after.keys().collect::<BTreeSet<_>>(),
        "series came or went"
    );
    let count = |name: &str, more: &str| {
        let key = format!("aegis_worker_{name}{{{own}{more}}}");
        *after
            .get(&key)
            .unwrap_or_else(|| panic!("{key} is missing"))
    };
    for (name, more, value) in [
        ("tasks_claimed_total", "", 3.0),
        ("attempts_ended_total", r#",outcome="completed""#, 2.0),
        ("attempts_ended_total", r#",outcome="failed""#, 1.0),
        ("attempts_ended_total", r#",outcome="lost""#, 0.0),
        ("operations_dispatched_total", r#",class="idempotent""#, 1.0),
        ("operations_dispatched_total", r#",class="blind""#, 0.0),
        (
            "operations_answered_total",
            r#",class="idempotent",answer="succeeded""#,
            1.0,
        ),
        ("writes_fenced_total", r#",reason="epoch""#, 0.0),
        ("run_seconds_count", "", 3.0),
        ("start_seconds_count", "", 3.0),
    ] {
        let found = count(name, more);
        assert!(
            (found - value).abs() < f64::EPSILON,
            "{name}{more} is {found}"
        );
    }
    for verb in ["dispatch", "settle", "complete", "fail"] {
        assert!(after[&format!("aegis_worker_write_seconds_count{{verb=\"{verb}\"}}")] > 0.0);
    }
    assert!(after["aegis_database_partition_ahead_days"] >= 1.0);
    assert!(after["aegis_worker_ready"] > 0.5);
    worker.drain().await;
    assert!(
        reqwest::get(format!("http://{address}/livez"))
            .await
            .is_err(),
        "it still listens"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gauge_that_nobody_evaluated_is_no_number_and_says_so() {
    let bench = Bench::new().await;
    let worker = listening(&bench)
        .handler(handler_fn("act", act))
        .build()
        .unwrap();
    let address = worker.handle().listening().unwrap();
    let series = series(address).await;
    let kind = r#"{queue="default",kind="act"}"#;
    for name in [
        "aegis_database_unknown_operations".to_owned(),
        format!("aegis_database_ready_tasks{kind}"),
        "aegis_worker_lease_left_seconds".to_owned(),
    ] {
        assert!(series[&name].is_nan(), "{name} is {}", series[&name]);
        let companion = match name.split_once('{') {
            Some((name, labels)) => {
                format!("{name}_last_evaluated_timestamp_seconds{{{labels}")
            }
            None => format!("{name}_last_evaluated_timestamp_seconds"),
        };
        assert!(series[&companion].abs() < f64::EPSILON, "{companion}");
    }
    let (status, why) = get(address, "/readyz").await;
    assert_eq!((status, why.as_str()), (503, "it is not registered yet\n"));
    assert_eq!(get(address, "/livez").await.0, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ready_work_is_shown_by_what_this_worker_can_read() {
    let bench = Bench::new().await;
    // A worker that claims nothing: its queue is paused.
    let queue = aegis_store::overrides::PauseScope::Queue;
    bench
        .store
        .pause(queue, "default", "test", "to see what waits")
        .await
        .unwrap();
    bench.submit("act", json!("end")).await;
    let mut newer = aegis_store::NewTask::new("act", b"1".to_vec());
    newer.protocol = 9;
    bench.store.submit(newer).await.unwrap();
    let worker = Running::start(listening(&bench).handler(handler_fn("act", act)));
    let address = worker.handle.listening().unwrap();
    let kind = r#"{queue="default",kind="act"}"#;
    let ready = format!("aegis_database_ready_tasks{kind}");
    wait_until("the look at the database", BOUND, async || {
        !series(address).await[&ready].is_nan()
    })
    .await;
    let series = series(address).await;
    assert!((series[&ready] - 1.0).abs() < f64::EPSILON);
    let unreadable = series[&format!("aegis_database_unreadable_tasks{kind}")];
    assert!((unreadable - 1.0).abs() < f64::EPSILON);
    assert!(series[&format!("aegis_database_next_waits_seconds{kind}")] > 0.0);
    worker.drain().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_drain_is_live_and_not_ready_and_says_why() {
    let bench = Bench::new().await;
    let handler = handler_fn("wait", |ctx: TaskContext, (): ()| async move {
        Err::<(), _>(ctx.stop(ctx.cancelled().wait().await))
    });
    let worker = Running::start(listening(&bench).handler(handler));
    let address = worker.handle.listening().unwrap();
    bench.submit("wait", json!(null)).await;
    wait_until("its start", BOUND, async || {
        worker.handle.snapshot().executing == 1
    })
    .await;
    assert_eq!(
        get(address, "/readyz").await,
        (200, "ok: it claims\n".to_owned())
    );
    worker.handle.drain();
    wait_until("the closed gate", BOUND, async || {
        get(address, "/readyz").await.1.contains("drains")
    })
    .await;
    assert_eq!(
        get(address, "/readyz").await,
        (503, "it drains; 1 of its tasks are in flight\n".to_owned())
    );
    assert_eq!(get(address, "/livez").await.0, 200);
    worker.handle.cancel_now();
    worker.exit().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_out_of_reach_makes_it_unready_once_its_lease_is_over_and_leaves_it_live() {
    let bench = Bench::new().await;
    let proxy = Proxy::before(&bench.db.url_as("aegis_engine")).await;
    let worker = worker_on(store_at_unnamed(&proxy.url()).await)
        .lease_ttl(Duration::from_millis(600))
        .listen(Some("127.0.0.1:0".parse().unwrap()))
        .handler(handler_fn("act", act));
    let worker = Running::start(worker);
    let address = worker.handle.listening().unwrap();
    wait_until("the registration", BOUND, async || {
        get(address, "/readyz").await.0 == 200
    })
    .await;
    proxy.line(Line::Silent);
    wait_until("the end of its lease", BOUND, async || {
        get(address, "/readyz").await.1.contains("no renewal")
    })
    .await;
    assert_eq!(get(address, "/livez").await.0, 200);
    proxy.line(Line::Up);
    wait_until("a lease", BOUND, async || {
        get(address, "/readyz").await.0 == 200
    })
    .await;
    worker.drain().await;
}

#[tokio::test]
async fn an_address_that_is_taken_is_a_clear_error() {
    let bench = Bench::new().await;
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let built = bench
        .worker()
        .handler(handler_fn("act", act))
        .listen(Some(address))
        .build();
    let error = built.err().unwrap().to_string();
    assert!(
        error.contains(&address.to_string()) && error.contains("port 0"),
        "{error}"
    );
}

/// Names and types of all series, as they are exported.
fn families(text: &str) -> BTreeSet<(String, String)> {
    let lines = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    lines
        .map(|line| {
            let (name, kind) = line.split_once(' ').unwrap();
            (name.to_owned(), kind.to_owned())
        })
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_guide_lists_what_is_exported_and_every_gauge_has_its_companion() {
    const COMPANION: &str = "_last_evaluated_timestamp_seconds";
    let bench = Bench::new().await;
    let worker = listening(&bench)
        .handler(handler_fn("act", act))
        .build()
        .unwrap();
    let address = worker.handle().listening().unwrap();
    let exported = families(&get(address, "/metrics").await.1);
    let guide = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/guides/observing.md"
    );
    let guide = std::fs::read_to_string(guide).unwrap();
    let listed: BTreeSet<(String, String)> = guide
        .lines()
        .filter_map(|line| line.strip_prefix("| `aegis_"))
        .map(|line| {
            let mut cells = line.split(" | ");
            let name = cells.next().unwrap().trim_end_matches('`');
            let kind = cells.next().unwrap().split(',').next().unwrap();
            (format!("aegis_{name}"), kind.to_owned())
        })
        .collect();
    let (companions, own): (BTreeSet<_>, BTreeSet<_>) = exported
        .into_iter()
        .partition(|(name, _)| name.ends_with(COMPANION));
    assert_eq!(own, listed, "docs/guides/observing.md and /metrics differ");
    let gauges = own
        .into_iter()
        .filter(|(name, kind)| kind == "gauge" && name != "aegis_build_info")
        .map(|(name, kind)| (name + COMPANION, kind));
    assert_eq!(companions, gauges.collect());
    let open = reqwest::Client::new()
        .get(format!("http://{address}/metrics"))
        .header("accept", "application/openmetrics-text")
        .send()
        .await
        .unwrap();
    assert!(
        open.headers()["content-type"]
            .to_str()
            .unwrap()
            .starts_with("application/openmetrics")
    );
    assert!(open.text().await.unwrap().ends_with("# EOF\n"));
}
