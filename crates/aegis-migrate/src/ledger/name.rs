//! Which ledger: the engine's own changes, an application's, and those of each of its schemas where a schema is a tenant, keep separate
//! books in one database.
//!
//! Invariants: a ledger has a schema of its own (its owner needs no rights to the other's) and a mutex of its own (one does not
//! wait for the other); the SQL files are written for the application's, and only the name of the schema is another.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use crate::change::sha256;

/// The name in the SQL files.
const WRITTEN: &str = "aegis_migrate";

/// How the schema of a tenant's ledger begins.
const OF_TENANT: &str = "aegis_migrate_of_";

/// Longest name of a schema that stands in its ledger's name as it is; PostgreSQL keeps 63 bytes of a name.
const PLAIN_MAX: usize = 40;

/// Names live as long as the process, each once: there are as many as `targets.toml` has schemas.
static TENANTS: Mutex<BTreeMap<String, Tenant>> = Mutex::new(BTreeMap::new());

/// A schema with books of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tenant {
    schema: &'static str,
    ledger: &'static str,
    key: i32,
}

impl Tenant {
    fn of(schema: &str) -> Self {
        let mut known = TENANTS.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(tenant) = known.get(schema) {
            return *tenant;
        }
        let hash = sha256(schema.as_bytes());
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        let ledger = if schema.len() <= PLAIN_MAX && schema.bytes().all(plain) {
            format!("{OF_TENANT}{schema}")
        } else {
            // No name that would need quotes stands in a statement.
            format!("{OF_TENANT}{}", &hash[..32])
        };
        // Two that meet in one number wait for one another, and nothing else.
        let number = i32::from_str_radix(&hash[..7], 16).unwrap_or_default();
        let tenant = Self {
            schema: schema.to_owned().leak(),
            ledger: ledger.leak(),
            key: number + FIRST_TENANT,
        };
        known.insert(schema.to_owned(), tenant);
        tenant
    }
}

/// Whose a schema is in which no change may make anything; none when it is free. That of the engine's own tables is not asked here: its own
/// changes are made there.
pub(crate) fn belongs_to(schema: &str) -> Option<&'static str> {
    if schema.starts_with("pg_") || schema == "information_schema" {
        return Some("the server");
    }
    let engine = LedgerName::Engine.schema();
    let is_ledger = schema == WRITTEN || schema.starts_with(OF_TENANT) || schema == engine;
    is_ledger.then_some("a ledger of this tool")
}

/// The first number that is neither the application's nor the engine's.
const FIRST_TENANT: i32 = 16;

/// Whose changes a ledger is about.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum LedgerName {
    /// Those of an application: schema `aegis_migrate`.
    #[default]
    Application,
    /// Those of the engine itself, whose tables are in schema `aegis`: schema `aegis_ledger`.
    Engine,
    /// Those of one schema of a database: schema `aegis_migrate_of_` and its name.
    Tenant(Tenant),
}

impl LedgerName {
    /// Of one schema, by its name as the catalog has it.
    pub fn of_schema(schema: &str) -> Self {
        Self::Tenant(Tenant::of(schema))
    }

    /// The schema of its tables.
    pub const fn schema(self) -> &'static str {
        match self {
            Self::Application => WRITTEN,
            Self::Engine => "aegis_ledger",
            Self::Tenant(tenant) => tenant.ledger,
        }
    }

    /// Where objects make the database one that is in use. `None`: anywhere.
    pub(crate) const fn lives_in(self) -> Option<&'static str> {
        match self {
            Self::Application => None,
            Self::Engine => Some("aegis"),
            Self::Tenant(tenant) => Some(tenant.schema),
        }
    }

    /// The second half of its mutex's key.
    pub(crate) const fn key(self) -> i32 {
        match self {
            Self::Application => 1,
            Self::Engine => 2,
            Self::Tenant(tenant) => tenant.key,
        }
    }

    /// A statement of `sql/` or `schema/` for this ledger.
    pub(crate) fn sql(self, text: &'static str) -> Cow<'static, str> {
        match self {
            Self::Application => Cow::Borrowed(text),
            Self::Engine | Self::Tenant(_) => Cow::Owned(text.replace(WRITTEN, self.schema())),
        }
    }

    /// What the lock of a change is called: two tenants of one database build beside one another.
    pub(crate) fn lock_of(self, change: &str) -> String {
        match self {
            Self::Application => change.to_owned(),
            Self::Engine | Self::Tenant(_) => format!("{}/{change}", self.schema()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{LedgerName, belongs_to};

    #[test]
    fn only_the_schema_is_another() {
        let text = include_str!("../../sql/ledger/phase_done.sql");
        assert_eq!(LedgerName::Application.sql(text), text);
        let engine = LedgerName::Engine.sql(text);
        assert!(engine.contains("INTO aegis_ledger.phase ("), "{engine}");
        assert!(!engine.contains("aegis_migrate"), "{engine}");
        assert_ne!(LedgerName::Application.key(), LedgerName::Engine.key());
    }

    #[test]
    fn a_ledger_and_the_server_have_their_schemas_for_themselves() {
        let of = LedgerName::of_schema;
        for own in [
            LedgerName::Application,
            LedgerName::Engine,
            of("t_1"),
            of("T 1"),
        ] {
            assert_eq!(belongs_to(own.schema()), Some("a ledger of this tool"));
        }
        for of_server in ["pg_catalog", "pg_toast_temp_3", "information_schema"] {
            assert_eq!(belongs_to(of_server), Some("the server"));
        }
        for free in ["app", "public", "aegis", "aegis_shop", "pgbouncer"] {
            assert_eq!(belongs_to(free), None, "{free}");
        }
    }

    #[test]
    fn each_schema_has_books_and_a_mutex_of_its_own_under_a_name_that_needs_no_quotes() {
        let (one, two) = (LedgerName::of_schema("t_1"), LedgerName::of_schema("t_2"));
        assert_eq!(one.schema(), "aegis_migrate_of_t_1");
        assert_eq!(one, LedgerName::of_schema("t_1"));
        assert_ne!(one.key(), two.key());
        assert!(one.key() > LedgerName::Engine.key());
        for odd in ["T 1", "a\"b", "ä", &"x".repeat(63)] {
            let name = LedgerName::of_schema(odd).schema();
            assert!(name.len() <= 63, "{name}");
            assert!(
                name.bytes()
                    .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_'),
                "{name}"
            );
        }
        let text = include_str!("../../sql/ledger/phase_done.sql");
        assert!(one.sql(text).contains("INTO aegis_migrate_of_t_1.phase ("));
    }
}
