//! Frames and lines: what programs, workers and services write, one after the other.

use aegis_demo::payments::record::evidence;
use aegis_demo::verify::parse_record;
use aegis_drill::history;
use aegis_drill::oracle::record;
use aegis_drill::proxy::Frames;
use aegis_migrate::session::announced;
use aegis_protocol::FromHandler;

use crate::holds::{harmless, same, says};

/// A line of a program that handles tasks.
pub(super) fn handler_line(bytes: &[u8]) {
    match FromHandler::parse(bytes) {
        Ok(message) => {
            let said = serde_json::to_vec(&message).unwrap_or_default();
            same(&Ok(message), &FromHandler::parse(&said));
        }
        Err(error) => harmless(&error),
    }
}

/// A client's bytes, in pieces of a length that the first byte says: what is forwarded are these bytes in this order.
pub(super) fn frames(bytes: &[u8]) {
    let Some((piece, bytes)) = bytes.split_first() else {
        return;
    };
    let mut frames = Frames::default();
    let mut forwarded = Vec::new();
    for some in bytes.chunks(usize::from(*piece).max(1)) {
        for batch in frames.take(some) {
            assert!(!batch.bytes.is_empty(), "an empty batch");
            forwarded.extend(batch.bytes);
        }
    }
    assert!(bytes.starts_with(&forwarded), "bytes were changed or moved");
    // In one piece they are cut at the same places.
    let at_once: Vec<u8> = Frames::default()
        .take(bytes)
        .into_iter()
        .flat_map(|batch| batch.bytes)
        .collect();
    same(&forwarded, &at_once);
}

/// What a server says first, in pieces of a length that the first byte says: the process id that is heard is the same in any.
pub(super) fn server_startup(bytes: &[u8]) {
    let Some((piece, bytes)) = bytes.split_first() else {
        return;
    };
    let at_once = announced([bytes]);
    let in_pieces = announced(bytes.chunks(usize::from(*piece).max(1)));
    same(&at_once, &in_pieces);
    same(&at_once, &announced(bytes.chunks(1)));
    if let Some(pid) = at_once {
        let said = pid.to_be_bytes();
        let is_there = bytes.windows(4).any(|four| four == said);
        assert!(is_there && bytes.contains(&b'K'), "nobody said {pid}");
    }
}

/// A history of a drill, of which a kill cut off the end.
pub(super) fn history(bytes: &[u8]) {
    match history::parse(bytes) {
        Ok(lines) => {
            let mut said = Vec::new();
            for line in &lines {
                said.extend(serde_json::to_vec(line).unwrap_or_default());
                said.push(b'\n');
            }
            let again = history::parse(&said);
            same(&Some(lines), &again.ok());
        }
        Err(error) => says(&error, bytes),
    }
}

/// What the oracle of a drill wrote.
pub(super) fn oracle_record(bytes: &[u8]) {
    if let Err(error) = record::parse(bytes) {
        says(&error, bytes);
    }
}

/// What the payment service of the demo wrote: read for as far as it is whole.
pub(super) fn payments_record(bytes: &[u8]) {
    let record = parse_record(bytes);
    let _ = evidence(&record.lines, "one");
    let _ = record.run();
}
