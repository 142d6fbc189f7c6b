//! Whose folder of migrations it is, and how each tool runs a file: in one transaction, as one query, or statement by statement.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

/// Whose folder it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Tool {
    /// sqlx: `VERSION_words.sql`, or pairs of `.up.sql` and `.down.sql`.
    Sqlx,
    /// refinery: `V1__words.sql`, `U2__words.sql`.
    Refinery,
    /// goose: `00001_words.sql` with `-- +goose Up` and `-- +goose Down`.
    Goose,
    /// Flyway: `V1_1__words.sql`, `R__words.sql`.
    Flyway,
    /// Rails: `structure.sql`, which `pg_dump` writes.
    Rails,
    /// Liquibase: SQL with `--liquibase formatted sql` and `--changeset`.
    Liquibase,
    /// dbmate: `-- migrate:up` and `-- migrate:down`.
    Dbmate,
    /// golang-migrate: pairs of `.up.sql` and `.down.sql`.
    GolangMigrate,
    /// Diesel: folders with `up.sql` and `down.sql`.
    Diesel,
    /// Prisma: folders with `migration.sql`.
    Prisma,
    /// Supabase: `supabase/migrations/TIME_words.sql`.
    Supabase,
    /// Atlas: a folder with `atlas.sum`.
    Atlas,
    /// node-pg-migrate: SQL with `-- Up Migration` and `-- Down Migration`.
    NodePgMigrate,
    /// Sqitch: `sqitch.plan`, with `deploy`, `revert` and `verify`.
    Sqitch,
    /// Nobody's: `.sql` files in the order of their names.
    Plain,
}

/// How many of a file's statements run in one transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wrapping {
    /// All of them, in one that the tool begins and ends.
    Transaction,
    /// All of them, sent as one query, which the server makes one transaction when there are several.
    OneQuery,
    /// Each by itself.
    Each,
    /// In one, unless a statement refuses it; then each by itself.
    AsNeeded,
    /// Nobody knows.
    Unknown,
}

impl Tool {
    /// All.
    pub const ALL: [Self; 15] = [
        Self::Sqlx,
        Self::Refinery,
        Self::Goose,
        Self::Flyway,
        Self::Rails,
        Self::Liquibase,
        Self::Dbmate,
        Self::GolangMigrate,
        Self::Diesel,
        Self::Prisma,
        Self::Supabase,
        Self::Atlas,
        Self::NodePgMigrate,
        Self::Sqitch,
        Self::Plain,
    ];

    /// Whether `adopt` knows its ledger.
    pub const fn is_adopted(self) -> bool {
        matches!(
            self,
            Self::Sqlx | Self::Refinery | Self::Goose | Self::Flyway | Self::Rails
        )
    }

    /// Its name on the command line.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Sqlx => "sqlx",
            Self::Refinery => "refinery",
            Self::Goose => "goose",
            Self::Flyway => "flyway",
            Self::Rails => "rails",
            Self::Liquibase => "liquibase",
            Self::Dbmate => "dbmate",
            Self::GolangMigrate => "golang-migrate",
            Self::Diesel => "diesel",
            Self::Prisma => "prisma",
            Self::Supabase => "supabase",
            Self::Atlas => "atlas",
            Self::NodePgMigrate => "node-pg-migrate",
            Self::Sqitch => "sqitch",
            Self::Plain => "plain",
        }
    }

    /// How it runs a file that says nothing else.
    pub const fn wrapping(self) -> Wrapping {
        match self {
            Self::Sqlx
            | Self::Refinery
            | Self::Goose
            | Self::Liquibase
            | Self::Dbmate
            | Self::Diesel
            | Self::Supabase
            | Self::Atlas
            | Self::NodePgMigrate => Wrapping::Transaction,
            Self::GolangMigrate | Self::Prisma => Wrapping::OneQuery,
            Self::Flyway => Wrapping::AsNeeded,
            Self::Sqitch => Wrapping::Each,
            Self::Rails | Self::Plain => Wrapping::Unknown,
        }
    }

    /// How it runs a file that says that it wants no transaction.
    pub const fn without_transaction(self) -> Wrapping {
        match self {
            // The text goes to the server as it is, in one message.
            Self::Sqlx | Self::Dbmate | Self::Diesel => Wrapping::OneQuery,
            _ => Wrapping::Each,
        }
    }

    /// How a folder of it is read, for who wonders about a finding.
    pub const fn about(self) -> &'static str {
        match self {
            Self::Sqlx | Self::Dbmate | Self::Diesel => {
                "each file is one transaction; without one it is sent as one query"
            }
            Self::Refinery | Self::Supabase | Self::NodePgMigrate => "each file is one transaction",
            Self::Goose => "each file is one transaction, unless it says NO TRANSACTION",
            Self::Atlas => "each file is one transaction, unless it says atlas:txmode none",
            Self::Liquibase => {
                "each changeset is one transaction, unless it says runInTransaction:false"
            }
            Self::Flyway => {
                "each file is one transaction, unless none of its statements can be in one"
            }
            Self::GolangMigrate | Self::Prisma => {
                "each file is sent as one query, so several statements are one transaction"
            }
            Self::Sqitch => "psql runs each deploy script statement by statement",
            Self::Rails => "the structure of a new database",
            Self::Plain => "in the order of their names; what is one transaction is not known",
        }
    }
}

impl fmt::Display for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

impl FromStr for Tool {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|tool| tool.word() == text);
        known.ok_or_else(|| {
            let words: Vec<&str> = Self::ALL.into_iter().map(Self::word).collect();
            let text = text.escape_default();
            format!("`{text}` is none of {}", words.join(", "))
        })
    }
}
