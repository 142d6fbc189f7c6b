//! The section of made-up results: who is behind whom, and what a late completion did.

use jiff::Timestamp;
use serde_json::json;

use super::super::late::{Case, Late, Verdict};
use super::super::results::{Engine, Results};
use super::figures::{number, spread};
use super::{section, standing::refuses};

fn late(case: &str, takeover_s: Option<f64>, rows_changed: bool) -> Late {
    serde_json::from_value(json!({
        "case": case, "takeover_s": takeover_s, "rows_changed": rows_changed, "handler_ended": true, "owner_exit": null,
        "said": [], "effects": [], "before": [{"id": 1}], "after": [{"id": 1}],
    }))
    .unwrap()
}

fn engine(name: &str, jobs: f64, wal: f64, accepts: bool) -> Engine {
    serde_json::from_value(json!({
        "name": name, "package": "x", "skipped": null, "throughput_roomy": [], "failed": [],
        "throughput": [{
            "concurrency": 10, "jobs_per_second": jobs, "enqueues_per_second": 1.0, "wal_bytes_per_job": wal,
            "wal_bytes_per_drained_job": wal, "transactions_per_job": 1.0, "transactions_per_drained_job": 1.0, "flush_us": 1.0,
        }],
        "latency": [{"after_return_ms": [1.0, 2.0, 30.0], "after_call_ms": [2.0, 3.0, 31.0]}],
        "takeover": [{"seconds": 1.5}],
        "late": [late("done", Some(2.0), false), late("running", Some(2.0), accepts)],
    }))
    .unwrap()
}

fn results(engines: &[Engine]) -> Results {
    serde_json::from_value(json!({
        "began": Timestamp::UNIX_EPOCH, "ended": null, "resumed": false, "postgres": "PostgreSQL 15", "postgres_settings": [],
        "setting": {"commit": "c", "jobs": 1, "concurrency": 10, "rounds": 1, "cores": 2, "processor": "p", "memory_mib": 1},
        "limits": [{
            "commits_per_second": 1.0, "rows_per_second": 2000.0, "rows_per_second_concurrent": 1.0, "wal_bytes_per_row": 1.0,
            "flush_us": 1.0,
        }],
        "limits_failed": null, "engines": engines,
    }))
    .unwrap()
}

#[test]
fn what_aegis_is_behind_in_is_said() {
    let text = section(&results(&[
        engine("aegis", 1000.0, 900.0, false),
        engine("river", 3000.0, 2000.0, true),
        engine("awa", 500.0, 300.0, false),
    ]));
    assert!(
        text.contains("jobs a second at the common concurrency (1,000): behind river (3,000)\n"),
        "{text}"
    );
    assert!(
        text.contains("WAL bytes a job (900): behind awa (300)\n"),
        "{text}"
    );
    assert!(
        text.contains("refused by awa. Of these, Aegis is ahead of them all"),
        "{text}"
    );
    assert!(text.contains("| **aegis** | 1,000 | 0.50 |"), "{text}");
    assert!(
        text.contains("| river (Go) | 1.5 | refused | **accepted: it ends"),
        "{text}"
    );
}

#[test]
fn a_faster_engine_that_refuses_is_named() {
    let text = section(&results(&[
        engine("aegis", 1000.0, 900.0, false),
        engine("awa", 5000.0, 300.0, false),
    ]));
    assert!(
        text.contains("Of these, Aegis is in jobs a second behind awa (5,000)"),
        "{text}"
    );
}

#[test]
fn an_operators_call_is_no_takeover() {
    let mut by_hand = engine("graphile-worker", 1.0, 900.0, true);
    by_hand.takeover[0].seconds = Some(0.1);
    let text = section(&results(&[engine("aegis", 1000.0, 900.0, false), by_hand]));
    assert!(text.contains("| 0.1 by an operator's call |"), "{text}");
    assert!(
        text.contains("takeover, in s (1.5): behind nobody"),
        "{text}"
    );
}

#[test]
fn an_engine_that_is_missing_has_its_reason() {
    let mut awa = Engine {
        name: "awa".to_owned(),
        ..Engine::default()
    };
    awa.skipped = Some("cargo is not installed".to_owned());
    let text = section(&results(&[engine("aegis", 1000.0, 900.0, false), awa]));
    assert!(
        text.contains("**awa is missing: cargo is not installed.**"),
        "{text}"
    );
    assert!(!text.contains("| awa (Rust) |"), "{text}");
}

#[test]
fn only_who_changed_nothing_refuses() {
    let with = |late: Vec<Late>| Engine {
        late,
        ..Engine::default()
    };
    assert!(refuses(&with(vec![
        late("done", Some(1.0), false),
        late("running", Some(1.0), false)
    ])));
    assert!(refuses(&with(vec![
        late("running", Some(1.0), false),
        late("alone", None, true)
    ])));
    assert!(!refuses(&with(vec![late("running", Some(1.0), true)])));
    assert!(!refuses(&with(vec![
        late("done", Some(1.0), true),
        late("running", Some(1.0), false)
    ])));
    assert!(
        !refuses(&with(vec![late("done", Some(1.0), false)])),
        "where it could have done harm, nobody looked"
    );
    assert!(
        !refuses(&with(vec![late("running", None, false)])),
        "never taken over"
    );
    assert_eq!(late("alone", None, true).verdict(), Verdict::NoTakeover);
    assert_eq!(late("alone", None, true).case, Case::Alone);
}

#[test]
fn numbers_are_told_with_their_spread() {
    assert_eq!(number(1_234_567.8, 0), "1,234,568");
    assert_eq!(number(-0.25, 1), "-0.2");
    assert_eq!(number(999.0, 0), "999");
    assert_eq!(spread(&[], 0), "–");
    assert_eq!(spread(&[2.0], 1), "2.0");
    assert_eq!(spread(&[3.0, 1.0, 2.0], 0), "2 (1–3)");
}
