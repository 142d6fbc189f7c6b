//! `aegis demo verify`: was a promise broken? Judged from two witnesses that do not know each other: the record of the
//! payment service and the engine's database.
//!
//! The judgement is pure: [`judge`] takes facts and lines and gives a [`Verdict`]. Beside it stand the reading of the record
//! ([`read_record`]) and of the database ([`read_facts`]).
//!
//! Invariants: what is absent, damaged or of another run never passes; every breach names its task or operation
//! in a sentence that can be read alone. Must never trust what a worker or the demo says about itself.

mod breach;
mod database;
mod effects;
mod engine;
mod facts;
mod judge;
mod reading;
mod render;
#[cfg(test)]
mod tests;
mod waits;

pub use breach::{Breach, BreachKind, Counts, Doubt, Judgement, Verdict};
pub use database::{FactsError, read_facts};
pub use facts::{
    EndCause, EngineFacts, ExecutionEnd, OperationFact, OperationState, Resolution, StaleWrite,
    Submission, TaskFact, TaskState, TaskWait, WorkerFact,
};
pub use judge::judge;
pub use reading::{Record, parse_record, read_record};
pub use render::{json, table};
