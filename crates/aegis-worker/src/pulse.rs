//! Signs of life of a worker's parts, written by them and read from other threads.
//!
//! Invariants: plain numbers, so that whoever reads them never waits for whoever does not move.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

use crate::self_fence::boot_ns;

/// When something moved for the last time; 0: it does not run now, and need not.
#[derive(Debug, Default)]
pub(crate) struct Beat(AtomicI64);

impl Beat {
    /// It has moved.
    pub(crate) fn moved(&self) {
        self.0.store(boot_ns(), Ordering::SeqCst);
    }

    /// It has moved so long ago.
    #[cfg(test)]
    pub(crate) fn moved_before(&self, ago: Duration) {
        let at = boot_ns() - crate::self_fence::to_ns(ago);
        self.0.store(at.max(1), Ordering::SeqCst);
    }

    /// It has ended, as it should.
    pub(crate) fn ended(&self) {
        self.0.store(0, Ordering::SeqCst);
    }

    /// How long it has not moved; `None` while it need not.
    pub(crate) fn still(&self) -> Option<Duration> {
        match self.0.load(Ordering::SeqCst) {
            0 => None,
            at => Some(Duration::from_nanos(
                u64::try_from(boot_ns().saturating_sub(at)).unwrap_or(0),
            )),
        }
    }
}

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct Pulse {
    /// The thread that renews.
    pub(crate) renewal: Beat,
    /// The claim loop.
    pub(crate) claimer: Beat,
    /// How long the runtime of the executions has not run anything, as the watchdog sees it.
    runtime_still_ns: AtomicI64,
    given_up: AtomicBool,
}

impl Pulse {
    pub(crate) fn set_runtime_still(&self, still: Duration) {
        let still_ns = i64::try_from(still.as_nanos()).unwrap_or(i64::MAX);
        self.runtime_still_ns.store(still_ns, Ordering::SeqCst);
    }

    /// How long the runtime of the executions has not run anything.
    pub(crate) fn runtime_still(&self) -> Duration {
        let still_ns = self.runtime_still_ns.load(Ordering::SeqCst);
        Duration::from_nanos(u64::try_from(still_ns).unwrap_or(0))
    }

    /// The runtime was given up: nothing is renewed for it any more, for ever.
    pub(crate) fn give_up(&self) {
        self.given_up.store(true, Ordering::SeqCst);
    }

    /// Was it?
    pub(crate) fn is_given_up(&self) -> bool {
        self.given_up.load(Ordering::SeqCst)
    }
}
