//! Logs, traces, and the address where a process shows its health and its metrics.
//!
//! Invariants: a leaf, which knows no task and no worker: what is shown is handed in. Telemetry never costs a task: spans are
//! queued and dropped when the queue is full, an export that fails is told once, and nothing here blocks a runtime.
//!
//! Never: a payload, a secret or an unbounded label.

mod gauges;
mod listen;
mod logs;
mod tracer;

pub use gauges::{Evaluated, Family, Labels, encode};
/// The registry that [`encode`] prints, in the version that everybody here uses.
pub use prometheus_client;

pub use listen::{Health, Listening, Probes, listen};
pub use logs::{LogError, LogFormat, start_logs, tell_json};
pub use tracer::{Open, Place, Role, SpanRecord, Spans, TraceError, Tracer, Value};
