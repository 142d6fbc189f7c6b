//! The table of ends.

use super::*;

fn facts(returned: Returned) -> Facts {
    Facts {
        returned,
        poison: None,
        cancelled: None,
        standing: Standing::Eligible,
        settling: None,
        left_open: Vec::new(),
    }
}

fn ok() -> Returned {
    Returned::Result(b"1".to_vec())
}

fn error() -> Returned {
    Returned::Error(TaskError::retryable("busy", "later"))
}

fn cause(end: &End) -> Option<Cause> {
    match end {
        End::Release { cause, .. } => Some(*cause),
        _ => None,
    }
}

#[test]
fn a_result_completes_and_an_error_fails() {
    assert_eq!(decide(facts(ok())), End::Complete(Some(b"1".to_vec())));
    assert!(matches!(
        decide(facts(error())),
        End::Fail {
            retryable: true,
            ..
        }
    ));
    let terminal = Returned::Error(TaskError::terminal("bad", "never"));
    assert!(matches!(
        decide(facts(terminal)),
        End::Fail {
            retryable: false,
            ..
        }
    ));
    assert!(matches!(
        decide(facts(Returned::Panicked("oh".into()))),
        End::Fail { code, retryable: true, .. } if code == "panic"
    ));
}

#[test]
fn a_handler_cannot_swallow_what_the_engine_raised() {
    let poisons = [
        (Poison::LeaseLost, Some(Cause::Drain)),
        (
            Poison::Unknown {
                operations: vec!["op".into()],
                note: "n".into(),
            },
            Some(Cause::Unknown),
        ),
        (
            Poison::Quiet {
                after: Duration::from_secs(1),
            },
            Some(Cause::Snooze),
        ),
        (
            Poison::Cancelled(CancelReason::Requested),
            Some(Cause::Cancelled),
        ),
    ];
    for (poison, expected) in poisons {
        for returned in [ok(), error()] {
            let end = decide(Facts {
                poison: Some(poison.clone()),
                ..facts(returned)
            });
            assert_eq!(cause(&end), expected, "{poison:?}");
        }
    }
}

#[test]
fn without_eligibility_nothing_is_said_about_an_execution_that_stopped_but_a_result_is_sent() {
    let lost = |returned| Facts {
        cancelled: Some(CancelReason::LeaseLost),
        standing: Standing::Doubtful,
        ..facts(returned)
    };
    assert_eq!(decide(lost(error())), End::Nothing);
    assert_eq!(decide(lost(Returned::NotStarted)), End::Nothing);
    assert_eq!(decide(lost(ok())), End::Complete(Some(b"1".to_vec())));
    let fenced = Facts {
        standing: Standing::Fenced,
        ..facts(ok())
    };
    assert_eq!(decide(fenced), End::Nothing);
}

#[test]
fn what_stopped_because_it_was_asked_to_is_not_charged() {
    for (reason, expected) in [
        (CancelReason::Drain, Cause::Drain),
        (CancelReason::Requested, Cause::Cancelled),
        (CancelReason::Deadline, Cause::Cancelled),
        (CancelReason::LeaseLost, Cause::Drain),
    ] {
        let end = decide(Facts {
            cancelled: Some(reason),
            ..facts(error())
        });
        assert_eq!(cause(&end), Some(expected), "{reason:?}");
    }
    let end = decide(Facts {
        cancelled: Some(CancelReason::StartToClose),
        ..facts(error())
    });
    assert!(matches!(end, End::Fail { code, .. } if code == "start_to_close_exceeded"));
}

#[test]
fn a_postponement_stands_in_a_drain_but_not_against_a_cancel() {
    let snooze = || Returned::Error(TaskError::snooze(Duration::from_secs(5)));
    let with = |cancelled| {
        decide(Facts {
            cancelled,
            ..facts(snooze())
        })
    };
    assert_eq!(cause(&with(None)), Some(Cause::Snooze));
    assert_eq!(cause(&with(Some(CancelReason::Drain))), Some(Cause::Snooze));
    assert_eq!(
        cause(&with(Some(CancelReason::Requested))),
        Some(Cause::Cancelled)
    );
}

#[test]
fn a_settling_claim_completes_or_doubts_what_it_did_not_reach() {
    let settling = |returned, poison, untouched: &[&str]| {
        decide(Facts {
            poison,
            settling: Some(untouched.iter().map(|id| (*id).to_owned()).collect()),
            ..facts(returned)
        })
    };
    assert_eq!(settling(ok(), None, &[]), End::Complete(None));
    assert_eq!(
        settling(error(), Some(Poison::SettlingOnly), &[]),
        End::Complete(None)
    );
    let end = settling(ok(), None, &["op"]);
    assert_eq!(cause(&end), Some(Cause::Unknown));
    assert!(matches!(settling(error(), None, &["op"]), End::Fail { .. }));
}

#[test]
fn a_settling_claim_that_leaves_an_operation_open_is_charged() {
    for poison in [None, Some(Poison::SettlingOnly)] {
        let end = decide(Facts {
            poison,
            settling: Some(Vec::new()),
            left_open: vec!["op".to_owned()],
            ..facts(ok())
        });
        assert!(
            matches!(&end, End::Fail { code, retryable: true, .. } if code == "operation_open"),
            "{end:?}"
        );
    }
}

#[test]
fn a_completion_in_the_handlers_own_transaction_is_not_repeated() {
    let end = decide(Facts {
        standing: Standing::Completed,
        ..facts(error())
    });
    assert_eq!(end, End::Nothing);
}

#[test]
fn a_result_over_the_limit_is_the_handlers_fault() {
    let end = decide(facts(Returned::Result(vec![b'1'; PAYLOAD_BYTES_MAX + 1])));
    assert!(
        matches!(end, End::Fail { retryable: false, code, .. } if code == ErrorCode::PAYLOAD_TOO_LARGE.as_str())
    );
}
