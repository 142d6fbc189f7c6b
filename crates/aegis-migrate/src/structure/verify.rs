//! The database beside what it should be: the sum of the applied steps, and the sealed structure of the lock.
//!
//! Two answers, because they say two things: the sum knows what ran here, the sealed structure what the lock makes from nothing.
//! An answer that was not given is `not_compared` with its reason, and never counts as equal.

use std::collections::BTreeSet;

use aegis_catalog::{Difference, Kind, Name, Scope, Severity, Structure, read, shown};
use serde::Serialize;
use tokio_postgres::Client;

use super::StructureError;
use super::fold::expected;
use super::tenant::in_schema;
use crate::ledger::LedgerName;

/// What the lock makes, as far as it is known.
#[derive(Debug)]
pub enum Sealed<'a> {
    /// The structure that a replay of exactly the applied lines made.
    Structure(&'a Structure),
    /// It is of more lines than are applied here: what holds now is only what the steps did.
    Later {
        /// The lines that are not applied.
        pending: Vec<String>,
    },
    /// There is none.
    Unknown {
        /// Why, in a sentence.
        why: String,
    },
}

/// What one comparison said.
#[derive(Debug, Serialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum Answer {
    /// It was made; nothing in the list is wrong, or something is.
    Compared {
        /// What is different; some of it only told.
        differences: Vec<Difference>,
    },
    /// It was not made.
    NotCompared {
        /// Why.
        why: String,
    },
}

impl Answer {
    /// It was made, and nothing is wrong.
    pub fn holds(&self) -> bool {
        matches!(self, Self::Compared { differences } if !differences.iter().any(Difference::is_wrong))
    }

    /// It was made, and something is wrong.
    pub fn is_wrong(&self) -> bool {
        matches!(self, Self::Compared { differences } if differences.iter().any(Difference::is_wrong))
    }

    fn of(expected: &Structure, live: &Structure) -> Self {
        match expected.compare(live) {
            Ok(differences) => Self::Compared { differences },
            Err(not) => Self::NotCompared {
                why: not.to_string(),
            },
        }
    }
}

/// What was found.
#[derive(Debug, Serialize)]
pub struct Report {
    /// The server's major version.
    pub server_major: u32,
    /// The fingerprint of what is there.
    pub fingerprint: String,
    /// Beside the sum of the applied steps.
    pub steps: Answer,
    /// Beside the sealed structure.
    pub sealed: Answer,
    /// Lines of the lock are still to come here.
    pub pending: bool,
}

impl Report {
    /// `different` when something is wrong; `equal` when the sealed structure is what is there and no step's work is undone;
    /// `steps_hold` when lines of the lock are still to come and each applied step's work is as the step left it; else
    /// `not_compared`.
    pub fn outcome(&self) -> &'static str {
        if self.steps.is_wrong() || self.sealed.is_wrong() {
            "different"
        } else if self.sealed.holds() {
            "equal"
        } else if self.pending && self.steps.holds() {
            "steps_hold"
        } else {
            "not_compared"
        }
    }

    /// The exit code of `aegis migrate`: 0, or 12.
    pub fn exit_code(&self) -> u8 {
        if matches!(self.outcome(), "equal" | "steps_hold") {
            0
        } else {
            12
        }
    }

    /// Every difference once, the wrong ones first. What no step made is told only where no sealed structure knows it.
    pub fn differences(&self) -> Vec<&Difference> {
        let mut all: Vec<&Difference> = Vec::new();
        if let Answer::Compared { differences } = &self.sealed {
            all.extend(differences);
        }
        let only_wrong = !all.is_empty() || self.sealed.holds();
        if let Answer::Compared { differences } = &self.steps {
            for difference in differences {
                if (difference.is_wrong() || !only_wrong) && !all.contains(&difference) {
                    all.push(difference);
                }
            }
        }
        all.sort_by_key(|difference| !difference.is_wrong());
        all
    }
}

/// The grants that `contract close` has taken and not given back, as a structure names them.
async fn shut_doors(client: &Client) -> Result<Vec<(Name, String)>, StructureError> {
    let asking = "asking for what shut doors have taken";
    let there = client
        .query_one(
            "SELECT to_regclass('aegis_migrate.contract') IS NOT NULL",
            &[],
        )
        .await
        .map_err(StructureError::sql(asking))?;
    if !there.get::<_, bool>(0) {
        return Ok(Vec::new());
    }
    let rows = client
        .query(include_str!("../../sql/contract/taken.sql"), &[])
        .await
        .map_err(StructureError::sql(asking))?;
    Ok(rows
        .iter()
        .map(|row| {
            let table = Name::new(
                row.get::<_, String>("schema"),
                row.get::<_, String>("table"),
            );
            (table, row.get("role"))
        })
        .collect())
}

/// A grant that a shut door has taken is told: the contract gives it back, or ends with it.
fn told_of_doors(answer: Answer, doors: &[(Name, String)]) -> Answer {
    let Answer::Compared { mut differences } = answer else {
        return answer;
    };
    for difference in &mut differences {
        let key = &difference.key;
        let is_taken = key.kind == Kind::Grant
            && doors.iter().any(|(table, role)| {
                (&table.schema, &table.name) == (&key.schema, &key.name)
                    && key.part.ends_with(&format!(" to {}", shown(role)))
            });
        if is_taken {
            difference.severity = Severity::Told;
        }
    }
    Answer::Compared { differences }
}

/// Reads the schemas and compares with what an application's ledger says. The client must not be in a transaction; nothing is
/// written.
///
/// # Errors
/// When the catalog or the account of the steps cannot be read.
pub async fn verify(
    client: &Client,
    schemas: &[String],
    sealed: Sealed<'_>,
) -> Result<Report, StructureError> {
    verify_in(client, LedgerName::Application, schemas, sealed).await
}

/// [`verify`] by any ledger.
///
/// # Errors
/// As those of [`verify`].
pub async fn verify_in(
    client: &Client,
    ledger: LedgerName,
    schemas: &[String],
    sealed: Sealed<'_>,
) -> Result<Report, StructureError> {
    let major = client
        .query_one(
            "SELECT current_setting('server_version_num')::int / 10000",
            &[],
        )
        .await
        .map_err(StructureError::sql("asking for the server's version"))?;
    let major = u32::try_from(major.get::<_, i32>(0)).unwrap_or_default();
    let expected = expected(client, ledger, major).await?;
    // A step may have reached into a schema that no change calls its own.
    let mut all: BTreeSet<String> = schemas.iter().cloned().collect();
    if let Some(expected) = &expected {
        let keys = expected.structure.elements.keys();
        all.extend(
            keys.map(|key| key.schema.clone())
                .filter(|schema| !schema.is_empty()),
        );
    }
    let scope = Scope::schemas(all).structure_only();
    let live = read(client, &scope).await?.structure();
    let steps = match &expected {
        None => Answer::NotCompared {
            why: format!(
                "this database keeps no account of applied steps ({}.structure)",
                ledger.schema()
            ),
        },
        Some(expected) => match expected.other.first() {
            Some((key, major, model)) => Answer::NotCompared {
                why: format!(
                    "{} elements were recorded on another server or by another model ({key}: PostgreSQL {major}, model {model}); \
                     after an upgrade of the server seal the lock on the new version, the sealed structure is compared then",
                    expected.other.len()
                ),
            },
            None if expected.structure.elements.is_empty()
                && expected.structure.gone.is_empty() =>
            {
                Answer::NotCompared {
                    why: "no step was applied here".to_owned(),
                }
            }
            None => Answer::of(&expected.structure, &live),
        },
    };
    // No schema of many has a contract: a door that is shut is one of the whole database.
    let doors = match ledger {
        LedgerName::Application => shut_doors(client).await?,
        LedgerName::Engine | LedgerName::Tenant(_) => Vec::new(),
    };
    let steps = told_of_doors(steps, &doors);
    let pending = matches!(sealed, Sealed::Later { .. });
    let sealed = match sealed {
        Sealed::Structure(structure) if matches!(ledger, LedgerName::Tenant(_)) => {
            // It may have been sealed for another schema: how a name is quoted depends on the name.
            let spelt = |structure: &Structure| {
                schemas.iter().fold(structure.clone(), |structure, name| {
                    in_schema(&structure, name, name)
                })
            };
            Answer::of(&spelt(structure), &spelt(&only(&live, schemas)))
        }
        Sealed::Structure(structure) => Answer::of(structure, &only(&live, schemas)),
        Sealed::Later { pending } => Answer::NotCompared {
            why: format!(
                "the sealed structure is that of the whole lock, and not applied here yet: {}",
                pending.join(", ")
            ),
        },
        Sealed::Unknown { why } => Answer::NotCompared { why },
    };
    Ok(Report {
        server_major: live.server_major,
        fingerprint: only(&live, schemas).fingerprint(),
        steps,
        sealed,
        pending,
    })
}

/// What is in these schemas, or in none.
fn only(live: &Structure, schemas: &[String]) -> Structure {
    let mut only = live.clone();
    only.elements.retain(|key, _| {
        let schema = if key.kind == aegis_catalog::Kind::Schema {
            &key.name
        } else {
            &key.schema
        };
        schema.is_empty() || schemas.contains(schema)
    });
    only
}
