//! What others read: words, texts and limits, each written down once more. They stand in rows, logs, scripts and documents
//! that other versions wrote, so one that changes must be changed here too, by somebody who means it.

use crate::outcome::{FenceReason, Outcome};
use crate::state::{STATES, State, mermaid};
use crate::{Class, ErrorCode, OperationState, ProtocolRange, Resolution, limits};

#[test]
fn the_words_of_operations() {
    let classes = [
        Class::Idempotent,
        Class::Fenced,
        Class::Queryable,
        Class::Blind,
    ];
    assert_eq!(
        classes.map(Class::word),
        ["idempotent", "fenced", "queryable", "blind"]
    );
    let states = [
        OperationState::Intended,
        OperationState::Dispatched,
        OperationState::Succeeded,
        OperationState::Failed,
        OperationState::Unknown,
        OperationState::Resolved,
    ];
    assert_eq!(
        states.map(OperationState::word),
        [
            "intended",
            "dispatched",
            "succeeded",
            "failed",
            "unknown",
            "resolved"
        ]
    );
    let resolutions = [
        Resolution::Happened,
        Resolution::DidNotHappen,
        Resolution::Compensated,
        Resolution::GiveUp,
    ];
    assert_eq!(
        resolutions.map(Resolution::word),
        ["happened", "did_not_happen", "compensated", "give_up"]
    );
}

#[test]
fn the_words_of_fences_and_what_a_person_reads() {
    let reasons = [
        (FenceReason::Gone, "gone", "the task has ended"),
        (
            FenceReason::Epoch { current: 4 },
            "epoch",
            "the task is at epoch 4 now",
        ),
        (
            FenceReason::NotRunning,
            "not_running",
            "the task is not running",
        ),
        (FenceReason::Owner, "owner", "another worker owns the task"),
        (FenceReason::Claim, "claim", "the task was claimed again"),
        (
            FenceReason::Rev { current: 7 },
            "rev",
            "another write came first (rev 7)",
        ),
        (
            FenceReason::Lineage,
            "lineage",
            "the database is not the one of the claim",
        ),
        (
            FenceReason::Lease,
            "lease",
            "the worker's lease has run out",
        ),
    ];
    for (reason, word, text) in reasons {
        assert_eq!(reason.word(), word);
        assert_eq!(reason.to_string(), text);
    }
}

#[test]
fn only_an_applied_write_has_a_value() {
    assert_eq!(Outcome::Applied(1).applied(), Some(1));
    assert_eq!(Outcome::<i32>::Fenced(FenceReason::Gone).applied(), None);
    assert_eq!(Outcome::<i32>::Unknown.applied(), None);
}

#[test]
fn a_state_is_shown_as_its_word() {
    for state in STATES {
        assert_eq!(state.to_string(), state.word());
    }
    assert_eq!(State::Reconciling.to_string(), "reconciling");
}

#[test]
fn an_error_code_is_shown_as_it_is_looked_up() {
    assert_eq!(ErrorCode::PAYLOAD_TOO_LARGE.as_str(), "AEG-0001");
    assert_eq!(ErrorCode::EVIDENCE.to_string(), "AEG-0025");
}

#[test]
fn a_range_says_what_it_reads_and_writes() {
    let range = ProtocolRange::new(2, 5, 4).unwrap();
    assert_eq!((range.min(), range.max(), range.writes()), (2, 5, 4));
    assert_eq!(range.to_string(), "2..5 writes 4");
}

#[test]
fn limits_are_what_the_documents_say() {
    assert_eq!(limits::PAYLOAD_BYTES_MAX, 262_144);
    assert_eq!(limits::CHECKPOINT_BYTES_MAX, 1_048_576);
    assert_eq!(limits::ERROR_BYTES_MAX, 8192);
    assert_eq!(limits::KEY_KEPT_MS, 2_592_000_000);
}

#[test]
fn the_diagram_is_the_table() {
    let diagram = mermaid();
    let lines: Vec<&str> = diagram.lines().collect();
    assert_eq!(lines[0], "stateDiagram-v2");
    for line in [
        "    [*] --> ready: submit",
        "    ready --> running: claim",
        "    failed --> ready: redrive",
        "    succeeded --> [*]",
    ] {
        assert!(lines.contains(&line), "{line} is not in {diagram}");
    }
    assert!(diagram.contains(": give up\n"), "{diagram}");
    assert!(diagram.ends_with("[*]\n"), "{diagram}");
}
