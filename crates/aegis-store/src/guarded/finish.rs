//! The ends of executions: complete, fail, release (snooze, hand back, cancelled, unknown).
//!
//! Invariants: rows of a group are answered by themselves, in the order they were given; one row's bad data is charged to
//! that row alone (the group is bisected).

use std::collections::HashMap;

use aegis_model::limits::{ERROR_BYTES_MAX, PAYLOAD_BYTES_MAX};
use aegis_model::{Cause, FenceReason, Held, Outcome, State};
use jiff::Timestamp;
use serde_json::Value;
use sha2::{Digest, Sha256};
use tokio_postgres::error::SqlState;
use uuid::Uuid;

use crate::error::StoreError;
use crate::generated::task;
use crate::guarded::{Group, or_unknown};
use crate::session::Session;
use crate::store::Store;

/// A result to store.
#[derive(Debug, Clone)]
pub struct Completion {
    /// The claim.
    pub held: Held,
    /// The result, JSON; at most 256 KiB.
    pub result: Option<Vec<u8>>,
}

/// A handler's error to charge.
#[derive(Debug, Clone)]
pub struct Failure {
    /// The claim.
    pub held: Held,
    /// A stable word.
    pub code: String,
    /// What a person reads; cut at 8 KiB.
    pub message: String,
    /// False gives the task up at once.
    pub retryable: bool,
    /// Anything that helps.
    pub details: Option<Value>,
    /// Instead of the policy's back-off, in milliseconds.
    pub retry_after_ms: Option<i64>,
}

/// An execution that has stopped and is given up without a charge.
#[derive(Debug, Clone)]
pub struct Release {
    /// The claim.
    pub held: Held,
    /// Snooze, drain, cancelled or unknown.
    pub cause: Cause,
    /// When it may run again; `None`: at once, or after `run_after_ms`.
    pub run_at: Option<Timestamp>,
    /// The same, counted from the database's now, in milliseconds.
    pub run_after_ms: Option<i64>,
    /// Dispatched operations that nobody can settle automatically any more.
    pub unknown_operations: Vec<String>,
    /// Why, for a person.
    pub note: Option<String>,
}

impl Completion {
    /// Recognises the same completion when it is sent again.
    pub fn digest(&self) -> i64 {
        digest(self.result.as_deref().unwrap_or_default())
    }
}

/// The first eight bytes of the SHA-256.
pub(crate) fn digest(bytes: &[u8]) -> i64 {
    let mut first = [0; 8];
    first.copy_from_slice(&Sha256::digest(bytes)[..8]);
    i64::from_be_bytes(first)
}

impl Store {
    /// Completes a group of one owner's tasks. Answers in the order given.
    ///
    /// # Errors
    /// [`StoreError::TooLarge`] before anything is sent; a database error that no row is to blame for.
    pub async fn complete(
        &self,
        group: Vec<Completion>,
    ) -> Result<Vec<Outcome<State>>, StoreError> {
        for one in &group {
            let bytes = one.result.as_ref().map_or(0, Vec::len);
            if bytes > PAYLOAD_BYTES_MAX {
                return Err(StoreError::TooLarge {
                    what: format!("the result of task {}", one.held.task),
                    bytes,
                    limit: PAYLOAD_BYTES_MAX,
                });
            }
        }
        self.detached(async move |store| store.complete_bisected(&group).await)
            .await
    }

    async fn complete_bisected(
        &self,
        group: &[Completion],
    ) -> Result<Vec<Outcome<State>>, StoreError> {
        match self.complete_once(group).await {
            Err(error) if error.lost_answer() => {
                Ok(group.iter().map(|_| Outcome::Unknown).collect())
            }
            Err(error) if group.len() > 1 && is_data_error(&error) => {
                let (left, right) = group.split_at(group.len() / 2);
                let mut answers = Box::pin(self.complete_bisected(left)).await?;
                answers.extend(Box::pin(self.complete_bisected(right)).await?);
                Ok(answers)
            }
            other => other,
        }
    }

    async fn complete_once(&self, group: &[Completion]) -> Result<Vec<Outcome<State>>, StoreError> {
        let mut order: Vec<usize> = (0..group.len()).collect();
        order.sort_unstable_by_key(|&n| group[n].held.task);
        let sorted = || order.iter().map(|&n| &group[n]);
        let Some(arrays) = Group::of(sorted().map(|one| &one.held)) else {
            return Ok(Vec::new());
        };
        let digests: Vec<i64> = sorted().map(Completion::digest).collect();
        let results: Vec<Option<&[u8]>> = sorted().map(|one| one.result.as_deref()).collect();
        let conn = self.conn().await?;
        let conn = conn.conn();
        let rows = task::complete(
            &conn,
            &task::CompleteParams {
                ids: &arrays.ids,
                claim_ids: &arrays.claim_ids,
                epochs: &arrays.epochs,
                revs: &arrays.revs,
                worker: arrays.worker,
                content_type: 0,
                digests: &digests,
                results: &results,
            },
        )
        .await?;
        let after = rows
            .into_iter()
            .map(|row| (row.id, State::from_number(row.after)))
            .collect();
        self.answers(&conn, group.iter().map(|one| &one.held), &after, "complete")
            .await
    }

    /// Charges handlers' errors to a group of one owner's tasks. Answers in the order given.
    ///
    /// # Errors
    /// A database error.
    pub async fn fail(&self, group: Vec<Failure>) -> Result<Vec<Outcome<State>>, StoreError> {
        let count = group.len();
        let answers = self
            .detached(async move |store| store.fail_once(group).await)
            .await;
        lost_all(answers, count)
    }

    async fn fail_once(&self, mut group: Vec<Failure>) -> Result<Vec<Outcome<State>>, StoreError> {
        group.sort_unstable_by_key(|one| one.held.task);
        let Some(arrays) = Group::of(group.iter().map(|one| &one.held)) else {
            return Ok(Vec::new());
        };
        for one in &mut group {
            cut(&mut one.message);
        }
        let codes: Vec<&str> = group.iter().map(|one| one.code.as_str()).collect();
        let messages: Vec<&str> = group.iter().map(|one| one.message.as_str()).collect();
        let retryable: Vec<bool> = group.iter().map(|one| one.retryable).collect();
        let details: Vec<Option<Value>> = group.iter().map(|one| one.details.clone()).collect();
        let details: Vec<Option<&Value>> = details.iter().map(Option::as_ref).collect();
        let retry_after_ms: Vec<Option<i64>> = group.iter().map(|one| one.retry_after_ms).collect();
        let digests: Vec<i64> = group
            .iter()
            .map(|one| digest(one.code.as_bytes()))
            .collect();
        let conn = self.conn().await?;
        let conn = conn.conn();
        let rows = task::fail(
            &conn,
            &task::FailParams {
                ids: &arrays.ids,
                claim_ids: &arrays.claim_ids,
                epochs: &arrays.epochs,
                revs: &arrays.revs,
                worker: arrays.worker,
                codes: &codes,
                messages: &messages,
                retryable: &retryable,
                details: &details,
                retry_after_ms: &retry_after_ms,
                digests: &digests,
            },
        )
        .await?;
        let after = rows
            .into_iter()
            .map(|row| (row.id, State::from_number(row.after)))
            .collect();
        self.answers(&conn, group.iter().map(|one| &one.held), &after, "fail")
            .await
    }

    /// Gives one execution up.
    ///
    /// # Errors
    /// A database error.
    pub async fn release(&self, release: Release) -> Result<Outcome<State>, StoreError> {
        let answer = self.detached(async move |store| {
            let held = release.held;
            let operations: Vec<&str> = release
                .unknown_operations
                .iter()
                .map(String::as_str)
                .collect();
            let conn = store.conn().await?;
            let conn = conn.conn();
            let detail = release
                .note
                .as_ref()
                .map(|note| serde_json::json!({ "note": note }));
            let rows = task::release(
                &conn,
                &task::ReleaseParams {
                    ids: &[held.task],
                    claim_ids: &[held.claim_id],
                    epochs: &[held.epoch],
                    revs: &[held.rev],
                    worker: held.owner,
                    unknown_operations: &operations,
                    note: release.note.as_deref(),
                    cause: release.cause.word(),
                    run_ats: &[release.run_at],
                    run_after_ms: &[release.run_after_ms],
                    detail: detail.as_ref(),
                },
            )
            .await?;
            match rows.first() {
                Some(row) => Ok(Outcome::Applied(State::from_number(row.after))),
                None => Ok(Outcome::Fenced(
                    store.fenced(&conn, &held, release.cause.word()).await?,
                )),
            }
        });
        or_unknown(answer.await)
    }

    /// Hands unstarted or stopped executions of one owner back in one statement. Answers in the order given.
    ///
    /// # Errors
    /// A database error.
    pub async fn hand_back(&self, held: Vec<Held>) -> Result<Vec<Outcome<State>>, StoreError> {
        let count = held.len();
        let answers = self.detached(async move |store| {
            let mut sorted = held.clone();
            sorted.sort_unstable_by_key(|one| one.task);
            let Some(arrays) = Group::of(&sorted) else {
                return Ok(Vec::new());
            };
            let conn = store.conn().await?;
            let conn = conn.conn();
            let rows = task::release(
                &conn,
                &task::ReleaseParams {
                    ids: &arrays.ids,
                    claim_ids: &arrays.claim_ids,
                    epochs: &arrays.epochs,
                    revs: &arrays.revs,
                    worker: arrays.worker,
                    unknown_operations: &[],
                    note: None,
                    cause: Cause::Drain.word(),
                    run_ats: &vec![None; sorted.len()],
                    run_after_ms: &vec![None; sorted.len()],
                    detail: None,
                },
            )
            .await?;
            let after = rows
                .into_iter()
                .map(|row| (row.id, State::from_number(row.after)))
                .collect();
            store.answers(&conn, held.iter(), &after, "hand_back").await
        });
        lost_all(answers.await, count)
    }

    async fn answers<'a>(
        &self,
        session: &(impl Session + ?Sized),
        held: impl Iterator<Item = &'a Held>,
        after: &HashMap<Uuid, State>,
        verb: &str,
    ) -> Result<Vec<Outcome<State>>, StoreError> {
        let mut answers = Vec::with_capacity(after.len());
        for one in held {
            answers.push(match after.get(&one.task) {
                Some(state) => Outcome::Applied(*state),
                None => Outcome::Fenced(
                    self.fenced(session, one, verb)
                        .await
                        .unwrap_or(FenceReason::Gone),
                ),
            });
        }
        Ok(answers)
    }
}

/// The completion inside a handler's own transaction: its statements first, the fence last. False: fenced, roll back.
///
/// # Errors
/// A database error.
pub async fn complete_in(
    session: &(impl Session + ?Sized),
    completion: &Completion,
) -> Result<bool, StoreError> {
    let held = &completion.held;
    let rows = task::complete(
        session,
        &task::CompleteParams {
            ids: &[held.task],
            claim_ids: &[held.claim_id],
            epochs: &[held.epoch],
            revs: &[held.rev],
            worker: held.owner,
            content_type: 0,
            digests: &[completion.digest()],
            results: &[completion.result.as_deref()],
        },
    )
    .await?;
    Ok(!rows.is_empty())
}

/// SQLSTATE classes 22 (data) and 23 (constraint), and a missing partition: one row's fault, or each row's.
fn is_data_error(error: &StoreError) -> bool {
    let StoreError::Database { source } = error else {
        return false;
    };
    source.code().is_some_and(|code| {
        ["22", "23"].contains(&&code.code()[..2]) || *code == SqlState::CHECK_VIOLATION
    })
}

fn lost_all(
    answers: Result<Vec<Outcome<State>>, StoreError>,
    count: usize,
) -> Result<Vec<Outcome<State>>, StoreError> {
    match answers {
        Err(error) if error.lost_answer() => Ok((0..count).map(|_| Outcome::Unknown).collect()),
        other => other,
    }
}

/// Cuts an error text at its limit, on a character's edge, and says so.
fn cut(message: &mut String) {
    const MARK: &str = " … (cut)";
    if message.len() > ERROR_BYTES_MAX {
        let mut end = ERROR_BYTES_MAX - MARK.len();
        while !message.is_char_boundary(end) {
            end -= 1;
        }
        message.truncate(end);
        message.push_str(MARK);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_message_is_cut_and_says_so() {
        let mut message = "ä".repeat(ERROR_BYTES_MAX);
        cut(&mut message);
        assert!(message.len() <= ERROR_BYTES_MAX);
        assert!(message.ends_with("(cut)"));
    }
}
