//! The states of a task: the diagram, what each state means, and who moves a task how.
//!
//! Invariant: a change that is new in the model does not compile here before somebody says who makes it.

use std::fmt::Write as _;
use std::path::Path;

use aegis_model::state::{STATES, TRANSITIONS, mermaid};
use aegis_model::{State, TaskChange};
use anyhow::Context as _;

/// The table of transitions, drawn.
#[expect(clippy::unnecessary_wraps, reason = "every block has the same shape")]
pub(super) fn diagram(_root: &Path) -> anyhow::Result<String> {
    Ok(format!("```mermaid\n{}```\n", mermaid()))
}

/// One row a state.
pub(super) fn states(_root: &Path) -> anyhow::Result<String> {
    let mut table = String::from(
        "| state | stored as | meaning | where its row is |\n| --- | --- | --- | --- |\n",
    );
    for state in STATES {
        let meaning = meaning(state).with_context(|| format!("xtask does not know {state}"))?;
        let place = match (state.is_parked(), state.is_terminal()) {
            (true, _) => "`parked`",
            (_, true) => "`task_history`",
            _ => "`task`",
        };
        writeln!(
            table,
            "| `{state}` | {} | {meaning} | {place} |",
            state.number()
        )?;
    }
    Ok(table)
}

/// One row a change, in the order of the model's table.
pub(super) fn changes(_root: &Path) -> anyhow::Result<String> {
    let mut table = String::from("| change | from → to | who makes it |\n| --- | --- | --- |\n");
    let mut done = Vec::new();
    for (_, change, _) in TRANSITIONS {
        if done.contains(change) {
            continue;
        }
        done.push(*change);
        let ways: Vec<String> = TRANSITIONS
            .iter()
            .filter(|(_, other, _)| other == change)
            .map(|(from, _, to)| format!("{from} → {to}"))
            .collect();
        writeln!(
            table,
            "| {} | {} | {} |",
            words(*change),
            ways.join("<br>"),
            who(*change)
        )?;
    }
    Ok(table)
}

/// `GiveUp`: give up.
fn words(change: TaskChange) -> String {
    let mut words = String::new();
    for letter in format!("{change:?}").chars() {
        if letter.is_uppercase() && !words.is_empty() {
            words.push(' ');
        }
        words.extend(letter.to_lowercase());
    }
    words
}

fn meaning(state: State) -> Option<&'static str> {
    Some(match state {
        State::Scheduled => {
            "Waits for its `run_at`: submitted for later, retried after a back-off, or snoozed."
        }
        State::Ready => "May be claimed by a worker that reads its lane.",
        State::Running => {
            "A worker holds a claim at one epoch. Whether that worker is still alive, its lease says."
        }
        State::Waiting => {
            "Waits for an event, a child or an approval. Nothing puts a task there yet; a handler that sleeps is `scheduled`."
        }
        State::Reconciling => {
            "At least one operation is unknown. A person decides; nothing automatic moves it on."
        }
        State::Succeeded => "Ended with its result.",
        State::Failed => {
            "Given up (dead letter): its handler failed too often or for good, or a deadline has passed."
        }
        State::Cancelled => "Ended on request.",
        State::Quarantined => "Set aside, because workers crashed while they ran it alone.",
        _ => return None,
    })
}

fn who(change: TaskChange) -> &'static str {
    match change {
        TaskChange::Promote => {
            "Housekeeping (`aegis.promote`), on the tick of whichever worker is alive."
        }
        TaskChange::Claim => "A worker's acquire. The epoch grows.",
        TaskChange::Complete => {
            "Its execution, through the guard. From `reconciling`: a stored outcome applies when the last operation is settled."
        }
        TaskChange::Retry => {
            "Its execution reports a handler's error (`failures` + 1) and the policy has tries left."
        }
        TaskChange::GiveUp => {
            "Its execution reports an error that is not retryable, or the last one that the policy allows; \
             housekeeping, when a deadline has passed; a person, who resolves an operation as `give_up`."
        }
        TaskChange::Snooze => "Its execution postpones it. No charge.",
        TaskChange::Return => {
            "Its worker hands it back (drain: `interruptions` + 1), or two beats did not name it (`interruptions` + 1), \
             or the reaper takes it back (`crashes` or `interruptions` + 1)."
        }
        TaskChange::Quarantine => "The reaper, when `crashes` has passed the policy's limit.",
        TaskChange::Cancel => {
            "A person or a program asks. One that runs is told, and the change happens when its execution has stopped \
             or `kill_after` has passed."
        }
        TaskChange::Doubt => {
            "The end of an execution that leaves an operation nobody can settle automatically: a dispatched `blind` one, \
             a key that has expired, a probe that cannot tell."
        }
        TaskChange::Resolve => "A person, with `aegis operation resolve` and evidence.",
        TaskChange::RunNow => {
            "A person, with `aegis task run-now`, or `aegis task retry` during the back-off after a failed attempt. Nothing is charged."
        }
        TaskChange::Reschedule => "A person, with `aegis task reschedule`.",
        TaskChange::Redrive => {
            "A person, with `aegis task redrive`. The epoch goes on counting, the counters start anew."
        }
        TaskChange::Discard => {
            "A person, with `aegis task discard`. The row moves from `parked` to `task_history`."
        }
        TaskChange::Wait | TaskChange::Wake => {
            "Nobody yet: waiting for events, children and approvals is not there."
        }
    }
}

#[cfg(test)]
mod tests {
    //! Every state and every change has its row.

    use std::path::Path;

    use super::{changes, diagram, states, words};
    use aegis_model::TaskChange;
    use aegis_model::state::{STATES, TRANSITIONS};

    #[test]
    fn each_state_has_one_row() {
        let table = states(Path::new("")).unwrap();
        assert_eq!(table.lines().count(), 2 + STATES.len());
        assert!(table.contains("| `quarantined` | 8 | Set aside"), "{table}");
        assert!(
            table
                .lines()
                .any(|row| row.starts_with("| `failed` | 6 ") && row.ends_with("| `parked` |"))
        );
        assert!(table.lines().any(|row| row.starts_with("| `cancelled` ") && row.ends_with("| `task_history` |")));
    }

    #[test]
    fn each_transition_stands_in_the_row_of_its_change() {
        let table = changes(Path::new("")).unwrap();
        for (from, change, to) in TRANSITIONS {
            let start = format!("| {} |", words(*change));
            let row = table.lines().find(|row| row.starts_with(&start)).unwrap();
            assert!(row.contains(&format!("{from} → {to}")), "{row}");
        }
        assert_eq!(words(TaskChange::GiveUp), "give up");
    }

    #[test]
    fn the_diagram_is_fenced() {
        let text = diagram(Path::new("")).unwrap();
        assert!(text.starts_with("```mermaid\nstateDiagram-v2\n"), "{text}");
        assert!(text.ends_with("\n```\n"), "{text}");
    }
}
