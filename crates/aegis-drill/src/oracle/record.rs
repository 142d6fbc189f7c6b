//! The oracle's file: JSON lines, each synced to the disk before anybody is answered.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::behaviour::Behaviour;
use crate::error::DrillError;
use crate::history::{now_ns, read_lines, whole_lines};

/// One line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Its number, from 0, without a gap.
    pub seq: u64,
    /// CLOCK_MONOTONIC of the machine.
    pub ns: i64,
    /// What happened.
    pub what: What,
    /// The class.
    pub class: String,
    /// The operation.
    pub operation: String,
    /// The task; empty for a probe.
    pub task: String,
    /// `floor.timeline.epoch` of the caller.
    pub token: Option<(i64, i64, i64)>,
    /// The how manieth call of this operation.
    pub call: u32,
    /// How the call goes.
    pub behaviour: Option<Behaviour>,
}

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// An effect.
    Applied,
    /// A known operation was answered with its first result.
    Replayed,
    /// An older token was refused.
    Refused,
    /// The request got lost.
    Lost,
    /// Somebody asked and it had happened.
    ProbedHappened,
    /// Somebody asked and it had not.
    ProbedNot,
}

/// Appends; one per record.
#[derive(Debug)]
pub(super) struct Record {
    file: File,
    next: u64,
}

impl Record {
    pub(super) fn create(path: &Path) -> Result<Self, DrillError> {
        let file = OpenOptions::new().append(true).create_new(true).open(path);
        Ok(Self {
            file: file.map_err(DrillError::file("make", path))?,
            next: 0,
        })
    }

    /// Writes one line and syncs it; gives its number.
    pub(super) fn append(&mut self, mut entry: Entry) -> io::Result<u64> {
        entry.seq = self.next;
        entry.ns = now_ns();
        let mut bytes = serde_json::to_vec(&entry).map_err(io::Error::other)?;
        bytes.push(b'\n');
        self.file.write_all(&bytes)?;
        self.file.sync_data()?;
        self.next += 1;
        Ok(entry.seq)
    }
}

/// Reads a record.
///
/// # Errors
/// It cannot be read, or is not of this format.
pub fn read(path: &Path) -> Result<Vec<Entry>, DrillError> {
    read_lines(path, "the oracle's record")
}

/// The bytes of a record.
///
/// # Errors
/// A whole line is not of this format.
pub fn parse(bytes: &[u8]) -> Result<Vec<Entry>, DrillError> {
    whole_lines(bytes, "the oracle's record")
}

/// `floor.timeline.epoch`.
pub(super) fn token(text: &str) -> Option<(i64, i64, i64)> {
    let mut parts = text.split('.').map(|part| part.parse().ok());
    let token = (parts.next()??, parts.next()??, parts.next()??);
    parts.next().is_none().then_some(token)
}

#[cfg(test)]
mod tests {
    use super::token;

    #[test]
    fn a_token_has_three_numbers() {
        assert_eq!(token("0.1.7"), Some((0, 1, 7)));
        assert_eq!(token("0.1"), None);
        assert_eq!(token("0.1.7.9"), None);
        assert_eq!(token("a.1.7"), None);
    }
}
