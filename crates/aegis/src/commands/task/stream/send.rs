//! One batch of lines to the database: whole, or with what is refused told by its line.
//!
//! Invariants: a batch is one transaction; it is repeated only when that cannot make a task twice (every line has a key, or
//! nothing was sent); without `skip_bad` nothing from the first refused line on is submitted.

use std::time::Duration;

use aegis_store::{NewTask, Store, StoreError, Submitted};

use super::line;

/// How often a batch is tried again after a passing error, with a pause that doubles.
const TRIES: u32 = 6;
const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// What became of a batch.
#[derive(Debug, Default)]
pub(super) struct Sent {
    /// Submitted, each with its line.
    pub(super) answers: Vec<(u64, Submitted)>,
    /// Refused by the database, each with its line.
    pub(super) bad: Vec<(u64, String)>,
    /// The batch could not be sent, and whether it was committed all the same is not known.
    pub(super) failed: Option<Failed>,
}

/// A batch that was given up.
#[derive(Debug)]
pub(super) struct Failed {
    pub(super) error: StoreError,
    /// Its lines.
    pub(super) lines: (u64, u64),
    /// May it have been committed?
    pub(super) in_doubt: bool,
}

/// Sends a batch.
pub(super) async fn send(store: Store, mut batch: Vec<(u64, NewTask)>, skip_bad: bool) -> Sent {
    let mut sent = Sent::default();
    let mut tries = Tries::default();
    let mut pause = FIRST_PAUSE;
    while let (Some((first, _)), Some((last, _))) = (batch.first(), batch.last()) {
        let lines = (*first, *last);
        let tasks: Vec<NewTask> = batch.iter().map(|(_, task)| task.clone()).collect();
        let error = match store.submit_batch(tasks).await {
            Ok(answers) => {
                let numbers = batch.iter().map(|(number, _)| *number);
                sent.answers.extend(numbers.zip(answers));
                return sent;
            }
            Err(error) => error,
        };
        match culprit(&error, &batch) {
            Culprit::One(at) => {
                sent.bad.push((batch[at].0, line::problem(&error)));
                if skip_bad {
                    batch.remove(at);
                } else {
                    batch.truncate(at);
                }
            }
            Culprit::OneOfSeveral => {
                for one in batch {
                    let each = Box::pin(send(store.clone(), vec![one], skip_bad)).await;
                    let stop = each.failed.is_some() || (!skip_bad && !each.bad.is_empty());
                    sent.answers.extend(each.answers);
                    sent.bad.extend(each.bad);
                    sent.failed = each.failed;
                    if stop {
                        break;
                    }
                }
                return sent;
            }
            Culprit::Nobody => {
                let keyed = batch.iter().all(|(_, task)| task.key.is_some());
                if !tries.once_more(error.lost_answer(), error.is_passing(), keyed) {
                    sent.failed = Some(Failed {
                        in_doubt: tries.in_doubt,
                        error,
                        lines,
                    });
                    return sent;
                }
                tokio::time::sleep(pause).await;
                pause *= 2;
            }
        }
    }
    sent
}

/// How often a batch was sent, and whether it may have been committed by one of those times.
#[derive(Debug, Default)]
struct Tries {
    count: u32,
    in_doubt: bool,
}

impl Tries {
    /// After an error that is about no task. An answer that was lost once stays in doubt, whatever the later tries say.
    fn once_more(&mut self, lost_answer: bool, passing: bool, keyed: bool) -> bool {
        self.count += 1;
        self.in_doubt |= lost_answer;
        passing && self.count < TRIES && (keyed || !self.in_doubt)
    }
}

enum Culprit {
    /// This one of the batch.
    One(usize),
    /// One of those that have this key, for different tenants.
    OneOfSeveral,
    /// The error is not about a task.
    Nobody,
}

fn culprit(error: &StoreError, batch: &[(u64, NewTask)]) -> Culprit {
    match error {
        StoreError::BadTask { position, .. } if *position < batch.len() => Culprit::One(*position),
        StoreError::KeyConflict { key, kind, .. } => {
            let mut with_it = batch
                .iter()
                .enumerate()
                .filter(|(_, (_, task))| task.key.as_ref() == Some(key) && task.kind == *kind);
            // The last one: the first of twins is the one that stands.
            let Some((at, (_, last))) = with_it.next_back() else {
                return Culprit::Nobody;
            };
            if with_it.any(|(_, (_, task))| task.tenant != last.tenant) {
                Culprit::OneOfSeveral
            } else {
                Culprit::One(at)
            }
        }
        _ => Culprit::Nobody,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_that_was_lost_once_stays_in_doubt() {
        let mut keyed = Tries::default();
        assert!(
            keyed.once_more(true, true, true),
            "cannot make a task twice"
        );
        // The server is gone then: nothing that is sent from now on arrives.
        for _ in 2..TRIES {
            assert!(keyed.once_more(false, true, true));
        }
        assert!(!keyed.once_more(false, true, true));
        assert!(keyed.in_doubt, "the first one may have been committed");
        let mut unkeyed = Tries::default();
        assert!(unkeyed.once_more(false, true, false), "nothing was sent");
        assert!(!unkeyed.once_more(true, true, false) && unkeyed.in_doubt);
        let mut refused = Tries::default();
        assert!(!refused.once_more(false, false, true) && !refused.in_doubt);
    }
}
