//! Nothing is taken away: every invariant holds, and what makes that mean something was reached.

use aegis_model::Class;
use aegis_proof::{Bounds, INVARIANTS, Invariant};

use crate::support::explore;

fn holds(bounds: Bounds) {
    let found = explore(bounds);
    assert!(found.broken.is_empty(), "broken: {:?}", found.broken);
    assert!(
        found.unreached.is_empty(),
        "never reached: {:?}",
        found.unreached
    );
}

#[test]
fn idempotent() {
    holds(Bounds::small(Class::Idempotent));
}

#[test]
fn fenced() {
    holds(Bounds::small(Class::Fenced));
}

#[test]
fn queryable() {
    holds(Bounds::small(Class::Queryable));
}

#[test]
fn blind() {
    holds(Bounds::small(Class::Blind));
}

#[test]
fn a_key_that_the_downstream_forgets() {
    let found = explore(Bounds::alone(Class::Idempotent));
    assert!(found.broken.is_empty(), "broken: {:?}", found.broken);
}

#[test]
fn a_name_that_is_used_again() {
    for executions in [vec![0, 0], vec![0, 1]] {
        holds(Bounds {
            reuse_ids: true,
            protocols: vec![1; 1 + usize::from(executions[1])],
            executions,
            ..Bounds::small(Class::Fenced)
        });
    }
}

/// RL-I15: two tasks of two tenants under one worker, each with an operation of this class.
fn two_tenants_of_one_worker(class: Class) {
    let found = explore(Bounds {
        tasks: 2,
        executions: vec![0, 0],
        protocols: vec![1],
        ticks: 2,
        lost_replies: 0,
        ..Bounds::small(class)
    });
    assert!(found.broken.is_empty(), "broken: {:?}", found.broken);
}

#[test]
fn two_tenants_of_one_worker_with_remembered_keys() {
    two_tenants_of_one_worker(Class::Idempotent);
}

#[test]
fn two_tenants_of_one_worker_with_fences() {
    two_tenants_of_one_worker(Class::Fenced);
}

#[test]
fn two_tenants_of_one_worker_with_probes() {
    two_tenants_of_one_worker(Class::Queryable);
}

#[test]
fn two_tenants_of_one_worker_with_blind_calls() {
    two_tenants_of_one_worker(Class::Blind);
}

#[test]
fn a_drain() {
    holds(Bounds {
        drains: 1,
        crashes: 0,
        ticks: 3,
        ..Bounds::small(Class::Fenced)
    });
}

#[test]
fn a_new_version_beside_the_old_one() {
    holds(Bounds {
        protocols: vec![2, 1],
        ticks: 3,
        ..Bounds::small(Class::Fenced)
    });
}

#[test]
fn a_clock_that_jumps() {
    for jumps in [(1, 0), (0, 1)] {
        let found = explore(Bounds {
            jumps,
            ticks: 3,
            lost_replies: 0,
            ..Bounds::small(Class::Fenced)
        });
        assert!(found.broken.is_empty(), "broken: {:?}", found.broken);
    }
}

/// RL-D7: with a synchronous standby no effect stands without its intent, whatever was lost.
#[test]
fn a_failover_with_synchronous_intents() {
    for class in [Class::Queryable, Class::Blind] {
        let found = explore(Bounds::failover(class, true));
        assert!(found.broken.is_empty(), "{class:?}: {:?}", found.broken);
    }
}

/// RL-D7, the other half: an asynchronous standby may lose the intent of a call that has left. A repeat is harmless where
/// the downstream knows the key; a blind one is doubled. This is said in the documents, not hidden.
#[test]
fn a_failover_that_loses_intents_is_known() {
    let found = explore(Bounds::failover(Class::Idempotent, false));
    assert_eq!(
        Vec::from_iter(&found.broken),
        [&name(Invariant::IntentFirst)]
    );
    let found = explore(Bounds::failover(Class::Blind, false));
    assert!(
        found.broken.contains(name(Invariant::AtMostOnce)),
        "{:?}",
        found.broken
    );
}

/// A process that stops between its last look at its lease and the call: no engine closes this window. The remote key does,
/// and the fence does; a probe and a person are too early.
#[test]
fn the_honest_window_is_closed_by_the_remote_key() {
    for (class, doubled) in [
        (Class::Idempotent, false),
        (Class::Fenced, false),
        (Class::Queryable, true),
        (Class::Blind, true),
    ] {
        let found = explore(Bounds {
            honest_window: true,
            lost_replies: 0,
            ticks: if doubled { 6 } else { 3 },
            ..Bounds::small(class)
        });
        assert_eq!(
            found.broken.contains(name(Invariant::AtMostOnce)),
            doubled,
            "{class:?}: {:?}",
            found.broken
        );
    }
}

fn name(invariant: Invariant) -> &'static str {
    INVARIANTS
        .iter()
        .find(|(known, _)| *known == invariant)
        .expect("every invariant has a name")
        .1
}
