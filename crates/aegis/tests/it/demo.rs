//! The whole demo, as a newcomer and as a script run it.

use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

use aegis_testkit::{TestDb, process_slot, wait_until};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::support::{BOUND, Ran, command, run};

/// What the whole demo may take here, where other tests run beside it; alone it takes half of that.
const WHOLE: Duration = Duration::from_secs(150);

async fn demo(words: &[&str]) -> (Ran, Value) {
    let mut all = vec!["demo", "--json", "--seed", "1"];
    all.extend(words);
    let mut command = command(None, &all);
    // Somebody's setting for other workers, with which none could start, is not the demo's.
    command.env("AEGIS_WORKER_LISTEN", "192.0.2.1:9");
    let ran = tokio::time::timeout(WHOLE, run(command))
        .await
        .expect("the demo ends in time");
    assert_eq!(
        ran.stdout.lines().count(),
        1,
        "one object on one line: {ran:?}"
    );
    let object = serde_json::from_str(&ran.stdout).unwrap();
    (ran, object)
}

#[tokio::test]
async fn process_the_demo_keeps_every_promise_and_says_so_in_one_line() {
    let _slot = process_slot();
    let (ran, object) = demo(&[]).await;
    assert_eq!(ran.code, 0, "{object}\n{}", ran.stderr);
    let count = |name: &str| {
        object[name]
            .as_u64()
            .unwrap_or_else(|| panic!("no {name}: {object}"))
    };
    assert_eq!(
        (
            count("submitted"),
            count("succeeded"),
            count("failed_as_expected")
        ),
        (300, 292, 8),
        "{object}"
    );
    assert_eq!(
        (count("receipts"), count("effects_applied")),
        (292, 4 * 292),
        "{object}"
    );
    for kept in [
        "effects_lost",
        "effects_duplicated",
        "effects_phantom",
        "stale_accepted",
        "unknown_left",
        "tasks_lost",
        "tasks_unfinished",
    ] {
        assert_eq!(count(kept), 0, "{kept}: {object}");
    }
    // Each of the acts was really shown.
    for shown in [
        "takeovers",
        "handed_back",
        "stale_writes_refused",
        "unknown_opened",
        "waited_for_protocol",
    ] {
        assert!(count(shown) > 0, "{shown}: {object}\n{}", ran.stderr);
    }
    assert_eq!(
        count("unknown_opened"),
        count("unknown_resolved"),
        "{object}"
    );
    assert!(
        object["seconds"].as_f64().unwrap() > 0.0 && object["verdict"] == "pass",
        "{object}"
    );
    for told in [
        "kills worker-1",
        "freezes worker-2",
        "stale write",
        "version 2 replaces version 1",
        "a rollback to version 1",
        "operator",
    ] {
        assert!(
            ran.stderr.contains(told),
            "{told} is not told:\n{}",
            ran.stderr
        );
    }
}

#[tokio::test]
async fn process_a_payment_service_that_doubles_is_found_out() {
    let _slot = process_slot();
    let (ran, object) = demo(&["--doubles"]).await;
    assert_eq!(ran.code, 1, "{object}\n{}", ran.stderr);
    assert_eq!(object["verdict"], "fail", "{object}");
    assert!(
        object["effects_duplicated"].as_u64().unwrap() > 0,
        "{object}"
    );
    let breaches = object["breaches"].as_array().unwrap();
    assert!(
        breaches
            .iter()
            .all(|breach| breach["kind"] == "effect_duplicated"),
        "{object}"
    );
    // Where something broke, what the processes logged is kept for somebody to look at.
    let unwrapped = ran.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
    let kept = unwrapped.split("is kept in ").nth(1).unwrap();
    let kept = Path::new(kept.split(' ').next().unwrap());
    assert!(kept.join("payments.jsonl").exists(), "{}", ran.stderr);
    std::fs::remove_dir_all(kept).unwrap();
}

#[tokio::test]
async fn process_the_demo_runs_on_a_given_database_and_leaves_it_to_be_looked_at() {
    let _slot = process_slot();
    let db = TestDb::empty().await;
    let folder = tempfile::tempdir().unwrap();
    let orders = folder.path().join("orders.csv");
    let example = std::fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../examples/orders.csv"
    ))
    .unwrap();
    let some: Vec<&str> = example.lines().take(41).collect();
    std::fs::write(&orders, some.join("\n")).unwrap();
    let url = db.url();
    let (ran, object) = demo(&[
        "--orders",
        &orders.display().to_string(),
        "--database-url",
        &url,
    ])
    .await;
    assert_eq!(ran.code, 0, "{object}\n{}", ran.stderr);
    assert_eq!(
        (&object["submitted"], &object["verdict"]),
        (&40.into(), &"pass".into()),
        "{object}"
    );
    assert!(
        ran.stderr.contains("uses the database that it was given"),
        "{}",
        ran.stderr
    );
    let engine = db.url_as("aegis_engine");
    let listed = run(command(
        Some(&engine),
        &["task", "list", "--limit", "1000", "--output", "json"],
    ))
    .await;
    let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
    assert_eq!(listed.as_array().unwrap().len(), 40);
}

/// The processes whose parent, or grandparent, or … is this one.
fn descendants(of: u32) -> Vec<u32> {
    let parents: Vec<(u32, u32)> = std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter_map(|pid: u32| {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
            Some((
                pid,
                stat.rsplit(')')
                    .next()?
                    .split_whitespace()
                    .nth(1)?
                    .parse()
                    .ok()?,
            ))
        })
        .collect();
    let mut found = vec![of];
    let mut at = 0;
    while at < found.len() {
        let parent = found[at];
        found.extend(
            parents
                .iter()
                .filter(|(_, of)| *of == parent)
                .map(|(pid, _)| *pid),
        );
        at += 1;
    }
    found.remove(0);
    found
}

fn is_there(pid: u32) -> bool {
    // A zombie has ended; whoever adopted it has not looked yet.
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')')
        .next()
        .and_then(|rest| rest.split_whitespace().next())
        .is_some_and(|state| state != "Z")
}

/// The folder of the run, by the record that its payment service was told to write.
fn folder_of(processes: &[u32]) -> Option<PathBuf> {
    processes.iter().find_map(|pid| {
        let words = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).ok()?;
        let record = words
            .split('\0')
            .skip_while(|word| *word != "--record")
            .nth(1)?;
        Some(Path::new(record).parent()?.to_owned())
    })
}

async fn ends_with_everything(signal: Signal) {
    // A database in the environment is not the demo's: it starts one of its own.
    let environment = Some("postgresql://nobody@127.0.0.1:1/none");
    let mut demo: Child = command(environment, &["demo", "--json"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let pid = demo.id();
    // Three workers, a payment service, their four holders, and a database.
    wait_until("the demo has started what it needs", BOUND, async || {
        descendants(pid).len() >= 12
    })
    .await;
    let started = descendants(pid);
    let folder = folder_of(&started).unwrap();
    kill(Pid::from_raw(i32::try_from(pid).unwrap()), signal).unwrap();
    let code = tokio::task::spawn_blocking(move || demo.wait().unwrap().code())
        .await
        .unwrap();
    if signal == Signal::SIGTERM {
        assert_eq!(
            code,
            Some(1),
            "a demo that was not played to its end has shown nothing"
        );
    }
    wait_until("everything has ended with the demo", BOUND, async || {
        started.iter().all(|pid| !is_there(*pid))
    })
    .await;
    // Logs are all that a killed demo leaves behind.
    assert_eq!(folder.exists(), signal == Signal::SIGKILL);
    std::fs::remove_dir_all(&folder).ok();
}

#[tokio::test]
async fn process_a_demo_that_is_killed_takes_everything_along() {
    let _slot = process_slot();
    ends_with_everything(Signal::SIGKILL).await;
}

#[tokio::test]
async fn process_a_demo_that_is_told_to_end_takes_everything_along() {
    let _slot = process_slot();
    ends_with_everything(Signal::SIGTERM).await;
}

#[tokio::test]
async fn process_bad_arguments_of_the_demo_start_nothing() {
    let _slot = process_slot();
    let folder = tempfile::tempdir().unwrap();
    let header = folder.path().join("header.csv");
    std::fs::write(&header, "nonsense\n").unwrap();
    for orders in ["/nowhere/orders.csv", &header.display().to_string()] {
        let ran = run(command(None, &["demo", "--orders", orders])).await;
        assert_eq!(ran.code, 4, "{ran:?}");
        assert!(ran.stdout.is_empty(), "{ran:?}");
    }
    for words in [
        vec!["demo", "--seed", "x"],
        vec!["demo", "verify"],
        vec!["demo", "--keep", "verify", "--record", "x"],
    ] {
        let ran = run(command(None, &words)).await;
        assert_eq!(ran.code, 2, "{words:?}: {ran:?}");
    }
    let taken = folder.path().join("record.jsonl");
    std::fs::write(&taken, "").unwrap();
    let ran = run(command(
        None,
        &[
            "demo",
            "payments",
            "--run",
            "r",
            "--record",
            &taken.display().to_string(),
        ],
    ))
    .await;
    assert_eq!(ran.code, 4, "a record belongs to one run: {ran:?}");
}
