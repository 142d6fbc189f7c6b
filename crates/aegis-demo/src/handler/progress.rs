//! The checkpoint of an order, in the two shapes that the two versions write.
//!
//! Version 1 says how far it came; version 2 says what came of each stage. Version 2 reads both; version 1 cannot read what
//! version 2 writes, which is what the rollback of the demo is about.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::payments::Effect;

/// What both shapes can say.
pub(super) trait Progress:
    Default + Serialize + DeserializeOwned + Send + Sync + 'static
{
    /// Whether this effect was done by an earlier attempt.
    fn has(&self, effect: Effect) -> bool;
    /// Writes it down.
    fn done(&mut self, effect: Effect, receipt: &str);
}

/// Protocol 1: how many stages are done.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProgressV1 {
    stage: usize,
}

/// Protocol 2: each stage by its name, with the receipt where it is known.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProgressV2 {
    done: Vec<Done>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Done {
    effect: Effect,
    receipt: Option<String>,
}

impl Progress for ProgressV1 {
    fn has(&self, effect: Effect) -> bool {
        Effect::ALL
            .iter()
            .take(self.stage)
            .any(|done| *done == effect)
    }

    fn done(&mut self, _: Effect, _: &str) {
        self.stage += 1;
    }
}

impl Progress for ProgressV2 {
    fn has(&self, effect: Effect) -> bool {
        self.done.iter().any(|done| done.effect == effect)
    }

    fn done(&mut self, effect: Effect, receipt: &str) {
        self.done.push(Done {
            effect,
            receipt: Some(receipt.to_owned()),
        });
    }
}

/// A checkpoint of protocol 1 as one of protocol 2. Its receipts were not in there; the ledger has them.
pub(super) fn from_v1(value: Value) -> Result<Value, String> {
    let old: ProgressV1 = serde_json::from_value(value).map_err(|error| error.to_string())?;
    let done = Effect::ALL.iter().take(old.stage);
    let done: Vec<Value> = done
        .map(|effect| json!({ "effect": effect, "receipt": null }))
        .collect();
    Ok(json!({ "done": done }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after_two<P: Progress>() -> P {
        let mut progress = P::default();
        progress.done(Effect::Reserve, "RSV-1");
        progress.done(Effect::Charge, "CHG-1");
        progress
    }

    #[test]
    fn an_old_checkpoint_says_the_same_in_the_new_shape() {
        let old = after_two::<ProgressV1>();
        let new: ProgressV2 =
            serde_json::from_value(from_v1(serde_json::to_value(&old).unwrap()).unwrap()).unwrap();
        for effect in Effect::ALL {
            assert_eq!(old.has(effect), new.has(effect), "{effect:?}");
        }
        assert!(from_v1(json!({ "nonsense": 1 })).is_err());
    }

    #[test]
    fn version_1_cannot_read_what_version_2_writes() {
        let new = serde_json::to_value(after_two::<ProgressV2>()).unwrap();
        assert!(serde_json::from_value::<ProgressV1>(new).is_err());
    }
}
