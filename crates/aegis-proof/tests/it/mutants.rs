//! A rule is taken away, and a counterexample is found. A mutant that nobody misses is a rule that nobody needs.

use aegis_model::Class;
use aegis_proof::{Bounds, INVARIANTS, Invariant, Mutant};

use crate::support::hunt;

/// Explores without this rule until each of these invariants has a counterexample.
fn missed(bounds: Bounds, mutant: Mutant, wanted: &[Invariant]) {
    let found = hunt(bounds.without(mutant), wanted);
    for invariant in wanted {
        let (_, name) = INVARIANTS
            .iter()
            .find(|(known, _)| known == invariant)
            .expect("every invariant has a name");
        assert!(
            found.broken.contains(name),
            "{mutant:?} does not break {name}, only {:?}",
            found.broken
        );
    }
}

#[test]
fn a_fence_of_the_epoch_alone() {
    missed(
        Bounds::failover(Class::Idempotent, false),
        Mutant::FenceIsEpoch,
        &[Invariant::NoPhantomDone],
    );
}

#[test]
fn a_fence_of_owner_and_epoch() {
    missed(
        Bounds::failover(Class::Idempotent, false),
        Mutant::FenceIsOwnerAndEpoch,
        &[Invariant::NoPhantomDone],
    );
}

#[test]
fn a_fence_of_the_owner_alone_where_names_are_used_again() {
    let bounds = Bounds {
        reuse_ids: true,
        executions: vec![0, 0],
        protocols: vec![1],
        ..Bounds::small(Class::Idempotent)
    };
    missed(bounds, Mutant::FenceIsOwner, &[Invariant::SingleWriter]);
}

/// RL-I15: two tenants' tasks under one worker.
#[test]
fn rows_that_are_found_by_their_owner() {
    let bounds = Bounds {
        tasks: 2,
        executions: vec![0, 0],
        protocols: vec![1],
        crashes: 0,
        lost_replies: 0,
        ticks: 1,
        ..Bounds::small(Class::Fenced)
    };
    missed(bounds, Mutant::RowsByOwner, &[Invariant::TenantFence]);
}

#[test]
fn no_look_at_the_lease() {
    missed(
        Bounds::small(Class::Fenced),
        Mutant::NoLease,
        &[Invariant::LeaseAtWrite],
    );
}

#[test]
fn the_clock_of_the_transaction() {
    missed(
        Bounds::small(Class::Fenced),
        Mutant::TransactionClock,
        &[Invariant::LeaseAtWrite],
    );
}

#[test]
fn a_lease_of_the_snapshot() {
    missed(
        Bounds::small(Class::Fenced),
        Mutant::SnapshotLease,
        &[Invariant::LeaseAtWrite],
    );
}

#[test]
fn rl_01_an_unguarded_reaper_opens_what_has_ended() {
    missed(
        Bounds::small(Class::Idempotent),
        Mutant::UnguardedReaper,
        &[Invariant::NoPhantomDone],
    );
}

#[test]
fn a_reaper_that_trusts_the_old_lineage() {
    missed(
        Bounds::failover(Class::Idempotent, false),
        Mutant::ReaperTrustsOldLineage,
        &[Invariant::NoLostTask],
    );
}

#[test]
fn a_gate_in_memory_only() {
    let bounds = Bounds {
        drains: 1,
        ..Bounds::small(Class::Idempotent)
    };
    missed(bounds, Mutant::GateInMemoryOnly, &[Invariant::DrainClosed]);
}

#[test]
fn a_drain_that_forgets_claims_under_way() {
    let bounds = Bounds {
        drains: 1,
        ..Bounds::small(Class::Idempotent)
    };
    missed(
        bounds,
        Mutant::DrainForgetsClaims,
        &[Invariant::DrainClosed],
    );
}

#[test]
fn a_claim_of_what_cannot_be_read() {
    let bounds = Bounds {
        protocols: vec![2, 1],
        ..Bounds::small(Class::Idempotent)
    };
    missed(bounds, Mutant::ClaimIgnoresProtocol, &[Invariant::Protocol]);
}

#[test]
fn a_call_without_an_intent() {
    missed(
        Bounds::small(Class::Idempotent),
        Mutant::NoIntent,
        &[Invariant::IntentFirst],
    );
}

#[test]
fn a_key_with_the_epoch_in_it() {
    missed(
        Bounds::small(Class::Idempotent),
        Mutant::KeyHasEpoch,
        &[Invariant::AtMostOnce, Invariant::Order],
    );
}

#[test]
fn a_blind_operation_that_is_repeated() {
    missed(
        Bounds::small(Class::Blind),
        Mutant::BlindIsRepeated,
        &[Invariant::AtMostOnce],
    );
}

#[test]
fn a_probe_before_the_quiet_period() {
    missed(
        Bounds::small(Class::Queryable),
        Mutant::NoQuietPeriod,
        &[Invariant::AtMostOnce],
    );
}

/// Found here: a promotion ends a claim whose worker still believes in its lease; its call may leave after the probe.
#[test]
fn a_quiet_period_that_counts_from_the_end_of_the_claim() {
    missed(
        Bounds {
            ticks: 4,
            ..Bounds::failover(Class::Queryable, true)
        },
        Mutant::QuietFromTheEnd,
        &[Invariant::AtMostOnce],
    );
}

#[test]
fn a_worker_that_does_not_obey_its_renewal() {
    missed(
        Bounds {
            ticks: 5,
            ..Bounds::failover(Class::Queryable, true)
        },
        Mutant::RenewalIsDeaf,
        &[Invariant::AtMostOnce],
    );
}

#[test]
fn a_key_trusted_to_the_last_moment() {
    missed(
        Bounds::alone(Class::Idempotent),
        Mutant::NoKeyMargin,
        &[Invariant::AtMostOnce],
    );
}

#[test]
fn a_call_that_waits_for_ever_after_its_dispatch() {
    missed(
        Bounds::alone(Class::Idempotent),
        Mutant::CallWaitsForEver,
        &[Invariant::AtMostOnce],
    );
}

#[test]
fn a_lost_reply_that_counts_as_applied() {
    let bounds = Bounds {
        failovers: 1,
        crashes: 0,
        ..Bounds::small(Class::Idempotent)
    };
    missed(
        bounds,
        Mutant::UnknownIsApplied,
        &[Invariant::UnknownRemains],
    );
}

#[test]
fn a_completion_beside_an_open_operation() {
    missed(
        Bounds::small(Class::Idempotent),
        Mutant::CompleteBesideOpen,
        &[Invariant::NoPhantomDone],
    );
}

#[test]
fn a_person_who_decides_too_early() {
    missed(
        Bounds {
            ticks: 6,
            ..Bounds::small(Class::Blind)
        },
        Mutant::ResolvedEarly,
        &[Invariant::AtMostOnce],
    );
}

#[test]
fn crashes_that_nobody_counts() {
    let bounds = Bounds {
        crashes: 2,
        claims: 3,
        ticks: 6,
        lost_replies: 0,
        ..Bounds::small(Class::Fenced)
    };
    missed(bounds, Mutant::CrashesUncounted, &[Invariant::AttemptBound]);
}

#[test]
fn a_claim_that_leaves_the_epoch_as_it_is() {
    missed(
        Bounds::small(Class::Queryable),
        Mutant::ClaimKeepsEpoch,
        &[Invariant::FenceMonotone],
    );
}

/// The claim that the lost tail had, and the one after it, are the same to everybody.
#[test]
fn a_promotion_that_keeps_its_lineage() {
    missed(
        Bounds::failover(Class::Idempotent, false),
        Mutant::PromotionKeepsLineage,
        &[Invariant::FenceMonotone],
    );
}

#[test]
fn an_end_that_forgets_the_dispatch() {
    missed(
        Bounds::small(Class::Blind),
        Mutant::EndForgetsDispatch,
        &[Invariant::LedgerOneWay, Invariant::AtMostOnce],
    );
}

#[test]
fn a_fenced_downstream_that_is_none() {
    missed(
        Bounds::small(Class::Fenced),
        Mutant::FenceIsNoFence,
        &[Invariant::AtMostOnce, Invariant::Order],
    );
}

/// A property that nobody has seen fail could be true for ever.
#[test]
fn every_invariant_has_a_mutant_that_breaks_it() {
    let here = include_str!("mutants.rs");
    for (invariant, name) in INVARIANTS {
        let wanted = format!("Invariant::{invariant:?}");
        let asked = here
            .split("missed(")
            .skip(1)
            .filter_map(|call| call.split(");").next())
            .any(|call| call.contains(&wanted));
        assert!(asked, "no mutant here must break {name}");
    }
}
