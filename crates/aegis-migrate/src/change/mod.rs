//! A change: a folder with `change.toml` and SQL files, read and checked as a whole.
//!
//! Invariants: a [`Change`] that exists is valid; its id is its folder's name; every file that it names is there and every SQL
//! file that is there is named; nothing of it decides a class, which is found from the statements.
//!
//! Never: a connection.

mod check;
mod document;
mod duration;
mod files;
mod hash;
mod id;
mod locate;
mod problem;
mod sections;
mod sql_file;

pub use duration::Length;
pub use files::Files;
pub use id::{ChangeId, ID_FORM, Phase, PhaseOf};
pub use problem::{Kind, Problem, Problems};
pub use sections::{
    Backfill, Baseline, Batch, BothChanged, Compatible, Contract, Expand, Migrate, OnUnknown,
    Opaque, Reconcile, Switch, Sync, Throttle,
};
pub use sql_file::{SqlFile, normalised, sha256};

use std::collections::BTreeMap;
use std::path::Path;

use crate::lock::LockFile;

/// The file in each folder.
pub const CHANGE_FILE: &str = "change.toml";

/// Beside the `change.toml` of a squash: the lines of the lock that it has replaced.
pub const SQUASHED_FILE: &str = "squashed.lock";

/// A change that is valid in itself.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// Its name, and its folder's.
    pub id: ChangeId,
    /// The schema; `search_path` is this, then `pg_catalog`.
    pub schema: String,
    /// The role that owns what is made.
    pub run_as: Option<String>,
    /// What must be applied before any of it.
    pub requires: Vec<PhaseOf>,
    /// `[baseline]`.
    pub baseline: Option<Baseline>,
    /// The lines of the lock that a squash has replaced.
    pub squashed: Option<LockFile>,
    /// `[expand]`.
    pub expand: Option<Expand>,
    /// `[migrate]`.
    pub migrate: Option<Migrate>,
    /// `[sync]`.
    pub sync: Option<Sync>,
    /// `[backfill]`.
    pub backfill: Option<Backfill>,
    /// `[throttle]`, with its defaults where there is none.
    pub throttle: Throttle,
    /// `[reconcile]`.
    pub reconcile: Option<Reconcile>,
    /// `[switch]`.
    pub switch: Option<Switch>,
    /// `[contract]`.
    pub contract: Option<Contract>,
    /// How messages call its folder.
    pub path: String,
    files: BTreeMap<String, SqlFile>,
}

/// One thing that a phase does, in the order of execution.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Part<'a> {
    /// Statements of a file.
    Sql {
        /// The key that names it, such as `contract.tighten`.
        key: &'static str,
        /// The file.
        file: &'a SqlFile,
    },
    /// The generated trigger.
    Sync(&'a Sync),
    /// The end of the generated trigger: before the statements that drop what it writes, in one transaction with them.
    EndSync(&'a Sync),
    /// The backfill.
    Backfill(&'a Backfill),
    /// The reconciliation.
    Reconcile(&'a Reconcile),
}

impl Change {
    /// A file that its `change.toml` names.
    pub fn file(&self, name: &str) -> Option<&SqlFile> {
        self.files.get(name)
    }

    /// Whether it has such a phase.
    pub fn has(&self, phase: Phase) -> bool {
        hash::of_phase(self, phase).is_some()
    }

    /// What stands in `migrations.lock` for a phase; `None` where the change has no such phase.
    pub fn sha256(&self, phase: Phase) -> Option<String> {
        hash::of_phase(self, phase)
    }

    /// The table of its backfill.
    pub fn backfill_table(&self) -> Option<&str> {
        let own = self.backfill.as_ref()?.table.as_deref();
        own.or_else(|| self.sync.as_ref().map(|sync| sync.table.as_str()))
    }

    /// Its two sides, as the trigger's generator takes them.
    pub fn sync_rule(&self) -> Option<aegis_backfill::sync::Rule> {
        let sync = self.sync.as_ref()?;
        Some(aegis_backfill::sync::Rule {
            change: self.id.to_string(),
            table: aegis_catalog::Name::new(&self.schema, &sync.table),
            old: sync.old.clone(),
            new: sync.new.clone(),
            reject_both: sync.both_changed == BothChanged::Reject,
            forward: sync.forward.clone(),
            backward: sync.backward.clone(),
        })
    }

    /// What a phase does, in the order of execution.
    pub fn parts(&self, phase: Phase) -> Vec<Part<'_>> {
        let sql = |key, name: Option<&str>| {
            let file = self.file(name?)?;
            Some(Part::Sql { key, file })
        };
        let expand = self.expand.as_ref();
        let migrate = self.migrate.as_ref();
        let contract = self.contract.as_ref();
        let parts = match phase {
            Phase::Expand => vec![
                sql("expand.sql", expand.and_then(|e| e.sql.as_deref())),
                self.sync.as_ref().map(Part::Sync),
            ],
            Phase::Migrate => vec![
                sql("migrate.sql", migrate.and_then(|m| m.sql.as_deref())),
                self.backfill.as_ref().map(Part::Backfill),
                self.reconcile.as_ref().map(Part::Reconcile),
                sql(
                    "migrate.after_backfill",
                    migrate.and_then(|m| m.after_backfill.as_deref()),
                ),
            ],
            Phase::Contract => vec![
                sql(
                    "contract.tighten",
                    contract.and_then(|c| c.tighten.as_deref()),
                ),
                contract.and(self.sync.as_ref()).map(Part::EndSync),
                sql("contract.sql", contract.map(|c| c.sql.as_str())),
            ],
        };
        parts.into_iter().flatten().collect()
    }

    /// The rules that a phase overrides.
    pub fn compatible(&self, phase: Phase) -> &[Compatible] {
        match phase {
            Phase::Expand => self
                .expand
                .as_ref()
                .map_or(&[], |expand| &expand.compatible),
            Phase::Migrate => self
                .migrate
                .as_ref()
                .map_or(&[], |migrate| &migrate.compatible),
            Phase::Contract => &[],
        }
    }

    /// The same, as the judge takes them.
    pub(crate) fn overrides(&self, phase: Phase) -> Vec<aegis_ddl::Compatible> {
        self.compatible(phase)
            .iter()
            .map(|one| aegis_ddl::Compatible {
                rule: one.rule.clone(),
                reason: one.reason.clone(),
                phase: Some(match phase {
                    Phase::Expand => aegis_ddl::Phase::Expand,
                    Phase::Migrate => aegis_ddl::Phase::Migrate,
                    Phase::Contract => aegis_ddl::Phase::Contract,
                }),
            })
            .collect()
    }

    /// How opaque SQL of a phase is proven.
    pub fn opaque(&self, phase: Phase) -> Option<&Opaque> {
        match phase {
            Phase::Expand => self.expand.as_ref()?.opaque.as_ref(),
            Phase::Migrate => self.migrate.as_ref()?.opaque.as_ref(),
            Phase::Contract => self.contract.as_ref()?.opaque.as_ref(),
        }
    }

    /// The files that a phase names, in the order of their names.
    pub(crate) fn files_of(&self, phase: Phase) -> Vec<&SqlFile> {
        let names = check::named(self).into_iter();
        let mut of_phase: Vec<_> = names
            .filter(|named| named.phase == phase)
            .filter_map(|named| self.file(named.file))
            .collect();
        of_phase.sort_by(|a, b| a.name.cmp(&b.name));
        of_phase.dedup_by(|a, b| a.name == b.name);
        of_phase
    }
}

/// Reads the change of a folder.
pub fn load(folder: &Path) -> Result<Change, Problems> {
    let name = folder
        .file_name()
        .and_then(|name| name.to_str())
        .unwrap_or_default();
    let parent = folder.parent().unwrap_or_else(|| Path::new(""));
    let files = Files::read_one(parent, name)?;
    read(&files, name)
}

/// The change in a folder of `files`.
pub fn read(files: &Files, folder: &str) -> Result<Change, Problems> {
    document::read(files, folder)
}
