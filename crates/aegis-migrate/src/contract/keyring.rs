//! `approvers.toml`: who may say what in one environment, how many must agree, and what that environment does not ask for.
//! It stands beside the changes and is reviewed like them; the private keys stand nowhere near.

use jiff::SignedDuration;
use serde::Deserialize;

use super::envelope::{EnvelopeError, PublicKey, listed};
use super::need::Need;

/// What a person may sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum May {
    /// That a contract runs.
    Approve,
    /// That something holds which nobody can see.
    Attest,
    /// What was seen elsewhere.
    Observe,
}

/// Somebody with a key.
#[derive(Debug, Clone)]
pub struct Person {
    /// As in approvals.
    pub name: String,
    /// What they may sign.
    pub may: Vec<May>,
    /// Their key.
    pub key: PublicKey,
}

/// A need that this environment does not ask for.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exclusion {
    /// Which.
    pub fact: Need,
    /// Why.
    pub reason: String,
}

/// The rules of one environment.
#[derive(Debug, Clone)]
pub struct Keyring {
    file: String,
    environment: String,
    approvals: usize,
    bundle_age: SignedDuration,
    people: Vec<Person>,
    exclusions: Vec<Exclusion>,
}

/// Why `approvers.toml` does not serve.
#[derive(Debug, thiserror::Error)]
pub enum KeyringError {
    /// Not TOML, an unknown key, a wrong type.
    #[error("{file}: {why}")]
    Malformed {
        /// The file.
        file: String,
        /// With line and column.
        why: String,
    },
    /// It says something that cannot be.
    #[error("{file}: {why}")]
    Contradiction {
        /// The file.
        file: String,
        /// What, and what to do.
        why: String,
    },
    /// A key in it.
    #[error(transparent)]
    Key(#[from] EnvelopeError),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    format: u32,
    environment: String,
    approvals: usize,
    #[serde(default = "default_bundle_age_s")]
    bundle_max_age_s: u32,
    #[serde(default)]
    person: Vec<FilePerson>,
    #[serde(default)]
    exclude: Vec<Exclusion>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FilePerson {
    name: String,
    may: Vec<May>,
    key: String,
}

const fn default_bundle_age_s() -> u32 {
    300
}

impl Keyring {
    /// Reads the text of `approvers.toml`; `file` names it in errors.
    pub fn read(text: &str, file: &str) -> Result<Self, KeyringError> {
        let read: File = toml::from_str(text).map_err(|error| KeyringError::Malformed {
            file: file.to_owned(),
            why: error.to_string(),
        })?;
        let contradiction = |why: String| KeyringError::Contradiction {
            file: file.to_owned(),
            why,
        };
        if read.format != 1 {
            return Err(contradiction(format!(
                "format {} is unknown; this release reads format 1",
                read.format
            )));
        }
        if read.approvals == 0 {
            return Err(contradiction(
                "approvals = 0 lets a contract run unapproved; ask for 1 at least".to_owned(),
            ));
        }
        let mut people: Vec<Person> = Vec::new();
        for person in read.person {
            let key = PublicKey::from_pem(&person.key, &format!("{file}, key of {}", person.name))?;
            if let Some(other) = people
                .iter()
                .find(|other| other.name == person.name || other.key == key)
            {
                return Err(contradiction(format!(
                    "{} and {} share a name or a key, so one person would count as two",
                    other.name, person.name
                )));
            }
            people.push(Person {
                name: person.name,
                may: person.may,
                key,
            });
        }
        let able = people
            .iter()
            .filter(|person| person.may.contains(&May::Approve))
            .count();
        // The author of a change cannot approve it, so there must be others.
        if able < read.approvals {
            return Err(contradiction(format!(
                "{} approvals are needed and {able} people may approve",
                read.approvals
            )));
        }
        if let Some(empty) = read.exclude.iter().find(|one| one.reason.trim().is_empty()) {
            return Err(contradiction(format!(
                "the exclusion of {} has no reason",
                empty.fact
            )));
        }
        Ok(Self {
            file: file.to_owned(),
            environment: read.environment,
            approvals: read.approvals,
            bundle_age: SignedDuration::from_secs(read.bundle_max_age_s.into()),
            people,
            exclusions: read.exclude,
        })
    }

    /// The file, as errors name it.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// Everybody's name, in words.
    pub fn names(&self) -> String {
        let names: Vec<&str> = self.people.iter().map(|one| one.name.as_str()).collect();
        listed(&names)
    }

    /// The environment that it is for.
    pub fn environment(&self) -> &str {
        &self.environment
    }

    /// How many must approve.
    pub const fn approvals(&self) -> usize {
        self.approvals
    }

    /// How old a bundle may be.
    pub const fn bundle_age(&self) -> SignedDuration {
        self.bundle_age
    }

    /// Everybody with a key.
    pub fn people(&self) -> &[Person] {
        &self.people
    }

    /// Whether this person may sign this.
    pub fn may(&self, name: &str, what: May) -> bool {
        self.people
            .iter()
            .any(|person| person.name == name && person.may.contains(&what))
    }

    /// Whether anybody may sign this.
    pub fn anybody_may(&self, what: May) -> bool {
        self.people.iter().any(|person| person.may.contains(&what))
    }

    /// The rules where none can be read: nothing is excluded, and nobody may sign anything.
    pub fn absent() -> Self {
        Self {
            file: "approvers.toml".to_owned(),
            environment: String::new(),
            approvals: 1,
            bundle_age: SignedDuration::from_secs(default_bundle_age_s().into()),
            people: Vec::new(),
            exclusions: Vec::new(),
        }
    }

    /// Why a need is not asked for here; none when it is.
    pub fn exclusion(&self, need: Need) -> Option<&str> {
        self.exclusions
            .iter()
            .find(|one| one.fact == need)
            .map(|one| one.reason.as_str())
    }
}
