//! The store beside a pure model of it: commands in orders that nobody thought of, on a real PostgreSQL over a line that is
//! really cut before a statement, behind it, or when it was answered. After each command every task stands where the model
//! has it.
//!
//! An execution whose answer was lost knows nothing until it has read back (RL-I14), and others go on meanwhile. Four habits
//! of it are run: the right one, and three that are wrong, each of which must be found out.
//!
//! A few cases of one seed belong to the suite; `AEGIS_MODEL_CASES=500` runs so many others, of a new seed each time. One
//! that fails is made smaller and printed.

mod cut;
mod model;
mod moves;
mod reads;
mod subject;

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::Ordering;

use proptest::test_runner::{Config, RngSeed, TestError, TestRunner};
use proptest_state_machine::ReferenceStateMachine;
use tokio::runtime::Builder;

use model::{Heard, Model};
use moves::Move;
use subject::{Habit, Subject};

const CASES: u32 = 16;
/// Of a habit that is wrong: the first case that shows it ends them.
const WRONG_CASES: u32 = 100;

/// What a run of cases tells.
#[derive(Default)]
struct Told {
    /// What executions heard that had lost an answer.
    heard: Mutex<BTreeSet<&'static str>>,
    /// The move at which a case failed, of the newest that did.
    failed_at: Mutex<Option<Move>>,
}

/// The move that is made now; it says so when it is the last.
struct Now<'a>(&'a Told, Move);

impl Drop for Now<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            *self.0.failed_at.lock().unwrap() = Some(self.1);
        }
    }
}

/// Makes the moves beside the model; panics where the store does otherwise.
fn run(habit: Habit, mut model: Model, moves: Vec<Move>, told: &Told, began: impl Fn()) {
    let runtime = Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let mut subject = Subject::new(habit).await;
        subject.compare(&model).await;
        for one in moves {
            began();
            let now = Now(told, one);
            model = Model::apply(model, &one);
            subject.apply(&model, one).await;
            subject.compare(&model).await;
            drop(now);
            if let Some(heard) = model.heard {
                told.heard.lock().unwrap().insert(heard.word());
            }
        }
    });
}

/// Runs cases of a habit; gives the shortest that fails.
fn cases(habit: Habit, config: Config) -> (Result<(), String>, Told) {
    let strategy = Model::sequential_strategy(15..40);
    let told = Told::default();
    let ran = TestRunner::new(config).run(&strategy, |(model, moves, counted)| {
        run(habit, model, moves, &told, || {
            if let Some(counted) = &counted {
                counted.fetch_add(1, Ordering::SeqCst);
            }
        });
        Ok(())
    });
    let ran = ran.map_err(|failed| match failed {
        TestError::Fail(why, (_, moves, _)) => format!("{why}\nafter {moves:#?}"),
        TestError::Abort(why) => panic!("{why}"),
    });
    (ran, told)
}

fn config(cases: u32, seed: Option<u64>, max_shrink_iters: u32) -> Config {
    Config {
        cases,
        rng_seed: seed.map_or(RngSeed::Random, RngSeed::Fixed),
        failure_persistence: None,
        max_shrink_iters,
        ..Config::default()
    }
}

#[test]
fn the_store_does_what_the_model_does() {
    let wanted: Option<u32> = std::env::var("AEGIS_MODEL_CASES")
        .ok()
        .map(|text| text.parse().unwrap());
    let seed = wanted.is_none().then_some(20_261_130);
    let config = config(wanted.unwrap_or(CASES), seed, 150);
    let (ran, told) = cases(Habit::ReadsBack, config);
    if let Err(failed) = ran {
        panic!("{failed}");
    }
    // Else these cases prove little.
    let heard = told.heard.into_inner().unwrap();
    assert_eq!(heard, BTreeSet::from(Heard::WORDS));
}

/// What each wrong habit does must be seen, else the cases above prove nothing about the right one.
fn is_found_out(habit: Habit) {
    let (ran, told) = cases(habit, config(WRONG_CASES, Some(20_261_130), 4));
    let why = ran.unwrap_err();
    let failed_at = told.failed_at.into_inner().unwrap();
    assert!(
        matches!(failed_at, Some(Move::Resume { .. })),
        "for another reason, at {failed_at:?}: {why}"
    );
}

#[test]
fn rl_i14_a_write_that_is_sent_again_unread_is_found_out() {
    is_found_out(Habit::Repeats);
}

#[test]
fn rl_i14_a_write_that_is_sent_again_from_where_the_row_stands_is_found_out() {
    is_found_out(Habit::RepeatsFromTheRow);
}

#[test]
fn rl_i14_a_lost_answer_that_counts_as_applied_is_found_out() {
    is_found_out(Habit::Assumes);
}
