//! How long a handler's program may take to answer, and how it is supervised.

use std::ffi::OsString;
use std::time::Duration;

use aegis_model::limits::KILL_AFTER_MS;
use aegis_protocol::limits::LINE_BYTES_MAX;

/// The bounds of a program that is a handler, and what supervises it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ExecOptions {
    /// From its start to its first line; 30 s unless said otherwise.
    pub hello_within: Duration,
    /// From its last message, or the closing of its output, to its exit; 10 s unless said otherwise.
    pub exit_within: Duration,
    /// How long it may leave unread what is written for it; 60 s unless said otherwise.
    pub read_within: Duration,
    /// From a cancellation to SIGKILL; 25 s unless said otherwise. Keep it below the worker's budget for cancelling, or what
    /// does not stop is left to its lease instead of being handed back.
    pub kill_after: Duration,
    /// The longest line of it, in bytes; 4 MiB.
    pub line_bytes_max: usize,
    /// Run each handler in a cgroup of its own, where one can be made; true unless said otherwise.
    pub cgroup: bool,
    /// The program that becomes a supervisor when it is called with the arguments of
    /// [`supervise_if_asked`](crate::supervise_if_asked); this program itself unless said otherwise.
    pub supervisor: OsString,
}

impl Default for ExecOptions {
    fn default() -> Self {
        let kill_after = Duration::from_millis(KILL_AFTER_MS.unsigned_abs());
        Self {
            hello_within: Duration::from_secs(30),
            exit_within: Duration::from_secs(10),
            read_within: Duration::from_mins(1),
            // Sooner than anybody gives up on the execution.
            kill_after: kill_after.mul_f64(5.0 / 6.0),
            line_bytes_max: LINE_BYTES_MAX,
            cgroup: true,
            // The same file even after it was replaced by an upgrade.
            supervisor: "/proc/self/exe".into(),
        }
    }
}
