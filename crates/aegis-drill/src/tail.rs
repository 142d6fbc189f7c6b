//! What was lost with a promotion: the killed primary's facts beside those of the standby at that moment. Pure.
//!
//! Invariant: only what stands in the old life and not in the new one is in the tail; what is missing later and is not here was
//! lost by the engine.

use std::collections::HashSet;

use uuid::Uuid;

use crate::check::judge_moves;
use crate::facts::{Facts, Operation};

/// What a promotion took away, and what the life that ended did wrong in it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tail {
    /// When nobody could write to the old life any more, in the machine's monotonic nanoseconds.
    pub promoted_ns: i64,
    /// Moves of tasks.
    pub rows: u64,
    /// Tasks that the standby had never heard of.
    pub tasks: HashSet<Uuid>,
    /// Operations that had been dispatched, and of which the standby knew nothing or only the intention.
    pub intents: HashSet<String>,
    /// Wrong moves of the old life that the new one has forgotten: stale, late, after a drain.
    pub wrong: (u64, u64, u64),
}

/// Compares the life that ended with what the standby had of it.
pub fn judge(promoted_ns: i64, old: &Facts, shared: &Facts) -> Tail {
    let tasks =
        |facts: &Facts| -> HashSet<Uuid> { facts.tasks.iter().map(|one| one.task).collect() };
    let dispatched = |facts: &Facts| -> HashSet<String> {
        let sent = |one: &&Operation| one.state > 0;
        let operations = facts.operations.iter().filter(sent);
        operations.map(|one| one.id.clone()).collect()
    };
    let wrong = |facts: &Facts| {
        let found = judge_moves(&facts.moves);
        (
            found.stale_accepted,
            found.late_accepted,
            found.claims_after_drain,
        )
    };
    let (all, kept) = (wrong(old), wrong(shared));
    Tail {
        promoted_ns,
        rows: (old.moves.len() as u64).saturating_sub(shared.moves.len() as u64),
        tasks: &tasks(old) - &tasks(shared),
        intents: &dispatched(old) - &dispatched(shared),
        wrong: (
            all.0.saturating_sub(kept.0),
            all.1.saturating_sub(kept.1),
            all.2.saturating_sub(kept.2),
        ),
    }
}
