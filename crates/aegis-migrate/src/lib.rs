//! `aegis migrate` without its command line: changes, their lock, the ledger in the target, the runner, switch and contract.

pub mod adopt;
pub mod baseline;
pub mod change;
pub mod contract;
pub mod foreign;
pub mod lock;
pub mod new;
pub mod plan;
pub mod seal;
pub mod set;
pub mod shadow;
pub mod squash;
pub mod standing;
pub mod structure;
pub mod switch;
pub mod targets;
