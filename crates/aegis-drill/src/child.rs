//! Processes of a drill: started, signalled by their own handle, and never outlived by.
//!
//! Invariants: a signal is sent only while the child is not reaped, so its number is its own; a dropped child is killed; on
//! Linux a child dies with the drill however that ends ([`die_with_parent`]).

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::time::timeout;

use crate::error::DrillError;

const FIRST_WORD: Duration = Duration::from_secs(20);

/// Where a drill's processes come from and where they write.
#[derive(Debug, Clone)]
pub struct Program {
    /// The program.
    pub path: PathBuf,
    /// The folder of logs and histories.
    pub folder: PathBuf,
}

/// A running process.
#[derive(Debug)]
pub struct Process {
    /// What its files are called.
    pub name: String,
    /// Its history.
    pub history: PathBuf,
    child: Child,
}

impl Program {
    /// Starts `drill VERB …`; its log is `NAME.log`, its history `NAME.jsonl`.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(&self, name: &str, arguments: &[OsString]) -> Result<Process, DrillError> {
        self.start_with(name, arguments, &[])
    }

    /// The same with variables in its environment.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start_with(
        &self,
        name: &str,
        arguments: &[OsString],
        variables: &[(&'static str, OsString)],
    ) -> Result<Process, DrillError> {
        let log = self.folder.join(format!("{name}.log"));
        let file = OpenOptions::new()
            .append(true)
            .create(true)
            .open(&log)
            .map_err(DrillError::file("make", &log))?;
        let mut command = Command::new(&self.path);
        // Somebody's settings of other workers are not the drill's.
        for (variable, _) in std::env::vars_os() {
            if variable.to_string_lossy().starts_with("AEGIS_") {
                command.env_remove(&variable);
            }
        }
        let child = command
            .arg("drill")
            .args(arguments)
            .env("AEGIS_CONFIG", "/dev/null")
            .envs(variables.iter().cloned())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::from(file))
            // Its own group: Ctrl-C is the drill's to judge.
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .map_err(DrillError::system("start a process"))?;
        Ok(Process {
            name: name.to_owned(),
            history: self.folder.join(format!("{name}.jsonl")),
            child,
        })
    }

    /// The history of a process of this name.
    pub fn history(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.jsonl"))
    }
}

impl Process {
    /// Sends a signal; false when it has ended.
    pub fn signal(&self, signal: Signal) -> bool {
        self.pid()
            .is_some_and(|pid| kill(Pid::from_raw(pid), signal).is_ok())
    }

    /// Its process id; `None` when it has ended.
    pub fn pid(&self) -> Option<i32> {
        self.child.id().and_then(|pid| i32::try_from(pid).ok())
    }

    /// Its first line.
    ///
    /// # Errors
    /// It ended, or said nothing in time.
    pub async fn first_line(&mut self) -> Result<String, DrillError> {
        let failed = |why: &str| DrillError::Child {
            name: self.name.clone(),
            why: why.to_owned(),
        };
        let out = self
            .child
            .stdout
            .take()
            .ok_or_else(|| failed("it has no output"))?;
        let mut lines = BufReader::new(out).lines();
        match timeout(FIRST_WORD, lines.next_line()).await {
            Ok(Ok(Some(line))) => Ok(line),
            Ok(_) => Err(failed("it ended")),
            Err(_) => Err(failed("it said nothing for 20 s")),
        }
    }

    /// Has it ended?
    pub fn ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// Kills it and waits until it is gone.
    pub async fn kill(mut self) {
        self.child.kill().await.ok();
    }

    /// Waits for its end; kills it after `limit`.
    pub async fn wait(mut self, limit: Duration) -> Option<ExitStatus> {
        if let Ok(Ok(status)) = timeout(limit, self.child.wait()).await {
            return Some(status);
        }
        self.kill().await;
        None
    }
}

/// In a process of the drill, first of all: die when the drill dies.
///
/// # Errors
/// The system refuses, or the drill has ended already.
pub fn die_with_parent(parent: u32) -> Result<(), DrillError> {
    #[cfg(target_os = "linux")]
    nix::sys::prctl::set_pdeathsig(Signal::SIGKILL).map_err(|errno| {
        DrillError::system("ask to die with the drill")(std::io::Error::from_raw_os_error(
            errno as i32,
        ))
    })?;
    // It may have ended before that was asked.
    if nix::unistd::getppid().as_raw().unsigned_abs() == parent {
        Ok(())
    } else {
        Err(DrillError::Child {
            name: "a process of the drill".to_owned(),
            why: "the drill that started it has ended".to_owned(),
        })
    }
}

/// A folder that is empty or can be made.
///
/// # Errors
/// [`DrillError::NotEmpty`], or what the system said.
pub fn fresh_folder(path: &Path) -> Result<(), DrillError> {
    std::fs::create_dir_all(path).map_err(DrillError::file("make", path))?;
    let mut entries = std::fs::read_dir(path).map_err(DrillError::file("read", path))?;
    if entries.next().is_some() {
        return Err(DrillError::NotEmpty(path.to_path_buf()));
    }
    Ok(())
}
