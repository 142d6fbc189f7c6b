//! What each process of a drill saw: a file of JSON lines a process, with the machine's monotonic nanoseconds.
//!
//! Invariant: a line is written in one piece before the process goes on, so a killed process leaves whole lines. Must never
//! buffer.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use nix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::error::DrillError;

/// One line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    /// CLOCK_MONOTONIC of the machine.
    pub ns: i64,
    /// The process.
    pub pid: u32,
    /// What.
    #[serde(flatten)]
    pub event: Event,
}

/// What a process saw.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Event {
    /// The engine answered that a task is accepted.
    Accepted {
        /// The task.
        task: Uuid,
    },
    /// A handler began.
    Started {
        /// Its task.
        task: Uuid,
    },
    /// A handler was told that its operation has happened.
    Told {
        /// Its task.
        task: Uuid,
        /// The operation's class.
        class: String,
    },
    /// An execution stands at the point where its process will be killed.
    Held {
        /// Its task.
        task: Uuid,
        /// The point's name.
        point: String,
    },
    /// An execution stands, so that its task is in its hands when an older claim reports.
    InHand {
        /// Its task.
        task: Uuid,
    },
    /// What a worker has counted since it started.
    Counts {
        /// Guarded writes that were refused.
        fenced: u64,
        /// Guarded writes whose answer was lost and then read back.
        unknown_resolved: u64,
        /// Acquire calls whose answer was lost and then repeated.
        acquire_repeated: u64,
        /// Leases lost.
        leases_lost: u64,
    },
    /// A process that will be frozen has claimed a task.
    Claimed {
        /// The task.
        task: Uuid,
        /// Its epoch.
        epoch: i64,
    },
    /// It woke up and reported.
    Late {
        /// The task.
        task: Uuid,
        /// The epoch that it believes in.
        epoch: i64,
        /// `complete` or `fail`.
        report: String,
        /// What the database answered: `applied`, `fenced` or `unknown`.
        answer: String,
    },
    /// A worker saw its wall clock part from the monotonic one.
    Clock {
        /// By so much since it looked last.
        moved_ms: i64,
    },
    /// A worker reads newer protocols than the others.
    Reads {
        /// Up to this one.
        max: i32,
    },
    /// An execution stands, with a checkpoint of a newer protocol, where its process will be killed.
    NewerSaved {
        /// Its task.
        task: Uuid,
    },
    /// The supervisor moved the database's clock.
    DatabaseClock {
        /// By so much.
        moved_ms: i64,
    },
    /// The supervisor promoted a standby.
    Promoted,
    /// An execution freezes its process in the call of its operation, after its last look at the lease.
    Window {
        /// The task.
        task: Uuid,
        /// The operation's class.
        class: String,
    },
    /// It was woken, sent its request, and heard this.
    Woken {
        /// The task.
        task: Uuid,
        /// The answer's status; `None`: no answer.
        status: Option<u16>,
    },
    /// The supervisor made a fault.
    Fault {
        /// Its name.
        kind: String,
    },
    /// A process ended in order.
    Ended {
        /// Its exit code.
        code: u8,
    },
}

/// Appends to one process's file.
#[derive(Debug)]
pub struct History {
    path: PathBuf,
    file: Mutex<File>,
}

impl History {
    /// Opens the file for appending.
    ///
    /// # Errors
    /// The file cannot be made.
    pub fn open(path: &Path) -> Result<Self, DrillError> {
        let file = OpenOptions::new().append(true).create(true).open(path);
        Ok(Self {
            path: path.to_path_buf(),
            file: Mutex::new(file.map_err(DrillError::file("make", path))?),
        })
    }

    /// Writes one line.
    ///
    /// # Errors
    /// The file cannot be written: the run tells nothing then.
    pub fn tell(&self, event: Event) -> Result<(), DrillError> {
        let line = Line {
            ns: now_ns(),
            pid: std::process::id(),
            event,
        };
        let mut bytes = serde_json::to_vec(&line).map_err(DrillError::reading("a history line"))?;
        bytes.push(b'\n');
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.write_all(&bytes)
            .map_err(DrillError::file("write", &self.path))
    }
}

/// Reads one process's file; a last line without its newline is what a kill cut off.
///
/// # Errors
/// The file cannot be read, or a whole line is not of this format.
pub fn read(path: &Path) -> Result<Vec<Line>, DrillError> {
    read_lines(path, "a history")
}

/// The bytes of such a file.
///
/// # Errors
/// A whole line is not of this format.
pub fn parse(bytes: &[u8]) -> Result<Vec<Line>, DrillError> {
    whole_lines(bytes, "a history")
}

/// Whole JSON lines of a file.
pub(crate) fn read_lines<T: for<'de> Deserialize<'de>>(
    path: &Path,
    what: &'static str,
) -> Result<Vec<T>, DrillError> {
    let bytes = std::fs::read(path).map_err(DrillError::file("read", path))?;
    whole_lines(&bytes, what)
}

/// The whole JSON lines among bytes.
pub(crate) fn whole_lines<T: for<'de> Deserialize<'de>>(
    bytes: &[u8],
    what: &'static str,
) -> Result<Vec<T>, DrillError> {
    let whole = bytes
        .iter()
        .rposition(|b| *b == b'\n')
        .map_or(0, |end| end + 1);
    bytes[..whole]
        .split(|b| *b == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_slice(line).map_err(DrillError::reading(what)))
        .collect()
}

pub(crate) fn now_ns() -> i64 {
    clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(0, |time| {
        time.tv_sec()
            .saturating_mul(1_000_000_000)
            .saturating_add(time.tv_nsec())
    })
}
