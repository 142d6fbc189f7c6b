//! Which protocols a handler reads and writes, and how older ones become newer.
//!
//! The handler's types stand for the protocol that it *writes*. What is older is brought there by upcasters, one step after
//! another; what is newer (a worker that reads 1..2 and still writes 1, in a rolling update) is decoded as it is.
//!
//! Invariant: a worker is never given anything outside of its range, because its capability says so to the database.

use std::collections::BTreeMap;

use aegis_model::ProtocolRange;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Brings a value from protocol N to N + 1, or says why it cannot.
pub type Upcaster = fn(Value) -> Result<Value, String>;

/// What is stored for a task and has to be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Part {
    Input,
    Checkpoint,
    Step,
    Operation,
}

/// A protocol range with its upcasters. A step without an upcaster passes values on unchanged.
///
/// ```
/// use aegis_worker::Protocols;
///
/// // Reads 1 and 2, and writes 2.
/// let protocols = Protocols::of::<1, 2, 2>().upcast_input(1, |mut value| {
///     value["currency"] = "EUR".into();
///     Ok(value)
/// });
/// ```
#[derive(Debug, Clone)]
pub struct Protocols {
    range: ProtocolRange,
    upcasters: BTreeMap<(Part, i32), Upcaster>,
}

impl Protocols {
    /// Reads `MIN` to `MAX` and writes `WRITES`, without upcasters; what makes no sense does not compile.
    pub const fn of<const MIN: i32, const MAX: i32, const WRITES: i32>() -> Self {
        Self {
            range: ProtocolRange::of::<MIN, MAX, WRITES>(),
            upcasters: BTreeMap::new(),
        }
    }

    /// A range that is known only at run time, without upcasters.
    pub fn new(range: ProtocolRange) -> Self {
        Self {
            range,
            upcasters: BTreeMap::new(),
        }
    }

    /// Reads and writes protocol `one` only.
    ///
    /// # Errors
    /// [`aegis_model::ProtocolError`] below 1.
    pub fn only(one: i32) -> Result<Self, aegis_model::ProtocolError> {
        ProtocolRange::new(one, one, one).map(Self::new)
    }

    /// Inputs of protocol `from` become those of `from + 1`.
    #[must_use]
    pub fn upcast_input(self, from: i32, upcaster: Upcaster) -> Self {
        self.with(Part::Input, from, upcaster)
    }

    /// Checkpoints of protocol `from` become those of `from + 1`.
    #[must_use]
    pub fn upcast_checkpoint(self, from: i32, upcaster: Upcaster) -> Self {
        self.with(Part::Checkpoint, from, upcaster)
    }

    /// Values of steps of protocol `from` become those of `from + 1`. All steps of a kind share it.
    #[must_use]
    pub fn upcast_step(self, from: i32, upcaster: Upcaster) -> Self {
        self.with(Part::Step, from, upcaster)
    }

    /// Results of operations of protocol `from` become those of `from + 1`. All operations of a kind share it.
    #[must_use]
    pub fn upcast_operation(self, from: i32, upcaster: Upcaster) -> Self {
        self.with(Part::Operation, from, upcaster)
    }

    fn with(mut self, part: Part, from: i32, upcaster: Upcaster) -> Self {
        self.upcasters.insert((part, from), upcaster);
        self
    }

    /// What is read and written.
    pub fn range(&self) -> ProtocolRange {
        self.range
    }

    /// A checkpoint as a handler with these protocols gets it: stored bytes through the upcasters. For tests of an author who
    /// keeps what older programs wrote.
    ///
    /// # Errors
    /// The bytes are not of this type, or an upcaster refuses them.
    pub fn decode_checkpoint<T: DeserializeOwned>(
        &self,
        protocol: i32,
        bytes: &[u8],
    ) -> Result<T, String> {
        self.decode(Part::Checkpoint, protocol, bytes)
    }

    /// The protocol that is written.
    pub(crate) fn writes(&self) -> i32 {
        self.range.writes()
    }

    /// Decodes what was stored in `protocol`.
    pub(crate) fn decode<T: DeserializeOwned>(
        &self,
        part: Part,
        protocol: i32,
        bytes: &[u8],
    ) -> Result<T, String> {
        if protocol >= self.writes() {
            return serde_json::from_slice(bytes).map_err(|error| error.to_string());
        }
        let mut value: Value = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        for from in protocol..self.writes() {
            if let Some(upcaster) = self.upcasters.get(&(part, from)) {
                value = upcaster(value)
                    .map_err(|error| format!("from protocol {from} to {}: {error}", from + 1))?;
            }
        }
        serde_json::from_value(value).map_err(|error| error.to_string())
    }
}

impl Default for Protocols {
    /// Reads and writes protocol 1.
    fn default() -> Self {
        Self::new(ProtocolRange::FIRST)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn protocols() -> Protocols {
        Protocols::new(ProtocolRange::new(1, 3, 3).unwrap())
            .upcast_input(1, |mut v| {
                v["two"] = json!(v["one"].as_i64().ok_or("no one")? * 2);
                Ok(v)
            })
            .upcast_input(2, |mut v| {
                v["three"] = v["two"].clone();
                Ok(v)
            })
    }

    #[test]
    fn each_step_is_taken_in_order() {
        let value: Value = protocols().decode(Part::Input, 1, br#"{"one":1}"#).unwrap();
        assert_eq!(value, json!({"one": 1, "two": 2, "three": 2}));
        let value: Value = protocols().decode(Part::Input, 2, br#"{"two":5}"#).unwrap();
        assert_eq!(value, json!({"two": 5, "three": 5}));
    }

    #[test]
    fn what_is_current_or_newer_or_another_part_is_unchanged() {
        for (part, protocol) in [(Part::Input, 3), (Part::Input, 4), (Part::Checkpoint, 1)] {
            let value: Value = protocols().decode(part, protocol, br#"{"one":1}"#).unwrap();
            assert_eq!(value, json!({"one": 1}));
        }
    }

    #[test]
    fn a_failed_step_says_which() {
        let error = protocols()
            .decode::<Value>(Part::Input, 1, b"{}")
            .unwrap_err();
        assert_eq!(error, "from protocol 1 to 2: no one");
    }
}
