//! The hint to idle workers after a submit.
//!
//! Never: inside the task's transaction, nor an error of its own; a lost hint costs at most a poll.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use aegis_model::limits::NOTIFY_EVERY_MS;

use crate::error::StoreError;
use crate::generated::client;
use crate::store::Store;

impl Store {
    /// Wakes idle workers, at most once in 100 ms a queue from this process. A lost hint costs at most a poll.
    pub(crate) async fn wake(&self, queues: &[String]) {
        static LAST: Mutex<Option<HashMap<String, Instant>>> = Mutex::new(None);
        let due: Vec<&str> = {
            let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
            let last = last.get_or_insert_with(HashMap::new);
            let now = Instant::now();
            let every = Duration::from_millis(NOTIFY_EVERY_MS);
            queues
                .iter()
                .filter(|queue| {
                    let due = last
                        .get(*queue)
                        .is_none_or(|at| now.duration_since(*at) >= every);
                    if due {
                        last.insert((*queue).clone(), now);
                    }
                    due
                })
                .map(String::as_str)
                .collect()
        };
        if due.is_empty() {
            return;
        }
        let sent = async {
            client::notify(&self.conn().await?.conn(), &due)
                .await
                .map_err(StoreError::from)
        };
        if let Err(error) = sent.await {
            tracing::debug!(error = %error, "idle workers were not woken; they poll");
        }
    }
}
