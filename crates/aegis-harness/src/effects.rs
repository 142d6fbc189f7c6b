//! The outside world of a test: a record of every effect, and services that behave as each class of operation says.
//!
//! Invariant: only what happened is counted as an effect; that a request arrived is counted apart.
//!
//! Never: forget. A crash of a worker leaves the record as it is, like a crash leaves the bank's.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aegis_worker::{CallError, FencingToken, OperationCall, Probe};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use uuid::Uuid;

/// Records what happens outside. Cheap to clone; all clones are one record.
///
/// A fake of the downstream holds one and calls the method that behaves like the real one:
///
/// | the real service | method |
/// | --- | --- |
/// | knows idempotency keys | [`once`](Self::once) |
/// | refuses older fencing tokens | [`fenced`](Self::fenced) |
/// | can be asked by id | [`each_time`](Self::each_time) and [`probe`](Self::probe) |
/// | nothing of that | [`each_time`](Self::each_time) |
/// | is no operation at all | [`happened`](Self::happened) |
#[derive(Debug, Clone, Default)]
pub struct Effects {
    record: Arc<Mutex<Record>>,
}

#[derive(Debug, Default)]
struct Record {
    /// Names of effects, in order.
    effects: Vec<String>,
    requests: usize,
    answers: BTreeMap<String, (FencingToken, Value)>,
}

impl Effects {
    /// An empty record.
    pub fn new() -> Self {
        Self::default()
    }

    fn record(&self) -> MutexGuard<'_, Record> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Something happened outside, without an operation. `what` names it, as in `mail to 7`: what has the same name in one run
    /// has happened twice.
    pub fn happened(&self, what: impl Into<String>) {
        let mut record = self.record();
        record.requests += 1;
        record.effects.push(what.into());
    }

    /// A service that knows idempotency keys: a repeat gets the first answer, and nothing happens again.
    ///
    /// # Errors
    /// An answer that cannot be encoded, or one of before that is of another type.
    pub fn once<T>(&self, call: &OperationCall, answer: impl FnOnce() -> T) -> Result<T, CallError>
    where
        T: Serialize + DeserializeOwned,
    {
        let mut record = self.record();
        record.requests += 1;
        if let Some((_, kept)) = record.answers.get(&call.id) {
            return decoded(kept.clone());
        }
        record.apply(call, answer())
    }

    /// A service that refuses an older fencing token than it has seen for this operation, and answers an id that it knows with
    /// its first result.
    ///
    /// # Errors
    /// [`CallError::Failed`] for an older token; as [`Effects::once`].
    pub fn fenced<T>(
        &self,
        call: &OperationCall,
        answer: impl FnOnce() -> T,
    ) -> Result<T, CallError>
    where
        T: Serialize + DeserializeOwned,
    {
        let mut record = self.record();
        record.requests += 1;
        if let Some((newest, kept)) = record.answers.get_mut(&call.id) {
            if call.fencing_token < *newest {
                return Err(CallError::failed(format!(
                    "the fencing token {} is older than {newest}",
                    call.fencing_token
                )));
            }
            *newest = call.fencing_token;
            return decoded(kept.clone());
        }
        record.apply(call, answer())
    }

    /// A service without any memory for keys: each request is an effect.
    ///
    /// # Errors
    /// An answer that cannot be encoded.
    pub fn each_time<T>(
        &self,
        call: &OperationCall,
        answer: impl FnOnce() -> T,
    ) -> Result<T, CallError>
    where
        T: Serialize + DeserializeOwned,
    {
        let mut record = self.record();
        record.requests += 1;
        record.apply(call, answer())
    }

    /// What a service that can be asked by operation id knows.
    pub fn probe<T: DeserializeOwned>(&self, call: &OperationCall) -> Probe<T> {
        match self.record().answers.get(&call.id) {
            None => Probe::DidNotHappen,
            Some((_, kept)) => match serde_json::from_value(kept.clone()) {
                Ok(answer) => Probe::Happened(answer),
                Err(_) => Probe::CannotTell,
            },
        }
    }

    /// Names of everything that has happened, in order. An operation's effect has the operation's id.
    pub fn all(&self) -> Vec<String> {
        self.record().effects.clone()
    }

    /// How many requests have arrived, those without an effect included.
    pub fn requests(&self) -> usize {
        self.record().requests
    }

    pub(crate) fn len(&self) -> usize {
        self.record().effects.len()
    }

    /// What has happened since, counted by name; a task's own id is left out of the names, so that runs can be compared.
    pub(crate) fn since(&self, mark: usize, task: Uuid) -> BTreeMap<String, usize> {
        let own = format!("{task}/");
        let mut counted = BTreeMap::new();
        for name in self.record().effects.iter().skip(mark) {
            *counted.entry(name.replace(&own, "")).or_insert(0) += 1;
        }
        counted
    }
}

impl Record {
    fn apply<T>(&mut self, call: &OperationCall, answer: T) -> Result<T, CallError>
    where
        T: Serialize,
    {
        let kept = serde_json::to_value(&answer)
            .map_err(|error| CallError::failed(format!("the answer is not JSON: {error}")))?;
        self.effects.push(call.id.clone());
        self.answers
            .insert(call.id.clone(), (call.fencing_token, kept));
        Ok(answer)
    }
}

fn decoded<T: DeserializeOwned>(kept: Value) -> Result<T, CallError> {
    serde_json::from_value(kept).map_err(|error| {
        CallError::doubtful(format!("the kept answer is of another type: {error}"))
    })
}
