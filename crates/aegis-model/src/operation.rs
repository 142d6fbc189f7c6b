//! External side effects: their classes, states and legal changes.
//!
//! Invariants: only a dispatched operation gets a result; only an unknown one is resolved, with evidence; what has succeeded
//! or failed never changes. Numbers are stored: never change one.

use serde::{Deserialize, Serialize};

/// How an operation can be recovered after its answer was lost. Declared by its author.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// 0: repeated with the same key while the downstream remembers it.
    Idempotent,
    /// 1: repeated; the downstream refuses an older token and answers a known id with its first result.
    Fenced,
    /// 2: after a quiet period a probe asks by operation id.
    Queryable,
    /// 3: never repeated by the engine; a person decides.
    Blind,
}

impl Class {
    /// The stored number.
    pub const fn number(self) -> i16 {
        self as i16
    }

    /// The class of a stored number.
    pub fn from_number(number: i16) -> Option<Self> {
        [Self::Idempotent, Self::Fenced, Self::Queryable, Self::Blind]
            .into_iter()
            .find(|class| class.number() == number)
    }

    /// The word used in the API, the CLI and the docs.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Idempotent => "idempotent",
            Self::Fenced => "fenced",
            Self::Queryable => "queryable",
            Self::Blind => "blind",
        }
    }
}

/// Where an operation stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OperationState {
    /// 0: held back (paused, rate-limited, waiting for approval).
    Intended,
    /// 1: the dispatch commit is durable; the call may have left.
    Dispatched,
    /// 2: its result is stored.
    Succeeded,
    /// 3: the downstream refused it.
    Failed,
    /// 4: nobody knows; a person decides.
    Unknown,
    /// 5: a person has decided, with evidence.
    Resolved,
}

/// All states, in the order of their numbers.
pub const OPERATION_STATES: [OperationState; 6] = [
    OperationState::Intended,
    OperationState::Dispatched,
    OperationState::Succeeded,
    OperationState::Failed,
    OperationState::Unknown,
    OperationState::Resolved,
];

impl OperationState {
    /// The stored number.
    pub const fn number(self) -> i16 {
        self as i16
    }

    /// The state of a stored number.
    pub fn from_number(number: i16) -> Option<Self> {
        OPERATION_STATES
            .into_iter()
            .find(|state| state.number() == number)
    }

    /// The word used in the API, the CLI and the docs.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Intended => "intended",
            Self::Dispatched => "dispatched",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Unknown => "unknown",
            Self::Resolved => "resolved",
        }
    }

    /// Open operations hold their task: no terminal row can exist beside one.
    pub const fn is_open(self) -> bool {
        matches!(self, Self::Dispatched | Self::Unknown)
    }
}

/// What a person found out about an unknown operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Resolution {
    /// 0: it happened, with this result.
    Happened,
    /// 1: it did not happen; the handler dispatches it again under the same id.
    DidNotHappen,
    /// 2: it happened and was undone.
    Compensated,
    /// 3: given up; the task fails.
    GiveUp,
}

impl Resolution {
    /// The stored number.
    pub const fn number(self) -> i16 {
        self as i16
    }

    /// The resolution of a stored number.
    pub fn from_number(number: i16) -> Option<Self> {
        [
            Self::Happened,
            Self::DidNotHappen,
            Self::Compensated,
            Self::GiveUp,
        ]
        .into_iter()
        .find(|resolution| resolution.number() == number)
    }

    /// The word used in the API, the CLI and the docs.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Happened => "happened",
            Self::DidNotHappen => "did_not_happen",
            Self::Compensated => "compensated",
            Self::GiveUp => "give_up",
        }
    }
}

/// Whose turn an operation is when its handler reaches it again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextStep {
    /// It never left, or a person found that it did not happen: dispatch it.
    Dispatch,
    /// Dispatch it again under the same id.
    Repeat,
    /// A late request may still arrive: come back in so many milliseconds.
    WaitQuiet {
        /// How long, in milliseconds.
        left_ms: i64,
    },
    /// Ask the downstream.
    Probe,
    /// Its answer stands: hand it to the handler.
    Answer,
    /// Nothing automatic is left: a person decides.
    Doubt,
}

/// Decides what an execution does with an operation that it finds in the ledger. Pure: shared with the model checker.
///
/// `quiet_left_ms`: until a late request can no longer arrive; `key_left_ms`: until the downstream forgets the key
/// (`None`: it never does).
pub fn next_step(
    state: OperationState,
    class: Class,
    resolution: Option<Resolution>,
    quiet_left_ms: Option<i64>,
    key_left_ms: Option<i64>,
) -> NextStep {
    match (state, class) {
        (OperationState::Intended, _) => NextStep::Dispatch,
        (OperationState::Resolved, _) if resolution == Some(Resolution::DidNotHappen) => {
            NextStep::Dispatch
        }
        (OperationState::Succeeded | OperationState::Failed | OperationState::Resolved, _) => {
            NextStep::Answer
        }
        (OperationState::Unknown, _) | (OperationState::Dispatched, Class::Blind) => {
            NextStep::Doubt
        }
        (OperationState::Dispatched, Class::Fenced) => NextStep::Repeat,
        (OperationState::Dispatched, Class::Idempotent) => {
            if key_left_ms.is_none_or(|left| left > 0) {
                NextStep::Repeat
            } else {
                NextStep::Doubt
            }
        }
        (OperationState::Dispatched, Class::Queryable) => match quiet_left_ms {
            Some(left_ms) if left_ms > 0 => NextStep::WaitQuiet { left_ms },
            _ => NextStep::Probe,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_go_there_and_back() {
        for state in OPERATION_STATES {
            assert_eq!(OperationState::from_number(state.number()), Some(state));
        }
        for class in [
            Class::Idempotent,
            Class::Fenced,
            Class::Queryable,
            Class::Blind,
        ] {
            assert_eq!(Class::from_number(class.number()), Some(class));
        }
    }

    #[test]
    fn a_blind_operation_is_never_repeated() {
        let step = next_step(OperationState::Dispatched, Class::Blind, None, None, None);
        assert_eq!(step, NextStep::Doubt);
    }

    #[test]
    fn an_idempotent_one_is_repeated_only_while_its_key_lives() {
        let at = |left| {
            next_step(
                OperationState::Dispatched,
                Class::Idempotent,
                None,
                None,
                left,
            )
        };
        assert_eq!(at(None), NextStep::Repeat);
        assert_eq!(at(Some(1)), NextStep::Repeat);
        assert_eq!(at(Some(0)), NextStep::Doubt);
    }

    #[test]
    fn a_queryable_one_is_quiet_before_it_is_probed() {
        let at = |left| {
            next_step(
                OperationState::Dispatched,
                Class::Queryable,
                None,
                left,
                None,
            )
        };
        assert_eq!(at(Some(5)), NextStep::WaitQuiet { left_ms: 5 });
        assert_eq!(at(Some(0)), NextStep::Probe);
        assert_eq!(at(None), NextStep::Probe);
    }

    #[test]
    fn only_did_not_happen_is_dispatched_after_a_person_decided() {
        for (resolution, step) in [
            (Resolution::Happened, NextStep::Answer),
            (Resolution::DidNotHappen, NextStep::Dispatch),
            (Resolution::Compensated, NextStep::Answer),
            (Resolution::GiveUp, NextStep::Answer),
        ] {
            let at = next_step(
                OperationState::Resolved,
                Class::Blind,
                Some(resolution),
                None,
                None,
            );
            assert_eq!(at, step, "{resolution:?}");
        }
    }

    #[test]
    fn only_what_may_have_happened_unheard_is_open() {
        let open: Vec<OperationState> = OPERATION_STATES
            .into_iter()
            .filter(|state| state.is_open())
            .collect();
        assert_eq!(open, [OperationState::Dispatched, OperationState::Unknown]);
    }

    #[test]
    fn a_resolution_goes_round_as_its_number() {
        let all = [
            Resolution::Happened,
            Resolution::DidNotHappen,
            Resolution::Compensated,
            Resolution::GiveUp,
        ];
        assert_eq!(all.map(Resolution::number), [0, 1, 2, 3]);
        assert_eq!([0, 1, 2, 3].map(Resolution::from_number), all.map(Some));
        assert_eq!(Resolution::from_number(4), None);
    }
}
