//! The rules of a change that its form cannot say: names, files, and what belongs together.
//!
//! Invariants: all that is wrong is told, each with its key and line.
//!
//! Never: a rule about what a statement does; that is judged from the statement.

use std::collections::BTreeSet;

mod data;
mod end;

use super::document::is_sql;
use super::id::Phase;
use super::locate::Located;
use super::problem::Problem;
use super::{CHANGE_FILE, Change, Files};
use crate::ledger::belongs_to;

/// The longest name in PostgreSQL.
const NAME_BYTES_MAX: usize = 63;

/// A file that a key names.
pub(super) struct Named<'a> {
    pub(super) key: &'static str,
    pub(super) file: &'a str,
    pub(super) phase: Phase,
}

/// All files that a change names.
pub(super) fn named(change: &Change) -> Vec<Named<'_>> {
    let expand = change.expand.as_ref();
    let migrate = change.migrate.as_ref();
    let contract = change.contract.as_ref();
    let keys = [
        (
            Phase::Expand,
            "expand.sql",
            expand.and_then(|e| e.sql.as_deref()),
        ),
        (
            Phase::Expand,
            "expand.opaque.verify",
            expand
                .and_then(|e| e.opaque.as_ref())
                .map(|o| o.verify.as_str()),
        ),
        (
            Phase::Migrate,
            "migrate.sql",
            migrate.and_then(|m| m.sql.as_deref()),
        ),
        (
            Phase::Migrate,
            "migrate.after_backfill",
            migrate.and_then(|m| m.after_backfill.as_deref()),
        ),
        (
            Phase::Migrate,
            "migrate.opaque.verify",
            migrate
                .and_then(|m| m.opaque.as_ref())
                .map(|o| o.verify.as_str()),
        ),
        (
            Phase::Migrate,
            "backfill.statement",
            change
                .backfill
                .as_ref()
                .and_then(|b| b.statement.as_deref()),
        ),
        (
            Phase::Migrate,
            "reconcile.sql",
            change.reconcile.as_ref().and_then(|r| r.sql.as_deref()),
        ),
        (
            Phase::Contract,
            "contract.tighten",
            contract.and_then(|c| c.tighten.as_deref()),
        ),
        (
            Phase::Contract,
            "contract.sql",
            contract.map(|c| c.sql.as_str()),
        ),
        (
            Phase::Contract,
            "contract.opaque.verify",
            contract
                .and_then(|c| c.opaque.as_ref())
                .map(|o| o.verify.as_str()),
        ),
    ];
    keys.into_iter()
        .filter_map(|(phase, key, file)| file.map(|file| Named { key, file, phase }))
        .collect()
}

/// Adds what is wrong to `problems`.
pub(super) fn rules(
    change: &Change,
    files: &Files,
    located: &Located<'_>,
    problems: &mut Vec<Problem>,
) {
    let mut rules = Rules {
        change,
        path: format!("{}/{CHANGE_FILE}", change.path),
        located,
        problems,
    };
    rules.names();
    rules.files(files);
    rules.phases();
    rules.baseline();
    rules.reasons();
    rules.sync();
    rules.backfill();
    rules.throttle();
    rules.reconcile();
    rules.switch();
    rules.contract();
}

struct Rules<'a> {
    change: &'a Change,
    path: String,
    located: &'a Located<'a>,
    problems: &'a mut Vec<Problem>,
}

impl Rules<'_> {
    fn refuse(&mut self, key: &str, what: impl Into<String>, help: &str) {
        let mut problem = Problem::of_file(&self.path, what, help);
        problem.line = self.located.line(key);
        problem.key = Some(key.to_owned());
        self.problems.push(problem);
    }

    /// A name as the catalog has it.
    fn name(&mut self, key: &str, name: &str) {
        if name.is_empty() || name.len() > NAME_BYTES_MAX || name.contains('\0') {
            let what = format!("`{}` has {} bytes", name.escape_default(), name.len());
            self.refuse(
                key,
                what,
                "write a name of 1 to 63 bytes as the catalog has it, without quotes",
            );
        } else if name.len() > 1 && name.starts_with('"') && name.ends_with('"') {
            let what = format!("{name} has quotes around it");
            self.refuse(
                key,
                what,
                "write the name as the catalog has it; quotes are added where they are needed",
            );
        }
    }

    fn list(&mut self, key: &str, names: &[String], what_for: &str) {
        if names.is_empty() {
            self.refuse(key, "the list is empty", what_for);
        }
        let mut seen = BTreeSet::new();
        for name in names {
            self.name(key, name);
            if !seen.insert(name) {
                self.refuse(key, format!("`{name}` stands there twice"), "write it once");
            }
        }
    }

    fn names(&mut self) {
        self.name("schema", &self.change.schema);
        let schema = &self.change.schema;
        if let Some(whose) = belongs_to(schema) {
            let what = format!("`{schema}` belongs to {whose}");
            self.refuse("schema", what, "write the schema of the application");
        }
        if let Some(role) = &self.change.run_as {
            self.name("run_as", role);
        }
        let id = &self.change.id;
        if self.change.requires.iter().any(|at| at.id == *id) {
            self.refuse(
                "requires",
                "a change cannot require itself",
                "its phases come in their order by themselves; remove the line",
            );
        }
    }

    fn files(&mut self, files: &Files) {
        let mut used = BTreeSet::new();
        for Named { key, file, .. } in named(self.change) {
            if file.contains(['/', '\\']) || !is_sql(file) {
                let what =
                    format!("`{file}` is not the name of an .sql file in the change's folder");
                self.refuse(key, what, "write the bare name, such as expand.sql");
                continue;
            }
            if !used.insert(file.to_owned()) {
                let what = format!("`{file}` is named by another key too");
                self.refuse(
                    key,
                    what,
                    "each file has one place; give each key a file of its own",
                );
            }
            // One that is there and is not UTF-8 was told.
            let there = files.get(&format!("{}/{file}", self.change.id)).is_some();
            match self.change.file(file) {
                None if !there => {
                    let what = format!("there is no file `{file}` in {}", self.change.path);
                    self.refuse(key, what, "write it, or remove the key");
                }
                Some(sql) if sql.text.trim().is_empty() => {
                    let what = format!("`{file}` is empty");
                    self.refuse(
                        key,
                        what,
                        "write its statements, or remove the file and the key",
                    );
                }
                _ => {}
            }
        }
        for name in files.below(self.change.id.as_str()) {
            if is_sql(name) && !used.contains(name) {
                self.problems.push(Problem::of_file(
                    format!("{}/{name}", self.change.path),
                    "change.toml does not name it, so it would never run",
                    "name it in change.toml, or move it away; there are no down files: write what goes back as a change of its own",
                ));
            }
        }
    }

    fn phases(&mut self) {
        if !Phase::ALL.into_iter().any(|phase| self.change.has(phase)) {
            self.problems.push(Problem::of_file(
                &self.path,
                "the change does nothing",
                "write at least one of [expand], [migrate], [sync], [backfill], [contract]",
            ));
        }
        if self
            .change
            .expand
            .as_ref()
            .is_some_and(|expand| expand.sql.is_none())
        {
            self.refuse("expand", "it names no file", "write sql = \"expand.sql\"");
        }
        if let Some(migrate) = &self.change.migrate
            && migrate.sql.is_none()
            && migrate.after_backfill.is_none()
        {
            self.refuse("migrate", "it names no file", "write sql = \"migrate.sql\"");
        }
        if self
            .change
            .migrate
            .as_ref()
            .is_some_and(|migrate| migrate.after_backfill.is_some())
            && self.change.backfill.is_none()
        {
            self.refuse(
                "migrate.after_backfill",
                "there is no [backfill] that it could come after",
                "call it sql",
            );
        }
    }

    /// What was there before is structure, and nothing that moves data or ends a version.
    fn baseline(&mut self) {
        let change = self.change;
        let Some(baseline) = &change.baseline else {
            if change.squashed.is_some() {
                self.refuse(
                    "baseline",
                    "there is a squashed.lock, and no [baseline]",
                    "put change.toml back as `aegis migrate squash` wrote it",
                );
            }
            return;
        };
        let is_squash = baseline.from == "changes";
        if !is_squash && baseline.from.parse::<crate::foreign::Tool>().is_err() {
            let what = format!("`{}` is no tool", baseline.from);
            self.refuse(
                "baseline.from",
                what,
                "write changes, sqlx, refinery, goose, flyway, rails or plain",
            );
        }
        if is_squash != change.squashed.is_some() {
            self.refuse(
                "baseline.from",
                "squashed.lock and from = \"changes\" belong together",
                "put the folder back as `aegis migrate squash` wrote it",
            );
        }
        if change.expand.is_none()
            || change.sync.is_some()
            || change.has(Phase::Migrate)
            || change.has(Phase::Contract)
        {
            self.refuse(
                "baseline",
                "a baseline has [expand] and nothing else",
                "write what is new into a change of its own",
            );
        }
    }

    fn reasons(&mut self) {
        let change = self.change;
        let overrides = [
            ("expand.compatible", change.compatible(Phase::Expand)),
            ("migrate.compatible", change.compatible(Phase::Migrate)),
        ];
        for (key, rules) in overrides {
            let mut seen = BTreeSet::new();
            for one in rules {
                if one.reason.trim().is_empty() {
                    let what = format!("the reason for `{}` is blank", one.rule);
                    self.refuse(key, what, "say why the previous version lives with it");
                }
                if !seen.insert(one.rule.as_str()) {
                    let what = format!("`{}` stands there twice", one.rule);
                    self.refuse(key, what, "write it once");
                }
            }
        }
        for (key, phase) in [
            ("expand.opaque", Phase::Expand),
            ("migrate.opaque", Phase::Migrate),
            ("contract.opaque", Phase::Contract),
        ] {
            if change
                .opaque(phase)
                .is_some_and(|opaque| opaque.reason.trim().is_empty())
            {
                self.refuse(
                    key,
                    "the reason is blank",
                    "say why it cannot be written as plain statements",
                );
            }
        }
    }
}
