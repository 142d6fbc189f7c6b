//! The worker of `aegis dev`: a process of its own, so that it can be killed and something be seen.
//!
//! Invariants: it ends when this process ends, however that happens (its holder reads the end of a pipe); one that ends by
//! itself is followed by another one, a bounded number of times in a row.
//!
//! Never: settings of the user's shell or file in it; they belong to other workers.

use std::ffi::OsString;
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, Command};

use crate::exit::Exit;
use crate::failure::Failure;

/// A worker that ends so soon after its start could not start.
const TOO_SOON: Duration = Duration::from_secs(3);
/// How many may do that one after another.
const FAILED_STARTS_MAX: u32 = 3;
/// After which a drain is over; its budgets are shorter.
const DRAIN_BOUND: Duration = Duration::from_secs(20);

/// How it is started.
#[derive(Debug, Clone)]
pub(super) struct Wanted {
    pub(super) database_url: String,
    pub(super) letters_url: String,
    pub(super) slots: usize,
}

/// A worker behind its holder.
pub(super) struct Worker {
    wanted: Wanted,
    holder: Child,
    words: Option<ChildStdin>,
    started: Instant,
    failed_starts: u32,
    /// The process of the worker itself.
    pub(super) pid: u32,
}

impl Worker {
    /// Starts one.
    pub(super) async fn start(wanted: Wanted) -> Result<Self, Failure> {
        let (holder, words, pid) = spawn(&wanted).await?;
        Ok(Self {
            wanted,
            holder,
            words,
            started: Instant::now(),
            failed_starts: 0,
            pid,
        })
    }

    /// Waits for its end.
    pub(super) async fn ended(&mut self) -> Result<ExitStatus, Failure> {
        self.holder.wait().await.map_err(|error| broken(&error))
    }

    /// Starts another one in its place.
    pub(super) async fn again(&mut self, status: ExitStatus) -> Result<(), Failure> {
        if self.started.elapsed() < TOO_SOON {
            self.failed_starts += 1;
        } else {
            self.failed_starts = 0;
        }
        if self.failed_starts >= FAILED_STARTS_MAX {
            return Err(Failure::new(
                Exit::Broken,
                format!(
                    "the worker ended {FAILED_STARTS_MAX} times at its start ({status}); what it said stands above"
                ),
            ));
        }
        let (holder, words, pid) = spawn(&self.wanted).await?;
        self.holder = holder;
        self.words = words;
        self.pid = pid;
        self.started = Instant::now();
        Ok(())
    }

    /// Drains it and waits for its end; kills it when that takes too long.
    pub(super) async fn drain(mut self) {
        if let Some(words) = &mut self.words
            && words.write_all(b"term\n").await.is_ok()
            && tokio::time::timeout(DRAIN_BOUND, self.holder.wait())
                .await
                .is_ok()
        {
            return;
        }
        // The end of its input: the holder kills the worker and ends.
        self.words = None;
        if tokio::time::timeout(DRAIN_BOUND, self.holder.wait())
            .await
            .is_err()
        {
            tracing::warn!(pid = self.pid, "the worker did not end");
        }
    }
}

async fn spawn(wanted: &Wanted) -> Result<(Child, Option<ChildStdin>, u32), Failure> {
    let program = std::env::current_exe().map_err(|error| broken(&error))?;
    let mut command = Command::new(&program);
    command
        .args(["demo", "hold", "--"])
        .arg(&program)
        .args(arguments(wanted));
    for (name, _) in std::env::vars_os().filter(|(name, _)| is_setting(name)) {
        command.env_remove(name);
    }
    command
        .env("AEGIS_DATABASE_URL", &wanted.database_url)
        .env("AEGIS_CONFIG", "/dev/null")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        // Ctrl-C in a terminal is this process's to judge.
        .process_group(0)
        .kill_on_drop(true);
    let mut holder = command.spawn().map_err(|error| broken(&error))?;
    let words = holder.stdin.take();
    let stdout = holder
        .stdout
        .take()
        .ok_or_else(|| broken(&"it has no output"))?;
    let mut lines = BufReader::new(stdout).lines();
    let first = lines.next_line().await.map_err(|error| broken(&error))?;
    let pid = first
        .as_deref()
        .and_then(|line| line.strip_prefix("pid ")?.parse().ok());
    let pid = pid.ok_or_else(|| broken(&"it did not say its process id"))?;
    // What else it prints is nobody's, and must not fill the pipe.
    tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
    Ok((holder, words, pid))
}

fn is_setting(name: &OsString) -> bool {
    name.to_str()
        .is_some_and(|name| name.starts_with("AEGIS_") && !name.starts_with("AEGIS_LOG"))
}

fn arguments(wanted: &Wanted) -> Vec<String> {
    let mut arguments: Vec<String> = [
        "worker",
        "--name",
        "dev",
        "--lease-ttl-ms",
        "5000",
        "--stop-acquiring-s",
        "1",
        "--drain-s",
        "3",
        "--cancel-s",
        "3",
        "--exit-margin-s",
        "3",
        "--allow-private-addresses",
        "--handlers",
    ]
    .map(str::to_owned)
    .to_vec();
    arguments.push(super::kinds().join(","));
    arguments.extend(["--letters-url".to_owned(), wanted.letters_url.clone()]);
    arguments.extend(["--slots".to_owned(), wanted.slots.to_string()]);
    arguments
}

fn broken(why: &dyn std::fmt::Display) -> Failure {
    Failure::new(
        Exit::Broken,
        format!("the worker of aegis dev cannot be started or waited for: {why}"),
    )
}
