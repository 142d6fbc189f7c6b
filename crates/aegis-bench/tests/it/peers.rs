//! `aegis-bench peers`, with Aegis's own driver: no registry is asked.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output};

use aegis_testkit::process_slot;
use serde_json::Value;
use tempfile::TempDir;

/// The program, in the repository, with a cache of its own.
fn peers(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_aegis-bench"));
    command
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
        .arg("peers")
        .arg("--cache")
        .arg(folder)
        .args(arguments)
        // The commit is part of what has to be alike, and others commit while tests run.
        .env("GIT_DIR", folder.join("no-repository"))
        .env("RUST_BACKTRACE", "0");
    command
}

fn texts(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

fn results(folder: &Path) -> Value {
    serde_json::from_slice(&fs::read(folder.join("results.json")).unwrap()).unwrap()
}

#[test]
fn process_aegis_is_measured_in_every_item_and_refuses_late_completions() {
    let _slot = process_slot();
    let folder = TempDir::new().unwrap();
    let arguments = [
        "--only",
        "aegis",
        "--items",
        "throughput,latency,takeover,late",
        "--jobs",
        "500",
        "--rounds",
        "1",
    ];
    let output = peers(folder.path(), &arguments).output().unwrap();
    let (out, err) = texts(&output);
    assert!(output.status.success(), "{out}\n{err}");
    let first = results(folder.path());
    let aegis = &first["engines"][0];
    assert_eq!(aegis["failed"], serde_json::json!([]));
    for drain in [&aegis["throughput"], &aegis["throughput_roomy"]] {
        assert!(drain[0]["jobs_per_second"].as_f64().unwrap() > 0.0);
        // A completion that costs no WAL was not durable.
        assert!(drain[0]["wal_bytes_per_drained_job"].as_f64().unwrap() > 100.0);
        assert!(drain[0]["transactions_per_job"].as_f64().unwrap() > 0.0);
    }
    assert_eq!(
        aegis["latency"][0]["after_call_ms"]
            .as_array()
            .unwrap()
            .len(),
        100
    );
    assert!(aegis["takeover"][0]["seconds"].as_f64().is_some());
    let late = aegis["late"].as_array().unwrap();
    assert_eq!(late.len(), 2);
    for case in late {
        assert!(case["takeover_s"].as_f64().is_some(), "{case}");
        assert_eq!(case["handler_ended"], true, "{case}");
        assert_eq!(case["rows_changed"], false, "{case}");
        // The frozen worker's and the other one's: both were there.
        let effects = case["effects"].to_string();
        assert!(
            effects.contains("[\"A\",\"end\"]") && effects.contains("[\"B\",\"end\"]"),
            "{case}"
        );
    }
    assert!(
        out.contains("| **aegis** |") && out.contains("| refused | refused |"),
        "{out}"
    );

    // What is there is not measured again; with another setting nothing is mixed.
    let again = peers(folder.path(), &arguments)
        .arg("--resume")
        .output()
        .unwrap();
    assert!(again.status.success(), "{}", texts(&again).1);
    let second = results(folder.path());
    assert_eq!(second["resumed"], true);
    assert_eq!(second["engines"], first["engines"]);
    let other = peers(
        folder.path(),
        &[
            "--only", "aegis", "--jobs", "600", "--rounds", "1", "--resume",
        ],
    )
    .output()
    .unwrap();
    assert!(!other.status.success());
    assert!(
        texts(&other).1.contains("measured with another setting"),
        "{}",
        texts(&other).1
    );
    assert_eq!(results(folder.path()), second);
}

#[test]
fn process_an_engine_that_cannot_be_built_is_skipped_with_its_reason_and_not_published() {
    let _slot = process_slot();
    let folder = TempDir::new().unwrap();
    let page = folder.path().join("page.md");
    let before = "# Page\n<!-- generated: peers -->\n<!-- end of peers -->\n";
    fs::write(&page, before).unwrap();
    // A Go that does not work, before any that does.
    let programs = folder.path().join("programs");
    fs::create_dir(&programs).unwrap();
    fs::write(programs.join("go"), "#!/bin/sh\nexit 1\n").unwrap();
    fs::set_permissions(programs.join("go"), fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    let output = peers(
        folder.path(),
        &[
            "--only",
            "aegis,river",
            "--items",
            "throughput",
            "--jobs",
            "200",
            "--rounds",
            "1",
        ],
    )
    .args(["--write-docs", "--page"])
    .arg(&page)
    .env("PATH", path)
    .output()
    .unwrap();
    let (out, err) = texts(&output);
    assert!(
        out.contains("SKIPPED river: Go is not installed (https://go.dev/dl)"),
        "{out}"
    );
    assert!(
        out.contains("**river is missing: Go is not installed"),
        "{out}"
    );
    assert!(out.contains("| **aegis** |"), "{out}");
    assert!(!output.status.success(), "a table with holes was published");
    assert!(err.contains("the table was not written"), "{err}");
    assert_eq!(fs::read_to_string(&page).unwrap(), before);
}

#[test]
fn process_what_makes_no_sense_is_refused_before_anything_starts() {
    let _slot = process_slot();
    let folder = TempDir::new().unwrap();
    for (arguments, what) in [
        (
            &["--only", "sidekiq"][..],
            "there is no such engine; known are aegis, graphile-worker",
        ),
        (&["--items", "speed"][..], "invalid value 'speed'"),
        (&["--jobs", "0"][..], "0 is not in 100..=10000000"),
        (
            &["--drivers", "/nowhere"][..],
            "the drivers' folder /nowhere is not there",
        ),
        (&["--resume"][..], "no results at"),
    ] {
        let output = peers(folder.path(), arguments).output().unwrap();
        let (out, err) = texts(&output);
        assert!(
            !output.status.success() && err.contains(what),
            "{arguments:?}\n{out}\n{err}"
        );
    }
    assert!(!folder.path().join("results.json").exists());
}
