//! A process of the demo, behind its holder: started, told to end, killed, frozen, thawed.
//!
//! Invariant: dropping it, or the end of this process in any way, ends it (see [`crate::hold`]). Must never signal by number:
//! the holder does, which alone knows whether the number is still its child's.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command as StdCommand, Stdio};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

use super::DemoError;
use crate::hold::{PID, Word};

/// How long a process may take until it says its first word, on a machine that is busy.
const FIRST_WORD: Duration = Duration::from_secs(15);

/// What the demo runs: this very program, and where its processes write what they log.
#[derive(Debug, Clone)]
pub(super) struct Program {
    pub(super) path: PathBuf,
    pub(super) database_url: String,
    pub(super) folder: PathBuf,
}

impl Program {
    /// A command of the public command line, with the database of the demo.
    pub(super) fn command(&self, arguments: &[OsString]) -> StdCommand {
        let mut command = StdCommand::new(&self.path);
        // Somebody's settings of other workers, in the environment or in a file, are not the demo's.
        for (name, _) in std::env::vars_os() {
            let text = name.to_string_lossy();
            if text.starts_with("AEGIS_") && !text.starts_with("AEGIS_LOG") {
                command.env_remove(&name);
            }
        }
        command
            .args(arguments)
            .env("AEGIS_DATABASE_URL", &self.database_url)
            .env("AEGIS_CONFIG", "/dev/null");
        command
    }

    /// Why a process did not come up, with the last that it logged.
    pub(super) fn not_started(&self, name: &str, why: &str) -> DemoError {
        let log = std::fs::read_to_string(log_path(&self.folder, name)).unwrap_or_default();
        let last: Vec<&str> = log.lines().rev().take(3).collect();
        let said = last.into_iter().rev().collect::<Vec<_>>().join(" | ");
        DemoError::Start {
            name: name.to_owned(),
            why: why.to_owned(),
            said: if said.is_empty() {
                "nothing".to_owned()
            } else {
                said
            },
        }
    }
}

/// A running process.
#[derive(Debug)]
pub(super) struct Process {
    name: String,
    holder: Child,
    words: Option<ChildStdin>,
    said: Lines<BufReader<ChildStdout>>,
    kept: Vec<String>,
    /// The held process's id.
    pub(super) pid: u32,
}

impl Process {
    /// Starts `program` with these arguments; what it logs goes to `NAME.log` in the demo's folder.
    pub(super) async fn start(
        program: &Program,
        name: &str,
        arguments: &[OsString],
    ) -> Result<Self, DemoError> {
        let failed = |source| DemoError::Process {
            name: name.to_owned(),
            source,
        };
        let log = log_path(&program.folder, name);
        let mut held: Vec<OsString> = ["demo", "hold", "--"].map(OsString::from).to_vec();
        held.push(program.path.clone().into_os_string());
        held.extend_from_slice(arguments);
        let mut command = program.command(&held);
        // A group of its own: Ctrl-C in the terminal reaches the demo only.
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::from(File::create(&log).map_err(failed)?));
        let mut holder = Command::from(command).spawn().map_err(failed)?;
        let words = holder.stdin.take();
        let stdout = holder
            .stdout
            .take()
            .ok_or_else(|| failed(io::ErrorKind::BrokenPipe.into()))?;
        let mut process = Self {
            name: name.to_owned(),
            holder,
            words,
            said: BufReader::new(stdout).lines(),
            kept: Vec::new(),
            pid: 0,
        };
        let first = process.line(|line| line.strip_prefix(PID)?.parse().ok());
        process.pid = first.await.map_err(|why| program.not_started(name, &why))?;
        Ok(process)
    }

    /// The first line of its standard output of which `wanted` makes something. Other lines are kept: the child may speak
    /// before its holder does.
    pub(super) async fn line<T>(
        &mut self,
        wanted: impl Fn(&str) -> Option<T>,
    ) -> Result<T, String> {
        if let Some(found) = self.kept.iter().find_map(|line| wanted(line)) {
            return Ok(found);
        }
        let reading = async {
            while let Some(line) = self.said.next_line().await.map_err(|e| e.to_string())? {
                if let Some(found) = wanted(&line) {
                    return Ok(found);
                }
                self.kept.push(line);
            }
            Err("it ended".to_owned())
        };
        timeout(FIRST_WORD, reading)
            .await
            .unwrap_or_else(|_| Err(format!("it said nothing within {} s", FIRST_WORD.as_secs())))
    }

    /// Has the holder send a signal.
    pub(super) async fn send(&mut self, word: Word) -> Result<(), DemoError> {
        let line = format!("{}\n", word.text());
        let sent = match &mut self.words {
            Some(words) => words.write_all(line.as_bytes()).await,
            None => Err(io::ErrorKind::BrokenPipe.into()),
        };
        sent.map_err(|source| DemoError::Process {
            name: self.name.clone(),
            source,
        })
    }

    /// Waits until it has ended; its exit code, or 128 and a signal's number. `None`: not within this time.
    pub(super) async fn ended(&mut self, within: Duration) -> Option<i32> {
        timeout(within, self.holder.wait()).await.ok()?.ok()?.code()
    }
}

/// Where a process writes what it logs.
fn log_path(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.log"))
}
