//! The part of a catalog that can be right or wrong: no sizes, no counters, no OIDs, no gaps of numbers, no statistics.
//!
//! One entry an element (a column, an index, a grant), so that what a step did is a difference of two structures, and what
//! somebody else did beside it is not taken into it. Expressions are the server's own text under an empty search path, which is
//! why two structures are compared only when their servers have one major version: otherwise the answer is
//! [`NotCompared`], never "equal".

mod build;
mod compare;
mod delta;
mod difference;
mod file;
mod key;
mod partition;
mod words;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

pub use compare::NotCompared;
pub use delta::{Delta, Fold};
pub use difference::{Difference, Severity, What};
pub use key::{Key, Kind};

/// The version of the shapes: it moves when an entry's fields change their meaning, and structures of two versions are not compared.
pub const MODEL: u32 = 1;

/// The fields of one element, by name; scalars and lists of scalars, so that there is one way to write it.
pub type Shape = BTreeMap<String, Value>;

/// Fields that are told, never judged: the order of columns depends on the way, not on the aim.
pub(crate) const TOLD_FIELDS: &[&str] = &["column_order"];

/// What a database is, or should be.
#[derive(Debug, Clone, PartialEq)]
pub struct Structure {
    /// `MODEL` of the program that read it.
    pub model: u32,
    /// The major version of the server that printed its expressions.
    pub server_major: u32,
    /// Every element.
    pub elements: BTreeMap<Key, Shape>,
    /// Elements that were dropped on purpose: one of them that is there again is wrong. Empty in what was read from a server.
    pub gone: BTreeSet<Key>,
}

impl Structure {
    /// Nothing, as a server of this major version.
    pub fn empty(server_major: u32) -> Self {
        Self {
            model: MODEL,
            server_major,
            elements: BTreeMap::new(),
            gone: BTreeSet::new(),
        }
    }

    /// Takes out who owns and may do what, where that is only `role`: the stand-in of a private server says nothing about
    /// production. Entries without an owner are compared without it, and the comparison says how many.
    pub fn forget_role(&mut self, role: &str) {
        self.elements.retain(|key, shape| {
            if shape.get("owner").and_then(Value::as_str) == Some(role) {
                shape.remove("owner");
            }
            let grantee = shape.get("grantee").and_then(Value::as_str);
            // ALTER DEFAULT PRIVILEGES is for what one role makes, and stands under its name.
            let by_default = shape.get("kind") == Some(&Value::from("default")) && key.name == role;
            key.kind != Kind::Grant || (grantee != Some(role) && !by_default)
        });
    }
}
