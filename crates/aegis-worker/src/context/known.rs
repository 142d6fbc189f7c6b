//! What earlier attempts have stored, as data: for handlers that hand it on to another program.

use std::sync::PoisonError;
use std::time::Duration;

use aegis_model::{Class, OperationState, ProtocolRange};
use serde_json::Value;

use crate::context::TaskContext;
use crate::parts::Stored;
use crate::task_error::TaskError;

/// A value with the protocol that wrote it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct KnownValue {
    /// The protocol of the data; nothing was brought to the handler's own.
    pub protocol: i32,
    /// The data.
    pub value: Value,
}

/// A step that an earlier attempt has done.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct KnownStep {
    /// Its name.
    pub name: String,
    /// Its key.
    pub key: String,
    /// Its value.
    pub stored: KnownValue,
}

/// An operation that stood in the ledger when this attempt looked first.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct KnownOperation {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its key.
    pub key: String,
    /// How it can be recovered.
    pub class: Class,
    /// Where it stands.
    pub state: OperationState,
    /// How many times it was dispatched.
    pub dispatches: i32,
    /// The protocol of its result.
    pub protocol: i32,
}

/// What earlier attempts have stored, in the order of names and keys.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Known {
    /// The latest checkpoint.
    pub checkpoint: Option<KnownValue>,
    /// The steps that are done.
    pub steps: Vec<KnownStep>,
    /// The ledger.
    pub operations: Vec<KnownOperation>,
}

impl<C> TaskContext<C> {
    /// What earlier attempts have stored, as it was written: no upcaster is asked. It is no use of a step or an operation.
    ///
    /// # Errors
    /// `known_invalid`, retryable, when something is not JSON; what the engine raises.
    pub async fn known(&self) -> Result<Known, TaskError> {
        let parts = self.execution.parts().await?;
        let checkpoint = parts.checkpoint.as_ref();
        let checkpoint = checkpoint
            .map(|stored| read(stored, || "the checkpoint".to_owned()))
            .transpose()?;
        let mut steps = parts
            .steps
            .iter()
            .map(|((name, key), stored)| {
                Ok(KnownStep {
                    stored: read(stored, || format!("step `{name}` key `{key}`"))?,
                    name: name.clone(),
                    key: key.clone(),
                })
            })
            .collect::<Result<Vec<_>, TaskError>>()?;
        steps.sort_unstable_by(|a, b| (&a.name, &a.key).cmp(&(&b.name, &b.key)));
        let mut operations: Vec<KnownOperation> = {
            let ledger = parts.ledger.lock().unwrap_or_else(PoisonError::into_inner);
            let entries = ledger.entries.values();
            entries
                .map(|entry| KnownOperation {
                    id: entry.id.clone(),
                    name: entry.name.clone(),
                    key: entry.key.clone(),
                    class: entry.class,
                    state: entry.state,
                    dispatches: entry.dispatches,
                    protocol: entry.protocol,
                })
                .collect()
        };
        operations.sort_unstable_by(|a, b| a.id.cmp(&b.id));
        Ok(Known {
            checkpoint,
            steps,
            operations,
        })
    }

    /// How long the worker believes its eligibility to last if nothing renews it: start nothing outside that takes longer.
    pub fn eligible_for(&self) -> Duration {
        self.execution.incarnation.fence.left()
    }

    /// What this handler reads and writes.
    pub fn protocol_range(&self) -> ProtocolRange {
        self.execution.kind.protocols.range()
    }
}

fn read(stored: &Stored, what: impl Fn() -> String) -> Result<KnownValue, TaskError> {
    serde_json::from_slice(&stored.data)
        .map(|value| KnownValue {
            protocol: stored.protocol,
            value,
        })
        .map_err(|error| TaskError::retryable("known_invalid", format!("{}: {error}", what())))
}
