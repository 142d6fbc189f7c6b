//! Checkpoints: saved progress that the next attempt starts from.

use aegis_store::Store;
use aegis_store::guarded::SaveTo;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::context::TaskContext;
use crate::points::{Cut, Subject};
use crate::protocols::Part;
use crate::task_error::TaskError;
use crate::writer::{Position, Sent, Verb};

impl<C: Serialize + DeserializeOwned> TaskContext<C> {
    /// The latest checkpoint of earlier attempts, brought to the handler's own protocol; `None` when there is none.
    ///
    /// # Errors
    /// `checkpoint_invalid`, retryable, when it cannot be decoded: it is kept for a worker that can.
    pub async fn checkpoint(&self) -> Result<Option<C>, TaskError> {
        let Some(stored) = &self.execution.parts().await?.checkpoint else {
            return Ok(None);
        };
        self.execution
            .kind
            .protocols
            .decode(Part::Checkpoint, stored.protocol, &stored.data)
            .map(Some)
            .map_err(|error| TaskError::retryable("checkpoint_invalid", error))
    }

    /// The protocol of the latest checkpoint of earlier attempts, before it was brought to the handler's own.
    ///
    /// # Errors
    /// What the engine raises.
    pub async fn checkpoint_protocol(&self) -> Result<Option<i32>, TaskError> {
        let parts = self.execution.parts().await?;
        Ok(parts.checkpoint.as_ref().map(|stored| stored.protocol))
    }

    /// Saves a checkpoint. Works while the execution is asked to stop, too: that is what the time is for.
    ///
    /// # Errors
    /// A checkpoint over 1 MiB; what the engine raises.
    pub async fn save_checkpoint(&self, checkpoint: &C) -> Result<(), TaskError> {
        self.execution.not_while_settling()?;
        let data = serde_json::to_vec(checkpoint)?;
        let protocol = self.execution.kind.protocols.writes();
        let execution = &self.execution;
        execution.at(Cut::Before, || Subject::Checkpoint).await;
        execution.write(Checkpoint { protocol, data }).await?;
        execution.at(Cut::Stored, || Subject::Checkpoint).await;
        Ok(())
    }
}

struct Checkpoint {
    protocol: i32,
    data: Vec<u8>,
}

impl Verb for Checkpoint {
    type Out = ();

    fn word(&self) -> &'static str {
        "checkpoint"
    }

    async fn send(&self, store: &Store, at: Position) -> Sent<()> {
        let to = SaveTo {
            held: at.held,
            lane: at.lane,
            protocol: self.protocol,
            data: self.data.clone(),
        };
        Ok(store.checkpoint(to).await?.map(|saved| (Some(saved), ())))
    }

    fn read_back(&self) {}

    fn protocol(&self) -> i32 {
        self.protocol
    }
}
