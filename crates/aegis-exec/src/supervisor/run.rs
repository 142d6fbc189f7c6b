//! Starts the handler and judges: the one thread that decides when everything ends.

use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use nix::sys::prctl::set_child_subreaper;
use nix::sys::signal::{SigSet, Signal};
use nix::sys::wait::{Id, WaitPidFlag, waitid};
use nix::unistd::Pid;

use super::become_handler;
use super::relay::{self, Event, Unread, Worker};
use super::spec::Spec;
use super::tree::Tree;
use crate::cgroup::Cgroup;
use crate::clock::boot_ns;
use crate::frame::{By, Ended, Order, Report};

/// The clock is looked at this often, whatever happens: a machine that slept is noticed within it.
const LOOK: Duration = Duration::from_millis(100);
/// How long everything may take to end; only what is stuck in the kernel takes longer.
const END_BOUND: Duration = Duration::from_secs(30);

/// Runs a handler to its end.
pub(super) fn run(spec: &Spec) -> Result<(), String> {
    let failed = |what: &str, error: &dyn std::fmt::Display| format!("{what}: {error}");
    // What a terminal or a platform sends to every process is the worker's to act on.
    let mut signals = SigSet::empty();
    for signal in [
        Signal::SIGTERM,
        Signal::SIGINT,
        Signal::SIGHUP,
        Signal::SIGQUIT,
    ] {
        signals.add(signal);
    }
    signals
        .thread_block()
        .map_err(|error| failed("signals cannot be blocked", &error))?;
    set_child_subreaper(true).map_err(|error| failed("descendants cannot be adopted", &error))?;
    let worker = Worker::on_stdout().map_err(|error| failed("no standard output", &error))?;
    let cgroup = spec
        .cgroup
        .then(|| Cgroup::make(&format!("aegis-{}", spec.mark)))
        .flatten();
    let mut command = Command::new("/proc/self/exe");
    command
        .arg0("aegis")
        .args(become_handler::arguments(
            std::process::id(),
            cgroup.as_ref(),
            &spec.command,
        ))
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let started = command.spawn();
    let mut handler = match started {
        Ok(handler) => handler,
        Err(error) => {
            if let Some(cgroup) = cgroup {
                cgroup.remove();
            }
            worker.say(&Report::NotStarted(error.to_string()));
            worker.say(&Report::Ended(Ended {
                status: None,
                by: By::Itself,
                left: 0,
            }));
            return Ok(());
        }
    };
    let number = i32::try_from(handler.id()).map_err(|error| failed("a process id", &error))?;
    let (Some(input), Some(output), Some(errors)) = (
        handler.stdin.take(),
        handler.stdout.take(),
        handler.stderr.take(),
    ) else {
        return Err("the handler has no pipes".to_owned());
    };
    worker.say(&Report::Started(number));
    let handler = Pid::from_raw(number);
    let (events, heard) = channel();
    let (lines, to_write) = channel();
    let unread = Arc::new(Unread::default());
    {
        let events = events.clone();
        thread::spawn(move || relay::orders(&lines, &events));
        let (unread, to) = (Arc::clone(&unread), worker.clone());
        thread::spawn(move || relay::input(input, &to_write, &unread, &to));
    }
    {
        let (events, to) = (events.clone(), worker.clone());
        let bytes_max = spec.line_bytes_max;
        thread::spawn(move || relay::output(output, bytes_max, &to, &events));
    }
    {
        let (events, to) = (events.clone(), worker.clone());
        thread::spawn(move || relay::errors(errors, &to, &events));
    }
    thread::spawn(move || {
        waitid(
            Id::Pid(handler),
            WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT,
        )
        .ok();
        events.send(Event::HandlerEnded).ok();
    });
    let mut judge = Judge {
        tree: Tree::new(handler, cgroup),
        heard,
        until_ns: spec.until_ns,
        unread_ns: i64::try_from(spec.unread_within.as_nanos()).unwrap_or(i64::MAX),
        unread,
        worker,
        outputs_open: 2,
        blocked_told: false,
    };
    judge.judge();
    Ok(())
}

/// Why the watch is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Over {
    /// The handler's process has ended.
    Handler,
    Order,
    Lease,
    /// Nobody hears what is said any more.
    Worker,
}

struct Judge {
    tree: Tree,
    heard: Receiver<Event>,
    until_ns: i64,
    unread_ns: i64,
    unread: Arc<Unread>,
    worker: Worker,
    outputs_open: u8,
    blocked_told: bool,
}

impl Judge {
    fn judge(&mut self) {
        let over = self.watch();
        let left = self.tree.end(END_BOUND);
        if matches!(over, Over::Lease | Over::Worker) {
            // A frozen worker reads nothing: whoever waits for it would be here for ever.
            if over == Over::Lease {
                self.tell_in_passing(Ended {
                    status: self.tree.status(),
                    by: By::Lease,
                    left,
                });
            }
            return;
        }
        let ended = Ended {
            status: self.tree.status(),
            by: if over == Over::Order {
                By::Order
            } else {
                By::Itself
            },
            left,
        };
        if self.pass_the_rest_on() {
            self.tell_in_passing(ended);
        }
    }

    /// Until something says that it is over.
    fn watch(&mut self) -> Over {
        loop {
            match self.next() {
                Some(Event::Order(Order::Alive(until_ns))) => self.until_ns = until_ns,
                Some(Event::Order(Order::Terminate)) => self.tree.signal(Signal::SIGTERM),
                Some(Event::Order(Order::Kill)) => return Over::Order,
                Some(Event::WorkerGone) => return Over::Worker,
                Some(Event::HandlerEnded) => return Over::Handler,
                Some(Event::OutputDone) => self.outputs_open = self.outputs_open.saturating_sub(1),
                Some(Event::Order(Order::Line(_))) | None => {}
            }
            if boot_ns() >= self.until_ns {
                return Over::Lease;
            }
            self.look_at_input();
            self.tree.reap_adopted();
        }
    }

    /// Everything has ended, so its pipes are closed: what stands in them is passed on, while somebody reads it.
    fn pass_the_rest_on(&mut self) -> bool {
        while self.outputs_open > 0 {
            match self.next() {
                Some(Event::Order(Order::Alive(until_ns))) => self.until_ns = until_ns,
                Some(Event::OutputDone) => self.outputs_open -= 1,
                Some(Event::WorkerGone) => return false,
                _ => {}
            }
            if boot_ns() >= self.until_ns {
                return false;
            }
        }
        true
    }

    fn next(&self) -> Option<Event> {
        let left_ns = u64::try_from(self.until_ns.saturating_sub(boot_ns())).unwrap_or(0);
        match self
            .heard
            .recv_timeout(LOOK.min(Duration::from_nanos(left_ns)))
        {
            Ok(event) => Some(event),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => Some(Event::WorkerGone),
        }
    }

    fn look_at_input(&mut self) {
        let blocked = self
            .unread
            .since_ns()
            .is_some_and(|since_ns| boot_ns().saturating_sub(since_ns) > self.unread_ns);
        if blocked && !self.blocked_told {
            self.blocked_told = true;
            // Its own thread: this one never waits for a pipe.
            let worker = self.worker.clone();
            thread::spawn(move || worker.say(&Report::InputBlocked));
        }
    }

    /// The last word, for a worker that still reads. One that does not is not waited for longer than the lease lasts.
    fn tell_in_passing(&self, ended: Ended) {
        let worker = self.worker.clone();
        let (done, told) = channel();
        thread::spawn(move || {
            worker.say(&Report::Ended(ended));
            done.send(()).ok();
        });
        let left_ns = u64::try_from(self.until_ns.saturating_sub(boot_ns())).unwrap_or(0);
        // A second for a worker that was only late.
        told.recv_timeout(Duration::from_nanos(left_ns).max(Duration::from_secs(1)))
            .ok();
    }
}
