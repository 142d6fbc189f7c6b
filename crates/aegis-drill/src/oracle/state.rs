//! What the oracle remembers, and the decision about each call.
//!
//! Invariant: one lock over decision and record, so the record's order is the order of the effects.

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::Asked;
use super::behaviour::{Behaviour, draw};
use super::record::{Entry, Record, What};
use crate::error::DrillError;

#[derive(Debug)]
pub(super) struct State {
    seed: u64,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    record: Record,
    calls: HashMap<String, u32>,
    /// Operation to the line of its first effect.
    applied: HashMap<String, u64>,
    /// Task to its newest token.
    newest: HashMap<String, (i64, i64, i64)>,
}

/// What a call is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    Receipt(u64),
    Refused,
}

impl State {
    pub(super) fn open(record: &Path, seed: u64) -> Result<Self, DrillError> {
        Ok(Self {
            seed,
            inner: Mutex::new(Inner {
                record: Record::create(record)?,
                calls: HashMap::new(),
                applied: HashMap::new(),
                newest: HashMap::new(),
            }),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts the call and draws how it goes.
    pub(super) fn arrived(&self, asked: &Asked) -> (u32, Behaviour) {
        let mut inner = self.lock();
        let call = inner.calls.entry(asked.operation.clone()).or_default();
        *call += 1;
        let call = *call;
        (call, draw(self.seed, &asked.operation, call))
    }

    /// Decides, writes, answers.
    pub(super) fn apply(&self, asked: &Asked, call: u32, how: Behaviour) -> io::Result<Answer> {
        let mut inner = self.lock();
        let first = inner.applied.get(&asked.operation).copied();
        let newest = inner.newest.get(&asked.task).copied();
        let remembers = matches!(asked.class, "idempotent" | "fenced");
        let stale = asked.class == "fenced" && asked.token < newest;
        let what = if stale {
            What::Refused
        } else if first.is_some() && remembers {
            What::Replayed
        } else {
            What::Applied
        };
        let seq = inner.record.append(entry(asked, call, what, Some(how)))?;
        if let Some(token) = asked.token.filter(|_| asked.class == "fenced" && !stale) {
            inner.newest.insert(asked.task.clone(), token);
        }
        Ok(match what {
            What::Refused => Answer::Refused,
            What::Replayed => Answer::Receipt(first.unwrap_or(seq)),
            _ => {
                inner.applied.entry(asked.operation.clone()).or_insert(seq);
                Answer::Receipt(seq)
            }
        })
    }

    /// Writes that a request got lost.
    pub(super) fn lost(&self, asked: &Asked, call: u32) -> io::Result<()> {
        let entry = entry(asked, call, What::Lost, Some(Behaviour::RequestLost));
        self.lock().record.append(entry).map(drop)
    }

    /// What became of an operation: the line of its effect.
    pub(super) fn probe(&self, operation: &str) -> io::Result<Option<u64>> {
        let mut inner = self.lock();
        let first = inner.applied.get(operation).copied();
        let what = if first.is_some() {
            What::ProbedHappened
        } else {
            What::ProbedNot
        };
        let asked = Asked {
            class: "queryable",
            operation: operation.to_owned(),
            task: String::new(),
            token: None,
        };
        inner.record.append(entry(&asked, 0, what, None))?;
        Ok(first)
    }
}

fn entry(asked: &Asked, call: u32, what: What, behaviour: Option<Behaviour>) -> Entry {
    Entry {
        seq: 0,
        ns: 0,
        what,
        class: asked.class.to_owned(),
        operation: asked.operation.clone(),
        task: asked.task.clone(),
        token: asked.token,
        call,
        behaviour,
    }
}
