//! RL-I10 as liveness: from every state that is reached, every task ends once nothing goes wrong any more.

use aegis_model::Class;
use aegis_proof::{Bounds, Calm, INVARIANTS, Mutant, Protocol, SERVED};
use stateright::{Checker, HasDiscoveries, Model};

/// Whether each reached state is served; what is told of the first that is not.
fn served(bounds: Bounds) -> Result<(), String> {
    let started = std::time::Instant::now();
    let shown = format!("{:?} {:?}", bounds.class, bounds.mutant);
    let calm = Calm::after(&bounds);
    let checker = Protocol::new(bounds)
        .and_calm()
        .checker()
        .threads(2)
        .finish_when(HasDiscoveries::AllOf([SERVED].into()))
        .spawn_bfs()
        .join();
    println!(
        "{shown}: {} unique, depth {}, {:.1} s",
        checker.unique_state_count(),
        checker.max_depth(),
        started.elapsed().as_secs_f64()
    );
    let Some(path) = checker.discovery(SERVED) else {
        return Ok(());
    };
    let last = path.last_state().clone();
    let tail = match calm.serves(&last) {
        Err(steps) => format!("{:?}", &steps[steps.len().saturating_sub(12)..]),
        Ok(()) => "is served after all".to_owned(),
    };
    Err(format!("after {:?}, the calm: {tail}", path.into_actions()))
}

fn holds(bounds: Bounds) {
    served(bounds).expect("every state is served");
}

/// The rule is missed by nothing but this.
fn misses(bounds: Bounds, mutant: Mutant) {
    let bounds = bounds.without(mutant);
    let told = served(bounds.clone()).expect_err("a state that is not served");
    assert!(!told.contains("after all"), "{told}");
    let checker = Protocol::new(bounds)
        .checker()
        .threads(2)
        .spawn_bfs()
        .join();
    let discoveries = checker.discoveries();
    let broken: Vec<_> = INVARIANTS
        .iter()
        .filter(|(_, name)| discoveries.contains_key(name))
        .collect();
    assert!(broken.is_empty(), "{broken:?}");
}

#[test]
fn every_state_of_each_class_is_served() {
    for class in [
        Class::Idempotent,
        Class::Fenced,
        Class::Queryable,
        Class::Blind,
    ] {
        holds(Bounds {
            ticks: 3,
            ..Bounds::small(class)
        });
    }
}

#[test]
fn every_state_beside_a_drain_is_served() {
    holds(Bounds {
        drains: 1,
        crashes: 0,
        ticks: 3,
        ..Bounds::small(Class::Queryable)
    });
}

#[test]
fn every_state_of_a_new_version_beside_the_old_one_is_served() {
    holds(Bounds {
        protocols: vec![1, 2],
        ticks: 3,
        ..Bounds::small(Class::Fenced)
    });
}

#[test]
fn every_state_after_a_promotion_is_served() {
    holds(Bounds::failover(Class::Blind, true));
}

#[test]
fn nobody_reaps_is_missed() {
    misses(
        Bounds {
            ticks: 3,
            ..Bounds::small(Class::Fenced)
        },
        Mutant::NobodyReaps,
    );
}

#[test]
fn a_doubt_that_goes_round_is_missed() {
    misses(
        Bounds {
            ticks: 3,
            ..Bounds::small(Class::Blind)
        },
        Mutant::DoubtGoesRound,
    );
}
