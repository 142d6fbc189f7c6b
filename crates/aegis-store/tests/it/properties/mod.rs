//! The store beside a pure model of it: commands in orders that nobody thought of, writes that never arrive and answers
//! that nobody hears, on a real PostgreSQL. After each command every task stands where the model has it.
//!
//! A few cases of one seed belong to the suite; `AEGIS_MODEL_CASES=500` runs so many others, of a new seed each time. One
//! that fails is made smaller and printed.

mod model;
mod moves;
mod subject;

use proptest::test_runner::{Config, RngSeed, TestRunner};
use proptest_state_machine::{ReferenceStateMachine, StateMachineTest};
use tokio::runtime::{Builder, Runtime};

use model::Model;
use moves::Move;
use subject::Subject;

const CASES: u32 = 10;

/// A subject and what it runs on.
struct Bench {
    /// Taken out when the case ends, because connections end on their runtime.
    subject: Option<Subject>,
    runtime: Runtime,
}

impl Drop for Bench {
    fn drop(&mut self) {
        let subject = self.subject.take();
        self.runtime.block_on(async move { drop(subject) });
    }
}

impl StateMachineTest for Bench {
    type SystemUnderTest = Self;
    type Reference = Model;

    fn init_test(_: &Model) -> Self {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let subject = Some(runtime.block_on(Subject::new()));
        Self { subject, runtime }
    }

    fn apply(mut state: Self, model: &Model, one: Move) -> Self {
        let Self { subject, runtime } = &mut state;
        runtime.block_on(subject.as_mut().unwrap().apply(model, one));
        state
    }

    fn check_invariants(state: &Self, model: &Model) {
        let Self { subject, runtime } = state;
        runtime.block_on(subject.as_ref().unwrap().compare(model));
    }
}

#[test]
fn the_store_does_what_the_model_does() {
    let cases: Option<u32> = std::env::var("AEGIS_MODEL_CASES")
        .ok()
        .map(|text| text.parse().unwrap());
    let config = Config {
        cases: cases.unwrap_or(CASES),
        rng_seed: cases.map_or(RngSeed::Fixed(20_261_130), |_| RngSeed::Random),
        failure_persistence: None,
        max_shrink_iters: 150,
        ..Config::default()
    };
    let strategy = Model::sequential_strategy(10..35);
    let ran = TestRunner::new(config.clone()).run(&strategy, |(model, moves, seen)| {
        Bench::test_sequential(config.clone(), model, moves, seen);
        Ok(())
    });
    if let Err(failed) = ran {
        panic!("{failed}");
    }
}
