//! What has to happen in a run, so that it tells something.
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

/// What has to happen in a run with these faults, and how often it did.
pub(super) fn sometimes(
    faults: &BTreeMap<String, u64>,
    found: &Found,
    evidence: &Evidence,
    seen: Seen,
    cuts: &Cuts,
) -> BTreeMap<String, u64> {
    let made = |fault: Fault| faults.contains_key(fault.name());
    let behaved = |entry: &&Entry, how: Behaviour| {
        entry.behaviour == Some(how) && matches!(entry.what, What::Applied | What::Lost)
    };
    let oracle = |how| count(evidence.oracle.iter().filter(|entry| behaved(entry, how)));
    let late = |how: &str| {
        count(evidence.history.iter().filter(|line| {
            matches!(&line.event, Event::Late { report, answer, .. } if report == how && answer == "fenced")
        }))
    };
    let mut sometimes = BTreeMap::from([
        (
            "effect_with_a_lost_answer".to_owned(),
            oracle(Behaviour::AnswerLost),
        ),
        ("request_lost".to_owned(), oracle(Behaviour::RequestLost)),
        (
            "effect_after_the_caller_gave_up".to_owned(),
            oracle(Behaviour::Late),
        ),
        (
            "error_after_the_effect".to_owned(),
            oracle(Behaviour::ErrorAfter),
        ),
        (
            "probe_asked".to_owned(),
            count(
                evidence
                    .oracle
                    .iter()
                    .filter(|entry| matches!(entry.what, What::ProbedHappened | What::ProbedNot)),
            ),
        ),
        (
            "first_result_replayed".to_owned(),
            count(
                evidence
                    .oracle
                    .iter()
                    .filter(|entry| entry.what == What::Replayed),
            ),
        ),
        ("blind_in_the_queue".to_owned(), found.unknown_in_queue),
    ]);
    let mut must = |when: bool, name: &str, count: u64| {
        if when {
            sometimes.insert(name.to_owned(), count);
        }
    };
    must(
        made(Fault::WorkerKilled) || made(Fault::WorkerFrozen),
        "takeover",
        found.takeovers,
    );
    must(
        made(Fault::LateSuccess),
        "late_success_refused",
        late("complete"),
    );
    must(
        made(Fault::LateFailure),
        "late_failure_refused",
        late("fail"),
    );
    must(
        made(Fault::CutAfter) || made(Fault::CutReplied),
        "unknown_commit_resolved",
        found.unknown_commits_resolved,
    );
    must(
        made(Fault::Exhausted),
        "connection_refused_at_the_server",
        seen.refused,
    );
    must(
        made(Fault::WorkerTerminated),
        "drain_with_tasks_in_hand",
        found.drains_with_tasks,
    );
    for (fault, place) in [
        (Fault::CutBefore, "before"),
        (Fault::CutAfter, "after"),
        (Fault::CutReplied, "replied"),
    ] {
        must(made(fault), &format!("cut_{place}_commit"), 0);
        must(made(fault), &format!("cut_{place}_statement"), 0);
    }
    must(made(Fault::HalfOpen), "cut_silent_statement", 0);
    must(made(Fault::HousekeepingLate), "cut_late_housekeeping", 0);
    let told =
        |is: fn(&Event) -> bool| count(evidence.history.iter().filter(|line| is(&line.event)));
    must(
        made(Fault::WorkerClocks),
        "worker_saw_another_clock",
        told(|event| matches!(event, Event::Clock { .. })),
    );
    must(made(Fault::HousekeeperFrozen), "cut_frozen_housekeeping", 0);
    must(
        made(Fault::HousekeeperFrozen),
        "frozen_housekeeper_taken_over",
        seen.housekeepers_taken,
    );
    let by_reaper = |one: &&Move| {
        one.housekeeping
            && one.client.starts_with(reaper::NAME)
            && one.old_owner.is_some()
            && one.new_owner.is_none()
    };
    let reaped = count(evidence.facts.moves.iter().filter(by_reaper));
    let reaper_broken = made(Fault::ReaperKilled) || made(Fault::ReaperFrozen);
    must(reaper_broken, "taken_back_by_the_reaper", reaped);
    must(
        made(Fault::ReaperKilled),
        "reaper_killed_in_its_statement",
        seen.reapers_killed,
    );
    must(
        made(Fault::ReaperFrozen),
        "frozen_reaper_overtaken",
        seen.reapers_overtaken,
    );
    must(
        made(Fault::DrainRaced),
        "claim_raced_a_drain",
        seen.drains_raced,
    );
    must(
        made(Fault::Promotion),
        "rows_lost_with_the_tail",
        found.tail_rows,
    );
    must(
        made(Fault::Promotion),
        "write_from_before_the_promotion_refused",
        found.refused_after_promotion,
    );
    let clock = made(Fault::DatabaseClock);
    must(clock, "database_clock_went_forward", seen.clocks.forward);
    must(clock, "database_clock_went_back", seen.clocks.back);
    must(clock, "database_clock_stepped", seen.clocks.steps);
    must(clock, "taken_over_at_a_jump", found.taken_over_at_a_jump);
    must(
        clock,
        "written_under_a_lease_that_a_jump_made_longer",
        found.longer_after_a_jump,
    );
    must(
        made(Fault::DiskFull),
        "write_refused_at_a_full_disk",
        seen.disk_refused,
    );
    for ((place, what), count) in cuts {
        *sometimes
            .entry(format!("cut_{place:?}_{what}").to_lowercase())
            .or_default() += count;
    }
    sometimes
}

/// Which fault makes it happen, when it has not; `None`: work alone does.
pub(super) fn again(name: &str) -> Option<Fault> {
    Some(match name {
        "takeover" | "taken_back_by_the_reaper" => Fault::WorkerKilled,
        "reaper_killed_in_its_statement" => Fault::ReaperKilled,
        "frozen_reaper_overtaken" => Fault::ReaperFrozen,
        "claim_raced_a_drain" => Fault::DrainRaced,
        "late_success_refused" => Fault::LateSuccess,
        "late_failure_refused" => Fault::LateFailure,
        "unknown_commit_resolved" | "cut_after_commit" | "cut_after_statement" => Fault::CutAfter,
        "cut_before_commit" | "cut_before_statement" => Fault::CutBefore,
        "cut_replied_commit" | "cut_replied_statement" => Fault::CutReplied,
        "cut_silent_statement" => Fault::HalfOpen,
        "cut_late_housekeeping" => Fault::HousekeepingLate,
        "connection_refused_at_the_server" => Fault::Exhausted,
        "drain_with_tasks_in_hand" => Fault::WorkerTerminated,
        "worker_saw_another_clock" => Fault::WorkerClocks,
        "cut_frozen_housekeeping" | "frozen_housekeeper_taken_over" => Fault::HousekeeperFrozen,
        "rows_lost_with_the_tail" | "write_from_before_the_promotion_refused" => Fault::Promotion,
        "database_clock_went_forward"
        | "database_clock_went_back"
        | "taken_over_at_a_jump"
        | "written_under_a_lease_that_a_jump_made_longer" => Fault::DatabaseClock,
        "write_refused_at_a_full_disk" => Fault::DiskFull,
        _ => return None,
    })
}

fn count(all: impl Iterator) -> u64 {
    all.count() as u64
}
