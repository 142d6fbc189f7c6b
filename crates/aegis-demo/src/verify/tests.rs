//! A clean run passes; each planted breach is found, and nothing else is.

use super::*;
use crate::payments::record::{Call, Event, RecordLine, Refusal, VERSION};
use crate::payments::{Behaviour, Effect, FencingToken};

const RUN: &str = "run-1";

type IsDoubt = fn(&Doubt) -> bool;

fn token(epoch: u64) -> FencingToken {
    FencingToken {
        floor: 0,
        timeline: 1,
        epoch,
    }
}

fn call(effect: Effect, task: &str, epoch: u64) -> Call {
    Call {
        effect,
        class: effect.class(),
        operation_id: format!("{task}/{}", effect.name()),
        task: task.into(),
        reference: format!("order-of-{task}"),
        fencing_token: Some(token(epoch)),
        request_sha256: "00".into(),
        call: 1,
    }
}

fn applied(call: Call) -> Event {
    Event::Applied {
        call,
        receipt: "R".into(),
        amount: None,
        currency: None,
        behaviour: Behaviour::Good,
    }
}

fn operation(effect: Effect, task: &str) -> OperationFact {
    OperationFact {
        id: format!("{task}/{}", effect.name()),
        task: task.into(),
        name: effect.name().into(),
        class: effect.class(),
        state: OperationState::Succeeded,
        was_unknown: false,
        resolutions: 0,
        said_not_happened: 0,
    }
}

/// Two good orders and a bad one; the first was taken over once.
struct Run {
    facts: EngineFacts,
    events: Vec<Event>,
}

impl Run {
    fn clean() -> Self {
        let mut facts = EngineFacts {
            run: Some(RUN.into()),
            ..EngineFacts::default()
        };
        let mut events = Vec::new();
        for (task, epoch, good) in [("t1", 2, true), ("t2", 1, true), ("t3", 1, false)] {
            facts.submissions.push(Submission {
                key: format!("order-of-{task}"),
                task: task.into(),
            });
            facts.tasks.push(TaskFact {
                id: task.into(),
                state: if good {
                    TaskState::Succeeded
                } else {
                    TaskState::Failed
                },
                epoch,
                error_code: (!good).then(|| "order_invalid".into()),
                order_is_good: good,
            });
            facts.receipts.extend(good.then(|| task.to_owned()));
            for effect in Effect::ALL.into_iter().filter(|_| good) {
                facts.operations.push(operation(effect, task));
                events.push(applied(call(effect, task, epoch)));
            }
        }
        facts.ends.push(ExecutionEnd {
            task: "t1".into(),
            epoch: 1,
            cause: EndCause::WorkerLost,
        });
        facts.stale_writes.push(StaleWrite {
            task: "t1".into(),
            epoch: 1,
            current_epoch: 2,
        });
        Self { facts, events }
    }

    fn lines(&self) -> Vec<RecordLine> {
        let opened = Event::Opened {
            run: RUN.into(),
            seed: 1,
            doubles: false,
        };
        std::iter::once(opened)
            .chain(self.events.iter().cloned())
            .chain([Event::Closed {}])
            .zip(0..)
            .map(|(event, seq)| RecordLine {
                v: VERSION,
                seq,
                at_ms: 0,
                event,
            })
            .collect()
    }

    fn judge(&self) -> Verdict {
        judge(&self.facts, &Record::of(self.lines()))
    }

    /// Judges, and asks for exactly one kind of breach, with the id in its sentence.
    fn breaks(&self, kind: BreachKind, named: &str) -> Counts {
        let verdict = self.judge();
        let kinds: Vec<BreachKind> = verdict.breaches.iter().map(|b| b.kind).collect();
        assert!(
            !kinds.is_empty() && kinds.iter().all(|k| *k == kind),
            "{kind:?} expected: {verdict:#?}"
        );
        assert!(
            verdict.breaches.iter().any(|b| b.sentence.contains(named)),
            "{named} not named: {verdict:#?}"
        );
        assert_eq!((verdict.verdict, verdict.exit_code()), (Judgement::Fail, 1));
        verdict.counts
    }

    fn operation(&mut self, id: &str) -> &mut OperationFact {
        self.facts
            .operations
            .iter_mut()
            .find(|op| op.id == id)
            .unwrap()
    }

    fn event_of(&self, id: &str) -> usize {
        self.events
            .iter()
            .position(|e| e.call().is_some_and(|c| c.operation_id == id))
            .unwrap()
    }
}

fn bytes(lines: &[RecordLine]) -> Vec<u8> {
    lines
        .iter()
        .flat_map(|line| [serde_json::to_vec(line).unwrap(), b"\n".to_vec()].concat())
        .collect()
}

#[test]
fn a_clean_run_passes() {
    let verdict = Run::clean().judge();
    assert_eq!(
        (verdict.verdict, verdict.exit_code()),
        (Judgement::Pass, 0),
        "{verdict:#?}"
    );
    let c = verdict.counts;
    assert_eq!((c.submitted, c.succeeded, c.failed_as_expected), (3, 2, 1));
    assert_eq!(
        (c.takeovers, c.stale_writes_refused, c.effects_applied),
        (1, 1, 8)
    );
    assert_eq!(
        (c.effects_lost, c.effects_duplicated, c.stale_accepted),
        (0, 0, 0)
    );
}

#[test]
fn a_lost_effect_of_each_class_is_found() {
    for effect in Effect::ALL {
        let mut run = Run::clean();
        let id = format!("t2/{}", effect.name());
        run.events.remove(run.event_of(&id));
        assert_eq!(run.breaks(BreachKind::EffectLost, &id).effects_lost, 1);
        run.operation(&id).state = OperationState::Resolved(Resolution::Happened);
        assert_eq!(run.breaks(BreachKind::EffectLost, &id).effects_lost, 1);
    }
}

#[test]
fn a_task_that_succeeded_without_an_effect_is_found() {
    let mut run = Run::clean();
    run.events.remove(run.event_of("t2/payout"));
    run.operation("t2/payout").state = OperationState::Resolved(Resolution::DidNotHappen);
    assert_eq!(
        run.breaks(BreachKind::EffectLost, "t2 succeeded without its payout")
            .effects_lost,
        1
    );
    run.facts.operations.retain(|op| op.id != "t2/payout");
    assert_eq!(
        run.breaks(BreachKind::EffectLost, "t2 succeeded without its payout")
            .effects_lost,
        1
    );
}

#[test]
fn a_doubled_effect_of_each_class_is_found() {
    for effect in Effect::ALL {
        let mut run = Run::clean();
        let id = format!("t2/{}", effect.name());
        run.events.push(run.events[run.event_of(&id)].clone());
        assert_eq!(
            run.breaks(BreachKind::EffectDuplicated, &id)
                .effects_duplicated,
            1,
            "{effect:?}"
        );
        run.events.push(run.events[run.event_of(&id)].clone());
        assert_eq!(run.judge().counts.effects_duplicated, 2, "{effect:?}");
    }
}

#[test]
fn a_doubled_effect_under_two_operations_is_found() {
    let mut run = Run::clean();
    let mut other = call(Effect::Charge, "t2", 1);
    other.operation_id = "t2/charge/again".into();
    run.events.push(applied(other));
    run.facts.operations.push(OperationFact {
        id: "t2/charge/again".into(),
        ..operation(Effect::Charge, "t2")
    });
    assert_eq!(
        run.breaks(BreachKind::EffectDuplicated, "t2/charge/again")
            .effects_duplicated,
        1
    );
    // Unless a person undid the first.
    run.operation("t2/charge").state = OperationState::Resolved(Resolution::Compensated);
    assert_eq!(run.judge().verdict, Judgement::Pass, "{:#?}", run.judge());
}

#[test]
fn a_blind_effect_that_was_called_again_is_found_even_when_it_took_place_once() {
    let mut run = Run::clean();
    let mut again = call(Effect::Notify, "t2", 1);
    again.call = 2;
    run.events.push(Event::Dropped {
        call: again,
        behaviour: Behaviour::LostRequest,
    });
    run.breaks(BreachKind::BlindRepeated, "t2/notify");
}

#[test]
fn an_effect_of_nobody_is_found() {
    let mut run = Run::clean();
    run.events.push(applied(call(Effect::Charge, "t9", 1)));
    assert_eq!(
        run.breaks(BreachKind::EffectPhantom, "t9/charge")
            .effects_phantom,
        1
    );
}

#[test]
fn an_effect_under_the_wrong_task_is_found() {
    let mut run = Run::clean();
    let mut wrong = call(Effect::Charge, "t1", 2);
    wrong.operation_id = "t2/charge".into();
    let at = run.event_of("t2/charge");
    wrong.reference = "order-of-t2".into();
    run.events[at] = applied(wrong);
    run.breaks(BreachKind::EffectPhantom, "belongs to task t2");
}

#[test]
fn an_effect_that_the_ledger_denies_is_found() {
    for state in [
        OperationState::Failed,
        OperationState::Resolved(Resolution::DidNotHappen),
    ] {
        let mut run = Run::clean();
        run.operation("t1/notify").state = state;
        run.breaks(BreachKind::OutcomeContradicted, "t1/notify");
    }
}

#[test]
fn a_stale_token_that_was_accepted_is_found() {
    let mut run = Run::clean();
    let at = run.event_of("t1/reserve");
    // The newer token came first, and the older one was applied, or answered, behind it.
    let mut newer = call(Effect::Reserve, "t1", 3);
    newer.call = 2;
    run.events.insert(
        at,
        Event::Replayed {
            call: newer,
            of_seq: 1,
            behaviour: Behaviour::Good,
        },
    );
    assert_eq!(
        run.breaks(BreachKind::StaleAccepted, "token 0.1.2")
            .stale_accepted,
        1
    );
}

#[test]
fn a_refused_stale_token_is_no_breach_and_is_counted() {
    let mut run = Run::clean();
    let newest = Some(token(2));
    run.events.push(Event::Refused {
        call: call(Effect::Reserve, "t1", 1),
        reason: Refusal::StaleToken,
        newest,
    });
    let verdict = run.judge();
    assert_eq!(
        (verdict.verdict, verdict.counts.stale_tokens_refused),
        (Judgement::Pass, 1),
        "{verdict:#?}"
    );
}

#[test]
fn a_completion_by_an_execution_that_had_lost_its_right_is_found() {
    let mut run = Run::clean();
    run.facts.tasks[0].epoch = 1;
    assert_eq!(
        run.breaks(BreachKind::StaleAccepted, "t1").stale_accepted,
        1
    );
    run.facts.ends.clear();
    assert_eq!(
        run.breaks(BreachKind::StaleAccepted, "t1").stale_accepted,
        1,
        "by the refused write alone"
    );
}

#[test]
fn a_late_write_behind_ones_own_completion_is_no_breach() {
    let mut run = Run::clean();
    run.facts.stale_writes.push(StaleWrite {
        task: "t2".into(),
        epoch: 1,
        current_epoch: 1,
    });
    assert_eq!(run.judge().verdict, Judgement::Pass);
}

#[test]
fn a_changed_request_is_found() {
    let mut run = Run::clean();
    let call = call(Effect::Charge, "t1", 2);
    run.events.push(Event::Refused {
        call,
        reason: Refusal::KeyReused,
        newest: None,
    });
    run.breaks(BreachKind::RequestChanged, "t1/charge");
}

#[test]
fn a_task_that_is_gone_or_has_not_ended_is_found() {
    let mut run = Run::clean();
    run.facts.submissions.push(Submission {
        key: "O-9".into(),
        task: "t9".into(),
    });
    assert_eq!(run.breaks(BreachKind::TaskLost, "O-9").tasks_lost, 1);
    for state in [
        TaskState::Ready,
        TaskState::Running,
        TaskState::Waiting,
        TaskState::Scheduled,
        TaskState::Reconciling,
    ] {
        let mut run = Run::clean();
        run.facts.tasks[1].state = state;
        run.facts.receipts.pop();
        assert_eq!(
            run.breaks(BreachKind::TaskUnfinished, "t2")
                .tasks_unfinished,
            1
        );
    }
}

#[test]
fn a_task_that_ended_otherwise_than_its_order_deserves_is_found() {
    let mut run = Run::clean();
    run.facts.tasks[2].error_code = Some("handler_panic".into());
    run.breaks(BreachKind::TaskOutcome, "t3");
    let mut run = Run::clean();
    run.facts.tasks[1].state = TaskState::Failed;
    run.facts.receipts.pop();
    run.breaks(
        BreachKind::TaskOutcome,
        "t2 with a good order ended as Failed",
    );
    let mut run = Run::clean();
    run.facts.operations.push(operation(Effect::Charge, "t3"));
    run.events.push(applied(call(Effect::Charge, "t3", 1)));
    run.breaks(BreachKind::TaskOutcome, "order-of-t3 is bad");
}

#[test]
fn a_receipt_stands_with_its_completion_or_not_at_all() {
    let mut run = Run::clean();
    assert_eq!(run.judge().counts.receipts, 2);
    run.facts.receipts.push("t1".into());
    run.breaks(BreachKind::ReceiptMismatch, "t1 has 2 receipts");
    let mut run = Run::clean();
    run.facts.receipts.push("t3".into());
    run.breaks(BreachKind::ReceiptMismatch, "t3 has 1 receipts");
    let mut run = Run::clean();
    run.facts.receipts.remove(0);
    run.breaks(BreachKind::ReceiptMismatch, "t1 has 0 receipts");
}

#[test]
fn what_a_person_said_had_not_happened_may_be_called_again() {
    let mut run = Run::clean();
    let at = run.event_of("t1/notify");
    let mut first = call(Effect::Notify, "t1", 1);
    first.call = 1;
    let dropped = Event::Dropped {
        call: first,
        behaviour: Behaviour::LostRequest,
    };
    if let Event::Applied { call, .. } = &mut run.events[at] {
        call.call = 2;
    }
    run.events.insert(at, dropped);
    run.breaks(BreachKind::BlindRepeated, "t1/notify");
    let op = run.operation("t1/notify");
    (op.was_unknown, op.resolutions, op.said_not_happened) = (true, 1, 1);
    let verdict = run.judge();
    assert_eq!(verdict.verdict, Judgement::Pass, "{verdict:#?}");
    let c = verdict.counts;
    assert_eq!((c.unknown_opened, c.unknown_resolved), (1, 1));
}

#[test]
fn unknown_operations_are_counted_and_cannot_be_bypassed() {
    let mut run = Run::clean();
    let op = run.operation("t1/notify");
    (op.state, op.was_unknown) = (OperationState::Resolved(Resolution::Happened), true);
    let verdict = run.judge();
    assert_eq!(verdict.verdict, Judgement::Pass);
    let c = verdict.counts;
    assert_eq!(
        (c.unknown_opened, c.unknown_resolved, c.unknown_left),
        (1, 1, 0)
    );

    run.operation("t1/notify").state = OperationState::Succeeded;
    run.breaks(BreachKind::UnknownBypassed, "t1/notify");

    run.operation("t1/notify").state = OperationState::Unknown;
    assert_eq!(
        run.breaks(BreachKind::OperationOpen, "t1/notify")
            .unknown_left,
        1
    );
}

#[test]
fn a_damaged_record_is_never_a_pass() {
    let run = Run::clean();
    let whole = bytes(&run.lines());
    assert_eq!(
        judge(&run.facts, &parse_record(&whole)).verdict,
        Judgement::Pass
    );
    let without = |skip: usize| {
        let mut lines = run.lines();
        lines.remove(skip);
        bytes(&lines)
    };
    let last = run.lines().len() - 1;
    let garbled = String::from_utf8(whole.clone())
        .unwrap()
        .replacen("\"applied\"", "\"invented\"", 1)
        .into_bytes();
    let newer = String::from_utf8(whole.clone())
        .unwrap()
        .replacen("\"v\":1", "\"v\":2", 1)
        .into_bytes();
    let behind = [whole.clone(), bytes(&run.lines()[last..])].concat();
    let half = whole[..whole.len() - 5].to_vec();
    let cases: [(&str, Vec<u8>, IsDoubt); 9] = [
        ("empty", Vec::new(), |d| matches!(d, Doubt::Empty)),
        ("half line", half, |d| {
            matches!(d, Doubt::HalfLine { line: 10 })
        }),
        ("gap", without(3), |d| {
            matches!(
                d,
                Doubt::Gap {
                    expected: 3,
                    found: 4,
                    ..
                }
            )
        }),
        ("no head", without(0), |d| matches!(d, Doubt::NotOpened)),
        ("not closed", without(last), |d| {
            matches!(d, Doubt::NotClosed)
        }),
        ("garbled", garbled, |d| {
            matches!(d, Doubt::Garbled { line: 2, .. })
        }),
        ("newer version", newer, |d| {
            matches!(
                d,
                Doubt::Version {
                    line: 1,
                    found: 2,
                    known: 1
                }
            )
        }),
        ("line behind the end", behind, |d| {
            matches!(d, Doubt::NotClosed)
        }),
        ("two joined", [whole.clone(), whole].concat(), |d| {
            matches!(d, Doubt::NotOpened)
        }),
    ];
    for (name, bytes, expected) in cases {
        let verdict = judge(&run.facts, &parse_record(&bytes));
        assert_ne!(verdict.verdict, Judgement::Pass, "{name}");
        assert_eq!(verdict.exit_code(), 1, "{name}");
        assert!(
            verdict.doubts.iter().any(expected),
            "{name}: {:#?}",
            verdict.doubts
        );
    }
    let verdict = judge(
        &run.facts,
        &read_record(std::path::Path::new("no-such-record.jsonl")),
    );
    assert_eq!(verdict.verdict, Judgement::Inconclusive);
    assert!(
        verdict.doubts[0]
            .to_string()
            .contains("no-such-record.jsonl")
    );
}

#[test]
fn a_lost_effect_in_a_damaged_record_is_inconclusive_and_a_doubled_one_still_fails() {
    let mut run = Run::clean();
    let mut lines = run.lines();
    lines.remove(4);
    let verdict = judge(&run.facts, &Record::of(lines));
    assert_eq!(
        (verdict.verdict, verdict.counts.effects_lost),
        (Judgement::Inconclusive, 1),
        "{verdict:#?}"
    );
    run.events.push(run.events[0].clone());
    let mut lines = run.lines();
    lines.remove(4);
    assert_eq!(
        judge(&run.facts, &Record::of(lines)).verdict,
        Judgement::Fail
    );
}

#[test]
fn the_record_of_another_run_is_not_compared() {
    let mut run = Run::clean();
    run.facts.run = Some("run-2".into());
    let verdict = run.judge();
    assert_eq!(verdict.verdict, Judgement::Inconclusive);
    assert_eq!(
        verdict.doubts,
        [Doubt::OtherRun {
            record: RUN.into(),
            database: "run-2".into()
        }]
    );
    assert!(verdict.breaches.is_empty());
    run.facts.run = None;
    assert_eq!(run.judge().doubts, [Doubt::RunUnknown]);
}

#[test]
fn an_empty_database_and_an_unknown_state_are_no_pass() {
    let nothing = Run {
        facts: EngineFacts {
            run: Some(RUN.into()),
            ..EngineFacts::default()
        },
        events: Vec::new(),
    };
    assert_eq!(nothing.judge().verdict, Judgement::Inconclusive);
    let mut run = Run::clean();
    run.facts.tasks[2].state = TaskState::Other;
    assert_eq!(run.judge().verdict, Judgement::Inconclusive);
}

#[test]
fn a_wait_counts_for_the_protocol_only_while_somebody_accepts_and_nobody_reads() {
    let v1 = |from_ms, until_ms| WorkerFact {
        reads_min: 1,
        reads_max: 1,
        from_ms,
        until_ms,
    };
    let v2 = |from_ms, until_ms| WorkerFact {
        reads_min: 1,
        reads_max: 2,
        from_ms,
        until_ms,
    };
    let wait = |from_ms, until_ms| TaskWait {
        task: "t1".into(),
        lo: 1,
        hi: 2,
        from_ms,
        until_ms,
    };
    let counted = |workers: Vec<WorkerFact>, wait: TaskWait| {
        let mut run = Run::clean();
        (run.facts.workers, run.facts.waits) = (workers, vec![wait.clone(), wait]);
        run.judge().counts.waited_for_protocol
    };
    let rollback = vec![v2(0, Some(100)), v1(150, Some(300)), v2(300, None)];
    assert_eq!(
        counted(rollback.clone(), wait(90, Some(310))),
        1,
        "a task counts once"
    );
    assert_eq!(counted(rollback.clone(), wait(90, None)), 1);
    assert_eq!(
        counted(rollback.clone(), wait(90, Some(140))),
        0,
        "nobody was there at all"
    );
    assert_eq!(
        counted(rollback.clone(), wait(310, Some(320))),
        0,
        "somebody could read it"
    );
    assert_eq!(
        counted(
            rollback,
            TaskWait {
                hi: 1,
                ..wait(160, Some(200))
            }
        ),
        0,
        "the old version could read it"
    );
}

#[test]
fn the_table_and_the_json_say_the_same() {
    let mut run = Run::clean();
    run.events
        .push(run.events[run.event_of("t2/charge")].clone());
    let verdict = run.judge();
    let text = table(&verdict);
    assert!(
        text.contains("effects duplicated") && text.contains("BROKEN"),
        "{text}"
    );
    assert!(
        text.contains("broken: the charge of order order-of-t2 took place 2 times"),
        "{text}"
    );
    assert!(text.ends_with("fail: a promise was broken"), "{text}");
    let line = json(&verdict, &[("seconds", 1.5.into())])
        .unwrap()
        .to_string();
    assert!(!line.contains('\n'));
    let value: serde_json::Value = serde_json::from_str(&line).unwrap();
    for name in [
        "submitted",
        "succeeded",
        "takeovers",
        "stale_writes_refused",
        "effects_lost",
        "effects_duplicated",
        "unknown_opened",
        "unknown_resolved",
        "waited_for_protocol",
        "seconds",
    ] {
        assert!(value[name].is_number(), "{name} is missing: {line}");
    }
    assert_eq!(
        (
            value["verdict"].as_str(),
            value["effects_duplicated"].as_u64()
        ),
        (Some("fail"), Some(1))
    );
    assert_eq!(value["breaches"][0]["kind"], "effect_duplicated");
    let clean = Run::clean();
    let text = table(&clean.judge());
    assert!(
        text.contains("kept") && text.ends_with("pass: every promise was kept"),
        "{text}"
    );
    let text = table(&judge(&clean.facts, &parse_record(b"")));
    assert!(
        text.contains("not proven") && !text.contains("must be 0: kept"),
        "{text}"
    );
}
