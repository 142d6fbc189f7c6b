//! What a step did to a structure, and the sum of all steps.
//!
//! A step's delta is the difference between what was there right before it and right after it, within its transaction. So a
//! change that somebody made by hand between two steps stands in neither delta, and stays visible as drift.

use std::collections::{BTreeMap, BTreeSet};

use super::{Key, Shape, Structure};

/// What a step did.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Delta {
    /// Elements that it made or changed, as they are after it.
    pub set: BTreeMap<Key, Shape>,
    /// Elements that were there before and are not after it.
    pub gone: BTreeSet<Key>,
}

impl Delta {
    /// From before to after.
    pub fn between(before: &Structure, after: &Structure) -> Self {
        let changed = |key: &Key, shape: &Shape| before.elements.get(key) != Some(shape);
        Self {
            set: after
                .elements
                .iter()
                .filter(|(key, shape)| changed(key, shape))
                .map(|(key, shape)| (key.clone(), shape.clone()))
                .collect(),
            gone: before
                .elements
                .keys()
                .filter(|key| !after.elements.contains_key(key))
                .cloned()
                .collect(),
        }
    }

    /// Nothing was made, changed or dropped.
    pub fn is_empty(&self) -> bool {
        self.set.is_empty() && self.gone.is_empty()
    }
}

/// The expected structure: the sum of the deltas in order of execution.
#[derive(Debug, Clone, PartialEq)]
pub struct Fold {
    structure: Structure,
}

impl Fold {
    /// Before the first step.
    pub fn new(server_major: u32) -> Self {
        Self {
            structure: Structure::empty(server_major),
        }
    }

    /// After one step more.
    pub fn add(&mut self, delta: &Delta) {
        for key in &delta.gone {
            self.structure.elements.remove(key);
            self.structure.gone.insert(key.clone());
        }
        for (key, shape) in &delta.set {
            self.structure.gone.remove(key);
            self.structure.elements.insert(key.clone(), shape.clone());
        }
    }

    /// What the steps made of the database.
    pub fn structure(self) -> Structure {
        self.structure
    }
}
