//! What an execution does with an operation that it finds in the ledger, as a table.

use std::fmt::Write as _;
use std::path::Path;

use aegis_model::operation::{NextStep, OPERATION_STATES, next_step};
use aegis_model::{Class, OperationState, Resolution};

const CLASSES: [Class; 4] = [
    Class::Idempotent,
    Class::Fenced,
    Class::Queryable,
    Class::Blind,
];

/// One row a state, one column a class.
pub(super) fn steps(_root: &Path) -> anyhow::Result<String> {
    let mut table = String::from("| found |");
    for class in CLASSES {
        write!(table, " `{}` |", class.word())?;
    }
    table.push_str("\n| --- | --- | --- | --- | --- |\n");
    for (found, state, resolution, quiet_left_ms, key_left_ms) in situations() {
        write!(table, "| {found} |")?;
        for class in CLASSES {
            let step = next_step(state, class, resolution, quiet_left_ms, key_left_ms);
            write!(table, " {} |", word(step))?;
        }
        table.push('\n');
    }
    Ok(table)
}

type Situation = (
    String,
    OperationState,
    Option<Resolution>,
    Option<i64>,
    Option<i64>,
);

/// Each state; a dispatched one by what time has done to it, a resolved one by what was found.
fn situations() -> Vec<Situation> {
    let mut all = Vec::new();
    for state in OPERATION_STATES {
        let name = state.word();
        match state {
            OperationState::Dispatched => {
                for (when, quiet, key) in [
                    ("a late request may still arrive", Some(1), Some(1)),
                    ("quiet, the key is still known", Some(0), Some(1)),
                    ("quiet, the key is forgotten", Some(0), Some(0)),
                ] {
                    all.push((format!("{name}: {when}"), state, None, quiet, key));
                }
            }
            OperationState::Resolved => {
                for resolution in [
                    Resolution::Happened,
                    Resolution::DidNotHappen,
                    Resolution::Compensated,
                    Resolution::GiveUp,
                ] {
                    let found = format!("{name}: {}", resolution.word());
                    all.push((found, state, Some(resolution), None, None));
                }
            }
            _ => all.push((name.to_owned(), state, None, None, None)),
        }
    }
    all
}

fn word(step: NextStep) -> &'static str {
    match step {
        NextStep::Dispatch => "dispatch",
        NextStep::Repeat => "repeat, same id",
        NextStep::WaitQuiet { .. } => "wait, no charge",
        NextStep::Probe => "probe",
        NextStep::Answer => "answer from the ledger",
        NextStep::Doubt => "unknown: a person",
    }
}

#[cfg(test)]
mod tests {
    //! The rows that decide most.

    use std::path::Path;

    use super::steps;

    #[test]
    fn rows_say_what_the_model_says() {
        let table = steps(Path::new("")).unwrap();
        for row in [
            "| found | `idempotent` | `fenced` | `queryable` | `blind` |",
            "| dispatched: a late request may still arrive | repeat, same id | repeat, same id | wait, no charge | unknown: a person |",
            "| dispatched: quiet, the key is still known | repeat, same id | repeat, same id | probe | unknown: a person |",
            "| dispatched: quiet, the key is forgotten | unknown: a person | repeat, same id | probe | unknown: a person |",
            "| resolved: did_not_happen | dispatch | dispatch | dispatch | dispatch |",
        ] {
            assert!(
                table.lines().any(|line| line == row),
                "{row} is not in\n{table}"
            );
        }
        assert_eq!(table.lines().count(), 2 + 3 + 5 + 3);
    }
}
