//! Which version of this protocol a conversation is held in. (The protocol of a task's *data* is another number.)
//!
//! Invariant: the worker offers, the handler chooses one of what was offered, and nothing else is said before that.

use crate::error::NoCommonVersion;

/// What this build speaks, the newest last.
pub const VERSIONS: &[u32] = &[1];

/// Checks a handler's choice against what was offered.
///
/// # Errors
/// [`NoCommonVersion`] names both sides.
pub fn agreed(offered: &[u32], chosen: u32) -> Result<u32, NoCommonVersion> {
    if offered.contains(&chosen) {
        Ok(chosen)
    } else {
        Err(NoCommonVersion {
            offered: offered.to_vec(),
            chosen,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_and_new_meet_where_both_can() {
        for (offered, chosen, meets) in [
            (vec![1], 1, true),
            (vec![1, 2], 1, true),
            (vec![1, 2], 2, true),
            (vec![1], 2, false),
            (vec![2, 3], 1, false),
            (vec![1], 0, false),
        ] {
            assert_eq!(
                agreed(&offered, chosen).is_ok(),
                meets,
                "{offered:?} {chosen}"
            );
        }
    }

    #[test]
    fn a_refusal_names_both_sides() {
        let error = agreed(&[1, 2], 3).unwrap_err().to_string();
        assert_eq!(
            error,
            "it chose version 3 of the exec protocol, and this worker offered 1, 2: use a handler library that speaks one of them"
        );
    }
}
