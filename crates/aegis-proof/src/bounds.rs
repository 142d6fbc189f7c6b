//! How large a world is explored, and which rule is taken away in it.

use aegis_model::Class;

use crate::mutant::Mutant;

/// A lease, in ticks.
pub(crate) const TTL: u8 = 2;
/// How long a request can be under way, in ticks.
pub(crate) const REQUEST_LIFE: u8 = 1;
/// How long a lost answer is waited for before anybody asks: longer than any request can live.
pub(crate) const QUIET: u8 = REQUEST_LIFE + 1;
/// How long the downstream remembers an idempotency key.
pub(crate) const RETENTION: u8 = 4;
/// Taken off the downstream's retention: a request that is under way must still find its key.
pub(crate) const KEY_MARGIN: u8 = REQUEST_LIFE + 1;
/// Crashes alone until quarantine.
pub(crate) const MAX_CRASHES: u8 = 2;

/// One configuration. Every budget bounds how often something may happen on a path.
#[derive(Debug, Clone)]
pub struct Bounds {
    /// The class of every task's operation.
    pub class: Class,
    /// How many tasks.
    pub tasks: u8,
    /// The process of each execution: `[0, 0]` are two executions under one owner id.
    pub executions: Vec<u8>,
    /// The highest protocol that each process reads and writes; all read from 1.
    pub protocols: Vec<u8>,
    /// Ticks of true time.
    pub ticks: u8,
    /// Claims, lost ones included.
    pub claims: u8,
    /// Processes that die without a word.
    pub crashes: u8,
    /// Replies that get lost: of claims, of guarded writes, of the downstream.
    pub lost_replies: u8,
    /// Promotions of the standby.
    pub failovers: u8,
    /// Jumps of the database's clock by two ticks: forward, then back.
    pub jumps: (u8, u8),
    /// Drains that are asked for.
    pub drains: u8,
    /// Every dispatch is on the standby before its call may leave.
    pub synchronous: bool,
    /// A process that starts again takes its old worker id: what Aegis never does, and the guard has to bear all the same.
    pub reuse_ids: bool,
    /// A process may stop between its last look at its lease and the call: the window that no engine closes.
    pub honest_window: bool,
    /// The rule that is taken away.
    pub mutant: Option<Mutant>,
}

impl Bounds {
    /// One task, two processes with one execution each, two claims, one crash, one lost reply, no failover.
    pub fn small(class: Class) -> Self {
        Self {
            class,
            tasks: 1,
            executions: vec![0, 1],
            protocols: vec![1, 1],
            ticks: if class == Class::Idempotent { 3 } else { 4 },
            claims: 2,
            crashes: 1,
            lost_replies: 1,
            failovers: 0,
            jumps: (0, 0),
            drains: 0,
            synchronous: false,
            reuse_ids: false,
            honest_window: false,
            mutant: None,
        }
    }

    /// One execution alone, for as long as a key lives.
    pub fn alone(class: Class) -> Self {
        Self {
            executions: vec![0],
            protocols: vec![1],
            ticks: 6,
            crashes: 0,
            ..Self::small(class)
        }
    }

    /// A standby that lags, and one promotion.
    pub fn failover(class: Class, synchronous: bool) -> Self {
        Self {
            failovers: 1,
            crashes: 0,
            lost_replies: 0,
            ticks: 3,
            synchronous,
            ..Self::small(class)
        }
    }

    /// The same with a rule taken away.
    #[must_use]
    pub fn without(mut self, mutant: Mutant) -> Self {
        self.mutant = Some(mutant);
        self
    }

    pub(crate) fn has(&self, mutant: Mutant) -> bool {
        self.mutant == Some(mutant)
    }
}
