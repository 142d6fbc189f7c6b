//! The protocol of claim, renew, reap, guarded write, operation, drain, failover, deploy and reconciliation as a small state
//! machine, explored exhaustively.
//!
//! What decides is the product's own code: the guard is [`aegis_model::guard::judge`], the ledger's next step is
//! [`aegis_model::operation::next_step`], a change of state goes through [`aegis_model::state::next`]. What surrounds them here
//! (a database with one row a task, processes, a downstream, a network that loses answers) is written for this purpose.
//!
//! Each invariant of [`INVARIANTS`] has a name; each [`Mutant`] takes one rule away, and a test shows that the exploration
//! finds a counterexample.
//!
//! Never: a rule of the engine that exists only here.

mod action;
mod bounds;
mod calm;
mod canonical;
mod database;
mod downstream;
mod execution;
mod guarded;
mod mutant;
mod properties;
mod protocol;
mod world;

pub use action::Action;
pub use bounds::Bounds;
pub use calm::{Calm, SERVED};
pub use mutant::Mutant;
pub use properties::{INVARIANTS, Invariant};
pub use protocol::Protocol;
pub use world::World;
