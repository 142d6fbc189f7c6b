//! The fencing token as the service reads it: `<floor>.<timeline>.<epoch>`.
//!
//! Compared in that order: after a restore (floor) or a promotion (timeline) a small epoch is newer than a large
//! one of before. Must never accept what is not exactly three numbers.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A fencing token; a later one is greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct FencingToken {
    // The order of the fields is the order of comparison.
    /// Grows when a database is adopted after an upgrade or a restore.
    pub floor: u64,
    /// Grows when a standby is promoted.
    pub timeline: u64,
    /// Grows at each claim of the task.
    pub epoch: u64,
}

/// Text that is no fencing token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a fencing token; send <floor>.<timeline>.<epoch>, three numbers, such as 0.1.3"
)]
pub struct BadToken(pub String);

impl fmt::Display for FencingToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.floor, self.timeline, self.epoch)
    }
}

impl FromStr for FencingToken {
    type Err = BadToken;

    fn from_str(text: &str) -> Result<Self, BadToken> {
        let number = |part: &str| {
            // `parse` alone would take a plus sign.
            if part.bytes().all(|b| b.is_ascii_digit()) {
                part.parse().ok()
            } else {
                None
            }
        };
        let mut parts = text.split('.').map(number);
        match (parts.next(), parts.next(), parts.next(), parts.next()) {
            (Some(Some(floor)), Some(Some(timeline)), Some(Some(epoch)), None) => Ok(Self {
                floor,
                timeline,
                epoch,
            }),
            _ => Err(BadToken(text.to_owned())),
        }
    }
}

impl TryFrom<String> for FencingToken {
    type Error = BadToken;

    fn try_from(text: String) -> Result<Self, BadToken> {
        text.parse()
    }
}

impl From<FencingToken> for String {
    fn from(token: FencingToken) -> Self {
        token.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floor_then_timeline_then_epoch() {
        let ascending = ["0.1.1", "0.1.9", "0.1.10", "0.2.1", "0.10.1", "1.1.1"];
        let tokens: Vec<FencingToken> = ascending.iter().map(|t| t.parse().unwrap()).collect();
        assert!(tokens.is_sorted());
        assert_eq!(
            tokens.iter().map(ToString::to_string).collect::<Vec<_>>(),
            ascending
        );
    }

    #[test]
    fn only_three_numbers_are_a_token() {
        for text in [
            "",
            "1",
            "1.2",
            "1.2.3.4",
            "1.2.x",
            "1..3",
            "+1.2.3",
            "-1.2.3",
            " 1.2.3",
            "1.2.99999999999999999999",
        ] {
            assert!(text.parse::<FencingToken>().is_err(), "{text}");
        }
    }
}
