//! One worker in a runtime of its own, so that it can die like a process.
//!
//! Invariants: a killed worker hands nothing back and completes nothing; its connections are closed when the kill has returned.
//!
//! What cannot be killed in a process: code between two awaits, and blocking threads of the handler's. They go on to their end.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use aegis_store::{Config, Store};
use aegis_worker::{Worker, WorkerBuilder, WorkerHandle};
use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use tokio_postgres::Client;

use crate::clock;
use crate::error::HarnessError;
use crate::script::Ear;

/// Puts the handlers into a worker; called for each incarnation.
pub(crate) type Furnish = dyn Fn(WorkerBuilder) -> WorkerBuilder + Send + Sync;

/// A running worker.
pub(crate) struct Incarnation {
    runtime: Option<Runtime>,
    pub(crate) handle: WorkerHandle,
    pub(crate) ear: Arc<Ear>,
    application: String,
    /// How it ended by itself.
    ended: Arc<OnceLock<String>>,
}

impl Incarnation {
    pub(crate) async fn start(
        config: Config,
        application: String,
        lease: Duration,
        furnish: Arc<Furnish>,
        ear: Arc<Ear>,
    ) -> Result<Self, HarnessError> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name("aegis-harness")
            .enable_all()
            .build()
            .map_err(|error| HarnessError::Worker {
                what: format!("no runtime could be started: {error}"),
            })?;
        let (tell, told) = oneshot::channel();
        let ended = Arc::new(OnceLock::new());
        let (listener, end) = (Arc::clone(&ear), Arc::clone(&ended));
        runtime.spawn(async move {
            let built = async {
                let builder = Worker::builder(Store::connect(config).await?)
                    .name("harness")
                    .lease_ttl(lease)
                    .points(listener);
                furnish(builder)
                    .build()
                    .map_err(|error| HarnessError::Worker {
                        what: error.to_string(),
                    })
            };
            match built.await {
                Ok(worker) => {
                    tell.send(Ok(worker.handle())).ok();
                    let exit = worker.run(std::future::pending()).await;
                    end.set(format!("{exit:?}")).ok();
                }
                Err(error) => {
                    tell.send(Err(error)).ok();
                }
            }
        });
        let handle = match told.await {
            Ok(Ok(handle)) => handle,
            failed => {
                runtime.shutdown_background();
                return Err(match failed {
                    Ok(Err(error)) => error,
                    _ => HarnessError::Worker {
                        what: "it panicked while it was put together".to_owned(),
                    },
                });
            }
        };
        Ok(Self {
            runtime: Some(runtime),
            handle,
            ear,
            application,
            ended,
        })
    }

    /// How it ended although nobody asked it to.
    pub(crate) fn ended(&self) -> Option<&str> {
        self.ended.get().map(String::as_str)
    }

    /// Dies, now.
    pub(crate) async fn kill(mut self, admin: &Client) -> Result<(), HarnessError> {
        self.drop_runtime();
        clock::hang_up(admin, &self.application).await
    }

    fn drop_runtime(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Drop for Incarnation {
    fn drop(&mut self) {
        self.drop_runtime();
    }
}
