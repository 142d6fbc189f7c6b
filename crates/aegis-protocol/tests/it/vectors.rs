//! Every message both ways: schema, types and bytes agree; what is refused is refused by both.

use std::collections::BTreeSet;

use aegis_protocol::{FromHandler, ToHandler};
use serde_json::Value;

use crate::{lines, schema};

/// The words under which a schema's definitions tell messages apart.
fn words(messages: &[(String, Value)], field: &str) -> BTreeSet<String> {
    messages
        .iter()
        .filter_map(|(_, value)| value[field].as_str().map(str::to_owned))
        .collect()
}

fn set(words: &[&str]) -> BTreeSet<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

#[test]
fn what_we_say_is_byte_for_byte_what_stands_there() {
    let (vectors, schema) = (lines("vectors/to-handler.jsonl"), schema("to-handler"));
    for (line, value) in &vectors {
        assert!(
            schema.is_valid(value),
            "{line}: {:?}",
            schema.validate(value)
        );
        let message: ToHandler = serde_json::from_str(line).unwrap();
        let said = String::from_utf8(message.to_line().unwrap()).unwrap();
        // The order of an object's fields inside of data is not ours.
        assert_eq!(
            serde_json::from_str::<Value>(&said).unwrap(),
            *value,
            "{line}"
        );
        let head: usize = line.find(",\"valid_for_ms\"").map_or(8, |_| {
            ["\"answer\":\"", "\"type\":\""]
                .iter()
                .find_map(|mark| line.find(mark).map(|at| at + mark.len()))
                .unwrap()
        });
        assert_eq!(said[..head], line[..head], "the beginning of {line}");
    }
    assert_eq!(
        words(&vectors, "type"),
        set(&["hello", "start", "reply", "cancel"])
    );
    assert_eq!(
        words(&vectors, "answer"),
        set(&[
            "run",
            "known",
            "saved",
            "call",
            "probe",
            "done",
            "refused",
            "compensated",
            "given_up",
            "error"
        ])
    );
    assert_eq!(
        words(&vectors, "cause"),
        set(&[
            "drain",
            "lease_lost",
            "requested",
            "deadline",
            "start_to_close"
        ])
    );
}

#[test]
fn what_a_handler_says_is_understood_and_goes_round() {
    let (vectors, schema) = (lines("vectors/from-handler.jsonl"), schema("from-handler"));
    for (line, value) in &vectors {
        assert!(
            schema.is_valid(value),
            "{line}: {:?}",
            schema.validate(value)
        );
        let message = FromHandler::parse(line.as_bytes()).unwrap();
        let said = serde_json::to_string(&message).unwrap();
        assert_eq!(
            FromHandler::parse(said.as_bytes()).unwrap(),
            message,
            "{line}"
        );
        let said: Value = serde_json::from_str(&said).unwrap();
        assert!(schema.is_valid(&said), "{said}");
        for (field, value) in value.as_object().unwrap() {
            assert_eq!(&said[field], value, "{field} of {line}");
        }
        assert_eq!(message.request_id(), value["id"].as_u64(), "{line}");
    }
    assert_eq!(
        words(&vectors, "type"),
        set(&[
            "hello",
            "step",
            "save_step",
            "checkpoint",
            "operation",
            "settle",
            "probed",
            "progress",
            "log",
            "result",
            "error",
            "snooze"
        ])
    );
    assert_eq!(
        words(&vectors, "outcome"),
        set(&[
            "succeeded",
            "failed",
            "turned_away",
            "not_applied",
            "doubtful"
        ])
    );
    assert_eq!(
        words(&vectors, "found"),
        set(&["happened", "did_not_happen", "cannot_tell"])
    );
    assert_eq!(
        words(&vectors, "class"),
        set(&["idempotent", "fenced", "queryable", "blind"])
    );
}

#[test]
fn what_is_no_message_is_refused_with_its_reason_and_by_the_schema() {
    let schema = schema("from-handler");
    for (_, vector) in lines("vectors/refused.jsonl") {
        let line = vector["line"].as_str().unwrap();
        let error = FromHandler::parse(line.as_bytes()).unwrap_err().to_string();
        let because = vector["because"].as_str().unwrap();
        assert!(error.contains(because), "{line}: {error}");
        if let Ok(value) = serde_json::from_str(line) {
            assert!(!schema.is_valid(&value), "the schema takes {line}");
        }
    }
}

#[test]
fn a_long_bad_line_is_shown_by_its_beginning_and_harmless() {
    let line = format!("\u{1b}[31m{}", "x".repeat(1000));
    let error = FromHandler::parse(line.as_bytes()).unwrap_err().to_string();
    assert!(error.len() < 400 && !error.contains('\u{1b}'), "{error}");
}
