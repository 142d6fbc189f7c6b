//! The statements of the changes that go, in the order in which they were executed.

use std::fmt::Write as _;

use crate::change::{ChangeId, Part};
use crate::set::Set;

/// All of them, each file named above its own. Generated triggers and backfills are none: a fresh database has no rows, and
/// what keeps two sides alike has ended with its contract.
pub(super) fn all(set: &Set, through: &ChangeId) -> String {
    let mut text = String::new();
    for (line, change) in set.lines().filter(|(line, _)| line.at.id <= *through) {
        for part in change.parts(line.at.phase) {
            if let Part::Sql { file, .. } = part {
                let body = file.text.trim();
                // A last statement may end without one; a comment at the end must not swallow it.
                let end = if body.ends_with(';') { "" } else { "\n;" };
                // Into a string: cannot fail.
                writeln!(text, "-- from {}/{}\n{body}{end}\n", change.id, file.name).ok();
            }
        }
    }
    text
}
