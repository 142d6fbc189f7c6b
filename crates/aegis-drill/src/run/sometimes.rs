//! What has to happen in a run, so that it tells something: a table.
//!
//! Invariant: what has not happened stands there with 0. Must never leave a fault that was made without its "sometimes".

use std::collections::BTreeMap;

use super::clock::Clocks;
use super::reaper;
use crate::check::{Evidence, Found};
use crate::facts::Move;
use crate::fault::Fault;
use crate::history::Event;
use crate::oracle::behaviour::Behaviour;
use crate::oracle::record::{Entry, What};
use crate::proxy::Cuts;

/// What no evidence tells, and the drill saw itself.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen {
    /// Connections that the server refused while it was exhausted.
    pub(super) refused: u64,
    pub(super) clocks: Clocks,
    /// How often the server said that its disk is full.
    pub(super) disk_refused: u64,
    /// Frozen housekeepers that went on when others had their tasks.
    pub(super) housekeepers_taken: u64,
    /// Frozen reapers that went on when others had taken tasks back.
    pub(super) reapers_overtaken: u64,
    /// Reapers that were killed in a statement, which arrived.
    pub(super) reapers_killed: u64,
    /// Claims that arrived when the gate of their worker was closed.
    pub(super) drains_raced: u64,
}

/// What is counted in.
#[derive(Clone, Copy)]
struct Told<'a> {
    found: &'a Found,
    evidence: &'a Evidence,
    seen: Seen,
}

/// One thing that has to happen.
#[derive(Clone, Copy)]
struct Row {
    name: &'static str,
    /// Where one of these was made; always, where none is named.
    when: &'static [Fault],
    /// What makes it happen when it has not; `None`: work alone does.
    again: Option<Fault>,
    count: fn(&Told<'_>) -> u64,
}

type Count = fn(&Told<'_>) -> u64;

/// In every run.
const fn always(name: &'static str, count: Count) -> Row {
    Row {
        name,
        when: &[],
        again: None,
        count,
    }
}

/// With the first of these faults, or any other of them.
const fn with(when: &'static [Fault], name: &'static str, count: Count) -> Row {
    Row {
        name,
        when,
        again: Some(when[0]),
        count,
    }
}

/// The same, and another fault makes it happen.
const fn made_by(again: Fault, row: Row) -> Row {
    Row {
        again: Some(again),
        ..row
    }
}

/// The proxy counts it itself.
const BY_THE_PROXY: Count = |_| 0;

#[rustfmt::skip] // One thing a line, as a table is read.
const TABLE: &[Row] = {
    use Behaviour::{AnswerLost, ErrorAfter, Late, RequestLost};
    use Fault as F;
    &[
        always("effect_with_a_lost_answer", |told| told.behaved(AnswerLost)),
        always("request_lost", |told| told.behaved(RequestLost)),
        always("effect_after_the_caller_gave_up", |told| told.behaved(Late)),
        always("error_after_the_effect", |told| told.behaved(ErrorAfter)),
        always("probe_asked", |told| told.oracle(&[What::ProbedHappened, What::ProbedNot])),
        always("first_result_replayed", |told| told.oracle(&[What::Replayed])),
        always("blind_in_the_queue", |told| told.found.unknown_in_queue),
        with(&[F::WorkerKilled, F::WorkerFrozen], "takeover", |told| told.found.takeovers),
        with(&[F::LateSuccess], "late_success_refused", |told| told.refused("complete")),
        with(&[F::LateFailure], "late_failure_refused", |told| told.refused("fail")),
        with(&[F::CutAfter, F::CutReplied], "unknown_commit_resolved", |told| told.found.unknown_commits_resolved),
        with(&[F::Exhausted], "connection_refused_at_the_server", |told| told.seen.refused),
        with(&[F::WorkerTerminated], "drain_with_tasks_in_hand", |told| told.found.drains_with_tasks),
        with(&[F::CutBefore], "cut_before_commit", BY_THE_PROXY),
        with(&[F::CutBefore], "cut_before_statement", BY_THE_PROXY),
        with(&[F::CutAfter], "cut_after_commit", BY_THE_PROXY),
        with(&[F::CutAfter], "cut_after_statement", BY_THE_PROXY),
        with(&[F::CutReplied], "cut_replied_commit", BY_THE_PROXY),
        with(&[F::CutReplied], "cut_replied_statement", BY_THE_PROXY),
        with(&[F::HalfOpen], "cut_silent_statement", BY_THE_PROXY),
        with(&[F::HousekeepingLate], "cut_late_housekeeping", BY_THE_PROXY),
        with(&[F::HousekeeperFrozen], "cut_frozen_housekeeping", BY_THE_PROXY),
        with(&[F::HousekeeperFrozen], "frozen_housekeeper_taken_over", |told| told.seen.housekeepers_taken),
        with(&[F::WorkerClocks], "worker_saw_another_clock", |told| told.saw(|event| matches!(event, Event::Clock { .. }))),
        made_by(F::WorkerKilled, with(&[F::ReaperKilled, F::ReaperFrozen], "taken_back_by_the_reaper", reaped)),
        with(&[F::ReaperKilled], "reaper_killed_in_its_statement", |told| told.seen.reapers_killed),
        with(&[F::ReaperFrozen], "frozen_reaper_overtaken", |told| told.seen.reapers_overtaken),
        with(&[F::DrainRaced], "claim_raced_a_drain", |told| told.seen.drains_raced),
        with(&[F::Promotion], "rows_lost_with_the_tail", |told| told.found.tail_rows),
        with(&[F::Promotion], "write_from_before_the_promotion_refused", |told| told.found.refused_after_promotion),
        with(&[F::DatabaseClock], "database_clock_went_forward", |told| told.seen.clocks.forward),
        with(&[F::DatabaseClock], "database_clock_went_back", |told| told.seen.clocks.back),
        with(&[F::DatabaseClock], "database_clock_stepped", |told| told.seen.clocks.steps),
        with(&[F::DatabaseClock], "taken_over_at_a_jump", |told| told.found.taken_over_at_a_jump),
        with(&[F::DatabaseClock], "written_under_a_lease_that_a_jump_made_longer", |told| told.found.longer_after_a_jump),
        with(&[F::DiskFull], "write_refused_at_a_full_disk", |told| told.seen.disk_refused),
    ]
};

/// What has to happen in a run with these faults, and how often it did.
pub(super) fn sometimes(
    faults: &BTreeMap<String, u64>,
    found: &Found,
    evidence: &Evidence,
    seen: Seen,
    cuts: &Cuts,
) -> BTreeMap<String, u64> {
    let told = Told {
        found,
        evidence,
        seen,
    };
    let made = |fault: &Fault| faults.contains_key(fault.name());
    let mut sometimes: BTreeMap<String, u64> = TABLE
        .iter()
        .filter(|row| row.when.is_empty() || row.when.iter().any(made))
        .map(|row| (row.name.to_owned(), (row.count)(&told)))
        .collect();
    for ((place, what), count) in cuts {
        *sometimes
            .entry(format!("cut_{place:?}_{what}").to_lowercase())
            .or_default() += count;
    }
    sometimes
}

/// Which fault makes it happen, when it has not; `None`: work alone does.
pub(super) fn again(name: &str) -> Option<Fault> {
    TABLE.iter().find(|row| row.name == name)?.again
}

impl Told<'_> {
    /// Calls that went so at the oracle.
    fn behaved(&self, how: Behaviour) -> u64 {
        let so = |entry: &&Entry| {
            entry.behaviour == Some(how) && matches!(entry.what, What::Applied | What::Lost)
        };
        count(self.evidence.oracle.iter().filter(so))
    }

    /// What the oracle wrote down.
    fn oracle(&self, what: &[What]) -> u64 {
        count(
            self.evidence
                .oracle
                .iter()
                .filter(|entry| what.contains(&entry.what)),
        )
    }

    /// What processes wrote down.
    fn saw(&self, is: fn(&Event) -> bool) -> u64 {
        count(self.evidence.history.iter().filter(|line| is(&line.event)))
    }

    /// Late reports of this kind that were refused.
    fn refused(&self, wanted: &str) -> u64 {
        let refused = |event: &Event| matches!(event, Event::Late { report, answer, .. } if report == wanted && answer == "fenced");
        count(
            self.evidence
                .history
                .iter()
                .filter(|line| refused(&line.event)),
        )
    }
}

/// Tasks that the reaper took back.
fn reaped(told: &Told<'_>) -> u64 {
    let by_reaper = |one: &&Move| {
        one.housekeeping
            && one.client.starts_with(reaper::NAME)
            && one.old_owner.is_some()
            && one.new_owner.is_none()
    };
    count(told.evidence.facts.moves.iter().filter(by_reaper))
}

fn count(all: impl Iterator) -> u64 {
    all.count() as u64
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// A fault that nothing has to come of could be made a thousand times and show nothing. Those of the server have the counts of
    /// what is cut off and taken over then.
    #[test]
    fn each_fault_has_its_sometimes_and_each_name_stands_once() {
        const OF_THE_SERVER: [Fault; 3] = [
            Fault::PostgresRestarted,
            Fault::PostgresImmediate,
            Fault::PostgresKilled,
        ];
        for fault in Fault::all().filter(|fault| !OF_THE_SERVER.contains(fault)) {
            assert!(
                TABLE.iter().any(|row| row.when.contains(&fault)),
                "{fault:?}"
            );
        }
        let names: BTreeSet<&str> = TABLE.iter().map(|row| row.name).collect();
        assert_eq!(names.len(), TABLE.len());
    }

    #[test]
    fn what_was_not_made_need_not_happen_and_what_was_stands_with_0() {
        let seen = Seen {
            refused: 0,
            clocks: Clocks::default(),
            disk_refused: 0,
            housekeepers_taken: 0,
            reapers_overtaken: 0,
            reapers_killed: 0,
            drains_raced: 7,
        };
        let of = |faults: &[Fault]| {
            let made = faults.iter().map(|one| (one.name().to_owned(), 1));
            let (found, evidence) = (Found::default(), Evidence::default());
            sometimes(&made.collect(), &found, &evidence, seen, &Cuts::default())
        };
        let nothing = of(&[]);
        assert_eq!(nothing.len(), 7, "{nothing:?}");
        let raced = of(&[Fault::DrainRaced, Fault::WorkerFrozen]);
        assert_eq!(raced["claim_raced_a_drain"], 7);
        assert_eq!(raced["takeover"], 0);
        assert_eq!(again("takeover"), Some(Fault::WorkerKilled));
        assert_eq!(again("taken_back_by_the_reaper"), Some(Fault::WorkerKilled));
        assert_eq!(again("probe_asked"), None);
        assert_eq!(again("started_through_pgbouncer"), None);
    }
}
