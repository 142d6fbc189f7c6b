//! Two structures, element by element. The answer is a list, or that they cannot be compared; an empty list is the only "equal".

use std::collections::BTreeSet;
use std::fmt;

use serde::Serialize;
use serde_json::Value;

use super::{Key, Kind, MODEL, Shape, Structure, TOLD_FIELDS, partition, words};

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

/// Why two structures were not compared: never a pass.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize)]
#[serde(tag = "why", rename_all = "snake_case")]
pub enum NotCompared {
    /// The servers print expressions in different ways.
    #[error(
        "not compared: the expected structure was made by PostgreSQL {expected}, the server is PostgreSQL {found}; seal the change on PostgreSQL {found} too"
    )]
    Major {
        /// Of the expected structure.
        expected: u32,
        /// Of the found one.
        found: u32,
    },
    /// The entries mean different things.
    #[error(
        "not compared: the expected structure has model {expected}, this program reads model {found}; seal the change again with this program"
    )]
    Model {
        /// Of the expected structure.
        expected: u32,
        /// Of the found one.
        found: u32,
    },
}

impl Structure {
    /// What in `found` is not as `self` expects it, in the order of the names.
    ///
    /// # Errors
    /// [`NotCompared`] when the two come from servers of different major versions, or from different models.
    pub fn compare(&self, found: &Self) -> Result<Vec<Difference>, NotCompared> {
        if self.model != found.model || self.model != MODEL {
            return Err(NotCompared::Model {
                expected: self.model,
                found: found.model,
            });
        }
        if self.server_major != found.server_major {
            return Err(NotCompared::Major {
                expected: self.server_major,
                found: found.server_major,
            });
        }
        let mut differences = self.missing_and_changed(found);
        differences.extend(self.extra(found));
        differences.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(differences)
    }

    fn missing_and_changed(&self, found: &Self) -> Vec<Difference> {
        let mut differences = Vec::new();
        for (key, expected) in &self.elements {
            let Some(shape) = found.elements.get(key) else {
                // The columns of a table that is not there say nothing more.
                if key
                    .relation()
                    .is_none_or(|r| found.elements.contains_key(&r))
                {
                    let what = What::Missing {
                        expected: expected.clone(),
                    };
                    differences.push(Difference::new(key, Severity::Wrong, what));
                }
                continue;
            };
            differences.extend(changed(key, expected, shape));
        }
        differences
    }

    fn extra(&self, found: &Self) -> Vec<Difference> {
        let mut differences = Vec::new();
        let partitions = partition::unnamed(self, found);
        for (key, shape) in &found.elements {
            if self.elements.contains_key(key) {
                continue;
            }
            let found_again = || What::Back {
                found: shape.clone(),
            };
            if self.gone.contains(key) {
                differences.push(Difference::new(key, Severity::Wrong, found_again()));
                continue;
            }
            if partitions.covers(key, shape) {
                continue;
            }
            let relation = key.relation();
            if relation.is_some_and(|relation| !self.elements.contains_key(&relation)) {
                continue;
            }
            let severity = self.weight_of_extra(key, shape);
            let what = What::Extra {
                found: shape.clone(),
            };
            differences.push(Difference::new(key, severity, what));
        }
        differences.extend(partitions.compare(found));
        differences
    }

    /// What can refuse or change a write to an expected table is wrong; the rest is told.
    fn weight_of_extra(&self, key: &Key, shape: &Shape) -> Severity {
        let yes = |field: &str| shape.get(field) == Some(&Value::Bool(true));
        let none = |field: &str| shape.get(field).is_none_or(Value::is_null);
        let on_expected = |table: &str| {
            self.elements
                .keys()
                .any(|k| k.kind == Kind::Relation && k.holder().to_string() == table)
        };
        let wrong = match key.kind {
            Kind::Constraint | Kind::Trigger | Kind::Rule | Kind::Policy => true,
            Kind::Column => yes("not_null") && none("default"),
            Kind::Index => {
                let table = shape.get("table").and_then(Value::as_str);
                (yes("unique") || yes("exclusion")) && table.is_some_and(on_expected)
            }
            _ => false,
        };
        if wrong {
            Severity::Wrong
        } else {
            Severity::Told
        }
    }
}

/// The fields of one element that differ.
fn changed(key: &Key, expected: &Shape, found: &Shape) -> Vec<Difference> {
    let mut differences = Vec::new();
    let fields: BTreeSet<&String> = expected.keys().chain(found.keys()).collect();
    for field in fields {
        let (should, is) = (expected.get(field), found.get(field));
        if should == is {
            continue;
        }
        let (severity, what) = match (field.as_str(), should) {
            ("owner", None) => {
                let found = is.cloned().unwrap_or(Value::Null);
                (Severity::Told, What::OwnerNotStated { found })
            }
            (name, _) => {
                let told = TOLD_FIELDS.contains(&name);
                let severity = if told {
                    Severity::Told
                } else {
                    Severity::Wrong
                };
                let what = What::Changed {
                    field: field.clone(),
                    expected: should.cloned().unwrap_or(Value::Null),
                    found: is.cloned().unwrap_or(Value::Null),
                };
                (severity, what)
            }
        };
        differences.push(Difference::new(key, severity, what));
    }
    differences
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
