//! `postmaster.pid`: what it says, and whether it is true.
//!
//! A pid file is believed only when that process runs and is a postgres on these data; it is set
//! aside only when that is disproved. Where nothing can be proved, it counts as true.

use std::fs;
use std::path::{Path, PathBuf};

use crate::url;

/// What a postmaster wrote about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PidFile {
    pub(crate) pid: i32,
    pub(crate) port: u16,
    pub(crate) socket: Option<PathBuf>,
    pub(crate) ready: bool,
}

/// Whose a pid is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Holder {
    /// No such process.
    Dead,
    /// A process, but proved not to be a postgres on these data: the number was used again.
    Other,
    /// A postgres on these data, or not disproved.
    Postgres,
}

impl PidFile {
    /// Reads the file of the data folder; None when there is none or its first line is no pid.
    pub(crate) fn read(data: &Path) -> Option<Self> {
        let text = fs::read(data.join("postmaster.pid")).ok()?;
        Self::parse(&String::from_utf8_lossy(&text))
    }

    fn parse(text: &str) -> Option<Self> {
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        let line = |index: usize| lines.get(index).copied().unwrap_or_default();
        // A standalone backend (initdb) writes its pid negated.
        let pid: i32 = line(0).parse().ok()?;
        Some(Self {
            pid: pid.abs(),
            port: line(3).parse().unwrap_or(5432),
            socket: Some(line(4)).filter(|s| !s.is_empty()).map(PathBuf::from),
            // A standby that answers says so in its own word.
            ready: matches!(line(7), "ready" | "standby"),
        })
    }

    /// Whose the pid is now.
    pub(crate) fn holder(&self, data: &Path) -> Holder {
        holder(self.pid, data)
    }

    /// How to reach the server that wrote it.
    pub(crate) fn url(&self) -> String {
        match &self.socket {
            Some(socket) => url::socket_url("postgres", "postgres", socket, self.port),
            None => "it has not opened its socket yet".to_owned(),
        }
    }
}

fn holder(pid: i32, data: &Path) -> Holder {
    let alive = nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), None)
        != Err(nix::errno::Errno::ESRCH);
    if !alive || pid <= 1 {
        return Holder::Dead;
    }
    let proc = PathBuf::from(format!("/proc/{pid}"));
    let Ok(stat) = fs::read_to_string(proc.join("stat")) else {
        return Holder::Postgres;
    };
    // The state stands after the name, which may hold any sign, `)` included.
    let state = stat
        .rsplit(") ")
        .next()
        .and_then(|rest| rest.chars().next());
    if matches!(state, Some('Z' | 'X')) {
        return Holder::Dead;
    }
    // A postmaster's working folder is its data folder, from before it writes the file.
    match (fs::read_link(proc.join("cwd")), fs::canonicalize(data)) {
        (Ok(cwd), Ok(data)) if cwd != data => Holder::Other,
        _ => Holder::Postgres,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_of_a_running_server_are_read() {
        let text = "4711\n/d/data\n1764450000\n5433\n/tmp/s p\n\n  5433001    98310\nready   \n";
        let file = PidFile::parse(text).unwrap();
        assert_eq!((file.pid, file.port, file.ready), (4711, 5433, true));
        assert_eq!(file.socket.as_deref(), Some(Path::new("/tmp/s p")));
    }

    #[test]
    fn a_half_written_or_foreign_file_is_no_pid_file() {
        for text in ["", "\n", "what\n"] {
            assert_eq!(PidFile::parse(text), None, "{text:?}");
        }
        assert!(!PidFile::parse("12").unwrap().ready);
    }

    #[test]
    fn a_live_process_elsewhere_is_proved_to_be_another() {
        let folder = tempfile::tempdir().unwrap();
        let own = i32::try_from(std::process::id()).unwrap();
        assert_eq!(holder(own, folder.path()), Holder::Other);
        assert_eq!(holder(i32::MAX, folder.path()), Holder::Dead);
    }
}
