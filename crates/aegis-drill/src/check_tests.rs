//! Made-up histories that must be found out, one for each count; and a whole one that holds.

use std::collections::BTreeMap;

use uuid::Uuid;

use super::{CutFound, Evidence, Found, check};
use crate::facts::{Drain, Facts, Loss, Move, Operation, Task};
use crate::history::{Event, Line};
use crate::oracle::behaviour::Behaviour;
use crate::oracle::record::{Entry, What};
use crate::tail::{self, Tail};

const A: Uuid = Uuid::from_u128(1);
const ONE: Uuid = Uuid::from_u128(11);
const TWO: Uuid = Uuid::from_u128(12);

fn line(event: Event) -> Line {
    Line {
        ns: 0,
        pid: 1,
        event,
    }
}

fn entry(class: &str, what: What) -> Entry {
    Entry {
        seq: 0,
        ns: 0,
        what,
        class: class.to_owned(),
        operation: "op".to_owned(),
        task: A.to_string(),
        token: Some((0, 1, 1)),
        call: 1,
        behaviour: Some(Behaviour::Applied),
    }
}

fn claim(epoch: i64) -> Move {
    Move {
        task: A,
        old_epoch: epoch - 1,
        new_epoch: Some(epoch),
        old_rev: epoch - 1,
        new_rev: Some(epoch),
        old_owner: None,
        new_owner: Some(ONE),
        old_claim: None,
        new_claim: Some(TWO),
        crashes: 0,
        worker_state: Some(0),
        late_ms: None,
        arrived_late_ms: None,
        housekeeping: false,
        living: false,
        client: String::new(),
    }
}

fn write() -> Move {
    Move {
        old_epoch: 1,
        old_owner: Some(ONE),
        old_claim: Some(TWO),
        late_ms: Some(-1000),
        arrived_late_ms: Some(-1010),
        ..claim(1)
    }
}

/// One task, claimed once, with one effect, its own row, and its end.
fn whole() -> Evidence {
    Evidence {
        history: vec![
            line(Event::Accepted { task: A }),
            line(Event::Started { task: A }),
            line(Event::Told {
                task: A,
                class: "blind".to_owned(),
            }),
        ],
        oracle: vec![entry("blind", What::Applied)],
        facts: Facts {
            moves: vec![claim(1), write()],
            tasks: vec![Task {
                task: A,
                state: 5,
                failures: 0,
                crashes: 0,
                own: 1,
            }],
            operations: vec![Operation {
                task: A,
                id: "op".to_owned(),
                class: 3,
                state: 2,
                dispatches: 1,
            }],
            drains: Vec::new(),
            losses: Vec::new(),
        },
        tails: Vec::new(),
    }
}

/// What is found when something is changed in the whole one.
fn changed(change: impl FnOnce(&mut Evidence)) -> Found {
    let mut evidence = whole();
    change(&mut evidence);
    check(&evidence)
}

#[test]
fn a_whole_history_holds() {
    let found = check(&whole());
    assert_eq!(found.broken(), 0, "{:?}", found.examples);
    assert_eq!(found.tasks, 1);
}

#[test]
fn a_lost_task_is_found() {
    let found = changed(|evidence| evidence.facts.tasks.clear());
    assert_eq!((found.lost, found.broken()), (1, 1));
}

#[test]
fn a_lost_effect_is_found_by_ledger_and_history() {
    let found = changed(|evidence| evidence.oracle.clear());
    assert_eq!((found.lost, found.broken()), (2, 2), "{:?}", found.examples);
}

#[test]
fn a_task_that_ended_without_its_own_row_is_found() {
    let found = changed(|evidence| evidence.facts.tasks[0].own = 0);
    assert_eq!((found.lost, found.broken()), (1, 1));
}

#[test]
fn a_doubled_effect_is_found_in_each_class() {
    for class in ["idempotent", "fenced", "queryable"] {
        let found = changed(|evidence| {
            evidence.history.pop();
            evidence.oracle = vec![entry(class, What::Applied), entry(class, What::Applied)];
        });
        assert_eq!(found.effects_doubled[class], 1);
        assert_eq!(found.broken(), 1, "{:?}", found.examples);
    }
}

#[test]
fn an_effect_of_an_older_claim_after_one_of_a_newer_is_found() {
    // Another operation of the same task: nothing is doubled, and still the older claim came too late.
    let other = |token| Entry {
        operation: "other".to_owned(),
        token,
        ..entry("idempotent", What::Applied)
    };
    for (first, then, wrong) in [
        ((0, 1, 1), Some((0, 1, 2)), 0),
        ((0, 1, 2), Some((0, 1, 2)), 0),
        ((0, 1, 2), Some((0, 1, 1)), 1),
        // The lineage counts more than the epoch: after a promotion epochs may begin lower.
        ((0, 1, 9), Some((0, 2, 1)), 0),
        ((0, 2, 1), Some((0, 1, 9)), 1),
        ((1, 1, 1), Some((0, 2, 9)), 1),
        ((0, 1, 1), None, 1),
    ] {
        let found = changed(|evidence| {
            evidence.oracle[0].token = Some(first);
            evidence.oracle.push(other(then));
            let mut operation = evidence.facts.operations[0].clone();
            operation.id = "other".to_owned();
            evidence.facts.operations.push(operation);
        });
        let counted = (found.out_of_order, found.doubled(), found.broken());
        assert_eq!(counted, (Some(wrong), 0, wrong), "{first:?} {then:?}");
    }
    // Another task's newer claim says nothing.
    let found = changed(|evidence| {
        evidence.oracle[0].token = Some((0, 1, 2));
        let task = ONE.to_string();
        evidence.oracle.push(Entry {
            task,
            ..other(Some((0, 1, 1)))
        });
    });
    assert_eq!(found.out_of_order, Some(0), "{:?}", found.examples);
}

#[test]
fn a_late_request_that_nobody_can_hold_back_is_counted_apart() {
    for class in ["idempotent", "fenced", "queryable", "blind"] {
        for in_window in [false, true] {
            let found = changed(|evidence| {
                evidence.oracle[0].class = class.to_owned();
                evidence.oracle[0].token = Some((0, 1, 2));
                evidence.oracle.push(entry(class, What::Applied));
                if in_window {
                    evidence.history.push(line(Event::Window {
                        task: A,
                        class: class.to_owned(),
                    }));
                }
            });
            let apart = u64::from(in_window && class == "queryable");
            let counted = (found.out_of_order, found.out_of_order_apart);
            assert_eq!(counted, (Some(1 - apart), apart), "{class} {in_window}");
        }
    }
    let found = changed(|evidence| {
        evidence.oracle[0].token = Some((0, 2, 1));
        evidence.oracle.push(entry("blind", What::Applied));
        evidence.tails.push(Tail {
            intents: ["op".to_owned()].into(),
            ..Tail::default()
        });
    });
    assert_eq!((found.out_of_order, found.out_of_order_apart), (Some(0), 1));
    assert_eq!(found.broken(), 0, "{:?}", found.examples);
}

#[test]
fn a_repeated_blind_call_is_found_even_when_the_first_got_lost() {
    let found = changed(|evidence| evidence.oracle.push(entry("blind", What::Lost)));
    assert_eq!((found.blind_repeated, found.broken()), (1, 1));
}

#[test]
fn a_doubled_row_of_its_own_is_found() {
    let found = changed(|evidence| evidence.facts.tasks[0].own = 3);
    assert_eq!((found.effects_doubled["own_sql"], found.broken()), (2, 2));
}

#[test]
fn an_accepted_stale_report_is_found() {
    let late = |epoch| {
        line(Event::Late {
            task: A,
            epoch,
            report: "complete".to_owned(),
            answer: "applied".to_owned(),
        })
    };
    let stale = changed(|evidence| evidence.history.push(late(0)));
    assert_eq!((stale.stale_accepted, stale.broken()), (1, 1));
    let late = changed(|evidence| evidence.history.push(late(1)));
    assert_eq!((late.late_accepted, late.broken()), (1, 1));
}

#[test]
fn a_refused_stale_report_is_counted_and_fine() {
    let found = changed(|evidence| {
        evidence.history.push(line(Event::Late {
            task: A,
            epoch: 0,
            report: "fail".to_owned(),
            answer: "fenced".to_owned(),
        }));
    });
    assert_eq!((found.stale_refused, found.broken()), (1, 0));
}

#[test]
fn a_claim_that_was_stolen_or_given_twice_is_found() {
    let stolen = changed(|evidence| {
        evidence.facts.moves.push(Move {
            old_claim: Some(ONE),
            ..claim(2)
        });
    });
    assert_eq!((stolen.stale_accepted, stolen.broken()), (1, 1));
    let twice = changed(|evidence| evidence.facts.moves.push(claim(1)));
    assert_eq!((twice.stale_accepted, twice.broken()), (1, 1));
    let back = changed(|evidence| {
        evidence.facts.moves.push(Move {
            old_rev: 9,
            ..write()
        });
    });
    assert_eq!((back.stale_accepted, back.broken()), (1, 1));
}

/// What is found when the whole history's last write is this one.
fn written(arrived_late_ms: Option<i64>, late_ms: Option<i64>, other: &Move) -> Found {
    changed(|evidence| {
        evidence.facts.moves[1] = Move {
            late_ms,
            arrived_late_ms,
            ..other.clone()
        };
    })
}

#[test]
fn a_write_that_arrived_after_its_lease_is_found_whatever_it_does() {
    let completed = Move {
        new_epoch: None,
        new_rev: None,
        new_owner: None,
        new_claim: None,
        ..write()
    };
    let failed = Move {
        new_owner: None,
        new_claim: None,
        ..write()
    };
    let handed_back = Move {
        new_epoch: Some(2),
        ..failed.clone()
    };
    for one in [write(), completed, failed, handed_back] {
        // By a millisecond, and the machine is no excuse.
        let late = written(Some(1), Some(2), &one);
        assert_eq!((late.late_accepted, late.broken()), (1, 1), "{one:?}");
        let in_time = written(Some(-1), Some(400), &one);
        assert_eq!(in_time.broken(), 0, "{one:?}");
        let waited = written(Some(-1), Some(900), &one);
        assert_eq!((waited.late_accepted, waited.broken()), (1, 1));
    }
}

#[test]
fn a_write_of_an_owner_without_a_lease_is_late() {
    let late = written(None, None, &write());
    assert_eq!((late.late_accepted, late.broken()), (1, 1));
}

#[test]
fn housekeeping_takes_back_after_the_lease_and_does_nothing_else_then() {
    let by_housekeeping = |new_epoch| Move {
        new_epoch,
        housekeeping: true,
        ..write()
    };
    for taken_back in [Some(2), None] {
        let found = written(Some(5000), Some(5001), &by_housekeeping(taken_back));
        assert_eq!(found.broken(), 0, "{taken_back:?}");
    }
    let let_go = Move {
        new_owner: None,
        new_claim: None,
        ..by_housekeeping(Some(1))
    };
    assert_eq!(written(Some(5000), Some(5001), &let_go).broken(), 0);
    let wrote = written(Some(5000), Some(5001), &by_housekeeping(Some(1)));
    assert_eq!((wrote.late_accepted, wrote.broken()), (1, 1));
}

#[test]
fn the_window_excuses_a_queryable_operation_only() {
    let in_window = |class: &str, second: What| {
        changed(|evidence| {
            evidence.history[2] = line(Event::Window {
                task: A,
                class: class.to_owned(),
            });
            evidence.oracle = vec![entry(class, What::Applied), entry(class, second)];
        })
    };
    let queryable = in_window("queryable", What::Applied);
    assert_eq!(queryable.broken(), 0, "{:?}", queryable.examples);
    let one = &queryable.window["queryable"];
    assert_eq!((one.tasks, one.requests, one.doubled), (1, 2, 1));
    let thrice = changed(|evidence| {
        evidence.history[2] = line(Event::Window {
            task: A,
            class: "queryable".to_owned(),
        });
        evidence.oracle = vec![entry("queryable", What::Applied); 3];
    });
    assert_eq!(thrice.doubled(), 2);
    for class in ["idempotent", "fenced"] {
        let found = in_window(class, What::Applied);
        assert_eq!((found.doubled(), found.broken()), (1, 1), "{class}");
        assert_eq!(in_window(class, What::Replayed).broken(), 0, "{class}");
    }
}

#[test]
fn a_phantom_is_found() {
    let effect = changed(|evidence| {
        evidence.facts.operations.clear();
    });
    assert_eq!((effect.phantom, effect.broken()), (1, 1));
    let intended = changed(|evidence| evidence.facts.operations[0].state = 0);
    assert_eq!((intended.phantom, intended.broken()), (1, 1));
    let task = changed(|evidence| {
        evidence.history.remove(0);
    });
    assert_eq!((task.phantom, task.broken()), (1, 1));
}

#[test]
fn a_claim_of_a_closed_gate_is_found() {
    for state in [Some(1), Some(2), Some(3), None] {
        let found = changed(|evidence| evidence.facts.moves[0].worker_state = state);
        assert_eq!((found.claims_after_drain, found.broken()), (1, 1));
    }
}

#[test]
fn a_task_that_was_taken_from_a_living_worker_is_found() {
    let found = changed(|evidence| {
        evidence.facts.moves[1] = Move {
            new_epoch: Some(2),
            new_owner: None,
            new_claim: None,
            housekeeping: true,
            living: true,
            ..write()
        };
    });
    let counted = (found.taken_from_the_living, found.broken());
    assert_eq!(counted, (Some(1), 1), "{:?}", found.examples);
}

#[test]
fn a_worker_that_is_declared_lost_before_its_lease_ends_is_found() {
    // Over; a moment before; a clock that was moved back by an hour since.
    for (left_ms, wrong) in [(-4, 0), (3, 0), (800, 1), (3_599_000, 0)] {
        let found = changed(|evidence| {
            evidence.facts.losses = vec![Loss {
                worker: ONE,
                left_ms,
            }];
        });
        let counted = (found.taken_from_the_living, found.broken());
        assert_eq!(counted, (Some(wrong), wrong), "{left_ms}");
    }
}

#[test]
fn a_stranded_task_is_found_and_one_that_waits_for_a_person_is_not() {
    for state in 0..4 {
        let found = changed(|evidence| evidence.facts.tasks[0].state = state);
        assert_eq!((found.stranded, found.broken()), (1, 1));
    }
    let waits = changed(|evidence| {
        evidence.facts.tasks[0].state = 4;
        evidence.facts.operations[0].state = 4;
    });
    assert_eq!((waits.unknown_in_queue, waits.broken()), (1, 0));
    let nobody = changed(|evidence| evidence.facts.operations[0].state = 4);
    assert_eq!((nobody.stranded, nobody.broken()), (1, 1));
}

#[test]
fn a_takeover_is_a_claim_after_a_lost_lease() {
    let found = changed(|evidence| {
        evidence.facts.moves.push(Move {
            new_epoch: Some(2),
            new_owner: None,
            new_claim: None,
            worker_state: None,
            late_ms: Some(40),
            ..write()
        });
        evidence.facts.moves.push(claim(3));
    });
    assert_eq!((found.takeovers, found.broken()), (1, 0));
}

#[test]
fn gates_that_closed_with_tasks_are_counted() {
    let found = changed(|evidence| {
        evidence.facts.drains = [0, 2].map(|held| Drain { worker: ONE, held }).to_vec();
    });
    assert_eq!(found.drains_with_tasks, 1);
}

#[test]
fn what_stood_at_a_cut_is_counted_by_cut_and_class() {
    let held = || {
        line(Event::Held {
            task: A,
            point: "operation blind/7 ran".to_owned(),
        })
    };
    let cut = |found: &Found| found.cuts["ran"]["blind"].clone();
    let fine = CutFound {
        tasks: 1,
        ..CutFound::default()
    };
    let ended = changed(|evidence| evidence.history.push(held()));
    assert_eq!((cut(&ended), ended.broken()), (fine.clone(), 0));
    let waits = changed(|evidence| {
        evidence.history.extend([held(), held()]);
        evidence.facts.tasks[0].state = 4;
        evidence.facts.operations[0].state = 4;
    });
    let in_queue = CutFound {
        in_queue: 1,
        ..fine.clone()
    };
    assert_eq!((cut(&waits), waits.broken()), (in_queue, 0));
    let lost = changed(|evidence| {
        evidence.history.push(held());
        evidence.oracle.clear();
    });
    assert_eq!(cut(&lost), CutFound { lost: 1, ..fine });
    assert_eq!(changed(|_| {}).cuts, BTreeMap::new());
}

/// The tail of a primary that had all of this, beside a standby that had what is left of it.
fn tail(left: impl FnOnce(&mut Facts)) -> Tail {
    let old = whole().facts;
    let mut shared = old.clone();
    left(&mut shared);
    tail::judge(500, &old, &shared)
}

#[test]
fn what_stood_only_in_the_tail_is_lost_with_it_and_by_nobody() {
    let gone = |evidence: &mut Evidence| {
        evidence.facts.tasks.clear();
        evidence.facts.operations.clear();
    };
    let all = || {
        tail(|shared| {
            shared.moves.clear();
            shared.tasks.clear();
            shared.operations.clear();
        })
    };
    let found = changed(|evidence| {
        gone(evidence);
        evidence.tails = vec![all()];
    });
    assert_eq!(found.broken(), 0, "{:?}", found.examples);
    assert_eq!(
        (found.lost_with_the_tail, found.effects_without_ledger),
        (1, 1)
    );
    assert_eq!(found.tail_rows, 2);
    // The standby had both: then nobody but the engine lost them.
    let found = changed(|evidence| {
        gone(evidence);
        evidence.tails = vec![tail(|shared| shared.moves.clear())];
    });
    assert_eq!((found.lost, found.phantom), (1, 1));
    assert_eq!(found.lost_with_the_tail + found.effects_without_ledger, 0);
}

#[test]
fn a_forgotten_dispatch_excuses_one_more_effect_of_two_classes_only() {
    for (class, times, fine) in [
        ("blind", 2, true),
        ("blind", 3, false),
        ("queryable", 2, true),
        ("queryable", 3, false),
        ("idempotent", 2, false),
        ("fenced", 2, false),
    ] {
        let found = changed(|evidence| {
            evidence.oracle = vec![entry(class, What::Applied); times];
            // The intention alone is no dispatch.
            evidence.tails = vec![tail(|shared| shared.operations[0].state = 0)];
            evidence.history.truncate(2);
        });
        assert_eq!(found.broken() == 0, fine, "{class} {times}: {found:?}");
        let repeated = found.repeated_after_the_tail.get(class).copied();
        assert_eq!(
            repeated,
            matches!(class, "blind" | "queryable").then_some(1)
        );
        // A standby that knew of the dispatch must never send a blind one again.
        let found = changed(|evidence| {
            evidence.oracle = vec![entry(class, What::Applied); times];
            evidence.tails = vec![tail(|shared| shared.operations[0].state = 1)];
        });
        assert_ne!(found.broken(), 0, "{class} {times}");
    }
}

#[test]
fn what_went_wrong_in_a_lost_tail_is_found() {
    let mut old = whole().facts;
    old.moves[1].arrived_late_ms = Some(100);
    let mut shared = old.clone();
    shared.moves.truncate(1);
    let late = tail::judge(1, &old, &shared);
    assert_eq!(
        changed(|evidence| evidence.tails = vec![late]).late_accepted,
        1
    );
    // What the new life has too is counted there, and once.
    let both = tail::judge(1, &old, &old);
    assert_eq!(both.wrong, (0, 0, 0));
}

#[test]
fn a_report_that_is_refused_counts_for_a_promotion_between_its_claim_and_itself() {
    for (claimed, reported, counts) in [(1, 900, 1), (600, 900, 0), (1, 400, 0)] {
        let found = changed(|evidence| {
            let at = |ns, event| Line { ns, ..line(event) };
            evidence
                .history
                .push(at(claimed, Event::Claimed { task: A, epoch: 1 }));
            let report = Event::Late {
                task: A,
                epoch: 1,
                report: "complete".to_owned(),
                answer: "fenced".to_owned(),
            };
            evidence.history.push(at(reported, report));
            evidence.tails = vec![tail(|_| {})];
        });
        assert_eq!(found.refused_after_promotion, counts);
        assert_eq!((found.stale_refused, found.broken()), (1, 0));
    }
}

#[test]
fn a_jump_of_the_clock_excuses_what_was_under_way_and_nothing_else() {
    let hour = 3_600_000;
    // It arrived in time, and seems to have lasted an hour.
    let found = written(Some(-10), Some(hour - 10), &write());
    assert_eq!(found.late_accepted, 0);
    let found = written(Some(10), Some(hour + 10), &write());
    assert_eq!(found.late_accepted, 1, "it arrived after its lease");
    assert_eq!(
        written(Some(-hour), Some(-hour), &write()).longer_after_a_jump,
        1
    );
    assert_eq!(
        written(Some(-10), Some(-10), &write()).longer_after_a_jump,
        0
    );
    // A second effect of a queryable operation over a jump, and of no other.
    let second = 1_000_000_000;
    for (class, moved_ms, jumped, fine) in [
        ("queryable", hour, 12 * second, true),
        ("queryable", hour, 8 * second, true),
        ("queryable", -hour, 12 * second, false),
        ("queryable", hour, 20 * second, false),
        ("idempotent", hour, 12 * second, false),
    ] {
        let found = changed(|evidence| {
            let mut one = entry(class, What::Applied);
            one.ns = 10 * second;
            let mut two = one.clone();
            two.ns = 15 * second;
            evidence.oracle = vec![one, two];
            let mut jump = line(Event::DatabaseClock { moved_ms });
            jump.ns = jumped;
            evidence.history.truncate(2);
            evidence.history.push(jump);
        });
        assert_eq!(
            found.broken() == 0,
            fine,
            "{class} {moved_ms} {jumped}: {found:?}"
        );
        assert_eq!(found.doubled_over_a_jump, u64::from(fine));
    }
}

#[test]
fn who_begins_a_task_with_a_newer_checkpoint_must_read_it() {
    for (saved, reads, wrong) in [(false, false, 0), (true, false, 1), (true, true, 0)] {
        let found = changed(|evidence| {
            let at = |ns, pid, event| Line { ns, pid, event };
            if saved {
                evidence
                    .history
                    .push(at(1, 7, Event::NewerSaved { task: A }));
            }
            if reads {
                evidence.history.push(at(1, 2, Event::Reads { max: 2 }));
            }
            evidence.history.push(at(2, 2, Event::Started { task: A }));
        });
        assert_eq!((found.incompatible, found.broken()), (wrong, wrong));
    }
}
