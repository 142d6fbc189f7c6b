//! Which ledger: the engine's own changes and an application's keep separate books in one database.
//!
//! Invariants: a ledger has a schema of its own (its owner needs no rights to the other's) and a mutex of its own (one does not
//! wait for the other); the SQL files are written for the application's, and only the name of the schema is another.

use std::borrow::Cow;

/// The name in the SQL files.
const WRITTEN: &str = "aegis_migrate";

/// Whose changes a ledger is about.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum LedgerName {
    /// Those of an application: schema `aegis_migrate`.
    #[default]
    Application,
    /// Those of the engine itself, whose tables are in schema `aegis`: schema `aegis_ledger`.
    Engine,
}

impl LedgerName {
    /// The schema of its tables.
    pub const fn schema(self) -> &'static str {
        match self {
            Self::Application => WRITTEN,
            Self::Engine => "aegis_ledger",
        }
    }

    /// Where objects make the database one that is in use. `None`: anywhere.
    pub(crate) const fn lives_in(self) -> Option<&'static str> {
        match self {
            Self::Application => None,
            Self::Engine => Some("aegis"),
        }
    }

    /// The second half of its mutex's key.
    pub(crate) const fn key(self) -> i32 {
        match self {
            Self::Application => 1,
            Self::Engine => 2,
        }
    }

    /// A statement of `sql/` or `schema/` for this ledger.
    pub(crate) fn sql(self, text: &'static str) -> Cow<'static, str> {
        match self {
            Self::Application => Cow::Borrowed(text),
            Self::Engine => Cow::Owned(text.replace(WRITTEN, self.schema())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::LedgerName;

    #[test]
    fn only_the_schema_is_another() {
        let text = include_str!("../../sql/ledger/phase_done.sql");
        assert_eq!(LedgerName::Application.sql(text), text);
        let engine = LedgerName::Engine.sql(text);
        assert!(engine.contains("INTO aegis_ledger.phase ("), "{engine}");
        assert!(!engine.contains("aegis_migrate"), "{engine}");
        assert_ne!(LedgerName::Application.key(), LedgerName::Engine.key());
    }
}
