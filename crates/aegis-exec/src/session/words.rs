//! Words of the worker and of the protocol for one another, and a handler's words for the log.

use aegis_protocol::limits::LOG_BYTES_MAX;
use aegis_protocol::{Cause, FromHandler, Level};
use aegis_worker::CancelReason;

/// A line of a handler's for the worker's log; task and epoch come from the span.
pub(super) fn write_log(level: Level, message: String) {
    let message = cut(message, LOG_BYTES_MAX);
    match level {
        Level::Debug => tracing::debug!(target: "aegis_exec::log", "{message}"),
        Level::Warn => tracing::warn!(target: "aegis_exec::log", "{message}"),
        Level::Error => tracing::error!(target: "aegis_exec::log", "{message}"),
        _ => tracing::info!(target: "aegis_exec::log", "{message}"),
    }
}

/// The beginning of a text that is too long.
pub(super) fn cut(mut text: String, bytes_max: usize) -> String {
    if text.len() > bytes_max {
        text.truncate(text.floor_char_boundary(bytes_max));
        text.push('…');
    }
    text
}

/// Why to stop, in the protocol's words.
pub(super) fn cause(reason: CancelReason) -> Cause {
    match reason {
        CancelReason::Drain => Cause::Drain,
        CancelReason::LeaseLost => Cause::LeaseLost,
        CancelReason::Deadline => Cause::Deadline,
        CancelReason::StartToClose => Cause::StartToClose,
        _ => Cause::Requested,
    }
}

/// What a message is called.
pub(super) fn word(message: &FromHandler) -> &'static str {
    match message {
        FromHandler::Hello(_) => "hello",
        FromHandler::Step(_) => "step",
        FromHandler::SaveStep(_) => "save_step",
        FromHandler::Checkpoint(_) => "checkpoint",
        FromHandler::Operation(_) => "operation",
        FromHandler::Settle(_) => "settle",
        FromHandler::Probed(_) => "probed",
        FromHandler::Progress(_) => "progress",
        FromHandler::Log(_) => "log",
        FromHandler::Result(_) => "result",
        FromHandler::Error(_) => "error",
        FromHandler::Snooze(_) => "snooze",
        _ => "a message",
    }
}
