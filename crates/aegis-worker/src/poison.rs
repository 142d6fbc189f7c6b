//! What the engine itself has raised inside an execution. A handler cannot swallow it: the runtime acts by it, whatever the
//! handler returned.

use std::time::Duration;

use crate::cancel::CancelReason;

/// Why an execution cannot complete any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Poison {
    /// Somebody else has the task, or nobody knows any more.
    LeaseLost,
    /// Operations that a person has to decide.
    Unknown {
        operations: Vec<String>,
        note: String,
    },
    /// A late request may still arrive; the next execution probes.
    Quiet { after: Duration },
    /// New work was tried in a claim that only settles open operations.
    SettlingOnly,
    /// New work was refused because the execution was asked to stop.
    Cancelled(CancelReason),
}

impl Poison {
    /// Two of them in one execution (parallel operations): the stronger stands, doubts add up, the later quiet end counts.
    #[must_use]
    pub(crate) fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::LeaseLost, _) | (_, Self::LeaseLost) => Self::LeaseLost,
            (
                Self::Unknown {
                    mut operations,
                    note,
                },
                Self::Unknown {
                    operations: more, ..
                },
            ) => {
                operations.extend(more);
                Self::Unknown { operations, note }
            }
            (unknown @ Self::Unknown { .. }, _) | (_, unknown @ Self::Unknown { .. }) => unknown,
            (Self::Quiet { after }, Self::Quiet { after: other }) => Self::Quiet {
                after: after.max(other),
            },
            (quiet @ Self::Quiet { .. }, _) | (_, quiet @ Self::Quiet { .. }) => quiet,
            (Self::SettlingOnly, _) | (_, Self::SettlingOnly) => Self::SettlingOnly,
            (cancelled @ Self::Cancelled(_), Self::Cancelled(_)) => cancelled,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unknown(id: &str) -> Poison {
        Poison::Unknown {
            operations: vec![id.to_owned()],
            note: id.to_owned(),
        }
    }

    #[test]
    fn the_stronger_stands() {
        let quiet = |s| Poison::Quiet {
            after: Duration::from_secs(s),
        };
        assert_eq!(unknown("a").and(Poison::LeaseLost), Poison::LeaseLost);
        assert_eq!(quiet(1).and(unknown("a")), unknown("a"));
        assert_eq!(quiet(1).and(quiet(2)), quiet(2));
        assert_eq!(
            Poison::Cancelled(CancelReason::Drain).and(Poison::SettlingOnly),
            Poison::SettlingOnly
        );
        assert_eq!(
            unknown("a").and(unknown("b")),
            Poison::Unknown {
                operations: vec!["a".into(), "b".into()],
                note: "a".into()
            }
        );
    }
}
