//! `make model-deep`: larger configurations than the suite has time for, each with its states and its time. Words are parts of
//! names, and choose: `cargo run --release -p aegis-proof --example deep -- blind`.
//!
//! Ends with 1 when an invariant has a counterexample, and prints the shortest path to it.

#![expect(clippy::print_stdout, reason = "a program that prints a table")]

use std::process::ExitCode;
use std::time::Instant;

use aegis_model::Class;
use aegis_proof::{Bounds, INVARIANTS, Protocol};
use stateright::{Checker, Model};

fn configurations() -> Vec<(&'static str, Bounds)> {
    let classes = [
        ("idempotent", Class::Idempotent),
        ("fenced", Class::Fenced),
        ("queryable", Class::Queryable),
        ("blind", Class::Blind),
    ];
    let mut all = Vec::new();
    for (name, class) in classes {
        all.push((
            name,
            Bounds {
                ticks: 5,
                claims: 3,
                ..Bounds::small(class)
            },
        ));
    }
    for (name, class) in [
        ("queryable, promotion, synchronous", Class::Queryable),
        ("blind, promotion, synchronous", Class::Blind),
    ] {
        all.push((
            name,
            Bounds {
                ticks: 5,
                ..Bounds::failover(class, true)
            },
        ));
    }
    let three = Bounds {
        executions: vec![0, 1, 2],
        protocols: vec![1, 1, 2],
        claims: 3,
        ticks: 3,
        ..Bounds::small(Class::Fenced)
    };
    all.push((
        "fenced, three processes, 3 ticks, no crash",
        Bounds {
            crashes: 0,
            ..three.clone()
        },
    ));
    all.push((
        "fenced, three processes, 3 ticks, no loss",
        Bounds {
            lost_replies: 0,
            ..three.clone()
        },
    ));
    all.push((
        "fenced, three processes, 2 ticks",
        Bounds { ticks: 2, ..three },
    ));
    all.push((
        "fenced, two tasks",
        Bounds {
            tasks: 2,
            ticks: 3,
            lost_replies: 0,
            ..Bounds::small(Class::Fenced)
        },
    ));
    all
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let is_chosen = |name: &str| words.is_empty() || words.iter().any(|word| name.contains(word));
    let mut broken = false;
    println!(
        "{:<42} {:>12} {:>12} {:>6} {:>8}",
        "configuration", "states", "unique", "depth", "seconds"
    );
    for (name, bounds) in configurations() {
        if !is_chosen(name) {
            continue;
        }
        let started = Instant::now();
        let checker = Protocol::new(bounds)
            .checker()
            .threads(2)
            .spawn_bfs()
            .join();
        println!(
            "{name:<42} {:>12} {:>12} {:>6} {:>8.1}",
            checker.state_count(),
            checker.unique_state_count(),
            checker.max_depth(),
            started.elapsed().as_secs_f64()
        );
        for (found, path) in checker.discoveries() {
            if INVARIANTS.iter().any(|(_, invariant)| *invariant == found) {
                broken = true;
                println!("  {found} is broken:");
                for action in path.into_actions() {
                    println!("    {action:?}");
                }
            }
        }
    }
    ExitCode::from(u8::from(broken))
}
