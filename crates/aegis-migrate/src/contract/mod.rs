//! Contract: the old form goes when it is shown that nobody needs it. The door shuts first, then it is watched, then it goes.
//!
//! Invariants: missing, stale and inconclusive block like refuted; an approval is for one line of the lock, one ledger and one
//! environment, and is used once; nothing is dropped in a transaction that has not seen its assertions hold.

pub mod approval;
pub mod attempt;
pub mod bundle;
pub mod cluster;
pub mod dependents;
pub mod door;
pub mod envelope;
pub mod error;
pub mod fact;
pub mod floor;
pub mod gate;
pub mod judge;
pub mod keyring;
pub mod look;
pub mod need;
pub mod observe;
pub mod ready;
pub mod reconciled;
pub mod sightings;
pub mod subject;
pub mod verbs;
pub mod window;

#[cfg(test)]
mod cluster_tests;
#[cfg(test)]
mod signed_tests;
