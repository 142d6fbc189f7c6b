//! The commands, which of them make sense now, and what each does to the model.

use aegis_model::{Cause, Class, OperationState, Resolution};
use proptest::prelude::*;
use proptest_state_machine::ReferenceStateMachine;

use super::model::{Came, Model};

const TASKS_MAX: usize = 3;
const CLASSES: [Class; 4] = [
    Class::Idempotent,
    Class::Fenced,
    Class::Queryable,
    Class::Blind,
];

/// What an execution asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verb {
    Checkpoint,
    Step,
    Dispatch(Class),
    Settle(Class, bool),
    Complete,
    Fail { retryable: bool },
    Snooze,
    HandBack,
}

/// What is lost on the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lost {
    Nothing,
    /// The write never arrives.
    Request,
    /// It arrives, and nobody hears of it.
    Answer,
}

/// A command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Move {
    Submit,
    Claim {
        slot: usize,
    },
    ClaimSuspect {
        slot: usize,
    },
    Expire {
        slot: usize,
    },
    Renew {
        slot: usize,
    },
    Reap,
    Promote,
    /// `behind`: as an execution would that missed its own last write.
    Write {
        hold: usize,
        verb: Verb,
        behind: bool,
        lost: Lost,
    },
    Cancel {
        task: usize,
    },
    Resolve {
        task: usize,
        class: Class,
        resolution: Resolution,
    },
    Redrive {
        task: usize,
    },
}

/// All commands that make sense, the likely ones more than once.
fn moves(model: &Model) -> Vec<Move> {
    let mut moves = Vec::new();
    let mut add = |weight: usize, one: Move| moves.extend(std::iter::repeat_n(one, weight));
    if model.tasks.len() < TASKS_MAX {
        add(6, Move::Submit);
    }
    let suspects = model.ready(true).len();
    let expired = model.slots.iter().any(|slot| slot.expired);
    for slot in 0..model.slots.len() {
        let runs = model.runs(slot);
        add(1, Move::Renew { slot });
        // One that runs a suspect runs nothing beside it.
        if runs.iter().all(|task| model.tasks[*task].counters[2] == 0) {
            add(
                if model.ready(false).is_empty() { 1 } else { 10 },
                Move::Claim { slot },
            );
        }
        // Of several suspects the oldest is given, which the model does not tell.
        if suspects == 1 {
            add(10, Move::ClaimSuspect { slot });
        }
        if !expired {
            add(if runs.is_empty() { 0 } else { 3 }, Move::Expire { slot });
        }
    }
    if expired {
        add(8, Move::Reap);
    } else {
        add(3, Move::Promote);
    }
    for (task, one) in model.tasks.iter().enumerate() {
        add(1, Move::Cancel { task });
        if one.state.is_parked() {
            add(3, Move::Redrive { task });
        }
        for class in CLASSES {
            let operation = one.operations.get(&class.number());
            if operation.is_some_and(|found| found.state == OperationState::Unknown) {
                for resolution in [
                    Resolution::Happened,
                    Resolution::DidNotHappen,
                    Resolution::Compensated,
                    Resolution::GiveUp,
                ] {
                    add(
                        3,
                        Move::Resolve {
                            task,
                            class,
                            resolution,
                        },
                    );
                }
            }
        }
    }
    // The newest claims, most of which are held, and a few of before.
    for hold in model.holds.len().saturating_sub(6)..model.holds.len() {
        writes(model, hold, &mut add);
    }
    moves
}

fn writes(model: &Model, hold: usize, add: &mut impl FnMut(usize, Move)) {
    let current = model.judge(hold, false).is_ok();
    let weight = if current { 3 } else { 1 };
    let over = model.holds[hold].over;
    let mut verbs = vec![
        Verb::Checkpoint,
        Verb::Step,
        Verb::Complete,
        Verb::Fail { retryable: true },
        Verb::Fail { retryable: false },
        Verb::Snooze,
        Verb::HandBack,
    ];
    let operations = &model.tasks[model.holds[hold].task].operations;
    for class in CLASSES {
        verbs.push(Verb::Dispatch(class));
        let found = operations.get(&class.number());
        if found.is_some_and(|found| found.state == OperationState::Dispatched) {
            verbs.push(Verb::Settle(class, true));
            verbs.push(Verb::Settle(class, false));
        }
    }
    for verb in verbs {
        let write = |behind, lost| Move::Write {
            hold,
            verb,
            behind,
            lost,
        };
        add(weight, write(false, Lost::Nothing));
        if current {
            add(1, write(true, Lost::Nothing));
        }
        // An execution that has ended sends nothing that could be lost.
        if !over {
            add(1, write(false, Lost::Answer));
            add(1, write(false, Lost::Request));
        }
    }
}

impl ReferenceStateMachine for Model {
    type State = Self;
    type Transition = Move;

    fn init_state() -> BoxedStrategy<Self> {
        Just(Self::new()).boxed()
    }

    fn transitions(state: &Self) -> BoxedStrategy<Move> {
        proptest::sample::select(moves(state)).boxed()
    }

    fn preconditions(state: &Self, transition: &Move) -> bool {
        moves(state).contains(transition)
    }

    fn apply(mut state: Self, transition: &Move) -> Self {
        state.came = None;
        state.claimed.clear();
        match *transition {
            Move::Submit => state.submit(),
            Move::Claim { slot } => state.claim(slot, false),
            Move::ClaimSuspect { slot } => state.claim(slot, true),
            Move::Expire { slot } => state.slots[slot].expired = true,
            Move::Renew { .. } => {}
            Move::Reap => state.reap(),
            Move::Promote => state.promote(),
            Move::Write {
                hold,
                verb,
                behind,
                lost,
            } => {
                let judged = state.judge(hold, behind);
                state.came = Some(match (judged, lost) {
                    (Err(reason), _) => Came::Fenced(reason),
                    // Not sent: nothing moves.
                    (Ok(()), Lost::Request) => Came::Refused,
                    (Ok(()), _) => write(&mut state, hold, verb),
                });
            }
            Move::Cancel { task } => state.cancel(task),
            Move::Resolve {
                task,
                class,
                resolution,
            } => state.resolve(task, class, resolution),
            Move::Redrive { task } => state.redrive(task),
        }
        state
    }
}

fn write(model: &mut Model, hold: usize, verb: Verb) -> Came {
    match verb {
        Verb::Checkpoint | Verb::Step => model.save(hold),
        Verb::Dispatch(class) => model.dispatch(hold, class),
        Verb::Settle(class, succeeded) => model.settle(hold, class, succeeded),
        Verb::Complete => model.end(hold, super::model::Task::complete),
        Verb::Fail { retryable } => model.end(hold, |task| task.fail(retryable)),
        Verb::Snooze => model.end(hold, |task| task.end_attempt(Cause::Snooze, true)),
        Verb::HandBack => model.end(hold, |task| task.end_attempt(Cause::Drain, false)),
    }
}
