//! The two examples survive `kill -9` of the worker, of the program and of the supervisor, and no effect is doubled or lost.
//!
//! The kills come at what can be seen: right after an effect has appeared, and right after a step was saved. Between the two
//! lies the window that counts: the effect is there and its answer is not.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use aegis_store::{NewTask, RetryPolicy};
use aegis_testkit::{process_slot, skipped, wait_until};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::support::{BOUND, Bench, Process, quick_retries};

fn example(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../examples/exec")
        .join(path)
}

struct Kept {
    bench: Bench,
    folder: tempfile::TempDir,
    program: PathBuf,
    kind: &'static str,
}

impl Kept {
    async fn new(kind: &'static str, program: &str) -> Self {
        Self {
            bench: Bench::new().await,
            folder: tempfile::tempdir().unwrap(),
            program: example(program),
            kind,
        }
    }

    fn effects_file(&self) -> PathBuf {
        self.folder.path().join("effects")
    }

    fn effects(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.effects_file()).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    fn worker(&self) -> Process {
        Process::start(&self.bench, self.kind, &[self.program.to_str().unwrap()])
    }

    /// A task whose crashes are the test's own doing.
    async fn submit(&self, input: Value, protocol: i32) -> Uuid {
        let task = NewTask {
            protocol,
            policy: RetryPolicy {
                max_crashes: 100,
                max_failures: 100,
                ..quick_retries()
            },
            ..NewTask::new(self.kind, input.to_string())
        };
        self.bench.store.submit(task).await.unwrap().task
    }

    async fn count(&self, sql: &str) -> i64 {
        self.bench
            .db
            .admin
            .query_one(sql, &[])
            .await
            .unwrap()
            .get(0)
    }

    async fn steps(&self) -> i64 {
        self.count("select count(*) from aegis.step").await
    }

    /// One line for each operation, none twice.
    fn once_each(&self, operations: &[String]) {
        let effects = self.effects();
        let mut ids: Vec<&str> = effects
            .iter()
            .map(|line| line.split(' ').next().unwrap())
            .collect();
        ids.sort_unstable();
        let mut wanted: Vec<&str> = operations.iter().map(String::as_str).collect();
        wanted.sort_unstable();
        assert_eq!(ids, wanted, "lost or doubled: {effects:#?}");
    }
}

/// The processes of the running attempt: the program, or its supervisor.
fn of_attempt(task: Uuid) -> Vec<i32> {
    let entry = format!("AEGIS_TASK={task}");
    let numbers = std::fs::read_dir("/proc").unwrap();
    numbers
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|pid: &i32| {
            let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environment
                .split(|&byte| byte == 0)
                .any(|one| one == entry.as_bytes())
        })
        .collect()
}

fn has_python() -> bool {
    Command::new("python3")
        .arg("--version")
        .output()
        .is_ok_and(|output| output.status.success())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn process_the_python_example_publishes_each_picture_once_whatever_is_killed() {
    if !has_python() {
        skipped("the Python example", "there is no python3 here");
        return;
    }
    let _slot = tokio::task::spawn_blocking(process_slot).await.unwrap();
    let kept = Kept::new("resize", "python/resize.py").await;
    let pictures: Vec<String> = (0..80).map(|n| format!("p{n}.png")).collect();
    let input = json!({ "pictures": pictures, "album": kept.effects_file(), "quiet_ms": 100 });
    let task = kept.submit(input, 2).await;
    let mut workers: Vec<Process> = vec![kept.worker()];
    for round in 0..6 {
        let (effects, steps) = (kept.effects().len(), kept.steps().await);
        wait_until(
            "a further effect, or a further step, or the end",
            BOUND,
            async || {
                let further = if round % 2 == 0 {
                    kept.effects().len() > effects
                } else {
                    kept.steps().await > steps
                };
                further || kept.effects().len() == pictures.len()
            },
        )
        .await;
        if round % 3 == 2 {
            // The program or its supervisor alone: the worker lives and goes on.
            for pid in of_attempt(task).into_iter().skip(round % 2) {
                kill(Pid::from_raw(pid), Signal::SIGKILL).ok();
            }
        } else {
            workers.pop().unwrap().kill();
            workers.push(kept.worker());
        }
    }
    assert_eq!(kept.bench.result(task).await, json!({ "published": 80 }));
    let operations: Vec<String> = pictures
        .iter()
        .map(|path| format!("{task}/publish/{path}/v1"))
        .collect();
    kept.once_each(&operations);
    let ended = kept.bench.store.task(task).await.unwrap().unwrap();
    assert!(
        ended.crashes + ended.interruptions + ended.failures >= 3,
        "too few kills came in time: {ended:?}"
    );

    // Protocol 1 is brought to protocol 2 by the program itself.
    let album = kept.folder.path().join("old");
    let old = kept
        .submit(json!({ "picture": "old.png", "album": album }), 1)
        .await;
    assert_eq!(kept.bench.result(old).await, json!({ "published": 1 }));
    let bad = kept.submit(json!({ "pictures": 7 }), 2).await;
    assert_eq!(kept.bench.ended(bad).await.state, 6);
    assert_eq!(kept.bench.error(bad).await.0, "input_invalid");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn process_the_shell_example_enters_each_file_once_whatever_is_killed() {
    let _slot = tokio::task::spawn_blocking(process_slot).await.unwrap();
    let kept = Kept::new("archive", "shell/archive.sh").await;
    let mut operations = Vec::new();
    let mut tasks = Vec::new();
    for number in 0..8 {
        let file = kept.folder.path().join(format!("file {number}"));
        std::fs::write(&file, "x".repeat(number)).unwrap();
        let task = kept
            .submit(json!({ "file": file, "register": kept.effects_file() }), 1)
            .await;
        let key = file
            .display()
            .to_string()
            .replace('/', "%2F")
            .replace(' ', "%20");
        operations.push(format!("{task}/enter/{key}/v1"));
        tasks.push(task);
    }
    let mut worker = kept.worker();
    for round in 0..4 {
        let (effects, steps) = (kept.effects().len(), kept.steps().await);
        wait_until(
            "a further effect, or a further step, or the end",
            BOUND,
            async || {
                let further = if round % 2 == 0 {
                    kept.effects().len() > effects
                } else {
                    kept.steps().await > steps
                };
                further || kept.effects().len() == operations.len()
            },
        )
        .await;
        worker.kill();
        worker = kept.worker();
    }
    for (number, task) in tasks.iter().enumerate() {
        assert_eq!(kept.bench.result(*task).await, json!({ "bytes": number }));
    }
    kept.once_each(&operations);
    let bad = kept.submit(json!({ "file": "" }), 1).await;
    assert_eq!(kept.bench.ended(bad).await.state, 6);
    let no_file = json!({ "file": "/nowhere", "register": kept.effects_file() });
    let bad = kept.submit(no_file, 1).await;
    kept.bench.ended(bad).await;
    assert_eq!(kept.bench.error(bad).await.0, "no_file");
}

/// Speaks with an example as a worker would, without one: a fixed line for each of its messages.
fn spoken(program: &Path, replies: &[String]) -> Vec<Value> {
    let mut child = Command::new(program)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut said = Vec::new();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    for reply in replies {
        writeln!(stdin, "{reply}").unwrap();
        said.push(serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap());
    }
    drop(stdin);
    child.wait().unwrap();
    said
}

#[test]
fn process_the_examples_call_nobody_when_the_eligibility_may_have_run_out() {
    let _slot = process_slot();
    let folder = tempfile::tempdir().unwrap();
    let effects = folder.path().join("effects");
    let file = folder.path().join("file");
    std::fs::write(&file, "abc").unwrap();
    let examples = [
        (
            "python/resize.py",
            json!({ "pictures": ["a.png"], "album": effects }),
        ),
        (
            "shell/archive.sh",
            json!({ "file": file, "register": effects }),
        ),
    ];
    for (program, input) in examples {
        if program.starts_with("python") && !has_python() {
            skipped("the Python example", "there is no python3 here");
            continue;
        }
        let hello = r#"{"type":"hello","versions":[1],"line_bytes_max":4194304}"#.to_owned();
        // As a worker writes it: the fields in their order, no spaces.
        let start = format!(
            r#"{{"type":"start","task":"t","kind":"k","queue":"q","epoch":1,"fencing_token":"0.1.1","failures":0,"interruptions":0,"crashes":0,"snoozes":0,"settling":false,"reads":[1,2],"writes":2,"input_protocol":2,"input":{input},"checkpoint":null,"steps":[],"steps_complete":true,"operations":[],"trace":null,"valid_for_ms":9000}}"#
        );
        let reply = |id: u64, answer: &str, valid_for_ms: u64| {
            format!(
                r#"{{"type":"reply","id":{id},"answer":{answer},"valid_for_ms":{valid_for_ms}}}"#
            )
        };
        let call = r#""call","operation":"t/x/y/v1","fencing_token":"0.1.1","dispatches":1,"timeout_ms":2000"#;
        let said = spoken(
            &example(program),
            &[
                hello,
                start,
                reply(1, r#""run""#, 9000),
                reply(2, r#""saved""#, 9000),
                reply(3, call, 0),
            ],
        );
        let settle = said.last().unwrap();
        assert_eq!(
            (&settle["type"], &settle["outcome"]),
            (&json!("settle"), &json!("not_applied")),
            "{program}: {said:?}"
        );
        assert!(!effects.exists(), "{program} called all the same");
    }
}
