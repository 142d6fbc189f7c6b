//! Explores a configuration and says what it found.

use std::collections::BTreeSet;

use aegis_proof::{Bounds, INVARIANTS, Invariant, Protocol};
use stateright::{Checker, HasDiscoveries, Model};

/// What an exploration found.
pub(crate) struct Found {
    /// Invariants with a counterexample.
    pub(crate) broken: BTreeSet<&'static str>,
    /// What was never reached although it should be.
    pub(crate) unreached: Vec<&'static str>,
}

/// Goes through every state.
pub(crate) fn explore(bounds: Bounds) -> Found {
    let started = std::time::Instant::now();
    let shown = format!("{:?} {:?}", bounds.class, bounds.mutant);
    let checker = Protocol::new(bounds)
        .checker()
        .threads(2)
        .spawn_bfs()
        .join();
    let found = report(&checker);
    println!(
        "{shown}: {} states, {} unique, depth {}, {:.1} s, broken {:?}, unreached {:?}",
        checker.state_count(),
        checker.unique_state_count(),
        checker.max_depth(),
        started.elapsed().as_secs_f64(),
        found.broken,
        found.unreached
    );
    found
}

/// Stops when these invariants have counterexamples.
pub(crate) fn hunt(bounds: Bounds, wanted: &[Invariant]) -> Found {
    let started = std::time::Instant::now();
    let shown = format!("{:?} {:?}", bounds.class, bounds.mutant);
    let names = INVARIANTS
        .iter()
        .filter(|(invariant, _)| wanted.contains(invariant))
        .map(|(_, name)| *name)
        .collect();
    let checker = Protocol::new(bounds)
        .checker()
        .threads(2)
        .finish_when(HasDiscoveries::AllOf(names))
        .spawn_bfs()
        .join();
    let found = report(&checker);
    println!(
        "{shown}: {} unique, depth {}, {:.1} s, broken {:?}",
        checker.unique_state_count(),
        checker.max_depth(),
        started.elapsed().as_secs_f64(),
        found.broken
    );
    found
}

fn report(checker: &impl Checker<Protocol>) -> Found {
    let discoveries = checker.discoveries();
    for (name, path) in &discoveries {
        if INVARIANTS.iter().any(|(_, invariant)| invariant == name)
            && std::env::var_os("SHOW").is_some()
        {
            println!("{name}:");
            for action in path.clone().into_actions() {
                println!("    {action:?}");
            }
        }
    }
    let is_invariant = |name: &str| INVARIANTS.iter().any(|(_, invariant)| *invariant == name);
    Found {
        broken: discoveries
            .keys()
            .copied()
            .filter(|name| is_invariant(name))
            .collect(),
        unreached: checker
            .model()
            .properties()
            .iter()
            .map(|property| property.name)
            .filter(|name| !is_invariant(name) && !discoveries.contains_key(name))
            .collect(),
    }
}
