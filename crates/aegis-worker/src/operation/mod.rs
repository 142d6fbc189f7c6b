//! External side effects: the durable record around a call that the database cannot fence.
//!
//! Invariants: the dispatch is a commit, and only its applied answer lets the call leave; an execution without a live lease
//! cannot dispatch (the guard refuses the commit, the self-fence refuses to let the call leave); the id is stable across
//! attempts, epochs, workers and releases.

mod builder;
mod call;
mod fingerprint;
mod flow;
mod id;
mod verbs;

pub use builder::{OperationBuilder, ProbedOperation};
pub use call::{CallError, FencingToken, OperationCall, OperationError, Probe};
pub use id::operation_id;
