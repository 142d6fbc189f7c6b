//! A handler's error: charged, kept, retried or given up.
//!
//! Invariants: rows of a group are answered by themselves, in the order they were given; an error that the database cannot
//! store is charged all the same, without what it could not store.

use aegis_model::limits::ERROR_BYTES_MAX;
use aegis_model::{Held, Outcome, State};
use serde_json::Value;

use crate::error::StoreError;
use crate::generated::task;
use crate::guarded::Group;
use crate::guarded::finish::{cause, digest, is_data_error, joined, lost_all};
use crate::store::Store;

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

impl Store {
    /// Charges handlers' errors to a group of one owner's tasks. Answers in the order given.
    ///
    /// # Errors
    /// A database error.
    pub async fn fail(&self, group: Vec<Failure>) -> Result<Vec<Outcome<State>>, StoreError> {
        self.detached(async move |store| store.fail_bisected(&group).await)
            .await
    }

    async fn fail_bisected(&self, group: &[Failure]) -> Result<Vec<Outcome<State>>, StoreError> {
        let error = match self.fail_once(group).await {
            Err(error) if is_data_error(&error) => error,
            other => return lost_all(other, group.len()),
        };
        if let [one] = group {
            // The error itself cannot be stored: what is charged is that.
            let bare = Failure {
                message: format!("the database refused the error: {}", cause(&error)),
                details: None,
                retry_after_ms: None,
                ..one.clone()
            };
            return lost_all(self.fail_once(&[bare]).await, 1);
        }
        let (left, right) = group.split_at(group.len() / 2);
        let answers = Box::pin(self.fail_bisected(left)).await?;
        let rest = Box::pin(self.fail_bisected(right)).await;
        Ok(joined(answers, rest, right.len()))
    }

    pub(super) async fn fail_once(
        &self,
        group: &[Failure],
    ) -> Result<Vec<Outcome<State>>, StoreError> {
        let mut order: Vec<&Failure> = group.iter().collect();
        order.sort_unstable_by_key(|one| one.held.task);
        let Some(arrays) = Group::of(order.iter().map(|one| &one.held)) else {
            return Ok(Vec::new());
        };
        let texts: Vec<(String, String)> = order
            .iter()
            .map(|one| (storable(&one.code), cut(storable(&one.message))))
            .collect();
        let codes: Vec<&str> = texts.iter().map(|(code, _)| code.as_str()).collect();
        let messages: Vec<&str> = texts.iter().map(|(_, message)| message.as_str()).collect();
        let retryable: Vec<bool> = order.iter().map(|one| one.retryable).collect();
        let details: Vec<Option<Value>> = order
            .iter()
            .map(|one| one.details.as_ref().map(storable_json))
            .collect();
        let details: Vec<Option<&Value>> = details.iter().map(Option::as_ref).collect();
        let retry_after_ms: Vec<Option<i64>> = order.iter().map(|one| one.retry_after_ms).collect();
        let digests: Vec<i64> = order
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
}

/// PostgreSQL stores no NUL in a text.
pub(super) fn storable(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

/// Nor in a JSON document, and details are limited like messages.
fn storable_json(details: &Value) -> Value {
    let text = details.to_string();
    if text.len() > ERROR_BYTES_MAX {
        return serde_json::json!({ "cut": format!("the details had {} bytes; the limit is {ERROR_BYTES_MAX}", text.len()) });
    }
    if text.contains("\\u0000") {
        return Value::String(storable(&text).replace("\\u0000", "\u{fffd}"));
    }
    details.clone()
}

/// Cuts an error text at its limit, on a character's edge, and says so.
fn cut(mut message: String) -> String {
    const MARK: &str = " … (cut)";
    if message.len() > ERROR_BYTES_MAX {
        let mut end = ERROR_BYTES_MAX - MARK.len();
        while !message.is_char_boundary(end) {
            end -= 1;
        }
        message.truncate(end);
        message.push_str(MARK);
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_message_is_cut_and_says_so() {
        let message = cut("ä".repeat(ERROR_BYTES_MAX));
        assert!(message.len() <= ERROR_BYTES_MAX);
        assert!(message.ends_with("(cut)"));
    }

    #[test]
    fn a_message_of_just_the_limit_is_whole_and_a_longer_one_fills_it() {
        let whole = "x".repeat(ERROR_BYTES_MAX);
        assert_eq!(cut(whole.clone()), whole);
        let longer = cut(format!("{whole}x"));
        assert_eq!(longer.len(), ERROR_BYTES_MAX);
        assert!(longer.ends_with("x … (cut)"));
        let wide = cut(format!("x{}", "ä".repeat(ERROR_BYTES_MAX)));
        assert_eq!(wide.len(), ERROR_BYTES_MAX - 1, "the limit is inside an ä");
        let quoted = serde_json::Value::String("x".repeat(ERROR_BYTES_MAX - 2));
        assert_eq!(storable_json(&quoted), quoted);
    }

    #[test]
    fn what_postgresql_cannot_store_is_replaced() {
        assert_eq!(storable("a\0b"), "a\u{fffd}b");
        let kept = serde_json::json!({ "a": ["\\u", 1] });
        assert_eq!(storable_json(&kept), kept);
        let nul = storable_json(&serde_json::json!({ "a": "x\0y" }));
        assert!(!nul.to_string().contains("u0000"), "{nul}");
        let long = storable_json(&Value::String("x".repeat(ERROR_BYTES_MAX)));
        assert!(long.to_string().contains("the limit is 8192"), "{long}");
    }
}
