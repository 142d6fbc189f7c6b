//! The service as a process of its own: how it says that it is ready, and how it is told to stop.
//!
//! It prints one line of JSON, [`Ready`], and serves. It stops in order at SIGTERM, and, when asked to, at the end of its
//! standard input: a demo that dies takes its service along. Must never outlive both.

use std::future::Future;
use std::io::{self, Write};

use serde::{Deserialize, Serialize};
use tokio::signal::unix::{SignalKind, signal};

use super::{ServeError, Served, ServiceOptions, serve};

/// The one line on standard output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Ready {
    /// Where the service listens, for example `http://127.0.0.1:40123`.
    pub url: String,
    /// Its process id.
    pub pid: u32,
}

/// Serves until SIGTERM, until SIGINT when nobody holds its standard input, and else until that ends.
///
/// `held_by_stdin`: the starter keeps a pipe open; SIGINT, which a terminal sends to everybody at once, is then left to
/// the starter, who decides in which order things stop.
///
/// # Errors
/// [`ServeError`] when it cannot start, or cannot close its record.
pub async fn run_process(
    options: ServiceOptions,
    held_by_stdin: bool,
) -> Result<Served, ServeError> {
    let stop = stop(held_by_stdin).map_err(ServeError::Signals)?;
    serve(options, stop, |addr| {
        let ready = Ready {
            url: format!("http://{addr}"),
            pid: std::process::id(),
        };
        let line = serde_json::to_string(&ready).unwrap_or_default();
        let mut out = io::stdout().lock();
        // A starter that does not listen any more has closed standard input too.
        if writeln!(out, "{line}").and_then(|()| out.flush()).is_err() {
            tracing::warn!("nobody reads where the payment service listens");
        }
    })
    .await
}

fn stop(held_by_stdin: bool) -> io::Result<impl Future<Output = ()>> {
    let mut term = signal(SignalKind::terminate())?;
    let mut int = signal(SignalKind::interrupt())?;
    let (ended, stdin) = tokio::sync::oneshot::channel::<()>();
    if held_by_stdin {
        // A thread of its own: a blocked read must not keep the runtime from ending.
        std::thread::Builder::new()
            .name("stdin".into())
            .spawn(move || {
                // An error ends the standard input like its end does.
                drop(io::copy(&mut io::stdin().lock(), &mut io::sink()));
                drop(ended);
            })?;
    }
    Ok(async move {
        let by_int = async {
            loop {
                int.recv().await;
                if !held_by_stdin {
                    break;
                }
            }
        };
        let by_stdin = async {
            // Either answer means that the thread is through.
            drop(stdin.await);
            if !held_by_stdin {
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            _ = term.recv() => {}
            () = by_stdin => {}
            () = by_int => {}
        }
    })
}
