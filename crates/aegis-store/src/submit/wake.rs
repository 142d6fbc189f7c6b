//! The hint to idle workers after a submit: one notification in 50 ms a queue from this store on average, and a few at once after
//! a pause. What is held back is told as soon as it may be, so the last of a few submits waits for no poll.
//!
//! Never: inside the task's transaction, nor an error of its own; a lost hint costs at most a poll.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use aegis_model::limits::{NOTIFY_BURST, NOTIFY_EVERY_MS};
use tokio::time::Instant;

use crate::error::StoreError;
use crate::generated::client;
use crate::store::Store;

const EVERY: Duration = Duration::from_millis(NOTIFY_EVERY_MS);

/// Queues that are remembered; those that have not been told of for long are forgotten first, which costs a notification too
/// many.
const QUEUES_MAX: usize = 1000;

/// What each queue may still be told.
#[derive(Default)]
pub(crate) struct Hints(Mutex<HashMap<String, Bucket>>);

#[derive(Clone, Copy)]
struct Bucket {
    /// When it is, or was, full again: each notification moves it on by [`EVERY`].
    full_at: Instant,
    /// A notification is on its way, as soon as one may be sent.
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
        let mut queues = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if queues.len() >= QUEUES_MAX && !queues.contains_key(queue) {
            queues.retain(|_, bucket| bucket.owed || now < bucket.full_at);
        }
        let bucket = queues.entry(queue.to_owned()).or_insert(Bucket {
            full_at: now,
            owed: false,
        });
        if bucket.owed {
            return Due::Owed;
        }
        let after = bucket.full_at.max(now) + EVERY;
        let spare = now + EVERY * NOTIFY_BURST;
        if after > spare {
            bucket.owed = true;
            return Due::At(now + (after - spare));
        }
        bucket.full_at = after;
        Due::Now
    }

    /// The owed notification goes out at this moment.
    fn paid(&self, queue: &str, now: Instant) {
        let mut queues = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bucket) = queues.get_mut(queue) {
            bucket.full_at = bucket.full_at.max(now) + EVERY;
            bucket.owed = false;
        }
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
    fn a_few_go_at_once_then_one_in_fifty_ms_and_what_is_held_back_goes_once() {
        let hints = Hints::default();
        let start = Instant::now();
        let after = |ms| start + Duration::from_millis(ms);
        for _ in 0..NOTIFY_BURST {
            assert_eq!(hints.due("a", start), Due::Now);
        }
        assert_eq!(hints.due("b", start), Due::Now);
        assert_eq!(hints.due("a", after(10)), Due::At(after(50)));
        assert_eq!(hints.due("a", after(20)), Due::Owed);
        hints.paid("a", after(50));
        assert_eq!(hints.due("a", after(60)), Due::At(after(100)));
        hints.paid("a", after(100));
        // One in 50 ms never waits.
        for n in 3..20 {
            assert_eq!(hints.due("a", after(50 * n)), Due::Now, "{n}");
        }
        // A pause fills it again, and no more than that.
        for _ in 0..NOTIFY_BURST {
            assert_eq!(hints.due("a", after(10_000)), Due::Now);
        }
        assert_eq!(hints.due("a", after(10_000)), Due::At(after(10_050)));
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
