//! Signals of a worker process. They are handled explicitly, so the worker also ends as PID 1, where signals without a
//! handler are ignored by the kernel. A worker starts no children, so there is nobody to reap.

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::error::WorkerError;
use crate::shared::WorkerHandle;

/// SIGTERM and SIGINT, listened to from now on.
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

    async fn next(&mut self) {
        tokio::select! {
            _ = self.term.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }

    /// The first one drains, the second one goes straight to the cancel phase.
    pub(crate) async fn steer(mut self, handle: WorkerHandle) {
        self.next().await;
        tracing::info!("a signal asks for a drain");
        handle.drain();
        self.next().await;
        tracing::warn!("a second signal asks to stop now");
        handle.cancel_now();
        std::future::pending::<()>().await;
    }
}
