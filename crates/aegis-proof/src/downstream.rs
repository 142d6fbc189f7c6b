//! The remote side: it has effects, and it does what its class promises, no more.

use aegis_model::{Class, OperationState};

use crate::bounds::{Bounds, REQUEST_LIFE, RETENTION};
use crate::mutant::Mutant;
use crate::properties::Invariant;
use crate::world::{At, Held, Request, World};

impl World {
    /// A request leaves.
    pub(crate) fn send(&mut self, bounds: &Bounds, execution: usize, held: &Held) {
        let key = if bounds.has(Mutant::KeyHasEpoch) {
            held.epoch
        } else {
            0
        };
        let requests = &mut self.downstream[usize::from(held.task)].requests;
        requests.push(Request {
            sent_at: self.time,
            key,
            token: (held.lineage, held.epoch),
            execution: u8::try_from(execution).unwrap_or(u8::MAX),
            claim: held.claim,
        });
        requests.sort_unstable();
    }

    /// A request arrives.
    pub(crate) fn deliver(&mut self, bounds: &Bounds, task: usize, request: usize, lost: bool) {
        let request = self.downstream[task].requests.remove(request);
        let time = self.time;
        let remote = &mut self.downstream[task];
        let known = remote.keys.iter().any(|(key, _)| *key == request.key);
        let older = remote.token.is_some_and(|token| request.token < token);
        let (effect, answers) = match bounds.class {
            Class::Idempotent => (!known, true),
            Class::Fenced if bounds.has(Mutant::FenceIsNoFence) => (true, true),
            Class::Fenced => (!known && !older, known || !older),
            Class::Queryable | Class::Blind => (true, true),
        };
        if effect {
            remote.effects += 1;
            if !known {
                remote.keys.push((request.key, time));
            }
            remote.token = remote.token.max(Some(request.token));
            let intent = &self.database.tasks[task].operation;
            if intent.state == OperationState::Intended || intent.dispatches == 0 {
                self.breaks(Invariant::IntentFirst);
            }
            if older {
                self.breaks(Invariant::Order);
            }
        }
        let execution = usize::from(request.execution);
        let waits = self.executions[execution].at == At::Calling
            && self.executions[execution]
                .held
                .is_some_and(|held| held.claim == request.claim);
        if waits && answers && !lost {
            self.sends(execution, crate::world::Verb::Settle);
        }
    }

    /// The downstream keeps its oldest key no longer than it promised.
    pub(crate) fn forget(&mut self, task: usize) -> bool {
        let time = self.time;
        let keys = &mut self.downstream[task].keys;
        let old = keys.first().is_some_and(|(_, at)| at + RETENTION <= time);
        if old {
            keys.remove(0);
        }
        old
    }

    /// What has been under way for too long never arrives.
    pub(crate) fn expire_requests(&mut self) {
        let time = self.time;
        for remote in &mut self.downstream {
            remote
                .requests
                .retain(|request| request.sent_at + REQUEST_LIFE >= time);
        }
    }
}
