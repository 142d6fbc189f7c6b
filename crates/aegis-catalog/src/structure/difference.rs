//! What a comparison tells of one element: what is different, and how much that weighs.

use std::fmt;

use serde::Serialize;
use serde_json::Value;

use super::{Key, Shape, words};

/// One thing that is not as it should be, or that nobody asked for.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Difference {
    /// Which element.
    pub key: Key,
    /// Whether it is wrong, or only told.
    pub severity: Severity,
    /// What is different.
    #[serde(flatten)]
    pub what: What,
}

/// How much a difference weighs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// The structure is not the expected one.
    Wrong,
    /// Unknown to the expected structure, and it cannot refuse or change what programs write.
    Told,
}

/// What is different.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum What {
    /// Expected, not there.
    Missing {
        /// What should be there.
        expected: Shape,
    },
    /// There, not expected.
    Extra {
        /// What is there.
        found: Shape,
    },
    /// Dropped by a step, and there again.
    Back {
        /// What is there.
        found: Shape,
    },
    /// One field is another.
    Changed {
        /// Its name in the model.
        field: String,
        /// What it should be; absent is null.
        expected: Value,
        /// What it is.
        found: Value,
    },
    /// A partition that no change names, beside its parent.
    Partition {
        /// The partitioned table.
        parent: String,
        /// What the partition lacks or has otherwise, in a sentence.
        told: String,
    },
    /// The expected structure does not say who owns it: not compared.
    OwnerNotStated {
        /// What was found.
        found: Value,
    },
}

impl Difference {
    pub(crate) fn new(key: &Key, severity: Severity, what: What) -> Self {
        Self {
            key: key.clone(),
            severity,
            what,
        }
    }

    /// Whether it makes the structure wrong.
    pub fn is_wrong(&self) -> bool {
        self.severity == Severity::Wrong
    }
}

impl fmt::Display for Difference {
    /// One line for people, with both shapes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = &self.key;
        match &self.what {
            What::Missing { expected } => {
                write!(f, "{key} is missing; expected: {}", words::shape(expected))
            }
            What::Extra { found } => {
                write!(
                    f,
                    "{key} is there, and no change made it: {}",
                    words::shape(found)
                )
            }
            What::Back { found } => write!(
                f,
                "{key} is there again after a change dropped it: {}",
                words::shape(found)
            ),
            What::Changed {
                field,
                expected,
                found,
            } => write!(
                f,
                "{key}: {} is {}, expected {}",
                words::field(field),
                words::value(found),
                words::value(expected)
            ),
            What::Partition { parent, told } => {
                write!(
                    f,
                    "{key}, a partition of {parent} that no change names: {told}"
                )
            }
            What::OwnerNotStated { found } => write!(
                f,
                "{key}: owner {} was not compared, the expected structure does not state it",
                words::value(found)
            ),
        }
    }
}
