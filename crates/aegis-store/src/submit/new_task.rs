//! What a caller submits: a task and its policy, with their defaults.

use aegis_model::TraceContext;
use aegis_model::limits::{KILL_AFTER_MS, MAX_CRASHES, MAX_FAILURES};
use jiff::Timestamp;
use serde_json::Value;

/// When a task is tried again, given up, set aside, and how long it may take. Times in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RetryPolicy {
    /// Handler errors until it is given up: 1 to 1000.
    pub max_failures: i32,
    /// Crashes alone until it is quarantined: 1 to 100.
    pub max_crashes: i32,
    /// First back-off; doubled at each failure, ± 25 %.
    pub backoff_initial_ms: i64,
    /// Longest back-off.
    pub backoff_cap_ms: i64,
    /// From submit to the first start.
    pub schedule_to_start_ms: Option<i64>,
    /// One attempt.
    pub start_to_close_ms: Option<i64>,
    /// From a cancel request or a deadline until the execution is ended for it.
    pub kill_after_ms: i64,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            max_failures: MAX_FAILURES,
            max_crashes: MAX_CRASHES,
            backoff_initial_ms: 1000,
            backoff_cap_ms: 600_000,
            schedule_to_start_ms: None,
            start_to_close_ms: None,
            kill_after_ms: KILL_AFTER_MS,
        }
    }
}

/// A task to submit.
#[derive(Debug, Clone)]
pub struct NewTask {
    /// What to do.
    pub kind: String,
    /// Where to wait.
    pub queue: String,
    /// Who it belongs to.
    pub tenant: String,
    /// The input, JSON; at most 256 KiB.
    pub input: Vec<u8>,
    /// The protocol of the input.
    pub protocol: i32,
    /// Same key and payload: same task.
    pub key: Option<String>,
    /// Not before.
    pub run_at: Option<Timestamp>,
    /// 0 first, 9 last.
    pub priority: i16,
    /// Ended or failed by then.
    pub deadline_at: Option<Timestamp>,
    /// For people's filters: an object of strings.
    pub labels: Option<Value>,
    /// Retries and deadlines.
    pub policy: RetryPolicy,
    /// The trace that it belongs to.
    pub trace: Option<TraceContext>,
}

impl NewTask {
    /// A task of a kind with its JSON input, everything else at its default.
    pub fn new(kind: impl Into<String>, input: impl Into<Vec<u8>>) -> Self {
        Self {
            kind: kind.into(),
            queue: "default".to_owned(),
            tenant: "default".to_owned(),
            input: input.into(),
            protocol: 1,
            key: None,
            run_at: None,
            priority: 5,
            deadline_at: None,
            labels: None,
            policy: RetryPolicy::default(),
            trace: None,
        }
    }
}
