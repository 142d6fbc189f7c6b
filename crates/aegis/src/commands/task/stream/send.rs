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
    let mut tries = 0;
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
                let in_doubt = error.lost_answer() && !keyed;
                tries += 1;
                if in_doubt || tries >= TRIES || !error.is_passing() {
                    sent.failed = Some(Failed {
                        in_doubt: error.lost_answer(),
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
