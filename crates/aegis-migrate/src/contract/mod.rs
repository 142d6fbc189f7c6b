//! Contract: the old form goes when it is shown that nobody needs it. The door shuts first, then it is watched, then it goes.
//!
//! Invariants: missing, stale and inconclusive block like refuted; an approval is for one line of the lock, one ledger and one
//! environment, and is used once; nothing is dropped in a transaction that has not seen its assertions hold.

pub mod approval;
pub mod attempt;
pub mod bundle;
pub mod door;
pub mod envelope;
pub mod fact;
pub mod gate;
pub mod keyring;
pub mod look;
pub mod need;
pub mod window;

#[cfg(test)]
mod signed_tests;
