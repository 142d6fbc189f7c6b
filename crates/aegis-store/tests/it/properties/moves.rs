//! The commands, which of them make sense now, and what each does to the model.

use aegis_model::{Cause, Class, OperationState, Resolution};
use proptest::prelude::*;
use proptest_state_machine::ReferenceStateMachine;

use super::cut::Place;
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
    /// A row of the handler's and a checkpoint, in a transaction of the handler's.
    Own,
    Dispatch(Class),
    Settle(Class, bool),
    Complete,
    Fail {
        retryable: bool,
    },
    Snooze,
    HandBack,
}

/// A command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Move {
    Submit {
        cut: Option<Place>,
    },
    Claim {
        slot: usize,
        cut: Option<Place>,
    },
    ClaimSuspect {
        slot: usize,
        cut: Option<Place>,
    },
    Expire {
        slot: usize,
    },
    Renew {
        slot: usize,
    },
    Reap,
    Promote,
    /// The worker's gate closes.
    Drain {
        slot: usize,
        cut: Option<Place>,
    },
    /// A worker that holds nothing ends, and another takes its place.
    Leave {
        slot: usize,
    },
    /// `behind`: as an execution would that missed its own last write.
    Write {
        hold: usize,
        verb: Verb,
        behind: bool,
        cut: Option<Place>,
    },
    /// An execution that does not know what became of its write finds out, and sends again what was not applied.
    Resume {
        hold: usize,
    },
    Cancel {
        task: usize,
        cut: Option<Place>,
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

const CUTS: [Place; 3] = [Place::Before, Place::Behind, Place::Answered];

/// All commands that make sense, the likely ones more than once.
fn moves(model: &Model) -> Vec<Move> {
    let mut moves = Vec::new();
    let mut add = |weight: usize, one: Move| moves.extend(std::iter::repeat_n(one, weight));
    if model.tasks.len() < TASKS_MAX {
        add(5, Move::Submit { cut: None });
        for cut in CUTS.map(Some) {
            add(1, Move::Submit { cut });
        }
    }
    let suspects = model.ready(true).len();
    let expired = model.slots.iter().any(|slot| slot.expired);
    for slot in 0..model.slots.len() {
        let runs = model.runs(slot);
        add(1, Move::Renew { slot });
        // One that runs a suspect runs nothing beside it.
        if runs.iter().all(|task| model.tasks[*task].counters[2] == 0) {
            let ready = !model.ready(false).is_empty();
            add(if ready { 8 } else { 1 }, Move::Claim { slot, cut: None });
            for cut in CUTS.map(Some) {
                add(usize::from(ready), Move::Claim { slot, cut });
            }
        }
        // Of several suspects the oldest is given, which the model does not tell.
        if suspects == 1 {
            add(8, Move::ClaimSuspect { slot, cut: None });
            for cut in CUTS.map(Some) {
                add(1, Move::ClaimSuspect { slot, cut });
            }
        }
        if model.slots[slot].draining {
            let leaves = runs.is_empty() && !model.slots[slot].expired;
            add(if leaves { 6 } else { 0 }, Move::Leave { slot });
        } else {
            for cut in [None].into_iter().chain(CUTS.map(Some)) {
                add(1, Move::Drain { slot, cut });
            }
        }
        if !expired {
            let unsure = model.holds.iter().any(|hold| hold.unknown.is_some());
            let weight = if unsure { 5 } else { 3 };
            add(
                if runs.is_empty() { 0 } else { weight },
                Move::Expire { slot },
            );
        }
    }
    if expired {
        add(8, Move::Reap);
    } else {
        add(3, Move::Promote);
    }
    for (task, one) in model.tasks.iter().enumerate() {
        for cut in [None].into_iter().chain(CUTS.map(Some)) {
            add(1, Move::Cancel { task, cut });
        }
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
        if model.holds[hold].unknown.is_some() {
            // Others go on meanwhile.
            add(6, Move::Resume { hold });
        } else if !model.holds[hold].told {
            writes(model, hold, &mut add);
        }
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
        Verb::Own,
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
        let write = |behind, cut| Move::Write {
            hold,
            verb,
            behind,
            cut,
        };
        add(weight * 2, write(false, None));
        if current {
            add(1, write(true, None));
        }
        // An execution that has ended sends nothing that could be lost, and one that is fenced reaches no COMMIT.
        if !over && (current || verb != Verb::Own) {
            for cut in CUTS.map(Some) {
                add(1, write(false, cut));
            }
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
        state.heard = None;
        state.claimed.clear();
        match *transition {
            Move::Submit { .. } => state.submit(),
            Move::Claim { slot, .. } => state.claim(slot, false),
            Move::ClaimSuspect { slot, .. } => state.claim(slot, true),
            Move::Expire { slot } => state.slots[slot].expired = true,
            Move::Renew { .. } => {}
            Move::Reap => state.reap(),
            Move::Promote => state.promote(),
            Move::Drain { slot, .. } => state.slots[slot].draining = true,
            Move::Leave { slot } => state.replace(slot),
            Move::Write {
                hold,
                verb,
                behind,
                cut,
            } => {
                let came = match (state.judge(hold, behind), cut) {
                    (Err(reason), _) => Came::Fenced(reason),
                    // Not sent: nothing moves.
                    (Ok(()), Some(Place::Before)) => Came::Refused,
                    (Ok(()), _) => write(&mut state, hold, verb),
                };
                state.came = Some(came);
                if cut.is_some() {
                    state.lose(hold, verb, came);
                }
            }
            Move::Resume { hold } => state.resume(hold, |state, verb| write(state, hold, verb)),
            Move::Cancel { task, cut } => {
                state.cancel(task);
                // Somebody who did not hear the answer asks again.
                if matches!(cut, Some(Place::Behind | Place::Answered)) {
                    state.cancel(task);
                }
            }
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
        Verb::Own => model.save_beside_own(hold),
        Verb::Dispatch(class) => model.dispatch(hold, class),
        Verb::Settle(class, succeeded) => model.settle(hold, class, succeeded),
        Verb::Complete => model.end(hold, super::model::Task::complete),
        Verb::Fail { retryable } => model.end(hold, |task| task.fail(retryable)),
        Verb::Snooze => model.end(hold, |task| task.end_attempt(Cause::Snooze, true)),
        Verb::HandBack => model.end(hold, |task| task.end_attempt(Cause::Drain, false)),
    }
}
