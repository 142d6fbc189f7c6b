//! The holder: the parent of one process of the demo, which ends it however the demo ends.
//!
//! The demo starts a holder for each of its processes and holds the other end of its standard input. Words there become
//! signals; the end of it, which comes however the demo ends, becomes SIGKILL: a process that is frozen obeys that too. The
//! holder ends as its child ended.
//!
//! Invariants: a signal is sent only while the child is not reaped, so its number is still its own; the child has a process
//! group of its own, so that Ctrl-C in a terminal is the demo's to judge. Must never outlive its child.

use std::ffi::OsString;
use std::io::{self, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Stdio};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;

/// What the holder says first: this and the child's process id.
pub(crate) const PID: &str = "pid ";

/// A word that the holder obeys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Word {
    /// SIGTERM: end in order.
    Term,
    /// SIGKILL: end at once.
    Kill,
    /// SIGSTOP: freeze.
    Stop,
    /// SIGCONT: thaw.
    Cont,
}

impl Word {
    const ALL: [Self; 4] = [Self::Term, Self::Kill, Self::Stop, Self::Cont];

    /// As it is written on the holder's standard input.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Term => "term",
            Self::Kill => "kill",
            Self::Stop => "stop",
            Self::Cont => "cont",
        }
    }

    fn signal(self) -> Signal {
        match self {
            Self::Term => Signal::SIGTERM,
            Self::Kill => Signal::SIGKILL,
            Self::Stop => Signal::SIGSTOP,
            Self::Cont => Signal::SIGCONT,
        }
    }
}

/// Runs a command as the child and ends as it ended: its exit code, or 128 and the number of its signal.
///
/// # Errors
/// The command cannot be started or waited for.
pub async fn hold(command: &[OsString]) -> io::Result<u8> {
    let (program, arguments) = command.split_first().ok_or_else(|| {
        io::Error::new(io::ErrorKind::InvalidInput, "there is no command to hold")
    })?;
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .process_group(0)
        .spawn()?;
    let pid = child.id().unwrap_or_default();
    {
        let mut out = io::stdout().lock();
        // A demo that has ended is noticed below, by the end of the input.
        drop(writeln!(out, "{PID}{pid}").and_then(|()| out.flush()));
    }
    let mut words = BufReader::new(tokio::io::stdin()).lines();
    let mut listens = true;
    let status = loop {
        tokio::select! {
            status = child.wait() => break status?,
            line = words.next_line(), if listens => {
                let signal = if let Ok(Some(line)) = line {
                    Word::ALL.into_iter().find(|word| word.text() == line).map(Word::signal)
                } else {
                    // The demo has ended.
                    listens = false;
                    Some(Signal::SIGKILL)
                };
                // None once the child was reaped, which happens in this loop only.
                let group = child.id().and_then(|pid| i32::try_from(pid).ok()).map(Pid::from_raw);
                if let (Some(signal), Some(group)) = (signal, group) {
                    // It fails only when the child is a zombie already.
                    killpg(group, signal).ok();
                }
            }
        }
    };
    Ok(code(status))
}

fn code(status: ExitStatus) -> u8 {
    let code = status
        .code()
        .unwrap_or_else(|| 128 + status.signal().unwrap_or_default());
    u8::try_from(code).unwrap_or(u8::MAX)
}
