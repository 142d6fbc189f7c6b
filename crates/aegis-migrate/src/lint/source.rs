//! From a path to what is judged together: the phases of a change, or one migration of another tool.
//!
//! Invariants: how many statements of a file run in one transaction is what its tool does, and "nobody knows" for a plain file.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use aegis_catalog::Name;
use aegis_ddl::{Form, SourceFile};

use super::{Judged, MovedRows, Since, Unit, Wrapped, key, of_file, rules, steady, unreadable};
use crate::change::{self, CHANGE_FILE, Change, Part, Phase, Problem, Problems};
use crate::foreign::{self, ForeignFile, Tool};
use crate::lock::LOCK_FILE;
use crate::plan;
use crate::set::Set;

/// What is to be read.
#[derive(Debug, Clone)]
pub struct Input {
    /// A folder or a file.
    pub path: PathBuf,
    /// Whose folder it is, where that was said.
    pub tool: Option<Tool>,
    /// The schema that programs of other tools' folders mean.
    pub schema: String,
}

/// What a path is.
pub(super) enum Kind {
    /// One change.
    Change,
    /// Changes with their lock.
    Set,
    /// Another tool's, or nobody's.
    Foreign(Tool),
}

impl Input {
    pub(super) fn kind(&self) -> Result<Kind, Problems> {
        let path = &self.path;
        if !path.exists() {
            return Err(Problem::of_file(
                path.display().to_string(),
                "there is no such folder or file",
                "name a folder of changes, a folder of migrations, or an .sql file; `aegis migrate new NAME` makes the first change",
            )
            .into());
        }
        if let Some(tool) = self.tool {
            return Ok(Kind::Foreign(tool));
        }
        if path.join(CHANGE_FILE).is_file() {
            return Ok(Kind::Change);
        }
        if path.join(LOCK_FILE).is_file() || holds_changes(path) {
            return Ok(Kind::Set);
        }
        Ok(Kind::Foreign(foreign::detect(path)?.unwrap_or(Tool::Plain)))
    }
}

impl Input {
    /// Whose folder it is read as; none where it holds changes.
    pub fn read_as(&self) -> Result<Option<Tool>, Problems> {
        Ok(match self.kind()? {
            Kind::Change | Kind::Set => None,
            Kind::Foreign(tool) => Some(tool),
        })
    }
}

/// Whether a folder of a change is in it.
pub(crate) fn holds_changes(folder: &Path) -> bool {
    std::fs::read_dir(folder).is_ok_and(|entries| {
        entries
            .filter_map(Result::ok)
            .any(|entry| entry.path().join(CHANGE_FILE).is_file())
    })
}

/// Everything below a path, or what of it was added since a commit.
pub fn read(input: &Input, since: Option<&Since>) -> Result<Vec<Unit>, Problems> {
    match input.kind()? {
        Kind::Change => {
            let folder = std::path::absolute(&input.path).unwrap_or_else(|_| input.path.clone());
            Ok(of_change(&change::load(&folder)?, |_| true)
                .into_iter()
                .collect())
        }
        Kind::Set => {
            let set = Set::read(&input.path)?;
            set.sealed()?;
            of_set(&set, since)
        }
        Kind::Foreign(tool) => {
            let (files, problems) = foreign::read_each(&input.path, tool)?;
            let only = since.map(|since| since.added(&input.path)).transpose()?;
            let mut unit = of_files(files, tool, &input.schema, only.as_ref());
            let is_new = |problem: &&Problem| {
                let mut paths = only.iter().flatten();
                only.is_none() || paths.any(|path| path.display().to_string() == problem.file)
            };
            unit.told
                .extend(problems.iter().filter(is_new).map(not_read));
            Ok(vec![unit])
        }
    }
}

fn of_set(set: &Set, since: Option<&Since>) -> Result<Vec<Unit>, Problems> {
    let before = match since {
        Some(since) => since.lock(Path::new(set.root()))?,
        None => None,
    };
    let mut units = Vec::new();
    let mut made = BTreeSet::new();
    for change in set.changes.values() {
        // Old lines were judged when they were new.
        let is_new = |phase| {
            let at = change::PhaseOf {
                id: change.id.clone(),
                phase,
            };
            before.as_ref().is_none_or(|lock| lock.line(&at).is_none())
        };
        if let Some(mut unit) = of_change(change, is_new) {
            unit.files
                .iter_mut()
                .for_each(|file| known_made(file, &change.schema, &made));
            units.push(unit);
        }
        for phase in [Phase::Expand, Phase::Migrate] {
            for part in change.parts(phase) {
                let Part::Sql { key, file } = part else {
                    continue;
                };
                if let Ok(file) = plan::script(change, key, file) {
                    made.extend(makes(&file, &change.schema));
                }
            }
        }
    }
    Ok(units)
}

/// The tables that a file makes.
fn makes(file: &SourceFile, schema: &str) -> Vec<Name> {
    let statements = file.script.statements.iter();
    statements
        .filter_map(|statement| match &statement.form {
            Form::CreateTable(table) => Some(table.table.resolve(schema)),
            _ => None,
        })
        .collect()
}

/// With IF NOT EXISTS over a table that an earlier change has made, a statement does nothing, and the table is in use.
fn known_made(file: &mut SourceFile, schema: &str, made: &BTreeSet<Name>) {
    for statement in &mut file.script.statements {
        if let Form::CreateTable(table) = &statement.form
            && table.if_not_exists
            && made.contains(&table.table.resolve(schema))
        {
            statement.form = Form::Select {
                locks_rows: false,
                calls: Vec::new(),
            };
        }
    }
}

/// The phases of a change that are meant; none where it has no SQL in them.
pub(super) fn of_change(change: &Change, keep: impl Fn(Phase) -> bool) -> Option<Unit> {
    // A baseline runs on a fresh database only, and is recorded everywhere else.
    let fresh = change.baseline.is_some();
    let mut files = Vec::new();
    let mut told = Vec::new();
    let mut compatible = Vec::new();
    for phase in [Phase::Expand, Phase::Migrate, Phase::Contract] {
        if !keep(phase) {
            continue;
        }
        compatible.extend(change.overrides(phase));
        for part in change.parts(phase) {
            if let Part::Sql { key, file } = part {
                match plan::script(change, key, file) {
                    Ok(file) => files.push(file),
                    Err(error) => told.push(unreadable(&file.path, &error)),
                }
            }
        }
        if let Err(problem) = plan::verify(change, phase) {
            let line = problem.line.unwrap_or(1);
            let safe = "queries that each give one row `true`";
            told.push(of_file(
                &problem.file,
                line,
                "unreadable",
                &problem.what,
                safe,
            ));
        }
    }
    if keep(Phase::Migrate) {
        told.extend(key::without_range(change));
    }
    if keep(Phase::Expand) {
        told.extend(steady::moving(change));
    }
    (!files.is_empty() || !told.is_empty() || change.backfill.is_some()).then(|| Unit {
        files,
        schema: change.schema.clone(),
        compatible,
        fresh,
        quiet: BTreeSet::new(),
        document: Some(format!("{}/{CHANGE_FILE}", change.path)),
        rows: keep(Phase::Migrate)
            .then(|| MovedRows::of(change))
            .flatten(),
        wrapped: Vec::new(),
        told,
    })
}

/// A file that is no SQL, or whose place in the order is not sure.
fn not_read(problem: &Problem) -> Judged {
    let safe = rules::find("unreadable").map_or("", |rule| rule.safe);
    let said = format!("{}; {}", problem.what, problem.help);
    of_file(
        &problem.file,
        problem.line.unwrap_or(1),
        "unreadable",
        &said,
        safe,
    )
}

/// All files of a folder in their order, as one unit: the judge deploys them one by one, so what an earlier one made is live, and its
/// types and proofs are known.
fn of_files(
    files: Vec<ForeignFile>,
    tool: Tool,
    schema: &str,
    only: Option<&BTreeSet<PathBuf>>,
) -> Unit {
    let mut read = Vec::with_capacity(files.len());
    let mut all_wrapped = Vec::with_capacity(files.len());
    let mut quiet = BTreeSet::new();
    let mut told = Vec::new();
    for file in files {
        let path = file.path.display().to_string();
        if only.is_some_and(|only| !only.contains(&file.path)) {
            quiet.insert(path.clone());
        }
        let wrapped = Wrapped {
            tool,
            wrapping: file.wrapping,
            notes: file.notes,
        };
        match aegis_ddl::read(&file.text) {
            Ok(script) => {
                read.push(SourceFile {
                    path,
                    atomic: wrapped.is_atomic(&script.statements),
                    script,
                    phase: None,
                    proven: false,
                });
                all_wrapped.push(wrapped);
            }
            Err(error) => told.push(unreadable(&path, &error)),
        }
    }
    Unit {
        files: read,
        schema: schema.to_owned(),
        compatible: Vec::new(),
        fresh: tool == Tool::Rails,
        document: None,
        quiet,
        rows: None,
        wrapped: all_wrapped,
        told,
    }
}
