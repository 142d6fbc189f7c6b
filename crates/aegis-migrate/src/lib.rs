//! `aegis migrate` without its command line: changes, their lock, the ledger in the target, the runner, switch and contract.

pub mod abandon;
pub mod adopt;
pub mod baseline;
pub mod change;
pub mod contract;
pub mod dev;
pub mod fix;
pub mod foreign;
pub mod ledger;
pub mod lint;
pub mod lock;
pub mod mutex;
pub mod new;
pub mod plan;
pub mod repair;
pub mod run;
pub mod seal;
pub mod session;
pub mod set;
pub mod shadow;
pub mod squash;
pub mod standing;
pub mod structure;
pub mod switch;
pub mod sync;
pub mod targets;
