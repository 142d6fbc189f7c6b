//! The ends of executions without a handler's error: complete, release (snooze, hand back, cancelled, unknown).
//!
//! Invariants: rows of a group are answered by themselves, in the order they were given; one row's bad data is charged to
//! that row alone (the group is bisected).

use std::collections::HashMap;

use aegis_model::limits::PAYLOAD_BYTES_MAX;
use aegis_model::{Cause, FenceReason, Held, Outcome, State};
use jiff::Timestamp;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::error::StoreError;
use crate::generated::task;
use crate::guarded::fail::{Failure, storable};
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
pub(super) fn digest(bytes: &[u8]) -> i64 {
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
        let error = match self.complete_once(group).await {
            Err(error) if is_data_error(&error) => error,
            other => return lost_all(other, group.len()),
        };
        if let [one] = group {
            return self.charge(one, &error).await;
        }
        let (left, right) = group.split_at(group.len() / 2);
        let answers = Box::pin(self.complete_bisected(left)).await?;
        let rest = Box::pin(self.complete_bisected(right)).await;
        Ok(joined(answers, rest, right.len()))
    }

    /// One row's result cannot be stored: its handler is charged with that, like with any error of its own.
    async fn charge(
        &self,
        one: &Completion,
        error: &StoreError,
    ) -> Result<Vec<Outcome<State>>, StoreError> {
        tracing::warn!(task = %one.held.task, error = %cause(error), "a result was refused by the database");
        let charge = [Failure {
            held: one.held,
            code: "result_refused".to_owned(),
            message: format!("the database refused the result: {}", cause(error)),
            retryable: true,
            details: None,
            retry_after_ms: None,
        }];
        lost_all(self.fail_once(&charge).await, 1)
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
            let note = release.note.as_deref().map(storable);
            let detail = note
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
                    note: note.as_deref(),
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

    pub(super) async fn answers<'a>(
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

/// SQLSTATE classes 22 (data) and 23 (constraint): one row's fault. A missing partition is nobody's and an error of its own.
pub(crate) fn is_data_error(error: &StoreError) -> bool {
    let StoreError::Database { source } = error else {
        return false;
    };
    source
        .code()
        .is_some_and(|code| ["22", "23"].contains(&&code.code()[..2]))
}

/// What the database said, for a person.
pub(super) fn cause(error: &StoreError) -> String {
    match error {
        StoreError::Database { source } => source
            .as_db_error()
            .map_or_else(|| source.to_string(), |said| said.message().to_owned()),
        other => other.to_string(),
    }
}

/// The answers of both halves. Once one half is committed an error of the other cannot be the whole call's: its rows are
/// unknown, and reading back tells that they were not written.
pub(super) fn joined(
    mut answers: Vec<Outcome<State>>,
    rest: Result<Vec<Outcome<State>>, StoreError>,
    count: usize,
) -> Vec<Outcome<State>> {
    match rest {
        Ok(rest) => answers.extend(rest),
        Err(error) => {
            tracing::warn!(error = %error, rows = count, "a part of a group was not written");
            answers.extend((0..count).map(|_| Outcome::Unknown));
        }
    }
    answers
}

pub(super) fn lost_all(
    answers: Result<Vec<Outcome<State>>, StoreError>,
    count: usize,
) -> Result<Vec<Outcome<State>>, StoreError> {
    match answers {
        Err(error) if error.lost_answer() => Ok((0..count).map(|_| Outcome::Unknown).collect()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(result: Option<&[u8]>) -> i64 {
        let held = Held {
            task: Uuid::nil(),
            owner: Uuid::nil(),
            claim_id: Uuid::nil(),
            epoch: 1,
            rev: 1,
            lineage: aegis_model::Lineage {
                floor: 0,
                timeline: 1,
            },
        };
        let result = result.map(<[u8]>::to_vec);
        Completion { held, result }.digest()
    }

    /// History holds them: another release has to find the same.
    #[test]
    fn a_digest_is_the_first_eight_bytes_of_the_sha_256() {
        assert_eq!(of(Some(b"{}")), 0x4413_6fa3_55b3_678a);
        assert_eq!(of(None), 0xe3b0_c442_98fc_1c14_u64.cast_signed());
    }

    #[test]
    fn what_of_a_group_was_not_written_is_unknown_once_the_rest_is() {
        let written = || vec![Outcome::Applied(State::Succeeded)];
        let both = joined(written(), Ok(written()), 1);
        assert_eq!(both, [Outcome::Applied(State::Succeeded); 2]);
        let half = joined(written(), Err(StoreError::NotInstalled), 2);
        assert_eq!(
            half,
            [
                Outcome::Applied(State::Succeeded),
                Outcome::Unknown,
                Outcome::Unknown
            ]
        );
    }

    #[test]
    fn only_a_lost_answer_makes_a_group_unknown() {
        let lost = lost_all(Err(StoreError::Panicked), 2).unwrap();
        assert_eq!(lost, [Outcome::Unknown; 2]);
        let told = lost_all(Err(StoreError::NotInstalled), 2);
        assert!(matches!(told, Err(StoreError::NotInstalled)), "{told:?}");
        let applied = vec![Outcome::Applied(State::Ready)];
        assert_eq!(lost_all(Ok(applied.clone()), 1).unwrap(), applied);
    }

    #[test]
    fn what_the_database_did_not_say_is_told_as_it_is() {
        assert!(cause(&StoreError::NotInstalled).contains("no Aegis schema"));
        assert!(!is_data_error(&StoreError::NotInstalled));
    }
}
