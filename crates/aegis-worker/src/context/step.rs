//! Steps: memoised units inside a task.

use std::fmt::Display;
use std::future::Future;
use std::time::SystemTime;

use aegis_store::Store;
use aegis_store::guarded::{SaveTo, StepValue};
use aegis_telemetry::Role;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::context::TaskContext;
use crate::execution::Used;
use crate::points::{Cut, Subject};
use crate::protocols::Part;
use crate::task_error::TaskError;
use crate::writer::{Position, Sent, Verb};

impl<C> TaskContext<C> {
    /// Runs `run` once for a task, whatever the number of attempts: when it is done its value is stored, and later attempts
    /// get that value. It must not touch the outside world in a way that must not happen twice: that is an
    /// [operation](TaskContext::operation).
    ///
    /// `name` and `key` are explicit, never call order: a loop that starts anew at item 50 would get item 0's value.
    ///
    /// # Errors
    /// What `run` returned (nothing is stored then); a value over 1 MiB; a second use of one (name, key) in an attempt; what
    /// the engine raises.
    pub async fn step<T, F, Fut>(
        &self,
        name: &str,
        key: impl Display + Send,
        run: F,
    ) -> Result<T, TaskError>
    where
        T: Serialize + DeserializeOwned + Send,
        F: FnOnce() -> Fut + Send,
        Fut: Future<Output = Result<T, TaskError>> + Send,
    {
        let key = key.to_string();
        let execution = &self.execution;
        self.first_use(Used::Step, name, &key)?;
        let protocols = &execution.kind.protocols;
        let place = (name.to_owned(), key);
        if let Some(stored) = execution.parts().await?.steps.get(&place) {
            return protocols
                .decode(Part::Step, stored.protocol, &stored.data)
                .map_err(|error| {
                    TaskError::retryable(
                        "step_invalid",
                        format!("step `{}` key `{}`: {error}", place.0, place.1),
                    )
                });
        }
        execution.not_while_settling()?;
        execution.may_begin()?;
        let (name, key) = place;
        let subject = || Subject::Step {
            name: name.clone(),
            key: key.clone(),
        };
        execution.at(Cut::Before, subject).await;
        let began = SystemTime::now();
        let stored = async {
            let value = run().await?;
            let data = serde_json::to_vec(&value)?;
            execution.at(Cut::Ran, subject).await;
            execution
                .write(Step {
                    name: name.clone(),
                    key: key.clone(),
                    protocol: protocols.writes(),
                    data,
                })
                .await?;
            execution.at(Cut::Stored, subject).await;
            Ok(value)
        };
        let stored = stored.await;
        let fields = || {
            vec![
                ("aegis.step", name.as_str().into()),
                ("aegis.key", key.as_str().into()),
            ]
        };
        let error = stored
            .as_ref()
            .err()
            .map(|error: &TaskError| error.word().to_owned());
        execution.tell("aegis.step", Role::Internal, None, began, fields, error);
        stored
    }
}

struct Step {
    name: String,
    key: String,
    protocol: i32,
    data: Vec<u8>,
}

impl Verb for Step {
    type Out = ();

    fn word(&self) -> &'static str {
        "step"
    }

    async fn send(&self, store: &Store, at: Position) -> Sent<()> {
        let step = StepValue {
            name: self.name.clone(),
            key: self.key.clone(),
            to: SaveTo {
                held: at.held,
                lane: at.lane,
                protocol: self.protocol,
                data: self.data.clone(),
            },
        };
        Ok(store.step(step).await?.map(|saved| (Some(saved), ())))
    }

    fn read_back(&self) {}

    fn protocol(&self) -> i32 {
        self.protocol
    }
}
