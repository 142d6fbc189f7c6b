//! Signals of a worker process. They are handled explicitly, so the worker also ends as PID 1, where signals without a
//! handler are ignored by the kernel. A worker starts no children, so there is nobody to reap.

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::error::WorkerError;

/// SIGTERM and SIGINT, listened to from now on, on the runtime that they are asked for on (the watchdog's).
pub(crate) struct Signals {
    term: Signal,
    interrupt: Signal,
}

impl Signals {
    pub(crate) fn listen() -> Result<Self, WorkerError> {
        let start = |source: std::io::Error| WorkerError::Start {
            what: "signal handlers",
            source: Box::new(source),
        };
        Ok(Self {
            term: signal(SignalKind::terminate()).map_err(start)?,
            interrupt: signal(SignalKind::interrupt()).map_err(start)?,
        })
    }

    /// The next one.
    pub(crate) async fn next(&mut self) {
        tokio::select! {
            _ = self.term.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
