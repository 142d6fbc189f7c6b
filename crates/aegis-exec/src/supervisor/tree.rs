//! The end of everything that a handler started.
//!
//! Invariant: done means that the kernel says that this process has no child left. As a subreaper it gets whatever a
//! descendant leaves behind, so a process that no look at `/proc` ever showed still stands in the way of that answer.

use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::signal::{Signal, killpg};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid, waitpid};
use nix::unistd::Pid;

use crate::cgroup::Cgroup;
use crate::frame::Status;
use crate::processes::kill_descendants;

/// The handler's process and what it may have started.
pub(super) struct Tree {
    /// The handler; the leader of its group.
    handler: Pid,
    cgroup: Option<Cgroup>,
    /// Known once it was waited for. Its number belongs to it until then.
    status: Option<Status>,
}

impl Tree {
    pub(super) fn new(handler: Pid, cgroup: Option<Cgroup>) -> Self {
        Self {
            handler,
            cgroup,
            status: None,
        }
    }

    pub(super) fn status(&self) -> Option<Status> {
        self.status
    }

    /// To the handler's group; nothing when it has ended.
    pub(super) fn signal(&self, signal: Signal) {
        if self.status.is_none() {
            killpg(self.handler, signal).ok();
        }
    }

    /// Waits for what others left behind and has ended; the handler itself is left for later.
    pub(super) fn reap_adopted(&self) {
        // Bounded: a storm of them is gone on with at the next look.
        for _ in 0..10_000 {
            let look = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
            match waitid(Id::All, look).map(|status| status.pid()) {
                Ok(Some(pid)) if pid != self.handler => {
                    waitpid(pid, Some(WaitPidFlag::WNOHANG)).ok();
                }
                _ => return,
            }
        }
    }

    /// Ends everything. Gives how many processes were left when `bound` was over: 0 but for those stuck in the kernel.
    pub(super) fn end(&mut self, bound: Duration) -> usize {
        let own = i32::try_from(std::process::id()).unwrap_or(0);
        let start = Instant::now();
        let mut pause = Duration::from_micros(200);
        loop {
            if let Some(cgroup) = &self.cgroup {
                cgroup.kill();
            }
            self.signal(Signal::SIGKILL);
            if self.reap() {
                break;
            }
            let found = kill_descendants(own);
            if self.reap() {
                break;
            }
            if start.elapsed() > bound {
                return found.max(1);
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(20));
        }
        if let Some(cgroup) = &self.cgroup {
            cgroup.remove();
        }
        0
    }

    /// Waits for what has ended. True: there is no child left.
    fn reap(&mut self) -> bool {
        loop {
            match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
                Ok(WaitStatus::Exited(pid, code)) if pid == self.handler => {
                    self.status = Some(Status::Code(code));
                }
                Ok(WaitStatus::Signaled(pid, signal, _)) if pid == self.handler => {
                    self.status = Some(Status::Signal(signal as i32));
                }
                Ok(WaitStatus::StillAlive) => return false,
                Ok(_) | Err(Errno::EINTR) => {}
                Err(_) => return true,
            }
        }
    }
}
