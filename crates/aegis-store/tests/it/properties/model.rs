//! A pure model of what the store promises about tasks, claims and operations.
//!
//! Where a task may go, what the guard lets through and what an execution does with an operation are asked of
//! aegis-model, as the product does; only who is charged and what an end leaves behind is told here once more.

use std::collections::BTreeMap;

use aegis_model::guard::{Row, judge};
use aegis_model::operation::{NextStep, next_step};
use aegis_model::state::next;
use aegis_model::{
    Cause, Class, FenceReason, Held, Lineage, OperationState, Resolution, State, TaskChange,
};
use uuid::Uuid;

use super::moves::Verb;

pub(super) const MAX_FAILURES: i32 = 3;
pub(super) const MAX_CRASHES: i32 = 2;

const TODAY: Lineage = Lineage {
    floor: 0,
    timeline: 1,
};

/// An operation of a task, under the word of its class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Operation {
    pub(super) state: OperationState,
    resolution: Option<Resolution>,
}

/// A task.
#[derive(Debug, Clone)]
pub(super) struct Task {
    pub(super) state: State,
    pub(super) epoch: i64,
    pub(super) rev: i64,
    /// Who runs it, and under which claim.
    owner: Option<u128>,
    claim: Option<u128>,
    /// `failures, interruptions, crashes, snoozes`.
    pub(super) counters: [i32; 4],
    /// Somebody asked for its end while it ran.
    cancel: bool,
    /// The outcome that waits for its operations.
    pub(super) pending: Option<State>,
    pub(super) operations: BTreeMap<i16, Operation>,
    /// Rows that its handlers have written in transactions of their own, each beside a guarded write.
    pub(super) own: i64,
}

/// What an execution holds, as it believes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Hold {
    pub(super) task: usize,
    owner: u128,
    claim: u128,
    epoch: i64,
    rev: i64,
    /// A write of its own has ended it.
    pub(super) over: bool,
    /// Its last write's answer was lost. Until it has read back it does not know what the model knows (RL-I14).
    pub(super) unknown: Option<Unknown>,
    /// It has been told that its claim is over.
    pub(super) told: bool,
}

/// A write whose answer was lost.
#[derive(Debug, Clone, Copy)]
pub(super) struct Unknown {
    pub(super) verb: Verb,
    /// What it really came to.
    pub(super) came: Came,
    /// Where the task stood then, at which epoch and rev.
    stood: (State, i64, i64),
}

/// What an execution must hear when it asks what became of its write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Heard {
    Applied,
    /// It was not: it is sent again, and comes to this.
    NotApplied(Came),
    /// This write ended the claim, and nothing has happened since.
    Ended(Came),
    /// The claim is over, by this write or by somebody else.
    Over {
        applied: bool,
    },
}

impl Heard {
    pub(super) const WORDS: [&'static str; 5] = [
        "applied",
        "ended",
        "not applied",
        "over, and applied before",
        "over, and never applied",
    ];

    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Applied => "applied",
            Self::Ended(_) => "ended",
            Self::NotApplied(_) => "not applied",
            Self::Over { applied: true } => "over, and applied before",
            Self::Over { applied: false } => "over, and never applied",
        }
    }
}

/// A place for a worker: its incarnation now.
#[derive(Debug, Clone, Copy)]
pub(super) struct Slot {
    incarnation: u128,
    pub(super) expired: bool,
    pub(super) draining: bool,
}

/// What a write came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Came {
    /// It moved the row and the execution goes on.
    Applied,
    /// It was accepted and changed nothing: the ledger refuses.
    Refused,
    /// It ended the claim; the task stands here now, and had an outcome stored before.
    Ended(State, bool),
    /// It was fenced.
    Fenced(FenceReason),
}

/// All of it.
#[derive(Debug, Clone)]
pub(super) struct Model {
    pub(super) tasks: Vec<Task>,
    pub(super) holds: Vec<Hold>,
    pub(super) slots: [Slot; 2],
    ids: u128,
    /// What the last write came to, for the other side to compare.
    pub(super) came: Option<Came>,
    /// The tasks of the last claim, in their order of submission.
    pub(super) claimed: Vec<usize>,
    /// What the last execution that asked must have heard.
    pub(super) heard: Option<Heard>,
    /// The write that it asked about.
    pub(super) resumed: Option<Verb>,
}

impl Model {
    pub(super) fn new() -> Self {
        let slot = |incarnation| Slot {
            incarnation,
            expired: false,
            draining: false,
        };
        Self {
            tasks: Vec::new(),
            holds: Vec::new(),
            slots: [slot(1), slot(2)],
            ids: 2,
            came: None,
            claimed: Vec::new(),
            heard: None,
            resumed: None,
        }
    }

    fn fresh(&mut self) -> u128 {
        self.ids += 1;
        self.ids
    }

    pub(super) fn submit(&mut self) {
        self.tasks.push(Task {
            state: State::Ready,
            epoch: 0,
            rev: 0,
            owner: None,
            claim: None,
            counters: [0; 4],
            cancel: false,
            pending: None,
            operations: BTreeMap::new(),
            own: 0,
        });
    }

    fn is_live(&self, owner: u128) -> bool {
        let mut slots = self.slots.iter();
        slots.any(|slot| slot.incarnation == owner && !slot.expired)
    }

    /// What a worker runs.
    pub(super) fn runs(&self, slot: usize) -> Vec<usize> {
        let owner = Some(self.slots[slot].incarnation);
        (0..self.tasks.len())
            .filter(|task| self.tasks[*task].owner == owner)
            .collect()
    }

    /// What can be claimed: by anybody, or alone.
    pub(super) fn ready(&self, suspects: bool) -> Vec<usize> {
        (0..self.tasks.len())
            .filter(|task| {
                let task = &self.tasks[*task];
                task.state == State::Ready && (task.counters[2] > 0) == suspects
            })
            .collect()
    }

    pub(super) fn claim(&mut self, slot: usize, suspects: bool) {
        let Slot {
            incarnation,
            expired,
            draining,
        } = self.slots[slot];
        self.claimed = self.ready(suspects);
        if expired || draining || (suspects && !self.runs(slot).is_empty()) {
            self.claimed.clear();
        }
        let claim = self.fresh();
        for index in self.claimed.clone() {
            let task = &mut self.tasks[index];
            task.change(TaskChange::Claim);
            task.epoch += 1;
            task.rev += 1;
            (task.owner, task.claim) = (Some(incarnation), Some(claim));
            self.holds.push(Hold {
                task: index,
                owner: incarnation,
                claim,
                epoch: task.epoch,
                rev: task.rev,
                over: false,
                unknown: None,
                told: false,
            });
        }
    }

    /// The worker whose lease ended is lost with all that it runs, and another takes its place.
    pub(super) fn reap(&mut self) {
        for slot in 0..self.slots.len() {
            if !self.slots[slot].expired {
                continue;
            }
            for task in self.runs(slot) {
                self.tasks[task].end_attempt(Cause::Crash, false);
            }
            self.replace(slot);
        }
    }

    /// Another incarnation takes the place of one that is lost or has left.
    pub(super) fn replace(&mut self, slot: usize) {
        let incarnation = self.fresh();
        self.slots[slot] = Slot {
            incarnation,
            expired: false,
            draining: false,
        };
    }

    pub(super) fn promote(&mut self) {
        for task in &mut self.tasks {
            if task.state == State::Scheduled {
                task.change(TaskChange::Promote);
            }
        }
    }

    /// What the guard says about a write of this execution, or of one that is a write behind.
    pub(super) fn judge(&self, hold: usize, behind: bool) -> Result<(), FenceReason> {
        let hold = self.holds[hold];
        let task = &self.tasks[hold.task];
        let held = Held {
            task: Uuid::nil(),
            owner: Uuid::from_u128(hold.owner),
            claim_id: Uuid::from_u128(hold.claim),
            epoch: hold.epoch,
            rev: hold.rev - i64::from(behind),
            lineage: TODAY,
        };
        let row = (!task.state.is_terminal()).then(|| Row {
            state: task.state,
            owner: task.owner.map(Uuid::from_u128),
            claim_id: task.claim.map(Uuid::from_u128),
            epoch: task.epoch,
            rev: task.rev,
            lineage: task.owner.map(|_| TODAY),
        });
        judge(&held, row.as_ref(), Some(TODAY), self.is_live(hold.owner))
    }

    /// A write that the guard has let through and that goes on: it moves the rev.
    fn moved(&mut self, hold: usize) -> Came {
        self.tasks[self.holds[hold].task].rev += 1;
        self.holds[hold].rev += 1;
        Came::Applied
    }

    pub(super) fn save(&mut self, hold: usize) -> Came {
        self.moved(hold)
    }

    pub(super) fn save_beside_own(&mut self, hold: usize) -> Came {
        self.tasks[self.holds[hold].task].own += 1;
        self.moved(hold)
    }

    /// The answer to a write was lost, which came to this.
    pub(super) fn lose(&mut self, hold: usize, verb: Verb, came: Came) {
        let stood = self.tasks[self.holds[hold].task].stands();
        self.holds[hold].unknown = Some(Unknown { verb, came, stood });
    }

    fn is_current(&self, hold: usize) -> bool {
        let hold = &self.holds[hold];
        let task = &self.tasks[hold.task];
        task.state == State::Running && task.claim == Some(hold.claim) && task.epoch == hold.epoch
    }

    /// An execution asks what became of its write, and sends again what was not applied.
    pub(super) fn resume(&mut self, hold: usize, write: impl FnOnce(&mut Self, Verb) -> Came) {
        let Some(Unknown { verb, came, stood }) = self.holds[hold].unknown.take() else {
            return;
        };
        self.resumed = Some(verb);
        let applied = matches!(came, Came::Applied | Came::Ended(..));
        let untouched = self.tasks[self.holds[hold].task].stands() == stood;
        self.heard = Some(if !self.is_current(hold) {
            self.holds[hold].told = true;
            match came {
                Came::Ended(..) if untouched => Heard::Ended(came),
                _ => Heard::Over { applied },
            }
        } else if applied {
            Heard::Applied
        } else {
            Heard::NotApplied(match self.judge(hold, false) {
                Ok(()) => write(self, verb),
                Err(reason) => Came::Fenced(reason),
            })
        });
    }

    pub(super) fn dispatch(&mut self, hold: usize, class: Class) -> Came {
        let operations = &mut self.tasks[self.holds[hold].task].operations;
        let found = operations.get(&class.number()).copied();
        let step = found.map_or(NextStep::Dispatch, |found| {
            next_step(found.state, class, found.resolution, None, None)
        });
        if !matches!(step, NextStep::Dispatch | NextStep::Repeat) {
            return Came::Refused;
        }
        let dispatched = Operation {
            state: OperationState::Dispatched,
            resolution: None,
        };
        operations.insert(class.number(), dispatched);
        self.moved(hold)
    }

    pub(super) fn settle(&mut self, hold: usize, class: Class, succeeded: bool) -> Came {
        let task = &mut self.tasks[self.holds[hold].task];
        if let Some(operation) = task.operations.get_mut(&class.number()) {
            operation.state = if succeeded {
                OperationState::Succeeded
            } else {
                OperationState::Failed
            };
        }
        self.moved(hold)
    }

    /// A write that ends the claim.
    pub(super) fn end(&mut self, hold: usize, end: impl FnOnce(&mut Task)) -> Came {
        let task = &mut self.tasks[self.holds[hold].task];
        let pending = task.pending.is_some();
        end(task);
        self.holds[hold].over = true;
        Came::Ended(task.state, pending)
    }

    pub(super) fn cancel(&mut self, task: usize) {
        let task = &mut self.tasks[task];
        match task.state {
            State::Running => task.cancel = true,
            state if state.is_terminal() => {}
            _ => task.conclude(State::Cancelled),
        }
    }

    pub(super) fn redrive(&mut self, task: usize) {
        let task = &mut self.tasks[task];
        if task.state.is_parked() {
            task.change(TaskChange::Redrive);
            task.counters = [0; 4];
            task.rev += 1;
        }
    }

    pub(super) fn resolve(&mut self, task: usize, class: Class, resolution: Resolution) {
        let task = &mut self.tasks[task];
        let Some(operation) = task.operations.get_mut(&class.number()) else {
            return;
        };
        operation.state = OperationState::Resolved;
        operation.resolution = Some(resolution);
        task.rev += 1;
        match task.pending {
            None if resolution == Resolution::GiveUp => task.conclude(State::Failed),
            Some(outcome) if task.open() == 0 => task.conclude(outcome),
            _ if task.state == State::Reconciling && !task.has_unknown() => {
                task.change(TaskChange::Resolve);
            }
            _ => {}
        }
    }
}

impl Task {
    /// Where the table of aegis-model lets it go.
    fn change(&mut self, change: TaskChange) {
        match next(self.state, change) {
            Ok(state) => self.state = state,
            Err(illegal) => panic!("the model itself breaks the table: {illegal}"),
        }
    }

    fn stands(&self) -> (State, i64, i64) {
        (self.state, self.epoch, self.rev)
    }

    pub(super) fn open(&self) -> usize {
        let operations = self.operations.values();
        operations.filter(|one| one.state.is_open()).count()
    }

    pub(super) fn has_unknown(&self) -> bool {
        let mut operations = self.operations.values();
        operations.any(|one| one.state == OperationState::Unknown)
    }

    fn doubt(&mut self, which: impl Fn(i16) -> bool) {
        for (class, operation) in &mut self.operations {
            if operation.state == OperationState::Dispatched && which(*class) {
                operation.state = OperationState::Unknown;
            }
        }
    }

    /// A claim ends: what is blind and open is in doubt. Does a person have to decide?
    fn end_operations(&mut self) -> bool {
        self.doubt(|class| class == Class::Blind.number());
        self.has_unknown()
    }

    fn let_go(&mut self) {
        (self.owner, self.claim, self.cancel) = (None, None, false);
    }

    /// The task's end, or its outcome stored beside open operations.
    fn conclude(&mut self, outcome: State) {
        let outcome = self.pending.unwrap_or(outcome);
        if self.open() > 0 {
            self.pending = Some(outcome);
            self.state = if self.end_operations() {
                State::Reconciling
            } else {
                State::Ready
            };
            self.rev += 1;
        } else {
            self.state = outcome;
            self.pending = None;
        }
        self.let_go();
    }

    pub(super) fn complete(&mut self) {
        if self.pending.is_some() {
            self.end_attempt(Cause::Settled, true);
        } else {
            self.conclude(State::Succeeded);
        }
    }

    pub(super) fn fail(&mut self, retryable: bool) {
        let last = self.counters[0] + 1 >= MAX_FAILURES;
        if self.pending.is_none() && !self.cancel && (!retryable || last) {
            self.counters[0] += 1;
            self.conclude(State::Failed);
            return;
        }
        if self.pending.is_some() && last {
            self.doubt(|_| true);
        }
        self.end_attempt(Cause::Failure, true);
    }

    /// An execution ends that is not, by itself, the end of its task.
    pub(super) fn end_attempt(&mut self, cause: Cause, later: bool) {
        let counter = match cause {
            Cause::Failure => Some(0),
            Cause::Drain | Cause::Absent | Cause::Interruption => Some(1),
            Cause::Crash => Some(2),
            Cause::Snooze => Some(3),
            _ => None,
        };
        if let Some(counter) = counter {
            self.counters[counter] += 1;
        }
        self.epoch += i64::from(cause.bumps_epoch());
        self.rev += 1;
        let poison = cause == Cause::Crash && self.counters[2] > MAX_CRASHES;
        let open = self.open();
        if open > 0 && poison {
            self.doubt(|_| true);
        }
        let people = open > 0 && self.end_operations();
        match self.pending {
            None if self.cancel => return self.conclude(State::Cancelled),
            None if poison => return self.conclude(State::Quarantined),
            Some(outcome) if open == 0 => return self.conclude(outcome),
            _ => {}
        }
        self.state = if people {
            State::Reconciling
        } else if later {
            State::Scheduled
        } else {
            State::Ready
        };
        self.let_go();
    }
}
