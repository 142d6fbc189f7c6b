//! Whether the old side may be left for the new one.
//!
//! Invariants: only a zero pass of forward carries, or a person who names exactly how many rows forward does not make, while one of the
//! directions holds for each of them; a count that is missing, too old or of something else carries nothing.

use super::{Move, SwitchError};
use crate::contract::fact::Standing;
use crate::contract::reconciled::WrittenNew;

/// How many rows were accepted; none when forward holds everywhere.
pub(super) fn may(wanted: &Move<'_>) -> Result<Option<i64>, SwitchError> {
    let block = wanted.forward.blocks(wanted.now);
    let Some(accepted) = wanted.accept_forward else {
        return match block {
            None => Ok(None),
            Some(block) => Err(SwitchError::NotReconciled {
                change: wanted.change.to_owned(),
                why: block.why,
                way_out: way_out(wanted),
            }),
        };
    };
    let refused = |why: String| {
        Err(SwitchError::NotAccepted {
            change: wanted.change.to_owned(),
            accepted,
            why,
        })
    };
    let again = format!("count again: `aegis migrate reconcile {}`", wanted.change);
    match wanted.written_new {
        WrittenNew::Unknown(why) => refused(format!("{why}; {again}")),
        WrittenNew::Rows(0) if block.is_none() => {
            refused("the newest pass of forward counted 0 such rows; leave it out".to_owned())
        }
        WrittenNew::Rows(rows) if *rows == accepted => Ok(Some(accepted)),
        WrittenNew::Rows(rows) => refused(format!(
            "the newest pass of forward counted {rows} such rows; look at them (`aegis migrate reconcile {}` names some), and accept that number when all of them are right",
            wanted.change
        )),
    }
}

/// What to do, by how forward stands.
fn way_out(wanted: &Move<'_>) -> String {
    let id = wanted.change;
    match (&wanted.forward.standing, wanted.written_new) {
        (Standing::Missing, _) => format!("`aegis migrate reconcile {id}` counts them"),
        (Standing::Inconclusive, _) => format!(
            "where the sync trigger is gone or disabled, first `aegis migrate repair sync {id} --reason TEXT`; then count again: `aegis migrate reconcile {id}`"
        ),
        (Standing::Refuted, WrittenNew::Rows(rows)) => format!(
            "in each of these rows backward holds (agrees is zero), so they were written on the new side, and forward would make something else of their old one. \
             Look at them (`aegis migrate reconcile {id}` names some): when all are right, `aegis migrate switch {id} … --accept-forward {rows} --reason TEXT` accepts them; when not, mend them, and reconcile until forward is zero"
        ),
        (Standing::Refuted, WrittenNew::Unknown(_)) => format!(
            "`aegis migrate reconcile {id}` names rows whose new side is not what forward makes; mend them or the expressions, and reconcile until forward is zero"
        ),
        // Shown, and too old.
        _ => format!("only a new count is needed: `aegis migrate reconcile {id}`"),
    }
}
