//! What the tests share: a database, workers in this process and in others, handlers that are shell scripts.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use aegis_exec::{ExecHandler, ExecOptions, Program};
use aegis_store::view::TaskDetail;
use aegis_store::{Config, NewTask, RetryPolicy, Store};
use aegis_testkit::{TestDb, wait_until};
use aegis_worker::{
    Budgets, Exit, HandlerOptions, Worker, WorkerBuilder, WorkerError, WorkerHandle,
};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use uuid::Uuid;

/// Nothing takes longer on a machine that works at all.
pub(crate) const BOUND: Duration = Duration::from_secs(40);
pub(crate) const LEASE_MS: u64 = 2500;

/// Says hello and reads the start message into `$start`; `ask` sends a request and reads its reply into `$reply`.
pub(crate) const PRELUDE: &str = r#"
set -eu
read -r hello
echo '{"type":"hello","version":1}'
read -r start
ask() { printf '%s\n' "$1"; read -r reply; }
"#;

/// Cargo builds the examples of a package with its tests, beside them.
pub(crate) fn worker_program() -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let program = tests
        .parent()
        .and_then(Path::parent)
        .unwrap()
        .join("examples/program_worker");
    assert!(
        program.exists(),
        "{} is missing: run `cargo test -p aegis-exec` without `--test`, or `cargo build -p aegis-exec --examples` first",
        program.display()
    );
    program
}

/// Bounds that a test can wait for.
pub(crate) fn quick() -> ExecOptions {
    let mut options = ExecOptions::default();
    options.hello_within = Duration::from_secs(5);
    options.exit_within = Duration::from_secs(1);
    options.read_within = Duration::from_secs(1);
    options.kill_after = Duration::from_secs(3);
    options.line_bytes_max = 100_000;
    options.supervisor = worker_program().into();
    options
}

/// A shell script as a handler.
pub(crate) fn script(kind: &str, script: &str) -> ExecHandler {
    script_with(kind, script, quick())
}

pub(crate) fn script_with(kind: &str, script: &str, options: ExecOptions) -> ExecHandler {
    let program = Program::find("sh").unwrap().with_arguments(["-c", script]);
    ExecHandler::new(kind, "1..2".parse().unwrap(), program, options)
}

/// A database with a store on it.
pub(crate) struct Bench {
    pub(crate) db: TestDb,
    pub(crate) store: Store,
}

impl Bench {
    pub(crate) async fn new() -> Self {
        let db = TestDb::new().await;
        let url = format!("{}&statements=named", db.url_as("aegis_engine"));
        let store = Store::connect(Config::from_url(&url).unwrap())
            .await
            .unwrap();
        Self { db, store }
    }

    pub(crate) fn worker(&self) -> WorkerBuilder {
        Worker::builder(self.store.clone())
            .name("test")
            .slots(20)
            .lease_ttl(Duration::from_millis(LEASE_MS))
            .budgets(Budgets {
                stop_acquiring: Duration::from_secs(5),
                drain: Duration::from_millis(200),
                cancel_and_save: Duration::from_secs(10),
                exit_margin: Duration::from_secs(10),
            })
    }

    /// One worker with one script.
    pub(crate) fn run(&self, text: &str) -> Running {
        Running::start(self.worker().handler(script("program", text)))
    }

    /// One attempt a task: its error is its end.
    pub(crate) async fn submit_once(&self, kind: &str, input: Value) -> Uuid {
        let task = NewTask {
            policy: RetryPolicy {
                max_failures: 1,
                ..quick_retries()
            },
            ..NewTask::new(kind, input.to_string())
        };
        self.store.submit(task).await.unwrap().task
    }

    pub(crate) async fn submit(&self, kind: &str, input: Value) -> Uuid {
        let task = NewTask {
            policy: quick_retries(),
            ..NewTask::new(kind, input.to_string())
        };
        self.store.submit(task).await.unwrap().task
    }

    /// The task when it has ended or is parked.
    pub(crate) async fn ended(&self, task: Uuid) -> TaskDetail {
        match self.store.wait(task, BOUND).await.unwrap() {
            Some(ended) => ended,
            None => panic!(
                "task {task} has not ended: {:?}, errors {:?}",
                self.store.task(task).await,
                self.store.attempt_errors(task).await
            ),
        }
    }

    /// The result of a task that has succeeded.
    pub(crate) async fn result(&self, task: Uuid) -> Value {
        let ended = self.ended(task).await;
        let errors = self.store.attempt_errors(task).await.unwrap();
        assert_eq!(ended.state, 5, "{ended:?} {errors:?}");
        serde_json::from_slice(ended.result.as_deref().unwrap()).unwrap()
    }

    /// The newest error of a task: code, message, details.
    pub(crate) async fn error(&self, task: Uuid) -> (String, String, Value) {
        let errors = self.store.attempt_errors(task).await.unwrap();
        let error = errors.last().expect("an error");
        (
            error.code.clone(),
            error.message.clone(),
            error.details.clone().unwrap_or_default(),
        )
    }

    pub(crate) async fn wait_state(&self, task: Uuid, state: i16) {
        wait_until("the task's state", BOUND, async || {
            self.store.task(task).await.unwrap().unwrap().state == state
        })
        .await;
    }
}

pub(crate) fn quick_retries() -> RetryPolicy {
    RetryPolicy {
        backoff_initial_ms: 1,
        backoff_cap_ms: 1,
        ..RetryPolicy::default()
    }
}

pub(crate) fn slots(slots: usize) -> HandlerOptions {
    HandlerOptions {
        queue: None,
        slots: Some(slots),
    }
}

/// A worker in this process.
pub(crate) struct Running {
    pub(crate) handle: WorkerHandle,
    _shutdown: oneshot::Sender<()>,
    exit: JoinHandle<Result<Exit, WorkerError>>,
}

impl Running {
    pub(crate) fn start(builder: WorkerBuilder) -> Self {
        let worker = builder.build().unwrap();
        let handle = worker.handle();
        let (shutdown, asked) = oneshot::channel::<()>();
        let exit = tokio::spawn(worker.run(async {
            asked.await.ok();
        }));
        Self {
            handle,
            _shutdown: shutdown,
            exit,
        }
    }

    pub(crate) async fn drain(self) -> Exit {
        self.handle.drain();
        let exit = tokio::time::timeout(BOUND, self.exit).await;
        exit.expect("the worker did not end").unwrap().unwrap()
    }
}

/// A worker in a process of its own, whose handler is a script.
pub(crate) struct Process {
    child: Child,
    /// What it said, shown when its test fails.
    log: tempfile::NamedTempFile,
}

impl Process {
    pub(crate) fn start(bench: &Bench, kind: &str, program: &[&str]) -> Self {
        Self::start_with(bench, kind, program, &[])
    }

    pub(crate) fn start_with(
        bench: &Bench,
        kind: &str,
        program: &[&str],
        environment: &[(&str, &str)],
    ) -> Self {
        let url = format!("{}&statements=named", bench.db.url_as("aegis_engine"));
        let log = tempfile::NamedTempFile::new().unwrap();
        let child = Command::new(worker_program())
            .args([&url, &LEASE_MS.to_string(), kind, "1..2"])
            .args(program)
            .envs(environment.iter().copied())
            .stdin(Stdio::null())
            .stderr(log.reopen().unwrap())
            .spawn()
            .unwrap();
        Self { child, log }
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).unwrap();
        kill(Pid::from_raw(pid), signal).unwrap();
    }

    pub(crate) fn said(&self) -> String {
        std::fs::read_to_string(self.log.path()).unwrap()
    }

    /// SIGKILL, and it is gone.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
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
            println!("the worker said:\n{}", self.said());
        }
    }
}

/// Does a process exist, other than as a zombie?
pub(crate) fn lives(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ")
        .is_some_and(|(_, rest)| !rest.starts_with('Z') && !rest.starts_with('X'))
}

/// The process ids that a script has written into files of a folder.
pub(crate) async fn pids(folder: &Path, names: &[&str]) -> Vec<i32> {
    let read = |name: &&str| {
        let text = std::fs::read_to_string(folder.join(name)).ok()?;
        text.strip_suffix('\n')?.parse().ok()
    };
    let mut found = Vec::new();
    wait_until("the processes that write their ids", BOUND, async || {
        found = names.iter().filter_map(read).collect();
        found.len() == names.len()
    })
    .await;
    found
}
