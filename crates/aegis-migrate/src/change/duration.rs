//! Lengths of time as people write them: `90s`, `15m`, `72h`, `7d`.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serializer};

/// A length of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Length(pub Duration);

/// The longest: ten years.
const SECONDS_MAX: u64 = 10 * 366 * 86_400;

impl FromStr for Length {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let why = || {
            format!(
                "`{}` is no length of time: write a number above 0 and s, m, h or d, such as 72h",
                text.escape_default()
            )
        };
        let unit = match text.chars().next_back() {
            Some('s') => 1,
            Some('m') => 60,
            Some('h') => 3600,
            Some('d') => 86_400,
            _ => return Err(why()),
        };
        let digits = &text[..text.len() - 1];
        if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
            return Err(why());
        }
        let seconds = digits
            .parse::<u64>()
            .ok()
            .and_then(|number| number.checked_mul(unit))
            .filter(|seconds| (1..=SECONDS_MAX).contains(seconds))
            .ok_or_else(why)?;
        Ok(Self(Duration::from_secs(seconds)))
    }
}

impl fmt::Display for Length {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.as_secs();
        let (number, unit) = match seconds {
            s if s % 86_400 == 0 => (s / 86_400, 'd'),
            s if s % 3600 == 0 => (s / 3600, 'h'),
            s if s % 60 == 0 => (s / 60, 'm'),
            s => (s, 's'),
        };
        write!(f, "{number}{unit}")
    }
}

pub(super) fn day() -> Length {
    Length(Duration::from_hours(24))
}

pub(super) fn serialize<S: Serializer>(length: &Length, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(length.0.as_secs())
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Length, D::Error> {
    let text = String::deserialize(deserializer)?;
    text.parse().map_err(serde::de::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_has_one_number_and_one_unit() {
        for (text, seconds) in [("90s", 90), ("15m", 900), ("72h", 259_200), ("7d", 604_800)] {
            assert_eq!(
                text.parse::<Length>().unwrap().0,
                Duration::from_secs(seconds)
            );
        }
        assert_eq!("72h".parse::<Length>().unwrap().to_string(), "3d");
        for bad in [
            "",
            "h",
            "72",
            "0h",
            "-1h",
            "1.5h",
            "1w",
            "72 h",
            "é",
            "9999999999999999999d",
        ] {
            assert!(bad.parse::<Length>().is_err(), "{bad}");
        }
    }
}
