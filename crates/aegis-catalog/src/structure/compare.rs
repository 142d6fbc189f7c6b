//! Two structures, element by element. The answer is a list, or that they cannot be compared; an empty list is the only "equal".

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::Value;

use super::{
    Difference, Key, Kind, MODEL, Severity, Shape, Structure, TOLD_FIELDS, What, partition,
};

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
