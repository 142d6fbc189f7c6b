//! What a change is called, its phases, and a phase of a change (`ID:PHASE`).
//!
//! Invariants: an id is its folder's name, a time and words, in characters that need quoting nowhere.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The name of a change, such as `20261129T1030_split_name`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChangeId(String);

/// Longest id, in bytes.
const ID_BYTES_MAX: usize = 100;

/// What an id looks like.
pub const ID_FORM: &str = "write YYYYMMDDThhmm_words (UTC) in a-z, 0-9 and _, such as 20261129T1030_split_name; `aegis migrate new NAME` makes one";

impl ChangeId {
    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The time in it: its version.
    pub fn version(&self) -> &str {
        self.0.split('_').next().unwrap_or_default()
    }
}

impl FromStr for ChangeId {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let why = || format!("`{}` is no id of a change", text.escape_default());
        let (time, words) = text.split_once('_').ok_or_else(why)?;
        let starts = words.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit());
        let plain = words
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
        if text.len() > ID_BYTES_MAX || !starts || !plain || !is_time(time) {
            return Err(why());
        }
        Ok(Self(text.to_owned()))
    }
}

/// `YYYYMMDDThhmm` or with seconds, and a time that there is.
fn is_time(text: &str) -> bool {
    let format = match text.len() {
        13 => "%Y%m%dT%H%M",
        15 => "%Y%m%dT%H%M%S",
        _ => return false,
    };
    text.is_ascii() && jiff::civil::DateTime::strptime(format, text).is_ok()
}

impl fmt::Display for ChangeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for ChangeId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

/// What is executed, approved and locked as one: a line of `migrations.lock`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// Short statements that the previous version lives with: before a release, in its PreSync Job.
    Expand,
    /// Builds, validations, backfill, reconciliation: while both versions run.
    Migrate,
    /// What ends the previous version: tighten, then drop. Its own commit, its own approval.
    Contract,
}

impl Phase {
    /// All, in their order.
    pub const ALL: [Self; 3] = [Self::Expand, Self::Migrate, Self::Contract];

    /// The word for it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Expand => "expand",
            Self::Migrate => "migrate",
            Self::Contract => "contract",
        }
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

impl FromStr for Phase {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|phase| phase.word() == text)
            .ok_or_else(|| {
                format!(
                    "`{}` is no phase: expand, migrate or contract",
                    text.escape_default()
                )
            })
    }
}

/// A phase of a change, written `ID:PHASE`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PhaseOf {
    /// The change.
    pub id: ChangeId,
    /// Its phase.
    pub phase: Phase,
}

impl fmt::Display for PhaseOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.id, self.phase)
    }
}

impl FromStr for PhaseOf {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (id, phase) = text.split_once(':').ok_or_else(|| {
            format!(
                "`{}` is not ID:PHASE, such as 20261129T1030_split_name:expand",
                text.escape_default()
            )
        })?;
        Ok(Self {
            id: id.parse()?,
            phase: phase.parse()?,
        })
    }
}

impl Serialize for PhaseOf {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for PhaseOf {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_a_time_and_words() {
        for good in ["20261129T1030_split_name", "20261129T103059_2nd_try"] {
            assert_eq!(good.parse::<ChangeId>().unwrap().as_str(), good);
        }
        let long = format!("20261129T1030_{}", "a".repeat(ID_BYTES_MAX));
        for bad in [
            "",
            "split_name",
            "20261129T1030",
            "20261129T1030_",
            "20261329T1030_a",
            "20261129T2561_a",
            "20261129T1030_Split",
            "20261129T1030_a b",
            "20261129T1030_a/../b",
            "20261129T1030__a",
            "2026112９T1030_a",
            long.as_str(),
        ] {
            assert!(bad.parse::<ChangeId>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_phase_of_a_change_is_written_with_a_colon() {
        let at: PhaseOf = "20261129T1030_split_name:migrate".parse().unwrap();
        assert_eq!(at.to_string(), "20261129T1030_split_name:migrate");
        for bad in [
            "20261129T1030_split_name",
            "20261129T1030_split_name:switch",
            ":expand",
        ] {
            assert!(bad.parse::<PhaseOf>().is_err(), "{bad}");
        }
    }
}
