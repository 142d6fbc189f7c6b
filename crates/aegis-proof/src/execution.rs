//! What an execution does: decide by the ledger, write, call, and find out what a lost answer meant.

use aegis_model::operation::{self, NextStep};
use aegis_model::{Class, OperationState, State};

use crate::bounds::Bounds;
use crate::guarded::{Answer, key_valid_until};
use crate::mutant::Mutant;
use crate::properties::Invariant;
use crate::world::{At, Mode, Sent, Verb, World};

impl World {
    /// A guarded write leaves; it runs at some later moment.
    pub(crate) fn sends(&mut self, execution: usize, verb: Verb) {
        let worker = self.executions[execution]
            .held
            .map_or_else(|| self.worker(execution), |held| held.owner);
        let sent = Sent {
            verb,
            at: self.now,
            live: self.lease_live(worker),
        };
        self.executions[execution].at = At::Writing(sent);
    }

    /// A handler that swallowed an operation's error returns its result, as if nothing were open.
    pub(crate) fn skips(&mut self, execution: usize) -> bool {
        let open = self.executions[execution]
            .held
            .is_some_and(|held| self.ledger(usize::from(held.task)) == OperationState::Dispatched);
        if open {
            self.sends(execution, Verb::Complete);
        }
        open
    }

    /// What the ledger says is next.
    pub(crate) fn decide(&mut self, bounds: &Bounds, execution: usize) -> bool {
        let Some(held) = self.executions[execution].held else {
            return false;
        };
        let at = usize::from(held.task);
        let ledger = &self.database.tasks[at].operation;
        let left = |until: u8| i64::from(until) - i64::from(self.now);
        let class = if bounds.has(Mutant::BlindIsRepeated) {
            Class::Fenced
        } else {
            bounds.class
        };
        let quiet = (!bounds.has(Mutant::NoQuietPeriod)).then(|| left(ledger.quiet_until));
        let key = (bounds.class == Class::Idempotent)
            .then(|| left(key_valid_until(bounds, ledger.first_at)));
        let step = operation::next_step(ledger.state, class, ledger.resolution, quiet, key);
        let verb = match step {
            NextStep::Dispatch | NextStep::Repeat => Verb::Dispatch { probed: false },
            NextStep::WaitQuiet { .. } => Verb::Snooze,
            NextStep::Probe if self.downstream[at].effects > 0 => Verb::Settle,
            NextStep::Probe => Verb::Dispatch { probed: true },
            NextStep::Answer => Verb::Complete,
            NextStep::Doubt => Verb::Doubt,
        };
        if bounds.has(Mutant::NoIntent) && matches!(verb, Verb::Dispatch { .. }) {
            self.executions[execution].at = At::Cleared { until: u8::MAX };
            return true;
        }
        self.sends(execution, verb);
        true
    }

    /// Runs the write of an execution.
    pub(crate) fn run_write(&mut self, bounds: &Bounds, execution: usize, lost: bool) -> bool {
        let (At::Writing(sent), Some(held)) = (
            self.executions[execution].at,
            self.executions[execution].held,
        ) else {
            return false;
        };
        let protocol = self.process(execution).protocol;
        let answer = self.write(bounds, &held, sent, protocol);
        if lost {
            self.executions[execution].at = At::WriteUnknown(sent);
            return true;
        }
        match answer {
            Answer::Applied(rev) => self.goes_on(bounds, execution, sent.verb, rev),
            Answer::Refused => self.executions[execution].at = At::Deciding,
            Answer::Ended | Answer::Fenced => self.lets_go(execution),
        }
        true
    }

    /// The claim's next rev is known; what follows an applied write.
    fn goes_on(&mut self, bounds: &Bounds, execution: usize, verb: Verb, rev: u8) {
        if let Some(held) = &mut self.executions[execution].held {
            held.rev = rev;
        }
        match verb {
            Verb::Dispatch { .. } => {
                self.executions[execution].at = self.cleared(bounds, execution);
            }
            _ => self.executions[execution].at = At::Deciding,
        }
    }

    /// How long the call may wait for its turn: a process can be slow between the reply and the call.
    fn cleared(&self, bounds: &Bounds, execution: usize) -> At {
        let first_at = self.executions[execution].held.map(|held| {
            self.database.tasks[usize::from(held.task)]
                .operation
                .first_at
        });
        let bounded = bounds.class == Class::Idempotent && !bounds.has(Mutant::CallWaitsForEver);
        let until = match first_at {
            Some(first_at) if bounded => {
                let left = key_valid_until(bounds, first_at).saturating_sub(self.now);
                self.time + left
            }
            _ => u8::MAX,
        };
        At::Cleared { until }
    }

    pub(crate) fn lets_go(&mut self, execution: usize) {
        self.executions[execution].at = At::Idle;
        self.executions[execution].held = None;
        self.executions[execution].orphan = false;
    }

    /// Claim id and rev tell what a lost reply meant; nothing is repeated before that.
    pub(crate) fn read_back(&mut self, bounds: &Bounds, execution: usize) -> bool {
        let (At::WriteUnknown(sent), Some(held)) = (
            self.executions[execution].at,
            self.executions[execution].held,
        ) else {
            return false;
        };
        let row = &self.database.tasks[usize::from(held.task)];
        let mine = row.state == State::Running
            && row.claim == Some(held.claim)
            && row.epoch == held.epoch
            && row.lineage == Some(self.database.lineage);
        if bounds.has(Mutant::UnknownIsApplied) {
            let applied = !mine || row.rev == held.rev + 1;
            if !applied {
                self.breaks(Invariant::UnknownRemains);
            }
            self.goes_on(bounds, execution, sent.verb, held.rev + 1);
            return true;
        }
        if !mine {
            // Ended by this write, or taken over: either way this execution is over.
            self.lets_go(execution);
        } else if row.rev == held.rev {
            self.executions[execution].at = At::Deciding;
        } else {
            let rev = row.rev;
            self.goes_on(bounds, execution, sent.verb, rev);
        }
        true
    }

    /// The call leaves, when its process still believes in its lease.
    pub(crate) fn call(&mut self, bounds: &Bounds, execution: usize) -> bool {
        let Some(held) = self.executions[execution].held else {
            return false;
        };
        let At::Cleared { until } = self.executions[execution].at else {
            return false;
        };
        if self.time >= until {
            // The ledger is looked at again: it will say that nobody may repeat this.
            self.executions[execution].at = At::Deciding;
            return true;
        }
        let process = self.process(execution);
        let believes = process.worker == held.owner && self.time < process.believes_until;
        if !believes && !bounds.honest_window {
            return false;
        }
        self.send(bounds, execution, &held);
        self.executions[execution].at = At::Calling;
        true
    }

    /// No answer came. What it did is not known.
    pub(crate) fn times_out(&mut self, bounds: &Bounds, execution: usize) -> bool {
        let Some(held) = self.executions[execution].held else {
            return false;
        };
        let me = u8::try_from(execution).unwrap_or(u8::MAX);
        let under_way = self.downstream[usize::from(held.task)]
            .requests
            .iter()
            .any(|request| request.execution == me && request.claim == held.claim);
        if under_way {
            if self.used.lost_replies >= bounds.lost_replies {
                return false;
            }
            self.used.lost_replies += 1;
        }
        match bounds.class {
            Class::Queryable if !bounds.has(Mutant::NoQuietPeriod) => {
                self.sends(execution, Verb::Snooze);
            }
            _ => self.executions[execution].at = At::Deciding,
        }
        true
    }

    /// A process that no longer believes stops what it can stop. A write that has left is the database's to refuse.
    pub(crate) fn stands_down(&mut self, execution: usize) -> bool {
        let process = self.process(execution);
        let over = self.time >= process.believes_until || process.mode == Mode::Dead;
        let can_stop = !matches!(
            self.executions[execution].at,
            At::Idle | At::Writing(_) | At::Claiming { .. }
        );
        if over && can_stop {
            self.lets_go(execution);
        }
        over && can_stop
    }

    /// What stopped locally is handed back.
    pub(crate) fn hands_back(&mut self, execution: usize) -> bool {
        let stopped = matches!(
            self.executions[execution].at,
            At::Deciding | At::Cleared { .. }
        );
        let draining = self.process(execution).mode == Mode::Draining;
        if stopped && draining {
            self.sends(execution, Verb::HandBack);
        }
        stopped && draining
    }

    /// Where the ledger stands.
    pub(crate) fn ledger(&self, task: usize) -> OperationState {
        self.database.tasks[task].operation.state
    }
}
