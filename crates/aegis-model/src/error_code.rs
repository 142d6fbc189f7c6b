//! Stable error codes. Each has a page in `docs/errors/`, which `xtask tidy` checks.
//!
//! Never: reuse a number.

use std::fmt;

/// A stable code of an error that a user can meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ErrorCode(&'static str);

impl ErrorCode {
    /// Input, checkpoint or result over its limit.
    pub const PAYLOAD_TOO_LARGE: Self = Self("AEG-0001");
    /// A protocol range that makes no sense.
    pub const PROTOCOL_RANGE: Self = Self("AEG-0002");
    /// An idempotency key used with another payload.
    pub const KEY_CONFLICT: Self = Self("AEG-0003");
    /// A field of a submit that makes no sense.
    pub const BAD_SUBMIT: Self = Self("AEG-0004");
    /// A guarded write was refused.
    pub const LEASE_LOST: Self = Self("AEG-0005");
    /// The database cannot be reached.
    pub const UNREACHABLE: Self = Self("AEG-0006");
    /// The server is older than PostgreSQL 15, or the schema is missing, too old or too new.
    pub const SCHEMA: Self = Self("AEG-0007");
    /// The connection's settings would break the guard.
    pub const SETTINGS: Self = Self("AEG-0008");
    /// The drain budgets exceed the grace period.
    pub const BUDGETS: Self = Self("AEG-0009");
    /// An applied schema step has another checksum.
    pub const STEP_EDITED: Self = Self("AEG-0010");
    /// An operation id was used with another request.
    pub const FINGERPRINT: Self = Self("AEG-0011");
    /// A step or operation was used twice in one attempt.
    pub const USED_TWICE: Self = Self("AEG-0012");
    /// No such task or operation, or a prefix that is not unique.
    pub const NOT_FOUND: Self = Self("AEG-0013");
    /// An operation that cannot be resolved now.
    pub const NOT_RESOLVABLE: Self = Self("AEG-0014");
    /// The database is another one than it was; acquisition is closed until it is adopted.
    pub const NOT_ADOPTED: Self = Self("AEG-0015");
    /// No partition for the day of a task.
    pub const NO_PARTITION: Self = Self("AEG-0016");
    /// A filter, or a change by people, that makes no sense.
    pub const BAD_FILTER: Self = Self("AEG-0017");
    /// A program that is to be a handler cannot be run, or does not speak the exec protocol.
    pub const HANDLER_PROGRAM: Self = Self("AEG-0018");
    /// A folder of changes, or a file in it, that makes no sense.
    pub const BAD_CHANGE: Self = Self("AEG-0019");
    /// A sealed change was edited.
    pub const HISTORY_EDITED: Self = Self("AEG-0020");
    /// Something that a change requires is not there or not applied.
    pub const REQUIRED_FIRST: Self = Self("AEG-0021");
    /// A database that cannot go over from another tool.
    pub const NOT_ADOPTABLE: Self = Self("AEG-0022");
    /// A lock that could not be replayed from nothing.
    pub const REPLAY: Self = Self("AEG-0023");
    /// A database that is not what was applied to it, or could not be compared.
    pub const STRUCTURE: Self = Self("AEG-0024");
    /// A switch or a contract that could not be shown to be safe.
    pub const EVIDENCE: Self = Self("AEG-0025");

    /// The code as text.
    pub const fn as_str(self) -> &'static str {
        self.0
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}
