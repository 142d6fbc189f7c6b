//! Starts the watchdog (`watchdog.sh`), gives it orders and hears what it says.
//!
//! The write end of its standard input lives here only: closing it, or the end of this process,
//! is what ends the server. So it is never duplicated and never handed to another child.

use std::ffi::OsString;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use crate::Error;
use crate::user::{self, RunAs};

/// What the watchdog said last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Nothing yet.
    Waking,
    /// initdb runs.
    Initdb,
    /// postgres runs with this pid; it may not be ready.
    Running(i32),
    /// postgres ended.
    Ended(String),
    /// A step before postgres failed.
    Failed(String),
    /// The watchdog itself has ended.
    Gone,
}

#[derive(Debug)]
struct Shared {
    phase: Mutex<Phase>,
    changed: Condvar,
}

#[derive(Debug)]
pub(crate) struct Watchdog {
    child: Child,
    orders: Option<ChildStdin>,
    shared: Arc<Shared>,
}

impl Watchdog {
    /// Starts it as `user`. `arguments` and `variables` are the script's, `password` the superuser's, `log` its
    /// standard error.
    pub(crate) fn spawn(
        user: Option<&RunAs>,
        arguments: &[OsString],
        variables: &[(String, OsString)],
        password: &str,
        log: Stdio,
    ) -> Result<Self, Error> {
        let failed = |source| Error::Watchdog { source };
        let mut child = user::command("sh", user)
            .args(["-c", include_str!("watchdog.sh"), "aegis-devpg"])
            .args(arguments)
            .envs(variables.iter().map(|(name, value)| (name, value)))
            // Its own group: Ctrl-C in the terminal reaches the parent only.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .map_err(failed)?;
        let orders = child.stdin.take();
        let shared = Arc::new(Shared {
            phase: Mutex::new(Phase::Waking),
            changed: Condvar::new(),
        });
        let said = child.stdout.take();
        let mut watchdog = Self {
            child,
            orders,
            shared: Arc::clone(&shared),
        };
        watchdog.order(password);
        thread::Builder::new()
            .name("devpg-watchdog".to_owned())
            .spawn(move || hear(said, &shared))
            .map_err(failed)?;
        Ok(watchdog)
    }

    pub(crate) fn phase(&self) -> Phase {
        self.lock().clone()
    }

    /// Gives an order. One that cannot be written is one to a watchdog that is gone, which
    /// [`Phase::Gone`] tells better.
    pub(crate) fn order(&mut self, line: &str) {
        if let Some(orders) = &mut self.orders {
            writeln!(orders, "{line}")
                .and_then(|()| orders.flush())
                .ok();
        }
    }

    /// Waits until `judge` answers, asking at each word of the watchdog and every `tick`;
    /// None at the deadline.
    pub(crate) fn wait<T>(
        &self,
        deadline: Instant,
        tick: Duration,
        mut judge: impl FnMut(&Phase) -> Option<T>,
    ) -> Option<T> {
        let mut phase = self.lock();
        loop {
            if let Some(answer) = judge(&phase) {
                return Some(answer);
            }
            let left = deadline.checked_duration_since(Instant::now())?;
            phase = self
                .shared
                .changed
                .wait_timeout(phase, tick.min(left))
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }

    /// Ends the server and the watchdog, and waits until both are gone. Past `bound` the group
    /// is killed. True when it went in order.
    pub(crate) fn close(&mut self, bound: Duration) -> bool {
        self.orders = None;
        let deadline = Instant::now() + bound;
        let gone = self
            .wait(deadline, bound, |phase| {
                (*phase == Phase::Gone).then_some(())
            })
            .is_some();
        if !gone {
            // Not reaped yet, so the number is still the group's.
            if let Ok(group) = i32::try_from(self.child.id()) {
                killpg(Pid::from_raw(group), Signal::SIGKILL).ok();
            }
        }
        self.child.wait().ok();
        gone
    }

    fn lock(&self) -> MutexGuard<'_, Phase> {
        self.shared
            .phase
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        // Longer than the script's own bounds, which end in SIGKILL.
        self.close(Duration::from_secs(40));
    }
}

fn hear(said: Option<ChildStdout>, shared: &Shared) {
    let tell = |phase| {
        *shared.phase.lock().unwrap_or_else(PoisonError::into_inner) = phase;
        shared.changed.notify_all();
    };
    if let Some(said) = said {
        for line in BufReader::new(said).lines().map_while(Result::ok) {
            let (word, rest) = line.split_once(' ').unwrap_or((&line, ""));
            match word {
                "initdb" => tell(Phase::Initdb),
                "running" => tell(Phase::Running(rest.parse().unwrap_or_default())),
                "ended" => tell(Phase::Ended(status(rest))),
                "failed" => tell(Phase::Failed(rest.to_owned())),
                _ => {}
            }
        }
    }
    tell(Phase::Gone);
}

/// A shell's exit status in words.
fn status(number: &str) -> String {
    match number.parse::<i32>() {
        Ok(number) if number > 128 => match Signal::try_from(number - 128) {
            Ok(signal) => format!("ended by {}", signal.as_str()),
            Err(_) => format!("exit status {number}"),
        },
        _ => format!("exit status {number}"),
    }
}
