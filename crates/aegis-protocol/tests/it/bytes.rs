//! Whatever bytes a program prints: a message that goes round, or an error that is short and harmless. Never a panic.
//!
//! The golden vectors are the corpus; each case is one of them with a few changes. One seed belongs to the suite;
//! `PROPTEST_CASES=1000000` runs so many others, of a new seed each time.

use aegis_protocol::FromHandler;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::test_runner::{Config, RngSeed};

use crate::{file, lines};

/// Words that only a hostile program says.
const HOSTILE: [&str; 4] = [
    r#"{"type":"\u001b[31mred"}"#,
    r#"{"type":"result","\u0007bell":1}"#,
    r#"[{"type":"result"}]"#,
    "{\"type\":\"log\",\"message\":\"\u{feff}\u{202e}\"}",
];

fn config() -> Config {
    let seed = match std::env::var("PROPTEST_CASES") {
        Ok(_) => RngSeed::Random,
        Err(_) => RngSeed::Fixed(20_261_130),
    };
    Config {
        rng_seed: seed,
        failure_persistence: None,
        ..Config::default()
    }
}

/// The lines that are known, good ones and refused ones.
fn corpus() -> Vec<Vec<u8>> {
    let mut corpus: Vec<Vec<u8>> = ["from-handler", "from-the-future"]
        .into_iter()
        .flat_map(|name| lines(&format!("vectors/{name}.jsonl")))
        .map(|(line, _)| line.into_bytes())
        .collect();
    let refused = file("vectors/refused.jsonl");
    for line in refused.lines() {
        let vector: serde_json::Value = serde_json::from_str(line).unwrap();
        corpus.push(vector["line"].as_str().unwrap().as_bytes().to_vec());
    }
    corpus.extend(HOSTILE.map(|line| line.as_bytes().to_vec()));
    corpus
}

/// One of the corpus after up to six changes: cut, longer, another byte, its end once more.
fn changed() -> impl Strategy<Value = Vec<u8>> {
    let edits = prop::collection::vec((any::<Index>(), any::<u8>(), 0..4_u8), 0..6);
    (select(corpus()), edits).prop_map(|(mut bytes, edits)| {
        for (at, byte, how) in edits {
            let at = at.index(bytes.len() + 1);
            match how {
                0 => bytes.truncate(at),
                1 => bytes.insert(at, byte),
                2 => bytes
                    .splice(at..(at + 1).min(bytes.len()), [byte])
                    .for_each(drop),
                _ => bytes.extend_from_within(at..),
            }
        }
        bytes
    })
}

fn holds(line: &[u8]) {
    match FromHandler::parse(line) {
        Ok(message) => {
            let said = serde_json::to_vec(&message).unwrap();
            assert_eq!(FromHandler::parse(&said), Ok(message));
        }
        Err(error) => {
            let error = error.to_string();
            assert!(!error.chars().any(char::is_control), "{error:?}");
            // The beginning of the line, each byte of it at its longest escape, and what the parser says.
            assert!(error.len() < 4000, "{} bytes", error.len());
        }
    }
}

#[test]
fn the_corpus_is_read_or_refused_in_order() {
    for line in corpus() {
        holds(&line);
    }
    let long = format!("{{\"type\":\"{}\"}}", "x".repeat(1_000_000));
    holds(long.as_bytes());
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn any_line_is_a_message_or_a_harmless_error(line in changed()) {
        holds(&line);
    }

    #[test]
    fn any_bytes_are_a_message_or_a_harmless_error(line in prop::collection::vec(any::<u8>(), 0..300)) {
        holds(&line);
    }
}
