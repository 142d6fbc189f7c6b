//! Reading the record, missing nothing: whatever is not a whole record of one run becomes a doubt.
//!
//! Must never skip a line in silence.

use std::path::Path;

use serde::Deserialize;

use super::Doubt;
use crate::payments::record::{Event, RecordLine, VERSION};

/// A record as it was read, with every reason not to believe it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Record {
    /// The lines that could be understood.
    pub lines: Vec<RecordLine>,
    /// What is wrong with the file.
    pub doubts: Vec<Doubt>,
}

impl Record {
    /// A record of these lines, with the doubts that they raise by themselves.
    pub fn of(lines: Vec<RecordLine>) -> Self {
        let mut doubts = Vec::new();
        order(&lines, &mut doubts);
        Self { lines, doubts }
    }

    /// The run that the record says it belongs to.
    pub fn run(&self) -> Option<&str> {
        match &self.lines.first()?.event {
            Event::Opened { run, .. } => Some(run),
            _ => None,
        }
    }
}

/// Reads a record file. Never fails: what cannot be read is a doubt.
pub fn read_record(path: &Path) -> Record {
    match std::fs::read(path) {
        Ok(bytes) => parse_record(&bytes),
        Err(error) => Record {
            lines: Vec::new(),
            doubts: vec![Doubt::Unreadable {
                path: path.display().to_string(),
                why: error.to_string(),
            }],
        },
    }
}

/// Reads a record from the bytes of its file.
pub fn parse_record(bytes: &[u8]) -> Record {
    #[derive(Deserialize)]
    struct Head {
        v: u32,
    }
    let mut record = Record::default();
    let mut pieces: Vec<&[u8]> = bytes.split(|b| *b == b'\n').collect();
    // What stands behind the last newline is a line that was not finished, or nothing.
    let rest = pieces.pop().unwrap_or_default();
    for (number, piece) in (1_u64..).zip(&pieces) {
        let head = serde_json::from_slice::<Head>(piece);
        match (head, serde_json::from_slice::<RecordLine>(piece)) {
            (Ok(Head { v }), _) if v != VERSION => {
                record.doubts.push(Doubt::Version {
                    line: number,
                    found: v,
                    known: VERSION,
                });
            }
            (_, Ok(line)) => record.lines.push(line),
            (_, Err(error)) => record.doubts.push(Doubt::Garbled {
                line: number,
                why: error.to_string(),
            }),
        }
    }
    if !rest.is_empty() {
        record.doubts.push(Doubt::HalfLine {
            line: pieces.len() as u64 + 1,
        });
    }
    order(&record.lines, &mut record.doubts);
    record
}

fn order(lines: &[RecordLine], doubts: &mut Vec<Doubt>) {
    let Some(last) = lines.last() else {
        if doubts.is_empty() {
            doubts.push(Doubt::Empty);
        }
        return;
    };
    let opened = |line: &RecordLine| matches!(line.event, Event::Opened { .. });
    if !lines.first().is_some_and(opened) || lines.iter().skip(1).any(opened) {
        doubts.push(Doubt::NotOpened);
    }
    let closed = |line: &RecordLine| matches!(line.event, Event::Closed {});
    // A line behind the closing one was added by somebody else.
    if !closed(last) || lines.iter().filter(|line| closed(line)).count() != 1 {
        doubts.push(Doubt::NotClosed);
    }
    let mut expected = 0;
    for (index, line) in (0_u64..).zip(lines) {
        if line.seq != expected {
            doubts.push(Doubt::Gap {
                after: index,
                expected,
                found: line.seq,
            });
        }
        expected = line.seq + 1;
    }
}
