//! What is checked before anything is written: sizes, names, JSON that PostgreSQL can hold, times, policies.
//!
//! Invariant: a task that passes here is refused later only for what the database alone knows (a key, a partition).

use aegis_model::limits::{DURATION_MS_MAX, KEY_CHARS_MAX, NAME_CHARS_MAX, PAYLOAD_BYTES_MAX};
use serde_json::Value;

use super::{NewTask, RetryPolicy};
use crate::error::StoreError;

impl NewTask {
    /// Looks for what makes no sense. A batch checks each of its tasks by itself.
    ///
    /// # Errors
    /// [`StoreError::BadTask`] or [`StoreError::TooLarge`], of the task at this position of its batch.
    pub fn check(&self, position: usize) -> Result<(), StoreError> {
        let bad = |field, problem: String| StoreError::BadTask {
            field,
            position,
            problem,
        };
        if self.input.len() > PAYLOAD_BYTES_MAX {
            return Err(StoreError::TooLarge {
                what: format!("the input of task {position}"),
                bytes: self.input.len(),
                limit: PAYLOAD_BYTES_MAX,
            });
        }
        let text = std::str::from_utf8(&self.input)
            .map_err(|error| bad("input", format!("is not UTF-8: {error}")))?;
        serde_json::from_str::<serde::de::IgnoredAny>(text)
            .map_err(|error| bad("input", format!("is not JSON: {error}")))?;
        if let Some(escape) = unstorable(text) {
            return Err(bad("input", escape.problem().to_owned()));
        }
        let labels = self.labels.as_ref().map(Value::to_string);
        if let Some(escape) = labels.as_deref().and_then(unstorable) {
            return Err(bad("labels", escape.problem().to_owned()));
        }
        for (field, name) in [
            ("kind", &self.kind),
            ("queue", &self.queue),
            ("tenant", &self.tenant),
        ] {
            let chars = name.chars().count();
            if chars == 0 || chars > NAME_CHARS_MAX || name.contains('\0') {
                return Err(bad(
                    field,
                    format!("has {chars} characters; use 1 to {NAME_CHARS_MAX}, without NUL"),
                ));
            }
        }
        if let Some(key) = &self.key {
            let chars = key.chars().count();
            if chars == 0 || chars > KEY_CHARS_MAX || key.contains('\0') {
                return Err(bad(
                    "key",
                    format!("has {chars} characters; use 1 to {KEY_CHARS_MAX}, without NUL"),
                ));
            }
        }
        if self.protocol < 1 {
            return Err(bad(
                "protocol",
                format!("is {}; protocols start at 1", self.protocol),
            ));
        }
        if !(0..=9).contains(&self.priority) {
            return Err(bad(
                "priority",
                format!("is {}; use 0 (first) to 9 (last)", self.priority),
            ));
        }
        if self
            .deadline_at
            .zip(self.run_at)
            .is_some_and(|(deadline, run_at)| deadline <= run_at)
        {
            return Err(bad(
                "deadline_at",
                "is not after run_at; the task could never run".to_owned(),
            ));
        }
        self.policy
            .check()
            .map_err(|problem| bad("policy", problem))
    }
}

/// An escape that is JSON and that no PostgreSQL document can hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unstorable {
    Nul,
    LoneSurrogate,
}

impl Unstorable {
    fn problem(self) -> &'static str {
        match self {
            Self::Nul => {
                "has the character \\u0000, which PostgreSQL's jsonb cannot hold; leave it out"
            }
            Self::LoneSurrogate => {
                "has half of a surrogate pair (\\ud800 to \\udfff), which is no character; write both halves, or none"
            }
        }
    }
}

/// Looks for one in a text that is known to be JSON.
fn unstorable(json: &str) -> Option<Unstorable> {
    // Most have no escape at all.
    let mut at = json.find('\\')?;
    let bytes = json.as_bytes();
    let unit = |at: usize| {
        let digits = json.get(at..at + 6)?.strip_prefix("\\u")?;
        u16::from_str_radix(digits, 16).ok()
    };
    while at < bytes.len() {
        if bytes[at] != b'\\' {
            at += 1;
            continue;
        }
        match unit(at) {
            Some(0) => return Some(Unstorable::Nul),
            Some(0xd800..=0xdbff) => match unit(at + 6) {
                Some(0xdc00..=0xdfff) => at += 12,
                _ => return Some(Unstorable::LoneSurrogate),
            },
            Some(0xdc00..=0xdfff) => return Some(Unstorable::LoneSurrogate),
            Some(_) => at += 6,
            // Another escape, perhaps of a backslash.
            None => at += 2,
        }
    }
    None
}

impl RetryPolicy {
    fn check(&self) -> Result<(), String> {
        let within = |name: &str, value: i64, low: i64, high: i64| {
            if (low..=high).contains(&value) {
                Ok(())
            } else {
                Err(format!("{name} is {value}; use {low} to {high}"))
            }
        };
        within("max_failures", self.max_failures.into(), 1, 1000)?;
        within("max_crashes", self.max_crashes.into(), 1, 100)?;
        within("backoff_initial_ms", self.backoff_initial_ms, 1, 86_400_000)?;
        within("backoff_cap_ms", self.backoff_cap_ms, 1, 604_800_000)?;
        within("kill_after_ms", self.kill_after_ms, 0, 86_400_000)?;
        within(
            "schedule_to_start_ms",
            self.schedule_to_start_ms.unwrap_or(1),
            1,
            DURATION_MS_MAX,
        )?;
        within(
            "start_to_close_ms",
            self.start_to_close_ms.unwrap_or(1),
            1,
            DURATION_MS_MAX,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_document_can_hold_is_found_and_nothing_else() {
        for (json, expected) in [
            (r#""\u0000""#, Some(Unstorable::Nul)),
            (r#""\\\u0000""#, Some(Unstorable::Nul)),
            (r#""\\u0000""#, None),
            (r#""u0000""#, None),
            (r#""\ud83d\ude00""#, None),
            (r#""\ud83d""#, Some(Unstorable::LoneSurrogate)),
            (r#""\ud83dä""#, Some(Unstorable::LoneSurrogate)),
            (r#""\ude00\ud83d""#, Some(Unstorable::LoneSurrogate)),
            (r#""\\ud83d""#, None),
            (r#""\u00e4 \n ä""#, None),
        ] {
            assert_eq!(unstorable(json), expected, "{json}");
        }
    }

    #[test]
    fn a_policy_without_end_is_refused() {
        for policy in [
            RetryPolicy {
                start_to_close_ms: Some(i64::MAX),
                ..RetryPolicy::default()
            },
            RetryPolicy {
                schedule_to_start_ms: Some(DURATION_MS_MAX + 1),
                ..RetryPolicy::default()
            },
        ] {
            assert!(policy.check().unwrap_err().contains("315360000000"));
        }
    }

    #[test]
    fn an_input_that_is_not_utf_8_is_refused() {
        let error = NewTask::new("k", b"\"\xff\"".to_vec())
            .check(0)
            .unwrap_err();
        assert!(error.to_string().contains("is not UTF-8"), "{error}");
    }
}
