//! Events on standard output, the clock, and the line that ends a worker.

use std::io::Write as _;

use nix::time::{ClockId, clock_gettime};
use tokio::io::{AsyncBufReadExt as _, BufReader};

/// Nanoseconds of `CLOCK_MONOTONIC`.
#[must_use]
pub fn now() -> i64 {
    // A Linux without this clock does not exist.
    clock_gettime(ClockId::CLOCK_MONOTONIC)
        .map_or(0, |at| at.tv_sec() * 1_000_000_000 + at.tv_nsec())
}

/// One line.
pub fn emit(event: &serde_json::Value) {
    let mut out = std::io::stdout().lock();
    // Who does not read any more has ended, and so will this process.
    writeln!(out, "{event}").and_then(|()| out.flush()).ok();
}

/// Until the orchestrator writes a line, or is gone.
pub async fn stdin_line() {
    let mut line = String::new();
    BufReader::new(tokio::io::stdin())
        .read_line(&mut line)
        .await
        .ok();
}
