//! The hint to idle workers after a submit: at most one notification in 100 ms a queue from this store. What comes within that
//! time is told at its end, so the last of a few submits waits for no poll.
//!
//! Never: inside the task's transaction, nor an error of its own; a lost hint costs at most a poll.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use aegis_model::limits::NOTIFY_EVERY_MS;
use tokio::time::Instant;

use crate::error::StoreError;
use crate::generated::client;
use crate::store::Store;

const EVERY: Duration = Duration::from_millis(NOTIFY_EVERY_MS);

/// Queues that are remembered; older ones are forgotten first, which costs a notification too many.
const QUEUES_MAX: usize = 1000;

/// When each queue was told last, and whether somebody waits to tell it again.
#[derive(Default)]
pub(crate) struct Hints(Mutex<HashMap<String, Told>>);

#[derive(Clone, Copy)]
struct Told {
    at: Instant,
    /// A notification is on its way, at the end of the time.
    owed: bool,
}

/// What a submit has to do about a queue.
#[derive(Debug, PartialEq, Eq)]
enum Due {
    Now,
    /// At this moment, by whoever got this answer.
    At(Instant),
    /// Somebody else does it.
    Owed,
}

impl Hints {
    fn due(&self, queue: &str, now: Instant) -> Due {
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(told) = told.get_mut(queue)
            && now < told.at + EVERY
        {
            if told.owed {
                return Due::Owed;
            }
            told.owed = true;
            return Due::At(told.at + EVERY);
        }
        if told.len() >= QUEUES_MAX {
            told.retain(|_, told| told.owed || now < told.at + EVERY);
        }
        let fresh = Told {
            at: now,
            owed: false,
        };
        told.insert(queue.to_owned(), fresh);
        Due::Now
    }

    /// The owed notification goes out at this moment.
    fn paid(&self, queue: &str, now: Instant) {
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = Told {
            at: now,
            owed: false,
        };
        told.insert(queue.to_owned(), fresh);
    }
}

impl Store {
    /// Wakes idle workers of these queues.
    pub(crate) async fn wake(&self, queues: &[String]) {
        let now = Instant::now();
        let mut at_once = Vec::new();
        for queue in queues {
            match self.hints().due(queue, now) {
                Due::Now => at_once.push(queue.as_str()),
                Due::At(at) => self.wake_at(at, queue.clone()),
                Due::Owed => {}
            }
        }
        if !at_once.is_empty() {
            self.notify(&at_once).await;
        }
    }

    fn wake_at(&self, at: Instant, queue: String) {
        let store = self.downgrade();
        tokio::spawn(async move {
            tokio::time::sleep_until(at).await;
            // A store that nobody has any more owes nothing.
            if let Some(store) = store.upgrade() {
                store.hints().paid(&queue, Instant::now());
                store.notify(&[&queue]).await;
            }
        });
    }

    async fn notify(&self, queues: &[&str]) {
        let sent = async {
            client::notify(&self.conn().await?.conn(), queues)
                .await
                .map_err(StoreError::from)
        };
        if let Err(error) = sent.await {
            tracing::debug!(error = %error, "idle workers were not woken; they poll");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_within_the_time_is_told_at_its_end_and_once() {
        let hints = Hints::default();
        let start = Instant::now();
        let after = |ms| start + Duration::from_millis(ms);
        assert_eq!(hints.due("a", start), Due::Now);
        assert_eq!(hints.due("b", after(10)), Due::Now);
        assert_eq!(hints.due("a", after(10)), Due::At(after(100)));
        assert_eq!(hints.due("a", after(20)), Due::Owed);
        hints.paid("a", after(100));
        assert_eq!(hints.due("a", after(150)), Due::At(after(200)));
        assert_eq!(hints.due("b", after(110)), Due::Now);
    }

    #[test]
    fn queues_are_not_remembered_for_ever() {
        let hints = Hints::default();
        let start = Instant::now();
        for n in 0..QUEUES_MAX {
            assert_eq!(hints.due(&n.to_string(), start), Due::Now);
        }
        assert_eq!(hints.due("one more", start + EVERY), Due::Now);
        assert_eq!(hints.0.lock().unwrap().len(), 1);
    }
}
