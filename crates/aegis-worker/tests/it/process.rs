//! Worker processes: signals, a kill, a freeze, PID 1.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use aegis_testkit::{process_slot, skipped, wait_until};
use aegis_worker::{TaskContext, handler_fn};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;
use uuid::Uuid;

use crate::support::{BOUND, Bench, Running, result};

const LEASE_MS: u64 = 1500;

/// A child that does not outlive its test.
pub(crate) struct Process {
    child: Child,
    /// The process to signal: not the child itself when something stands between.
    worker: Pid,
    /// What it said, shown when its test fails.
    log: tempfile::NamedTempFile,
}

impl Drop for Process {
    #[expect(
        clippy::print_stdout,
        reason = "shown by the harness when the test fails"
    )]
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
        if std::thread::panicking() {
            println!("process {} said:\n{}", self.worker, self.said());
        }
    }
}

impl Process {
    /// Starts a worker process; `through` is put before its command.
    fn start(bench: &Bench, through: &[&str]) -> Self {
        Self::start_with(bench, through, 60_000, 10_000)
    }

    /// The same, with how long its runtime may stand still, and how long each part of a drain may take.
    fn start_with(bench: &Bench, through: &[&str], stuck_ms: u64, budget_ms: u64) -> Self {
        Self::start_in(bench, through, stuck_ms, budget_ms, &[])
    }

    /// The same, with an environment.
    pub(crate) fn start_in(
        bench: &Bench,
        through: &[&str],
        stuck_ms: u64,
        budget_ms: u64,
        environment: &[(&str, &str)],
    ) -> Self {
        let (stuck, budget) = (stuck_ms.to_string(), budget_ms.to_string());
        let program = program();
        let url = format!("{}&statements=named", bench.db.url_as("aegis_engine"));
        let lease = LEASE_MS.to_string();
        let program = program.to_str().unwrap();
        let mut words: Vec<&str> = through.to_vec();
        words.extend([program, &url, &lease, &stuck, &budget]);
        let log = tempfile::NamedTempFile::new().unwrap();
        let child = Command::new(words[0])
            .args(&words[1..])
            .stdin(Stdio::null())
            .envs(environment.iter().copied())
            .stderr(log.reopen().unwrap())
            .spawn()
            .unwrap();
        let worker = Pid::from_raw(i32::try_from(child.id()).unwrap());
        Self { child, worker, log }
    }

    /// Where it shows its health, as its log says.
    async fn address(&self) -> String {
        let mut found = None;
        wait_until("its address", BOUND, async || {
            let said = self.said();
            found = said.lines().find_map(|line| {
                let line: serde_json::Value = serde_json::from_str(line).ok()?;
                Some(format!("http://{}", line["address"].as_str()?))
            });
            found.is_some()
        })
        .await;
        found.unwrap()
    }

    /// What it logged so far.
    pub(crate) fn said(&self) -> String {
        std::fs::read_to_string(self.log.path()).unwrap_or_default()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill(self.worker, signal).unwrap();
    }

    /// The exit code.
    pub(crate) async fn ended(&mut self) -> Option<i32> {
        let mut status = None;
        wait_until("the process's end", BOUND, async || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        })
        .await;
        status.unwrap().code()
    }
}

/// Cargo builds the examples of a package with its tests, beside them.
fn program() -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let program = tests
        .parent()
        .and_then(|deps| deps.parent())
        .unwrap()
        .join("examples/patient");
    assert!(
        program.exists(),
        "{} is missing: run `cargo test -p aegis-worker` without `--test`, or `cargo build -p aegis-worker --examples` first",
        program.display()
    );
    program
}

struct Waiting {
    task: Uuid,
    file: PathBuf,
    _folder: tempfile::TempDir,
}

impl Waiting {
    /// A task that ends when its file exists, running.
    async fn running(bench: &Bench) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("go");
        let task = bench.submit("wait", json!(file)).await;
        // Claimed is not started: a signal in between hands it back.
        let started = file.with_extension("started");
        wait_until("its start", BOUND, async || started.exists()).await;
        Self {
            task,
            file,
            _folder: folder,
        }
    }

    fn go(&self) {
        std::fs::write(&self.file, "").unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sigterm_drains_a_process_and_a_second_one_hands_back() {
    let _slot = tokio::task::spawn_blocking(process_slot).await.unwrap();
    let bench = Bench::new().await;
    let mut process = Process::start(&bench, &[]);
    let waiting = Waiting::running(&bench).await;
    process.signal(Signal::SIGTERM);
    wait_until("the closed gate", BOUND, async || {
        let workers = bench.store.workers(true, 1).await.unwrap();
        workers[0].state == 1
    })
    .await;
    assert_eq!(process.child.try_wait().unwrap(), None, "it goes on");
    waiting.go();
    assert_eq!(process.ended().await, Some(0));
    assert_eq!(result(&bench.ended(waiting.task).await), json!(1));

    let mut process = Process::start(&bench, &[]);
    let waiting = Waiting::running(&bench).await;
    process.signal(Signal::SIGTERM);
    wait_until("the closed gate", BOUND, async || {
        let workers = bench.store.workers(true, 1).await.unwrap();
        workers[0].state == 1
    })
    .await;
    process.signal(Signal::SIGTERM);
    assert_eq!(process.ended().await, Some(10));
    let task = bench.store.task(waiting.task).await.unwrap().unwrap();
    assert_eq!((task.state, task.interruptions, task.failures), (1, 1, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn te_06_rl_26_a_killed_process_is_taken_over_and_the_crash_is_counted() {
    let _slot = tokio::task::spawn_blocking(process_slot).await.unwrap();
    let bench = Bench::new().await;
    let mut process = Process::start(&bench, &[]);
    let waiting = Waiting::running(&bench).await;
    // Not within a lease of the database's start: such a loss would be forgiven.
    let up = "select (extract(epoch from clock_timestamp() - up_since) * 1000)::int8 from aegis.database";
    wait_until("a database that is not new", BOUND, async || {
        let ms: i64 = bench.db.admin.query_one(up, &[]).await.unwrap().get(0);
        u64::try_from(ms).unwrap() > 2 * LEASE_MS
    })
    .await;
    process.signal(Signal::SIGKILL);
    assert_eq!(process.ended().await, None);
    let handler = handler_fn("wait", |ctx: TaskContext, _: PathBuf| async move {
        Ok(ctx.epoch())
    });
    let other = Running::start(bench.worker().handler(handler));
    let ended = bench.ended(waiting.task).await;
    assert_eq!(result(&ended), json!(3));
    assert_eq!((ended.crashes, ended.failures), (1, 0));
    assert_eq!(bench.causes(waiting.task).await, ["crash"]);
    other.drain().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn te_14_a_frozen_process_that_thaws_is_refused_and_comes_back_as_another() {
    let _slot = tokio::task::spawn_blocking(process_slot).await.unwrap();
    let bench = Bench::new().await;
    // Frozen for longer than its runtime may stand still: that is not what standing still means.
    let mut process = Process::start_with(&bench, &[], LEASE_MS / 2, 10_000);
    let waiting = Waiting::running(&bench).await;
    let first = bench.store.workers(true, 1).await.unwrap()[0].id;
    process.signal(Signal::SIGSTOP);
    waiting.go();
    wait_until("the end of its lease", BOUND, async || {
        bench.store.tick(Uuid::new_v4()).await.unwrap();
        bench.store.task(waiting.task).await.unwrap().unwrap().state == 1
    })
    .await;
    process.signal(Signal::SIGCONT);
    let ended = bench.ended(waiting.task).await;
    assert!(result(&ended).as_i64().unwrap() > 1);
    let workers = bench.store.workers(true, 2).await.unwrap();
    assert_eq!(workers[0].predecessor, Some(first));
    assert_eq!((ended.crashes, ended.interruptions), (0, 1));
    process.signal(Signal::SIGTERM);
    assert_eq!(process.ended().await, Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_is_pid_1_ends_by_sigterm() {
    let name = "a_process_that_is_pid_1_ends_by_sigterm";
    let unshare = Command::new("unshare").args(["-pf", "true"]).status();
    if !unshare.is_ok_and(|status| status.success()) {
        skipped(name, "a PID namespace cannot be made here (unshare -pf)");
        return;
    }
    let _slot = tokio::task::spawn_blocking(process_slot).await.unwrap();
    let bench = Bench::new().await;
    let mut process = Process::start(&bench, &["unshare", "-pf", "--kill-child"]);
    wait_until("the registration", BOUND, async || {
        !bench.store.workers(true, 1).await.unwrap().is_empty()
    })
    .await;
    let workers = bench.store.workers(true, 1).await.unwrap();
    assert_eq!(workers[0].pid, 1, "it is not PID 1");
    let parent = process.child.id();
    let children = std::fs::read_to_string(format!("/proc/{parent}/task/{parent}/children"));
    process.worker = Pid::from_raw(children.unwrap().trim().parse().unwrap());
    process.signal(Signal::SIGTERM);
    assert_eq!(process.ended().await, Some(0));
}

/// Tasks of a process whose runtime has two threads, each of which one of them blocks for ever.
async fn block_every_thread(bench: &Bench) -> (Vec<Uuid>, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let mut tasks = Vec::new();
    for name in ["a", "b"] {
        let file = folder.path().join(name);
        tasks.push(bench.submit("block", json!(file)).await);
    }
    for name in ["a", "b"] {
        let started = folder.path().join(name).with_extension("started");
        wait_until("its start", BOUND, async || started.exists()).await;
    }
    (tasks, folder)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_whose_threads_are_all_blocked_gives_its_lease_up_and_ends() {
    let _slot = tokio::task::spawn_blocking(process_slot).await.unwrap();
    let bench = Bench::new().await;
    let mut process = Process::start_with(&bench, &[], 2 * LEASE_MS, 60_000);
    let (tasks, _folder) = block_every_thread(&bench).await;
    // Nothing of its runtime moves, and it says so all the same.
    let address = process.address().await;
    let mut why = String::new();
    wait_until("the failing liveness", BOUND, async || {
        let answer = reqwest::get(format!("{address}/livez")).await.unwrap();
        let failing = answer.status() == 503;
        why = answer.text().await.unwrap();
        failing
    })
    .await;
    assert!(why.contains("has run nothing for"), "{why}");
    let metrics = reqwest::get(format!("{address}/metrics")).await.unwrap();
    assert!(
        metrics
            .text()
            .await
            .unwrap()
            .contains("aegis_worker_executing_tasks")
    );
    assert_eq!(process.ended().await, Some(14));
    // What it held is taken over, like that of a killed one.
    let handler = handler_fn("block", |ctx: TaskContext, _: PathBuf| async move {
        Ok(ctx.epoch())
    });
    let other = Running::start(bench.worker().handler(handler));
    for task in tasks {
        assert!(result(&bench.ended(task).await).as_i64().unwrap() > 1);
    }
    other.drain().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn te_07_sigterm_ends_a_process_whose_threads_are_all_blocked_within_its_budgets() {
    let _slot = tokio::task::spawn_blocking(process_slot).await.unwrap();
    let bench = Bench::new().await;
    let hour = 3_600_000;
    let mut process = Process::start_with(&bench, &[], hour, 500);
    let (_tasks, _folder) = block_every_thread(&bench).await;
    process.signal(Signal::SIGTERM);
    assert_eq!(process.ended().await, Some(11));
    let mut process = Process::start_with(&bench, &[], hour, 2000);
    let (_tasks, _folder) = block_every_thread(&bench).await;
    process.signal(Signal::SIGTERM);
    process.signal(Signal::SIGINT);
    assert_eq!(process.ended().await, Some(11));
}
