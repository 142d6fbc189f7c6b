//! Bounds of the conversation, with their units in the names.

/// Longest line, in bytes, without its line end. A start message stays below it by what its parts may have.
pub const LINE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Steps that a start message carries, in bytes of their values; the others are answered when they are asked for.
pub const START_STEPS_BYTES_MAX: usize = 1024 * 1024;
/// Operations that a start message names.
pub const START_OPERATIONS_MAX: usize = 2_000;
/// Requests without a reply at once.
pub const REQUESTS_MAX: usize = 64;
/// Longest log text of a handler, in bytes; longer ones are cut.
pub const LOG_BYTES_MAX: usize = 8 * 1024;
/// Most log lines of an attempt that are kept; the others are counted.
pub const LOG_LINES_MAX: u64 = 10_000;
