//! How a call goes, drawn by seed, operation and number of the call.
//!
//! Invariant: from the fourth call of an operation on all goes well, so that every operation ends.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use serde::{Deserialize, Serialize};

/// How a call goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Behaviour {
    /// Applied and answered.
    Applied,
    /// Applied, and the answer never comes.
    AnswerLost,
    /// Never applied and never answered.
    RequestLost,
    /// Applied after the caller has given up.
    Late,
    /// Applied, and answered with 500.
    ErrorAfter,
}

/// Draws.
pub fn draw(seed: u64, operation: &str, call: u32) -> Behaviour {
    if call > 3 {
        return Behaviour::Applied;
    }
    let mut hasher = DefaultHasher::new();
    (seed, operation, call).hash(&mut hasher);
    match hasher.finish() % 100 {
        0..3 => Behaviour::AnswerLost,
        3..6 => Behaviour::RequestLost,
        6..9 => Behaviour::Late,
        9..12 => Behaviour::ErrorAfter,
        _ => Behaviour::Applied,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_is_drawn_and_the_fourth_call_goes_well() {
        let drawn: std::collections::HashSet<Behaviour> =
            (0..500).map(|n| draw(1, &format!("op-{n}"), 1)).collect();
        assert_eq!(drawn.len(), 5);
        assert!((0..500).all(|n| draw(1, &format!("op-{n}"), 4) == Behaviour::Applied));
    }
}
