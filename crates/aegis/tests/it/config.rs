//! Configuration: flags over environment over file over defaults, and what is said about a file that is wrong.

use std::path::{Path, PathBuf};
use std::process::Command;

use aegis_testkit::process_slot;
use serde_json::Value;

use crate::support::{Ran, command, run};

/// A folder with an `aegis.toml`.
struct Folder(tempfile::TempDir);

impl Folder {
    fn with(text: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("aegis.toml"), text).unwrap();
        Self(folder)
    }

    fn file(&self) -> PathBuf {
        self.0.path().join("aegis.toml")
    }

    /// A command that is told about the file.
    fn command(&self, words: &[&str]) -> Command {
        let mut command = command(None, words);
        command.env("AEGIS_CONFIG", self.file());
        command
    }

    async fn refused(&self, words: &[&str]) -> Ran {
        let ran = run(self.command(words)).await;
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{ran:?}");
        ran
    }
}

async fn printed(mut command: Command) -> Vec<Value> {
    command.args(["--print-config", "-o", "json"]);
    let ran = run(command).await;
    assert_eq!(ran.code, 0, "{ran:?}");
    serde_json::from_str(&ran.stdout).unwrap()
}

fn setting<'a>(all: &'a [Value], name: &str) -> &'a Value {
    all.iter()
        .find(|setting| setting["name"] == name)
        .unwrap_or_else(|| panic!("no {name} in {all:?}"))
}

#[tokio::test]
async fn process_a_flag_wins_over_the_environment_over_the_file_over_the_default() {
    let _slot = process_slot();
    let folder = Folder::with(
        "log = \"info\"\n\n[worker]\nslots = 3\nlease_ttl_ms = 4000\nname = \"filed\"\nqueue = [\"a\", \"b\"]\n",
    );
    let mut words = folder.command(&["worker", "--slots", "5"]);
    words
        .env("AEGIS_WORKER_SLOTS", "4")
        .env("AEGIS_WORKER_NAME", "named");
    let all = printed(words).await;
    let place = |line: u32| format!("file {}:{line}", folder.file().display());
    let cases = [
        (
            "worker.slots",
            Value::from(5),
            "",
            "flag --slots".to_owned(),
        ),
        (
            "worker.name",
            Value::from("named"),
            "",
            "environment AEGIS_WORKER_NAME".to_owned(),
        ),
        ("worker.lease_ttl_ms", Value::from(4000), "ms", place(5)),
        ("worker.queue", serde_json::json!(["a", "b"]), "", place(7)),
        ("log", Value::from("info"), "", place(1)),
        (
            "worker.drain_s",
            Value::from(420),
            "s",
            "default".to_owned(),
        ),
        (
            "worker.release",
            Value::from("none"),
            "",
            "default".to_owned(),
        ),
    ];
    for (name, value, unit, from) in cases {
        let found = setting(&all, name);
        assert_eq!(
            (&found["value"], &found["unit"], &found["from"]),
            (&value, &Value::from(unit), &Value::from(from)),
            "{name}"
        );
    }
}

#[tokio::test]
async fn process_the_values_of_the_file_are_those_that_are_used() {
    let _slot = process_slot();
    // A budget that does not fit is refused before anything is connected to, so it shows which values were used.
    let folder = Folder::with("[worker]\ndrain_s = 77\ngrace_period_s = 5\n");
    let ran = folder
        .refused(&["worker", "--database-url", "postgresql://x@127.0.0.1:1/x"])
        .await;
    assert!(
        ran.stderr.contains("--drain-s 77") && ran.stderr.contains("AEG-0009"),
        "{ran:?}"
    );
}

#[tokio::test]
async fn process_the_file_is_the_named_one_or_the_working_folders_or_the_users() {
    let _slot = process_slot();
    let here = Folder::with("[worker]\nslots = 3\n");
    let users = tempfile::tempdir().unwrap();
    std::fs::create_dir(users.path().join("aegis")).unwrap();
    std::fs::write(
        users.path().join("aegis/aegis.toml"),
        "[worker]\nslots = 4\n",
    )
    .unwrap();
    let slots = async |folder: &Path, words: &[&str]| {
        let mut command = command(None, words);
        command
            .current_dir(folder)
            .env("XDG_CONFIG_HOME", users.path());
        setting(&printed(command).await, "worker.slots")["value"].clone()
    };
    assert_eq!(slots(here.0.path(), &["worker"]).await, 3);
    let elsewhere = tempfile::tempdir().unwrap();
    assert_eq!(slots(elsewhere.path(), &["worker"]).await, 4);
    let named = Folder::with("[worker]\nslots = 6\n");
    let path = named.file().display().to_string();
    assert_eq!(
        slots(here.0.path(), &["worker", "--config", &path]).await,
        6
    );
    let gone = run(command(
        None,
        &["worker", "--config", "/nonexistent/aegis.toml"],
    ))
    .await;
    assert_eq!(gone.code, 2, "{gone:?}");
    assert!(
        gone.stderr.contains("/nonexistent/aegis.toml") && gone.stderr.contains("flag --config"),
        "{gone:?}"
    );
}

#[tokio::test]
async fn process_an_unknown_key_is_named_with_its_line_and_what_was_perhaps_meant() {
    let _slot = process_slot();
    let cases = [
        (
            "log = \"info\"\n[worker]\nslotz = 3\n",
            ["line 3", "`worker.slotz`", "did you mean `slots`"],
        ),
        (
            "slots = 3\n",
            ["line 1", "`slots` is no setting", "stands below [worker]"],
        ),
        (
            "\n[wroker]\nslots = 3\n",
            ["line 2", "`wroker`", "did you mean `worker`"],
        ),
        (
            "[worker]\ndatabase_url = \"x\"\n",
            ["line 2", "`worker.database_url`", "at the top of the file"],
        ),
        (
            "[worker]\nslots = 0\n",
            ["line 2", "`worker.slots`", "1..=10000"],
        ),
        (
            "[worker]\nlease_ttl_ms = 99\n",
            ["line 2", "`worker.lease_ttl_ms`", "100..=3600000"],
        ),
        (
            "[worker]\nslots = \"many\"\n",
            ["line 2", "`worker.slots`", "many"],
        ),
        (
            "[worker]\nallow_private_addresses = 1\n",
            ["line 2", "switch", "true or false"],
        ),
        (
            "[worker]\nslots = {}\n",
            ["line 2", "`worker.slots`", "wants one value"],
        ),
        (
            "worker = 5\n",
            ["line 1", "`worker` is a table", "write [worker]"],
        ),
        (
            "[worker]\nslots = [5]\n",
            ["line 2", "`worker.slots`", "not a list"],
        ),
        (
            "[worker]\nqueue = []\n",
            ["line 2", "`worker.queue`", "the list is empty"],
        ),
        ("output = \"xml\"\n", ["line 1", "`output`", "xml"]),
        ("[worker\nslots = 1\n", ["line 1", "no TOML", "aegis.toml"]),
    ];
    for (text, wanted) in cases {
        let folder = Folder::with(text);
        let ran = folder.refused(&["worker"]).await;
        for part in wanted {
            assert!(
                ran.stderr.contains(part),
                "{text:?}: {part}: {}",
                ran.stderr
            );
        }
    }
}

#[tokio::test]
async fn process_a_value_out_of_bounds_is_refused_from_the_environment_too() {
    let _slot = process_slot();
    let mut words = command(None, &["worker"]);
    words.env("AEGIS_WORKER_SLOTS", "0");
    let ran = run(words).await;
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(
        ran.stderr.contains("--slots") && ran.stderr.contains("1..=10000"),
        "{ran:?}"
    );
}

#[tokio::test]
async fn process_a_switch_is_on_and_off_in_each_place() {
    let _slot = process_slot();
    let name = "worker.allow_private_addresses";
    let folder = Folder::with("[worker]\nallow_private_addresses = true\n");
    assert_eq!(
        setting(&printed(folder.command(&["worker"])).await, name)["value"],
        true
    );
    let mut off = folder.command(&["worker"]);
    off.env("AEGIS_WORKER_ALLOW_PRIVATE_ADDRESSES", "no");
    let all = printed(off).await;
    let from = setting(&all, name)["from"].as_str().unwrap();
    assert_eq!(from, "environment AEGIS_WORKER_ALLOW_PRIVATE_ADDRESSES");
    assert_ne!(setting(&all, name)["value"], true);
}

#[tokio::test]
async fn process_no_secret_is_printed() {
    let _slot = process_slot();
    let folder = Folder::with("database_url = \"postgresql://ada:hunter2@127.0.0.1:1/db\"\n");
    for words in [
        &["worker", "--print-config"][..],
        &["worker", "--print-config", "-o", "yaml"],
        &["worker", "--help"],
    ] {
        let ran = run(folder.command(words)).await;
        assert_eq!(ran.code, 0, "{ran:?}");
        assert!(!format!("{ran:?}").contains("hunter2"), "{ran:?}");
    }
    let shown = printed(folder.command(&["worker"])).await;
    assert_eq!(
        setting(&shown, "database_url")["value"],
        "postgresql://ada:***@127.0.0.1:1/db"
    );
    // Neither by an error of the database, with all logs, nor by one of the URL or the file.
    let mut unreachable = folder.command(&["task", "list"]);
    unreachable.env("AEGIS_LOG", "trace");
    let mut bad_url = command(
        Some("postgresql://ada:hunter2@h/db?nonsense=1"),
        &["task", "list"],
    );
    bad_url.env("AEGIS_LOG", "trace");
    let broken = Folder::with("database_url = \"postgresql://ada:hunter2@127.0.0.1:1/db\n");
    for (command, code) in [
        (unreachable, 5),
        (bad_url, 2),
        (broken.command(&["task", "list"]), 2),
    ] {
        let ran = run(command).await;
        assert_eq!(ran.code, code, "{ran:?}");
        assert!(!format!("{ran:?}").contains("hunter2"), "{ran:?}");
    }
}

#[tokio::test]
async fn process_help_and_version_work_beside_a_broken_file() {
    let _slot = process_slot();
    let folder = Folder::with("what is this\n");
    for words in [
        &["--help"][..],
        &["version"],
        &["worker", "--help"],
        &["completion", "bash"],
    ] {
        let ran = run(folder.command(words)).await;
        assert_eq!(ran.code, 0, "{words:?}: {ran:?}");
    }
    folder.refused(&["worker"]).await;
}

#[tokio::test]
async fn process_every_command_with_settings_prints_them() {
    let _slot = process_slot();
    let cases = [
        (&["worker"][..], "worker.lease_ttl_ms"),
        (&["dev"], "dev.data_dir"),
        (&["db", "install"], "db.install.days_ahead"),
        (&["db", "maintain"], "db.maintain.retention_days"),
        (&["task", "submit"], "task.submit.max_failures"),
        (&["task", "list"], "database_url"),
    ];
    for (words, name) in cases {
        let all = printed(command(None, words)).await;
        let found = setting(&all, name);
        assert_eq!(found["from"], "default", "{words:?}");
        assert!(
            found["environment"].as_str().unwrap().starts_with("AEGIS_"),
            "{found}"
        );
    }
}
