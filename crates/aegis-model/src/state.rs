//! The states of a task and the only way between them.
//!
//! Invariants: [`TRANSITIONS`] is the whole truth; [`next`] is the only function that answers what a change leads to; the
//! database's checks restate the shapes, and the diagram in `docs/task-states.md` is drawn from the table.
//!
//! Never: change a number; they are stored. A program one version behind decodes a number it does not know as
//! [`State::Other`] and leaves that task alone.

use std::fmt;

/// Where a task stands. The number is what the database stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum State {
    /// 0: waits for its `run_at`.
    Scheduled,
    /// 1: may be claimed.
    Ready,
    /// 2: an execution holds a claim.
    Running,
    /// 3: sleeps, or waits for an event, a child, an approval.
    Waiting,
    /// 4: an operation is unknown; a person decides.
    Reconciling,
    /// 5: ended with its result.
    Succeeded,
    /// 6: given up (dead letter), parked until somebody redrives or discards it.
    Failed,
    /// 7: ended on request.
    Cancelled,
    /// 8: set aside because it kills workers; parked.
    Quarantined,
    /// A state of a newer schema.
    Other(i16),
}

/// All states of this version, in the order of their numbers.
pub const STATES: [State; 9] = [
    State::Scheduled,
    State::Ready,
    State::Running,
    State::Waiting,
    State::Reconciling,
    State::Succeeded,
    State::Failed,
    State::Cancelled,
    State::Quarantined,
];

impl State {
    /// The stored number.
    pub const fn number(self) -> i16 {
        match self {
            Self::Scheduled => 0,
            Self::Ready => 1,
            Self::Running => 2,
            Self::Waiting => 3,
            Self::Reconciling => 4,
            Self::Succeeded => 5,
            Self::Failed => 6,
            Self::Cancelled => 7,
            Self::Quarantined => 8,
            Self::Other(number) => number,
        }
    }

    /// The state of a stored number.
    pub fn from_number(number: i16) -> Self {
        STATES
            .into_iter()
            .find(|state| state.number() == number)
            .unwrap_or(Self::Other(number))
    }

    /// The word used in the API, the CLI and the docs.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Scheduled => "scheduled",
            Self::Ready => "ready",
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::Reconciling => "reconciling",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Quarantined => "quarantined",
            Self::Other(_) => "other",
        }
    }

    /// The state of a word.
    pub fn from_word(word: &str) -> Option<Self> {
        STATES.into_iter().find(|state| state.word() == word)
    }

    /// Has the task ended? Such a row cannot exist beside an open operation.
    pub const fn is_terminal(self) -> bool {
        matches!(
            self,
            Self::Succeeded | Self::Failed | Self::Cancelled | Self::Quarantined
        )
    }

    /// Parked tasks have ended and can be redriven.
    pub const fn is_parked(self) -> bool {
        matches!(self, Self::Failed | Self::Quarantined)
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Other(number) => write!(f, "other({number})"),
            known => f.write_str(known.word()),
        }
    }
}

/// What can happen to a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TaskChange {
    /// Its `run_at` has come.
    Promote,
    /// A worker claims it.
    Claim,
    /// Its handler returned a result and no operation is open.
    Complete,
    /// Its handler failed and may be retried later.
    Retry,
    /// Its handler failed for good, or a deadline has passed.
    GiveUp,
    /// Its handler postponed it.
    Snooze,
    /// Its execution ended without a charge, or was taken back: drain, crash, absence, interruption.
    Return,
    /// It kills workers.
    Quarantine,
    /// Somebody asked for its end, and its execution has ended.
    Cancel,
    /// An operation became unknown while its execution ended.
    Doubt,
    /// Its last unknown operation was resolved.
    Resolve,
    /// A person starts a scheduled task before its time: run now, or retry during a back-off.
    RunNow,
    /// A person gives a task that waits another time.
    Reschedule,
    /// A person sends a parked task again.
    Redrive,
    /// A person gives a parked task up for good: it stays what it is and becomes history.
    Discard,
    /// It waits (sleep, event, child, approval).
    Wait,
    /// What it waited for has come.
    Wake,
}

use State::{
    Cancelled, Failed, Quarantined, Ready, Reconciling, Running, Scheduled, Succeeded, Waiting,
};
use TaskChange::{
    Cancel, Claim, Complete, Discard, Doubt, GiveUp, Promote, Quarantine, Redrive, Reschedule,
    Resolve, Retry, Return, RunNow, Snooze, Wait, Wake,
};

/// Every legal change: from, what happens, to.
pub const TRANSITIONS: &[(State, TaskChange, State)] = &[
    (Scheduled, Promote, Ready),
    (Scheduled, RunNow, Ready),
    (Scheduled, Reschedule, Scheduled),
    (Scheduled, Cancel, Cancelled),
    (Scheduled, GiveUp, Failed),
    (Ready, Claim, Running),
    (Ready, Reschedule, Scheduled),
    (Ready, Cancel, Cancelled),
    (Ready, GiveUp, Failed),
    (Running, Complete, Succeeded),
    (Running, Retry, Scheduled),
    (Running, GiveUp, Failed),
    (Running, Snooze, Scheduled),
    (Running, Return, Ready),
    (Running, Quarantine, Quarantined),
    (Running, Cancel, Cancelled),
    (Running, Doubt, Reconciling),
    (Running, Wait, Waiting),
    (Waiting, Wake, Ready),
    (Waiting, Cancel, Cancelled),
    (Waiting, GiveUp, Failed),
    (Reconciling, Resolve, Ready),
    (Reconciling, Complete, Succeeded),
    (Reconciling, GiveUp, Failed),
    (Reconciling, Cancel, Cancelled),
    (Reconciling, Quarantine, Quarantined),
    (Failed, Redrive, Ready),
    (Failed, Discard, Failed),
    (Quarantined, Redrive, Ready),
    (Quarantined, Discard, Quarantined),
];

/// A change that does not exist from that state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a {from} task cannot {change:?}")]
pub struct Illegal {
    /// Where the task stood.
    pub from: State,
    /// What was tried.
    pub change: TaskChange,
}

/// What a change leads to.
///
/// # Errors
/// [`Illegal`] when the table has no such change.
pub fn next(from: State, change: TaskChange) -> Result<State, Illegal> {
    TRANSITIONS
        .iter()
        .find(|(f, c, _)| *f == from && *c == change)
        .map(|(_, _, to)| *to)
        .ok_or(Illegal { from, change })
}

/// The table as a Mermaid diagram, for `docs/task-states.md`.
pub fn mermaid() -> String {
    let mut lines = vec![
        "stateDiagram-v2".to_owned(),
        "    [*] --> ready: submit".to_owned(),
        "    [*] --> scheduled: submit with run_at".to_owned(),
    ];
    for (from, change, to) in TRANSITIONS {
        lines.push(format!("    {from} --> {to}: {}", spaced(*change)));
    }
    for end in [Succeeded, Cancelled] {
        lines.push(format!("    {end} --> [*]"));
    }
    lines.join("\n") + "\n"
}

/// `GiveUp` as `give up`.
fn spaced(change: TaskChange) -> String {
    let mut text = String::new();
    for letter in format!("{change:?}").chars() {
        if letter.is_uppercase() && !text.is_empty() {
            text.push(' ');
        }
        text.extend(letter.to_lowercase());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_words_go_there_and_back() {
        for state in STATES {
            assert_eq!(State::from_number(state.number()), state);
            assert_eq!(State::from_word(state.word()), Some(state));
        }
        assert_eq!(State::from_number(42), State::Other(42));
        assert_eq!(State::Other(42).number(), 42);
    }

    #[test]
    fn each_change_has_one_answer() {
        for (n, (from, change, _)) in TRANSITIONS.iter().enumerate() {
            let twins = TRANSITIONS[n + 1..]
                .iter()
                .filter(|(f, c, _)| f == from && c == change);
            assert_eq!(twins.count(), 0, "{from} {change:?} stands twice");
        }
    }

    #[test]
    fn ended_tasks_only_come_back_by_a_person() {
        for (from, change, _) in TRANSITIONS {
            if from.is_terminal() {
                assert!(from.is_parked(), "{from} has no way out");
                assert!(matches!(change, Redrive | Discard));
            }
        }
        assert_eq!(
            next(Succeeded, Claim),
            Err(Illegal {
                from: Succeeded,
                change: Claim
            })
        );
    }

    #[test]
    fn every_live_state_can_end() {
        for state in STATES.into_iter().filter(|s| !s.is_terminal()) {
            assert!(next(state, Cancel).is_ok(), "{state} cannot be cancelled");
            assert!(next(state, GiveUp).is_ok(), "{state} cannot be given up");
        }
    }

    #[test]
    fn each_line_of_the_table_leads_where_it_says() {
        for &(from, change, to) in TRANSITIONS {
            assert_eq!(next(from, change), Ok(to), "{from} {change:?}");
        }
    }

    #[test]
    fn what_waits_runs_or_succeeded_is_not_parked() {
        for state in [
            State::Scheduled,
            State::Running,
            State::Succeeded,
            State::Cancelled,
        ] {
            assert!(!state.is_parked(), "{state}");
        }
        assert!(State::Failed.is_parked() && State::Quarantined.is_parked());
    }
}
