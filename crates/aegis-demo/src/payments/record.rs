//! The record of the payment service: what really happened, for an auditor.
//!
//! # Format, version 1
//!
//! A file of JSON objects, one a line, each ended by a newline and written in one piece before anybody is answered.
//! Every line has `v` (1), `seq` (0, 1, 2 … without a gap), `at_ms` (Unix time, milliseconds; for people, never
//! compared) and `kind`:
//!
//! - `opened`: the first line. `run`, `seed`, `doubles`.
//! - `applied`: an effect took place. The call, `receipt`, `amount` and `currency` when the request had them,
//!   `behaviour`: what the caller saw of it.
//! - `replayed`: a known operation was answered with its first result, `of_seq`; nothing took place.
//! - `refused`: nothing took place; `reason` is `stale_token` (with `newest`), or `key_reused` (the same operation
//!   with another request).
//! - `dropped`: nothing took place; the request got lost, or an error was answered before it was applied.
//! - `probed`: somebody asked about an operation; `answer`.
//! - `closed`: the last line, written when the service stops in order. A record without it is not complete.
//!
//! A call is `effect`, `class`, `operation_id`, `task`, `reference` (the order), `fencing_token`, `request_sha256`,
//! and `call` (how many calls of this effect for this order there were, this one included).
//!
//! A reader refuses a higher version, and may meet fields that it does not know.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{Behaviour, Effect, EffectClass, FencingToken, ProbeAnswer};

/// The version that this code writes and reads.
pub const VERSION: u32 = 1;

/// One line of the record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordLine {
    /// The version of the format.
    pub v: u32,
    /// Its number, from 0.
    pub seq: u64,
    /// When, in milliseconds of Unix time.
    pub at_ms: i64,
    /// What.
    #[serde(flatten)]
    pub event: Event,
}

/// What a line tells.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Event {
    /// The service started.
    Opened {
        /// The run that the record belongs to.
        run: String,
        /// The seed of its behaviour.
        seed: u64,
        /// It was told to break its promise.
        doubles: bool,
    },
    /// An effect took place.
    Applied {
        /// By whom and for what.
        #[serde(flatten)]
        call: Call,
        /// The number that the caller is given.
        receipt: String,
        /// The amount of the request, as it was written.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        amount: Option<String>,
        /// The currency of the request.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        currency: Option<String>,
        /// What the caller saw of it.
        behaviour: Behaviour,
    },
    /// A known operation was answered from memory.
    Replayed {
        /// By whom and for what.
        #[serde(flatten)]
        call: Call,
        /// The line of the effect.
        of_seq: u64,
        /// What the caller saw of it.
        behaviour: Behaviour,
    },
    /// A call was refused.
    Refused {
        /// By whom and for what.
        #[serde(flatten)]
        call: Call,
        /// Why.
        reason: Refusal,
        /// The newest token of the task, when that is why.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        newest: Option<FencingToken>,
    },
    /// A call got lost or failed before it was applied.
    Dropped {
        /// By whom and for what.
        #[serde(flatten)]
        call: Call,
        /// Which of the two.
        behaviour: Behaviour,
    },
    /// Somebody asked.
    Probed {
        /// About which operation.
        operation_id: String,
        /// What was answered.
        answer: ProbeAnswer,
    },
    /// The service stopped in order.
    Closed {},
}

/// A call, as the service saw it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    /// Which effect was asked for.
    pub effect: Effect,
    /// Its class.
    pub class: EffectClass,
    /// The operation that asked.
    pub operation_id: String,
    /// The task that asked.
    pub task: String,
    /// The order that it is for.
    pub reference: String,
    /// The token, when one was sent.
    pub fencing_token: Option<FencingToken>,
    /// The SHA-256 of the body.
    pub request_sha256: String,
    /// How many calls of this effect for this order there were, this one included.
    pub call: u32,
}

/// Why a call was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Refusal {
    /// A newer token of the task is known.
    StaleToken,
    /// The same operation came with another request.
    KeyReused,
}

impl Event {
    /// The call that the line is about, when it is about one.
    pub fn call(&self) -> Option<&Call> {
        match self {
            Self::Applied { call, .. }
            | Self::Replayed { call, .. }
            | Self::Refused { call, .. }
            | Self::Dropped { call, .. } => Some(call),
            Self::Opened { .. } | Self::Probed { .. } | Self::Closed {} => None,
        }
    }
}

/// Appends lines; one per record.
#[derive(Debug)]
pub(super) struct Writer {
    file: File,
    next_seq: u64,
}

impl Writer {
    /// Creates the file; refuses one that exists.
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new()
            .append(true)
            .create_new(true)
            .open(path)?;
        Ok(Self { file, next_seq: 0 })
    }

    /// Writes one line and returns its number. A line that could not be written has no number.
    pub(super) fn append(&mut self, event: Event) -> io::Result<u64> {
        let seq = self.next_seq;
        let line = RecordLine {
            v: VERSION,
            seq,
            at_ms: jiff::Timestamp::now().as_millisecond(),
            event,
        };
        let mut bytes = serde_json::to_vec(&line).map_err(io::Error::other)?;
        bytes.push(b'\n');
        // One write: a process that is killed leaves whole lines, as the page cache outlives it.
        self.file.write_all(&bytes)?;
        self.next_seq = seq + 1;
        Ok(seq)
    }

    /// How many lines there are.
    pub(super) fn lines(&self) -> u64 {
        self.next_seq
    }
}

/// Reads what stands in a record so far; a last line without its newline is left out.
///
/// For watching a run and for an operator who resolves what is unknown. The verifier reads with
/// [`crate::verify::read_record`], which misses nothing.
///
/// # Errors
/// The file cannot be read, or a whole line is not of this format.
pub fn read_so_far(path: &Path) -> io::Result<Vec<RecordLine>> {
    let text = std::fs::read(path)?;
    let whole = text
        .iter()
        .rposition(|b| *b == b'\n')
        .map_or(0, |end| end + 1);
    text[..whole]
        .split(|b| *b == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_slice(line).map_err(io::Error::other))
        .collect()
}

/// What the record says about one operation: the evidence with which a person resolves it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Evidence {
    /// It took place, at this line, with this receipt.
    Happened {
        /// The line of the record.
        seq: u64,
        /// The receipt.
        receipt: String,
    },
    /// No line says that it took place. Final only when the longest life of a request has passed since the call.
    DidNotHappen,
}

/// Looks an operation up.
pub fn evidence(lines: &[RecordLine], operation: &str) -> Evidence {
    lines
        .iter()
        .find_map(|line| match &line.event {
            Event::Applied { call, receipt, .. } if call.operation_id == operation => {
                Some(Evidence::Happened {
                    seq: line.seq,
                    receipt: receipt.clone(),
                })
            }
            _ => None,
        })
        .unwrap_or(Evidence::DidNotHappen)
}
