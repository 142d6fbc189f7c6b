//! `cargo xtask docs` on a small copy of the pages, as a library and as a process.

use std::fs;
use std::path::Path;
use std::process::Command;

use xtask::docs::{Args, run};

const STATES: &str = "# States\n\
    <!-- generated: task-diagram -->\n<!-- end of task-diagram -->\nby hand\n\
    <!-- generated: task-states -->\n<!-- end of task-states -->\n\
    <!-- generated: task-changes -->\n<!-- end of task-changes -->\n\
    <!-- generated: operation-steps -->\n<!-- end of operation-steps -->\n";
const ERRORS: &str = "# Errors\n<!-- generated: error-codes -->\n<!-- end of error-codes -->\n";
const DEPENDENCIES: &str = "# Dependencies\n\
    <!-- generated: dependencies -->\n<!-- end of dependencies -->\n\
    | crate | why |\n| --- | --- |\n| `other` | it is there |\n";
const REPLAYS: &str = "# Replayed\n\
    <!-- generated: replayed -->\n<!-- end of replayed -->\n\
    <!-- generated: not-replayed -->\n<!-- end of not-replayed -->\n";
const FAILURES: &str = "[[failure]]\nid = \"TE-01\"\nreport = \"a #1\"\nfailure = \"It broke.\"\nopen = \"The rest.\"\n\
    [[failure]]\nid = \"RL-02\"\nreport = \"b #2\"\nfailure = \"It hung.\"\nnot_here = \"No such thing.\"\n";
const CRATE_A: &str = "[package]\nname = \"a\"\nversion = \"0.1.0\"\n\
    [dependencies]\nb = { path = \"../b\" }\n[dev-dependencies]\nother = { path = \"../other\" }\n";
const CRATE_B: &str = "[package]\nname = \"b\"\nversion = \"0.1.0\"\n\
    [dependencies]\nother = { path = \"../other\" }\n[dev-dependencies]\nother = { path = \"../other\" }\n";
const LOCK: &str = "version = 4\n\n\
    [[package]]\nname = \"a\"\nversion = \"0.1.0\"\ndependencies = [\n \"b\",\n \"other\",\n]\n\n\
    [[package]]\nname = \"b\"\nversion = \"0.1.0\"\ndependencies = [\n \"other\",\n]\n\n\
    [[package]]\nname = \"other\"\nversion = \"1.2.3\"\n";

fn pages() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (page, text) in [
        ("docs/task-states.md", STATES),
        ("docs/errors/README.md", ERRORS),
        ("docs/errors/AEG-0001.md", "# AEG-0001: too large\n"),
        ("docs/dependencies.md", DEPENDENCIES),
        (
            "Cargo.toml",
            "[workspace]\nresolver = \"3\"\nmembers = [\"a\", \"b\"]\nexclude = [\"other\"]\n",
        ),
        ("Cargo.lock", LOCK),
        ("a/Cargo.toml", CRATE_A),
        ("a/src/lib.rs", "//! A.\n"),
        ("b/Cargo.toml", CRATE_B),
        (
            "b/src/lib.rs",
            "//! B.\n#[cfg(test)]\nmod tests {\n    #[test]\n    fn te_01_it_does_not_break() {}\n}\n",
        ),
        ("docs/replayed-failures.md", REPLAYS),
        ("docs/replays.toml", FAILURES),
        (
            "other/Cargo.toml",
            "[package]\nname = \"other\"\nversion = \"1.2.3\"\nlicense = \"MIT\"\n",
        ),
        ("other/src/lib.rs", "//! Not of this workspace.\n"),
    ] {
        let path = folder.path().join(page);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    folder
}

fn docs(root: &Path, check: bool) -> (Vec<String>, String) {
    let report = run(&Args {
        check,
        root: root.to_owned(),
    })
    .unwrap();
    (report.findings, report.summary)
}

#[test]
fn what_check_complains_about_is_what_writing_makes() {
    let folder = pages();
    let root = folder.path();
    let (findings, summary) = docs(root, true);
    assert_eq!(findings.len(), 8, "{findings:#?}");
    assert_eq!(
        findings[0],
        "docs/task-states.md:3: block `task-diagram` differs: run `cargo xtask docs` and commit what it makes"
    );
    assert_eq!(summary, "docs: 8 blocks, 8 differ");
    let read = |page: &str| fs::read_to_string(root.join(page)).unwrap();
    assert_eq!(
        read("docs/task-states.md"),
        STATES,
        "a check changes nothing"
    );

    assert_eq!(
        docs(root, false),
        (vec![], "docs: 8 blocks, 8 changed".into())
    );
    let states = read("docs/task-states.md");
    assert!(states.contains("```mermaid\nstateDiagram-v2\n") && states.contains("\nby hand\n"));
    assert!(read("docs/dependencies.md").contains("| other | 1.2.3 | MIT | a (tests), b |"));
    let replayed = read("docs/replayed-failures.md");
    assert!(replayed.contains(
        "2 failures: 1 are replayed by tests, of which 0 leave nothing open that we know of; 1 are not replayed."
    ));
    assert!(replayed.contains(
        "| TE-01 | It broke. (a #1) | [`te_01_it_does_not_break`](../b/src/lib.rs) | The rest. |"
    ));
    assert!(replayed.contains("| RL-02 | It hung. (b #2) | No such thing. |"));
    assert!(read("docs/errors/README.md").contains("| [AEG-0001](AEG-0001.md) | too large |"));
    assert_eq!(
        docs(root, true),
        (vec![], "docs: 8 blocks, 0 differ".into())
    );
    assert_eq!(
        docs(root, false),
        (vec![], "docs: 8 blocks, 0 changed".into())
    );
}

#[test]
fn a_page_without_its_block_stops_everything() {
    let folder = pages();
    let root = folder.path();
    fs::write(root.join("docs/errors/README.md"), "# Errors\n").unwrap();
    let (findings, summary) = docs(root, false);
    assert_eq!(summary, "docs: 1 mistakes, nothing written");
    assert!(
        findings[0].starts_with("docs/errors/README.md: has no line"),
        "{findings:#?}"
    );
    let states = fs::read_to_string(root.join("docs/task-states.md")).unwrap();
    assert_eq!(states, STATES);
}

#[test]
fn a_dependency_without_a_reason_is_an_error() {
    let folder = pages();
    let page = folder.path().join("docs/dependencies.md");
    fs::write(&page, DEPENDENCIES.replace("`other`", "`another`")).unwrap();
    let error = run(&Args {
        check: true,
        root: folder.path().to_owned(),
    })
    .unwrap_err();
    assert!(
        error.to_string().contains("gives no reason for other"),
        "{error:#}"
    );
}

#[test]
fn the_docs_process_ends_with_one_when_a_block_differs() {
    let folder = pages();
    let docs = |flags: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_xtask"))
            .arg("docs")
            .args(flags)
            .arg("--root")
            .arg(folder.path())
            .output()
            .unwrap();
        output.status.code()
    };
    assert_eq!(docs(&["--check"]), Some(1));
    assert_eq!(docs(&[]), Some(0));
    assert_eq!(docs(&["--check"]), Some(0));
    fs::remove_file(folder.path().join("docs/task-states.md")).unwrap();
    assert_eq!(docs(&["--check"]), Some(1));
}
