//! Whatever text reaches what the store and the model read: an answer that makes sense, or an error; no secret in either, and
//! never a panic.
//!
//! Each case is a known text with a few changes. One seed belongs to the suite; `PROPTEST_CASES=1000000` runs so many others,
//! of a new seed each time.

use aegis_model::{ProtocolRange, TraceContext};
use aegis_store::{Config as StoreConfig, NewTask};
use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::test_runner::{Config, RngSeed};

const URLS: [&str; 6] = [
    "postgresql://aegis:secret@localhost:5432/aegis?statements=named",
    "postgres://aegis@%2Fvar%2Frun%2Fpostgresql/aegis?sslmode=verify-full&sslrootcert=system",
    "postgresql://[::1]:5432,other:5433/a?application_name=x&connect_timeout=3",
    "postgresql:///aegis?host=/tmp&sslmode=disable&sslkey=%2",
    "host=localhost user=aegis password='a b' dbname=aegis",
    "postgresql://",
];
const TRACES: [&str; 3] = [
    "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
    "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00-later",
    "00-00000000000000000000000000000000-0000000000000000-00",
];
const RANGES: [&str; 5] = ["1", "1..3", " 2 .. 2147483647", "-1..1", "3..1"];
const INPUTS: [&str; 4] = [
    "{}",
    "{\"n\":[1,2.5e300,\"\u{e9}\"]}",
    "[[[[[[null]]]]]]",
    "\"\\u0000\"",
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

/// One of these after up to six changes: cut, longer, another byte, its end once more.
fn changed(corpus: &'static [&'static str]) -> impl Strategy<Value = Vec<u8>> {
    let edits = prop::collection::vec((any::<Index>(), any::<u8>(), 0..4_u8), 0..6);
    (select(corpus), edits).prop_map(|(text, edits)| {
        let mut bytes = text.as_bytes().to_vec();
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

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn trace_holds(text: &str) {
    if let Ok(context) = text.parse::<TraceContext>() {
        assert!(context.trace_id != 0 && context.span_id != 0, "{text}");
        assert_eq!(
            context.to_string().parse::<TraceContext>(),
            Ok(context),
            "{text}"
        );
    }
}

fn range_holds(text: &str) {
    if let Ok(range) = text.parse::<ProtocolRange>() {
        assert!(
            1 <= range.min() && range.min() <= range.max() && range.writes() == range.max(),
            "{text}"
        );
    }
}

/// What is let through is one document.
fn input_holds(bytes: Vec<u8>) {
    let task = NewTask {
        input: bytes,
        ..NewTask::new("k", "")
    };
    if task.check(0).is_ok() {
        assert!(
            serde_json::from_slice::<Box<serde_json::value::RawValue>>(&task.input).is_ok(),
            "{:?}",
            text(&task.input)
        );
    }
}

/// The database that it names, or an error; neither shows the password.
fn url_holds(password: &str) {
    let url = format!("postgresql://aegis:{password}@db.example:5432/app?sslmode=disable");
    match StoreConfig::from_url(&url) {
        Ok(config) => assert_eq!(config.place(), "db.example port 5432", "{url}"),
        Err(error) => assert!(!error.to_string().contains("hunter2"), "{url}: {error}"),
    }
}

#[test]
fn the_corpus_is_read_or_refused_in_order() {
    for url in URLS {
        StoreConfig::from_url(url).ok();
    }
    for text in TRACES {
        trace_holds(text);
    }
    for text in RANGES {
        range_holds(text);
    }
    for text in INPUTS {
        input_holds(text.as_bytes().to_vec());
    }
    for password in [
        "hunter2",
        "p@hunter2",
        "a?hunter2=",
        "?sslmode=hunter2",
        "a/hunter2",
        "p@a/hunter2",
        "%zzhunter2",
        "#hunter2",
    ] {
        url_holds(password);
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn any_database_url_is_read_or_refused(url in changed(&URLS)) {
        let url = text(&url);
        if let Ok(config) = StoreConfig::from_url(&url) {
            assert!(!config.place().is_empty());
            drop(config.with_direct_url(&url).ok());
        }
    }

    #[test]
    fn no_password_of_a_url_is_ever_shown(password in "[?@:/#&=%+a-f0-9 ]{0,8}hunter2[?@:/#&=%+a-f0-9 ]{0,8}") {
        url_holds(&password);
    }

    #[test]
    fn any_traceparent_goes_round_or_is_refused(bytes in changed(&TRACES)) {
        trace_holds(&text(&bytes));
    }

    #[test]
    fn any_protocol_range_makes_sense_or_is_refused(bytes in changed(&RANGES)) {
        range_holds(&text(&bytes));
    }

    #[test]
    fn any_input_is_a_document_or_is_refused(bytes in changed(&INPUTS)) {
        input_holds(bytes);
    }
}
