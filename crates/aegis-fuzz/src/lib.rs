//! What reads bytes from outside, each as one function over any bytes, with a corpus of known ones.
//!
//! Invariants: a target ends for all bytes without a panic; what it accepts means the same after it was written and read again;
//! what it refuses says so in words that are short and harm no terminal. The corpora are ordinary tests, with some thousands of
//! changed ones beside them; `make fuzz` lets libFuzzer change them for as long as one wants.
//!
//! Never: a connection, a file, a clock.

pub mod change;
mod holds;
mod targets;

pub use targets::TARGETS;

/// Something that reads bytes from outside.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// Its name, and its folder's in `corpus/`.
    pub name: &'static str,
    /// Gives it these bytes; panics when a rule does not hold.
    pub one: fn(&[u8]),
}

/// The target of this name.
pub fn target(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}
