//! Chaos of three fixed seeds, half a minute each; bad input; and that a drill takes its processes along.

use std::path::Path;
use std::time::Duration;

use aegis_testkit::{process_slot, skipped, wait_until};
use serde_json::Value;
use tokio::sync::Mutex;

use crate::support::{command, run};

const NOTHING: [&str; 10] = [
    "lost",
    "out_of_order",
    "blind_repeated",
    "stale_accepted",
    "late_accepted",
    "phantom",
    "claims_after_drain",
    "taken_from_the_living",
    "stranded",
    "incompatible",
];

/// What the database does in a drill that must be found out: it loses one ended task in twenty, and it forgets what was
/// dispatched when a claim ends.
const BROKEN: [&str; 2] = [
    include_str!("../../../aegis-drill/broken/history-loses.sql"),
    include_str!("../../../aegis-drill/broken/ledger-forgets-the-sent.sql"),
];

/// Each takes seconds and the whole database, so half a minute has one of them.
const GREAT: [&str; 3] = [
    "promotion_with_a_lost_tail",
    "clock_jumps_of_the_database",
    "disk_full",
];

/// Two runs of chaos beside each other measure the machine.
static ONE: Mutex<()> = Mutex::const_new(());

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn process_chaos_of_three_seeds_breaks_nothing() {
    let _one = ONE.lock().await;
    let _slot = process_slot();
    let mut great = Vec::new();
    for seed in ["1", "2", "3"] {
        let folder = tempfile::tempdir().unwrap();
        let report = folder.path().join("report");
        let words = ["drill", "chaos", "--seed", seed, "--minutes", "0.5"];
        let mut command = command(None, &words);
        command.arg("--report").arg(&report);
        // Here the version before is this one: that both serve, and that tasks pass between them. `make skew` has another.
        if seed == "3" {
            command.args(["--version-before", env!("CARGO_BIN_EXE_aegis")]);
        }
        let ran = run(command).await;
        let text = std::fs::read_to_string(report.join("report.json")).unwrap_or_default();
        assert_eq!(ran.code, 0, "seed {seed}: {ran:?}\n{text}");
        // Whoever waits sees where it is.
        for part in [
            "s  postgres killed",
            "s  a process is killed at the cut ran",
        ] {
            assert!(ran.stderr.contains(part), "seed {seed}: {}", ran.stderr);
        }
        let report: Value = serde_json::from_str(&text).unwrap();
        for name in NOTHING {
            assert_eq!(report[name], 0, "seed {seed}: {name}: {text}");
        }
        for (class, doubled) in report["effects_doubled"].as_object().unwrap() {
            assert_eq!(*doubled, 0, "seed {seed}: {class}");
        }
        assert_eq!(report["void"], false);
        let faults = report["faults"].as_object().unwrap();
        assert!(faults.len() >= 19, "seed {seed}: {text}");
        assert_eq!(faults["rollback_after_a_newer_checkpoint"], 1, "{text}");
        let made = [
            "housekeeper_frozen",
            "reaper_killed",
            "reaper_frozen",
            "claim_races_a_drain",
        ];
        for name in made {
            assert!(faults[name].as_u64() > Some(0), "{name}: {text}");
        }
        // The one of the window, in each run: who counts inversions sees one.
        assert!(report["out_of_order_apart"].as_u64() > Some(0), "{text}");
        great.extend(GREAT.into_iter().filter(|name| faults.contains_key(*name)));
        // What no engine can keep is counted apart, and only where a tail was lost.
        let promoted = faults.contains_key(GREAT[0]);
        assert_eq!(report["tail_rows"].as_u64() > Some(0), promoted, "{text}");
        if !promoted {
            assert_eq!(report["lost_with_the_tail"], 0, "{text}");
        }
        let names_both = report["sometimes"]["passed_between_versions"].is_u64();
        assert_eq!(names_both, seed == "3", "{text}");
        for (name, times) in report["sometimes"].as_object().unwrap() {
            assert!(times.as_u64() > Some(0), "seed {seed}: {name}");
        }
        // The four cuts, each with the four classes.
        let cuts = report["cuts"].as_object().unwrap();
        assert_eq!(cuts.len(), 4, "seed {seed}: {text}");
        for (cut, classes) in cuts {
            let classes = classes.as_object().unwrap();
            assert_eq!(classes.len(), 4, "seed {seed}: {cut}");
            for (class, one) in classes {
                assert_eq!(one["tasks"], 20, "seed {seed}: {cut} {class}");
                // In doubt are a blind one that was dispatched and one whose answer nobody stored. Of the other blind ones
                // only those may wait for a person whose answer came too late on a busy machine; and nothing else does.
                let in_queue = one["in_queue"].as_u64().unwrap();
                let wanted = match (class.as_str(), cut.as_str()) {
                    ("blind", "dispatched" | "ran") => 20..=20,
                    ("blind", _) => 0..=20,
                    _ => 0..=0,
                };
                assert!(
                    wanted.contains(&in_queue),
                    "seed {seed}: {cut} {class}: {in_queue} wait for a person"
                );
            }
        }
        // What has no fault is told by name.
        let not_run = report["not_run"].as_array().unwrap();
        for name in GREAT {
            let told = not_run.iter().any(|other| other == name);
            assert_ne!(told, faults.contains_key(name), "seed {seed}: {name}");
        }
    }
    for name in GREAT.into_iter().filter(|name| !great.contains(name)) {
        let reason = "it needs root that may mount, pg_basebackup and libfaketime";
        skipped(&format!("chaos: {name}"), reason);
    }
}

/// The whole way from a broken engine to the verdict.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn process_chaos_finds_a_database_that_loses_and_forgets() {
    let _one = ONE.lock().await;
    let _slot = process_slot();
    let folder = tempfile::tempdir().unwrap();
    let sql = folder.path().join("broken.sql");
    std::fs::write(&sql, BROKEN.concat()).unwrap();
    let report = folder.path().join("report");
    let words = ["drill", "chaos", "--minutes", "0.25", "--cut-tasks", "0"];
    let mut command = command(None, &words);
    command.arg("--break-with").arg(&sql);
    command.arg("--report").arg(&report);
    let ran = run(command).await;
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.stdout.contains("BROKEN"), "{ran:?}");
    let replay = "replay: aegis drill chaos --seed 1 --minutes 0.25";
    assert!(ran.stdout.contains(replay), "{ran:?}");
    let text = std::fs::read_to_string(report.join("report.json")).unwrap();
    let report: Value = serde_json::from_str(&text).unwrap();
    assert!(report["lost"].as_u64() > Some(0), "{text}");
    assert!(report["blind_repeated"].as_u64() > Some(0), "{text}");
    let doubled = &report["effects_doubled"];
    assert!(doubled["blind"].as_u64() > Some(0), "{text}");
    // The remote key holds where the ledger does not.
    assert_eq!(doubled["idempotent"], 0, "{text}");
}

#[tokio::test]
async fn process_a_drill_refuses_what_makes_no_sense() {
    let _slot = process_slot();
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("kept"), "evidence").unwrap();
    let path = folder.path().to_str().unwrap();
    let full = run(command(None, &["drill", "chaos", "--report", path])).await;
    assert_eq!(full.code, 4, "{full:?}");
    assert!(full.stderr.contains("never overwritten"), "{full:?}");
    let kept = std::fs::read_to_string(folder.path().join("kept")).unwrap();
    assert_eq!(kept, "evidence");
    let new = folder.path().join("new");
    let new = new.to_str().unwrap();
    let words = ["drill", "chaos", "--minutes", "0.1", "--report", new];
    let short = run(command(None, &words)).await;
    assert_eq!(short.code, 4, "{short:?}");
    assert!(short.stderr.contains("0.25 to 1440 minutes"), "{short:?}");
    let kept = folder.path().join("kept");
    let words = ["drill", "page", kept.to_str().unwrap()];
    let no_report = run(command(None, &words)).await;
    assert_eq!(no_report.code, 1, "{no_report:?}");
    assert!(
        no_report.stderr.contains("a report cannot be read"),
        "{no_report:?}"
    );
}

/// Killed by SIGKILL, it leaves no worker, no oracle and no server behind.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn process_a_killed_drill_takes_its_processes_along() {
    let _slot = process_slot();
    let folder = tempfile::tempdir().unwrap();
    let report = folder.path().join("report");
    let words = ["drill", "chaos", "--seed", "1", "--minutes", "0.5"];
    let mut drill = command(None, &words)
        .arg("--report")
        .arg(&report)
        .spawn()
        .unwrap();
    // A fault may take any one of them before it starts its first task, so no certain one is waited for.
    wait_until("a worker works", Duration::from_mins(1), async || {
        !working(&report).is_empty()
    })
    .await;
    drill.kill().unwrap();
    drill.wait().unwrap();
    let left = "every worker that had begun is gone";
    wait_until(left, Duration::from_secs(20), async || {
        working(&report).is_empty()
    })
    .await;
}

/// The processes that wrote "started" into a history below `report` and are alive.
fn working(report: &Path) -> Vec<u64> {
    let histories = std::fs::read_dir(report).into_iter().flatten();
    let mut alive: Vec<u64> = histories
        .filter_map(|entry| std::fs::read_to_string(entry.ok()?.path()).ok())
        .flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>())
        .filter(|line| line.contains("started"))
        .filter_map(|line| serde_json::from_str::<Value>(&line).ok()?["pid"].as_u64())
        // One that is dead and not reaped yet has no command line.
        .filter(|pid| std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|w| !w.is_empty()))
        .collect();
    alive.sort_unstable();
    alive.dedup();
    alive
}
