//! The service as a future: binds loopback, serves until it is told to stop, and closes its record.
//!
//! Must never listen on anything but loopback, nor close the record while a call can still take place.

use std::future::Future;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::ServiceOptions;
use super::http::{App, router};
use super::ledger::Ledger;
use super::wire::{CuttingListener, Wire};

/// How long a stopping service waits for callers beyond the longest life of a request.
const STOP_MARGIN: Duration = Duration::from_secs(2);

/// How the service ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Served {
    /// How many lines its record has, the last one included.
    pub record_lines: u64,
}

/// Why the service did not start or did not end in order.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The record file cannot be made.
    #[error("the record {} cannot be created; give a path that does not exist yet, in a folder that can be written",
            path.display())]
    Record {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The figures contradict each other.
    #[error(
        "a late effect comes after {late_ms} ms and a request may live {life_ms} ms; set the first below the second"
    )]
    Late {
        /// How late, in milliseconds.
        late_ms: u128,
        /// The published longest life, in milliseconds.
        life_ms: u128,
    },
    /// Loopback cannot be listened on.
    #[error("the payment service cannot listen on 127.0.0.1; look at what the system says")]
    Listen(#[source] io::Error),
    /// The process cannot be told to stop.
    #[error(
        "the payment service cannot listen for SIGTERM or its starter; look at what the system says"
    )]
    Signals(#[source] io::Error),
    /// The last line of the record could not be written.
    #[error("the record could not be closed, so it cannot be verified; look at the disk")]
    Close(#[source] io::Error),
}

/// Serves until `shutdown` completes; calls `on_ready` with the address when callers may come.
///
/// # Errors
/// [`ServeError`] when it cannot start, or cannot close its record.
pub async fn serve(
    options: ServiceOptions,
    shutdown: impl Future<Output = ()>,
    on_ready: impl FnOnce(SocketAddr),
) -> Result<Served, ServeError> {
    if options.late_by >= options.max_request_life {
        return Err(ServeError::Late {
            late_ms: options.late_by.as_millis(),
            life_ms: options.max_request_life.as_millis(),
        });
    }
    let stop_within = options.max_request_life + STOP_MARGIN;
    let tcp = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .await
        .map_err(ServeError::Listen)?;
    let addr = tcp.local_addr().map_err(ServeError::Listen)?;
    let path = options.record.clone();
    let ledger =
        Arc::new(Ledger::open(options).map_err(|source| ServeError::Record { path, source })?);
    let app = App {
        ledger: Arc::clone(&ledger),
        calls: TaskTracker::new(),
    };
    let calls = app.calls.clone();
    let stop = CancellationToken::new();
    let service = router(app).into_make_service_with_connect_info::<Wire>();
    let mut server = pin!(
        axum::serve(CuttingListener(tcp), service)
            .with_graceful_shutdown(stop.clone().cancelled_owned())
            .into_future()
    );
    on_ready(addr);
    tokio::select! {
        ended = &mut server => ended.map_err(ServeError::Listen)?,
        () = shutdown => {
            stop.cancel();
            if timeout(stop_within, &mut server).await.is_err() {
                tracing::warn!("a caller holds its connection open; the payment service stops without it");
            }
        }
    }
    calls.close();
    if timeout(stop_within, calls.wait()).await.is_err() {
        tracing::warn!("a call did not end in time; the closed record refuses it");
    }
    Ok(Served {
        record_lines: ledger.close().map_err(ServeError::Close)?,
    })
}
