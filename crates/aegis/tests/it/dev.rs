//! `aegis dev`: data that stay, a second one that is refused, an end that leaves nothing running.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use aegis_testkit::process_slot;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::support::{BOUND, Ran, command, run};

/// A folder that the ordinary user can enter whom root drops to.
fn folder() -> tempfile::TempDir {
    tempfile::Builder::new()
        .prefix("aegis-dev-test-")
        .permissions(open_to_all())
        .tempdir()
        .unwrap()
}

fn open_to_all() -> std::fs::Permissions {
    std::os::unix::fs::PermissionsExt::from_mode(0o755)
}

struct Dev {
    child: Child,
    said: Value,
}

impl Dev {
    /// Starts one and waits until it says that it is ready.
    fn start(folder: &Path) -> Self {
        let mut child = dev(folder)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let said = serde_json::from_str(&line).unwrap_or_else(|_| {
            let mut text = String::new();
            child.kill().ok();
            child.stderr.take().unwrap().read_to_string(&mut text).ok();
            panic!("it said {line:?} and {text}");
        });
        Self { child, said }
    }

    async fn run(&self, words: &[&str]) -> Ran {
        run(command(self.said["database_url"].as_str(), words)).await
    }

    fn pid(&self, name: &str) -> Pid {
        Pid::from_raw(i32::try_from(self.said[name].as_i64().unwrap()).unwrap())
    }

    fn end(mut self, signal: Signal) -> Option<i32> {
        kill(self.pid("pid"), signal).unwrap();
        self.child.wait().unwrap().code()
    }
}

impl Drop for Dev {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn dev(folder: &Path) -> Command {
    let path = folder.join("data").display().to_string();
    let mut command = command(None, &["dev", "--data-dir", &path, "-o", "json"]);
    // Somebody's setting for other workers, with which none could start, is not this one's.
    command.env("AEGIS_WORKER_LISTEN", "192.0.2.1:9");
    command
}

/// Waits until a process is gone.
fn gone(pid: Pid) {
    let deadline = Instant::now() + BOUND;
    while kill(pid, None).is_ok() {
        assert!(Instant::now() < deadline, "process {pid} still runs");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[tokio::test]
async fn process_dev_keeps_its_data_through_a_kill_and_ends_all_in_order() {
    let _slot = process_slot();
    let folder = folder();
    let first = Dev::start(folder.path());
    let done = first
        .run(&[
            "task",
            "submit",
            "hello",
            "--input",
            r#"{"name":"Ada"}"#,
            "--wait",
            "-o",
            "json",
        ])
        .await;
    assert_eq!(done.code, 0, "{done:?}");
    let done: Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!(done["result"]["greeting"], "Hello, Ada");
    let flaky = first
        .run(&[
            "task",
            "submit",
            "flaky",
            "--input",
            r#"{"failures":1}"#,
            "--wait",
            "-o",
            "json",
        ])
        .await;
    assert!(flaky.stdout.contains(r#""attempts":2"#), "{flaky:?}");
    let letter = first
        .run(&[
            "task",
            "submit",
            "letter",
            "--input",
            r#"{"to":"Ada"}"#,
            "--wait",
            "-o",
            "json",
        ])
        .await;
    assert!(letter.stdout.contains(r#""sent":true"#), "{letter:?}");
    let slow = first
        .run(&[
            "task",
            "submit",
            "count",
            "--input",
            r#"{"to":6,"ms":300}"#,
            "-o",
            "name",
        ])
        .await;
    let slow = slow.stdout.trim().to_owned();

    // A second one on the same folder is told who has it.
    let second = run(dev(folder.path())).await;
    assert_eq!((second.code, second.stdout.as_str()), (5, ""), "{second:?}");
    assert!(
        second.stderr.contains("data") && second.stderr.contains("run"),
        "{second:?}"
    );

    let (worker, pid) = (first.pid("worker_pid"), first.pid("pid"));
    assert_eq!(first.end(Signal::SIGKILL), None);
    gone(pid);
    gone(worker);

    let again = Dev::start(folder.path());
    assert_eq!(
        again.said["applied"],
        serde_json::json!([]),
        "the schema was there"
    );
    let old = again
        .run(&["task", "show", done["id"].as_str().unwrap(), "-o", "json"])
        .await;
    assert!(old.stdout.contains("succeeded"), "{old:?}");
    let finished = again
        .run(&["task", "watch", &slow, "--timeout", "60"])
        .await;
    assert_eq!(finished.code, 0, "what was running goes on: {finished:?}");

    // Its worker is replaced when it is killed.
    kill(again.pid("worker_pid"), Signal::SIGKILL).unwrap();
    gone(again.pid("worker_pid"));
    let after = again.run(&["task", "submit", "hello", "--wait"]).await;
    assert_eq!(after.code, 0, "{after:?}");
    assert_eq!(again.end(Signal::SIGINT), Some(0));

    // Removing the data asks first, where nobody can be asked it does nothing.
    let mut reset = dev(folder.path());
    reset.arg("--reset");
    let refused = run(reset).await;
    assert_eq!(refused.code, 2, "{refused:?}");
    let kept = Dev::start(folder.path());
    assert_eq!(kept.run(&["task", "show", &slow]).await.code, 0);
    assert_eq!(kept.end(Signal::SIGTERM), Some(0));
    let path = folder.path().join("data").display().to_string();
    let mut command = command(
        None,
        &["dev", "--data-dir", &path, "-o", "json", "--reset", "--yes"],
    );
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    let fresh = Dev {
        child,
        said: serde_json::from_str(&line).unwrap(),
    };
    assert_eq!(
        fresh.run(&["task", "list", "-o", "json"]).await.stdout,
        "[]\n"
    );
    assert_eq!(fresh.end(Signal::SIGTERM), Some(0));
}
