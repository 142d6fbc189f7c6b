//! `lint --fix`: changes edited until nothing more of them is sure to be better. One statement at a time, the first that may not run
//! where it stands, judged again after each step.
//!
//! Invariants: a phase that stands in the lock is never edited, nor a file of it; what the last step leaves is a change that can be
//! read, or nothing is written; running it again changes nothing; what it could not mend is told with its place.
//!
//! Never: a reason that the author did not give, and a statement that gives another structure in the end.

mod beside;
mod document;
mod text;

use std::collections::BTreeSet;
use std::path::Path;

use aegis_ddl::fix::{Fix, Piece, Place, Taken, fix, makes};
use aegis_ddl::form::{Action, ConstraintKind, Form};
use aegis_ddl::{Compatible, Context, SourceFile, Statement, Verdict};

use crate::change::{self, CHANGE_FILE, Change, Files, Part, Phase, PhaseOf, Problem, Problems};
use crate::lint::{Known, holds_changes};
use crate::lock::{LOCK_FILE, LockFile};
use crate::plan;
use crate::set::Set;
use document::Toml;
use text::SqlText;

/// Steps of one change, each of which changes something.
const STEPS_MAX: usize = 10_000;

/// What was done to a folder of changes.
#[derive(Debug, Default)]
pub struct Fixed {
    /// Files with their new text; `None`: it went.
    pub files: Vec<(String, Option<String>)>,
    /// What is left to a person.
    pub told: Vec<Told>,
}

/// Something that was not mended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    /// The file.
    pub file: String,
    /// From 1.
    pub line: usize,
    /// What is wrong, and what to do.
    pub what: String,
}

/// Mends the changes below a path, or the one change that it is, and writes what is different.
pub fn run(path: &Path, known: Known<'_>) -> Result<Fixed, Problems> {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    let (root, only) = if path.join(CHANGE_FILE).is_file() {
        let name = path.file_name().and_then(|name| name.to_str());
        let parent = path.parent().unwrap_or(Path::new("/"));
        (parent.to_path_buf(), name.map(str::to_owned))
    } else if holds_changes(&path) {
        (path, None)
    } else {
        return Err(Problem::of_file(
            path.display().to_string(),
            "there is no change in it, and --fix edits nothing else",
            "`aegis migrate adopt` takes the folder of another tool over; write what is new as a change",
        )
        .into());
    };
    let mut files = match &only {
        Some(name) => Files::read_one(&root, name)?,
        None => Files::read(&root)?,
    };
    let lock = lock_of(&root)?;
    let folders: Vec<String> = if let Some(name) = only {
        vec![name]
    } else {
        let set = Set::of(files.clone())?;
        set.sealed()?;
        set.changes.keys().map(ToString::to_string).collect()
    };
    let before = files.clone();
    let mut fixed = Fixed::default();
    // Of one change the others beside it are only looked at.
    let beside = match folders.as_slice() {
        [_] => Files::read(&root).ok(),
        _ => None,
    };
    for folder in &folders {
        let taken = beside::taken_before(beside.as_ref().unwrap_or(&files), folder, known);
        fixed
            .told
            .extend(of_change(&mut files, folder, &lock, known, &taken)?);
    }
    let names: BTreeSet<&str> = before.names().chain(files.names()).collect();
    for name in names {
        if before.get(name) != files.get(name) {
            let text = files
                .get(name)
                .map(|bytes| String::from_utf8_lossy(bytes).into_owned());
            write(&root.join(name), text.as_deref())?;
            fixed.files.push((files.name_of(name), text));
        }
    }
    Ok(fixed)
}

fn lock_of(root: &Path) -> Result<LockFile, Problems> {
    let path = root.join(LOCK_FILE);
    if !path.is_file() {
        return Ok(LockFile::default());
    }
    let shown = path.display().to_string();
    let text = std::fs::read_to_string(&path).map_err(|error| {
        Problem::of_file(
            &shown,
            format!("it cannot be read: {error}"),
            "make it readable",
        )
    })?;
    LockFile::parse(&text, &shown)
}

fn write(path: &Path, text: Option<&str>) -> Result<(), Problem> {
    let done = match text {
        Some(text) => std::fs::write(path, text),
        None => std::fs::remove_file(path),
    };
    done.map_err(|error| {
        Problem::of_file(
            path.display().to_string(),
            format!("it cannot be written: {error}"),
            "make the folder writable, and run --fix again",
        )
    })
}

/// Steps until none is left; what could not be mended.
fn of_change(
    files: &mut Files,
    folder: &str,
    lock: &LockFile,
    known: Known<'_>,
    taken: &Taken,
) -> Result<Vec<Told>, Problems> {
    let mut skipped = BTreeSet::new();
    for _ in 0..STEPS_MAX {
        let change = change::read(files, folder)?;
        if change.baseline.is_some() {
            return Ok(Vec::new());
        }
        let unread = unreadable(&change);
        if !unread.is_empty() {
            return Ok(unread);
        }
        if !step(files, &change, lock, (known, taken), &mut skipped)? {
            overrides(files, &change, lock, known)?;
            return told(files, folder, lock, known);
        }
    }
    told(files, folder, lock, known)
}

/// The files of a change that are no SQL. What stands beside them is not edited: nobody knows what it meets.
fn unreadable(change: &Change) -> Vec<Told> {
    let mut told = Vec::new();
    for phase in Phase::ALL {
        for part in change.parts(phase) {
            if let Part::Sql { key, file } = part
                && let Err(problem) = plan::source(change, key, file)
            {
                told.push(Told {
                    file: problem.file,
                    line: problem.line.unwrap_or(1),
                    what: format!(
                        "{}; mend it first: nothing in this change was edited",
                        problem.what
                    ),
                });
            }
        }
    }
    told
}

/// A file of a change with its key, and its verdicts.
struct Judged {
    key: &'static str,
    name: String,
    text: String,
    source: SourceFile,
    verdicts: Vec<Verdict>,
}

fn judged(change: &Change, known: Known<'_>) -> Result<Vec<Judged>, Problems> {
    let mut files = Vec::new();
    for phase in Phase::ALL {
        for part in change.parts(phase) {
            if let Part::Sql { key, file } = part {
                files.push(Judged {
                    key,
                    name: file.name.clone(),
                    text: file.text.clone(),
                    source: plan::source(change, key, file)?,
                    verdicts: Vec::new(),
                });
            }
        }
    }
    let sources: Vec<SourceFile> = files.iter().map(|file| file.source.clone()).collect();
    let compatible = compatible(change);
    let report = aegis_ddl::judge(&sources, &context(change, known, &compatible));
    let mut verdicts = report.verdicts.into_iter();
    for file in &mut files {
        let count = file.source.script.statements.len();
        file.verdicts = verdicts.by_ref().take(count).collect();
    }
    Ok(files)
}

fn compatible(change: &Change) -> Vec<Compatible> {
    [Phase::Expand, Phase::Migrate]
        .into_iter()
        .flat_map(|phase| change.overrides(phase))
        .collect()
}

fn context<'a>(change: &'a Change, known: Known<'a>, compatible: &'a [Compatible]) -> Context<'a> {
    Context {
        server: known.server,
        catalog: known.catalog,
        schema: &change.schema,
        fresh: false,
        compatible,
    }
}

fn phase_of(key: &str) -> Phase {
    match key.split_once('.').map(|(section, _)| section) {
        Some("migrate") => Phase::Migrate,
        Some("contract") => Phase::Contract,
        _ => Phase::Expand,
    }
}

fn is_sealed(change: &Change, phase: Phase, lock: &LockFile) -> bool {
    let at = PhaseOf {
        id: change.id.clone(),
        phase,
    };
    lock.line(&at).is_some()
}

/// Mends the first statement that can be. False: there is none.
fn step(
    files: &mut Files,
    change: &Change,
    lock: &LockFile,
    (known, taken): (Known<'_>, &Taken),
    skipped: &mut BTreeSet<(String, String)>,
) -> Result<bool, Problems> {
    let compatible = compatible(change);
    let context = context(change, known, &compatible);
    let all = judged(change, known)?;
    for (place_of_file, file) in all.iter().enumerate() {
        let phase = phase_of(file.key);
        if is_sealed(change, phase, lock) {
            continue;
        }
        for (number, statement) in file.source.script.statements.iter().enumerate() {
            let verdict = &file.verdicts[number];
            if verdict.passes || skipped.contains(&(file.name.clone(), statement.text.clone())) {
                continue;
            }
            let at = (place_of_file, number);
            let taken = beside::taken_for(taken, &all, at, &change.schema);
            let Fix::Pieces(pieces) = fix(statement, verdict, &context, &taken) else {
                continue;
            };
            if beside::is_bound(&all, at, &context) {
                skipped.insert((file.name.clone(), statement.text.clone()));
                continue;
            }
            let keys: Vec<&'static str> = pieces
                .iter()
                .map(|piece| place(change, file.key, piece.place))
                .collect();
            let sealed = keys
                .iter()
                .any(|key| is_sealed(change, phase_of(key), lock));
            let same = pieces.len() == 1 && pieces[0].text == statement.text && keys[0] == file.key;
            if sealed || same {
                skipped.insert((file.name.clone(), statement.text.clone()));
                continue;
            }
            apply(files, change, file, number, &pieces, &keys)?;
            return Ok(true);
        }
    }
    Ok(false)
}

/// The key of the file that a piece goes to.
fn place(change: &Change, from: &'static str, place: Place) -> &'static str {
    let phase = phase_of(from);
    match place {
        Place::Here => from,
        _ if phase == Phase::Contract => from,
        Place::Tighten if change.contract.is_some() => "contract.tighten",
        Place::Tighten | Place::Contract => "contract.sql",
        Place::Migrate | Place::Late if phase == Phase::Migrate => from,
        Place::Late if change.backfill.is_some() => "migrate.after_backfill",
        Place::Migrate | Place::Late => "migrate.sql",
    }
}

fn apply(
    files: &mut Files,
    change: &Change,
    file: &Judged,
    number: usize,
    pieces: &[Piece],
    keys: &[&'static str],
) -> Result<(), Problems> {
    let statements = &file.source.script.statements;
    let mut sql = SqlText::of(&file.text, &file.source.script);
    // What depends on what moves, moves behind it.
    let follows = followers(statements, number, pieces, keys, file.key);
    let mut moved: Vec<(&'static str, String, Vec<String>)> = Vec::new();
    let here: Vec<String> = pieces
        .iter()
        .zip(keys)
        .filter(|(_, key)| **key == file.key)
        .map(|(piece, _)| piece.text.clone())
        .collect();
    for follower in follows.iter().rev() {
        let comment = sql.replace(*follower, &[]);
        let text = statements[*follower].text.clone();
        if let Some(key) = keys.iter().rev().find(|key| **key != file.key) {
            moved.insert(0, (key, comment, vec![text]));
        }
    }
    let comment = sql.replace(number, &here);
    let mut of_statement: Vec<(&'static str, String, Vec<String>)> = Vec::new();
    for (piece, key) in pieces.iter().zip(keys).filter(|(_, key)| **key != file.key) {
        match of_statement.last_mut().filter(|(last, _, _)| last == key) {
            Some((_, _, texts)) => texts.push(piece.text.clone()),
            None => of_statement.push((key, String::new(), vec![piece.text.clone()])),
        }
    }
    if let Some((_, first, _)) = of_statement.first_mut() {
        *first = comment;
    }
    of_statement.extend(moved);
    let path = format!("{}/{CHANGE_FILE}", change.id);
    let document = String::from_utf8_lossy(files.get(&path).unwrap_or_default()).into_owned();
    let mut toml = Toml::parse(&document, &files.name_of(&path))?;
    for (key, comment, texts) in of_statement {
        let name = toml
            .file_of(key)
            .unwrap_or_else(|| free_name(files, change, key));
        let whole = format!("{}/{name}", change.id);
        let old = String::from_utf8_lossy(files.get(&whole).unwrap_or_default()).into_owned();
        files.put(&whole, Some(text::append(&old, &comment, &texts)));
        toml.name_file(key, &name);
    }
    let own = format!("{}/{}", change.id, file.name);
    if sql.is_empty() {
        toml.forget_file_but_keep_reasons(file.key);
        files.put(&own, None);
    } else {
        files.put(&own, Some(sql.render()));
    }
    files.put(&path, Some(toml.text()));
    Ok(())
}

/// A name for a new file that no file has.
fn free_name(files: &Files, change: &Change, key: &str) -> String {
    let base = match key {
        "migrate.sql" => "migrate",
        "migrate.after_backfill" => "after_backfill",
        "contract.tighten" => "tighten",
        _ => "contract",
    };
    let there = |name: &str| files.get(&format!("{}/{name}", change.id)).is_some();
    let mut name = format!("{base}.sql");
    let mut number = 1_u32;
    while there(&name) {
        number += 1;
        name = format!("{base}_{number}.sql");
    }
    name
}

/// Later statements of the file that name an index or a constraint which moves, or point a foreign key at a key which moves.
fn followers(
    statements: &[Statement],
    number: usize,
    pieces: &[Piece],
    keys: &[&'static str],
    from: &str,
) -> Vec<usize> {
    let mut names: BTreeSet<String> = BTreeSet::new();
    let mut tables = BTreeSet::new();
    for (piece, _) in pieces.iter().zip(keys).filter(|(_, key)| **key != from) {
        let Ok(script) = aegis_ddl::read(&piece.text) else {
            continue;
        };
        for statement in &script.statements {
            names.extend(makes(statement));
            tables.extend(key_of(statement));
        }
    }
    // What is only dropped or validated makes nothing that others need.
    if matches!(pieces.first(), Some(piece) if piece.place == Place::Contract) {
        return Vec::new();
    }
    let mut found = Vec::new();
    for (later, statement) in statements.iter().enumerate().skip(number + 1) {
        let plain = statement.normalised();
        let words: BTreeSet<&str> = plain
            .split(|one: char| !(one.is_alphanumeric() || one == '_' || one == '$'))
            .collect();
        let points = points_at(statement)
            .iter()
            .any(|table| tables.contains(table));
        if points || names.iter().any(|name| words.contains(name.as_str())) {
            names.extend(makes(statement));
            tables.extend(key_of(statement));
            found.push(later);
        }
    }
    found
}

/// The table whose key a statement makes.
fn key_of(statement: &Statement) -> Option<String> {
    match &statement.form {
        Form::CreateIndex(index) if index.unique => Some(index.table.name.clone()),
        Form::AlterTable { table, actions } => actions
            .iter()
            .any(|action| {
                matches!(action, Action::AddConstraint { constraint }
                    if matches!(constraint.kind, ConstraintKind::Unique { .. } | ConstraintKind::PrimaryKey { .. }))
            })
            .then(|| table.name.clone()),
        _ => None,
    }
}

/// Tables that a statement's foreign keys point at.
fn points_at(statement: &Statement) -> Vec<String> {
    match &statement.form {
        Form::AlterTable { actions, .. } => actions
            .iter()
            .filter_map(|action| match action {
                Action::AddConstraint { constraint } => match &constraint.kind {
                    ConstraintKind::ForeignKey { references } => {
                        Some(references.table.name.clone())
                    }
                    _ => None,
                },
                Action::AddColumn { column, .. } => {
                    column.references.as_ref().map(|at| at.table.name.clone())
                }
                _ => None,
            })
            .collect(),
        Form::CreateTable(table) => table
            .references
            .iter()
            .map(|at| at.table.name.clone())
            .collect(),
        _ => Vec::new(),
    }
}

/// Reasons go with the statements that they are for.
fn overrides(
    files: &mut Files,
    change: &Change,
    lock: &LockFile,
    known: Known<'_>,
) -> Result<(), Problems> {
    if is_sealed(change, Phase::Expand, lock) || is_sealed(change, Phase::Migrate, lock) {
        return Ok(());
    }
    let path = format!("{}/{CHANGE_FILE}", change.id);
    let document = String::from_utf8_lossy(files.get(&path).unwrap_or_default()).into_owned();
    let mut toml = Toml::parse(&document, &files.name_of(&path))?;
    let (expand, migrate) = (toml.compatible("expand"), toml.compatible("migrate"));
    let all = judged(change, known)?;
    let speaks = |phase: Phase, rule: &str| {
        all.iter()
            .filter(|file| phase_of(file.key) == phase)
            .flat_map(|file| &file.verdicts)
            .flat_map(|verdict| &verdict.findings)
            .any(|finding| finding.rule == rule)
    };
    for (rule, reason) in &expand {
        let in_migrate = speaks(Phase::Migrate, rule);
        if in_migrate && !migrate.iter().any(|(known, _)| known == rule) {
            toml.add_compatible("migrate", rule, reason);
        }
        if in_migrate && !speaks(Phase::Expand, rule) {
            toml.remove_compatible("expand", rule);
        }
    }
    // The CHECK that proves NOT NULL refuses what NOT NULL refuses: the same reason holds.
    let reason = expand
        .iter()
        .chain(&migrate)
        .find(|(rule, _)| rule == "set-not-null");
    let is_there = toml
        .compatible("migrate")
        .iter()
        .any(|(rule, _)| rule == "new-write-restriction");
    if let Some((_, reason)) = reason
        && speaks(Phase::Migrate, "set-not-null")
        && speaks(Phase::Migrate, "new-write-restriction")
        && !is_there
    {
        toml.add_compatible("migrate", "new-write-restriction", reason);
    }
    let text = toml.text();
    if text != document {
        files.put(&path, Some(text));
        change::read(files, change.id.as_str())?;
    }
    Ok(())
}

/// What is left to a person.
fn told(
    files: &Files,
    folder: &str,
    lock: &LockFile,
    known: Known<'_>,
) -> Result<Vec<Told>, Problems> {
    let change = change::read(files, folder)?;
    let compatible = compatible(&change);
    let context = context(&change, known, &compatible);
    let mut told = Vec::new();
    let all = judged(&change, known)?;
    for (place_of_file, file) in all.iter().enumerate() {
        let statements = file.source.script.statements.iter().zip(&file.verdicts);
        for (number, (statement, verdict)) in statements.enumerate() {
            if verdict.passes {
                continue;
            }
            let mut what: Vec<String> = verdict
                .findings
                .iter()
                .filter(|finding| {
                    finding.overridden.is_none() && finding.level > aegis_ddl::Level::Notice
                })
                .map(|finding| format!("[{}] {}: {}", finding.rule, finding.message, finding.safe))
                .collect();
            if is_sealed(&change, phase_of(file.key), lock) {
                what.insert(0, "it is sealed: a new change has to mend it".to_owned());
            } else if beside::is_bound(&all, (place_of_file, number), &context) {
                what.insert(0, beside::BOUND.to_owned());
            } else if let Fix::Told(why) = fix(statement, verdict, &context, &Taken::default()) {
                // What is to be copied stands last, on lines of its own.
                if why.contains('\n') {
                    let said = what.join("; ");
                    what = vec![format!("{said}\n{why}")];
                } else {
                    what.insert(0, why);
                }
            } else if what.is_empty() {
                what.push(verdict.class.meaning().to_owned());
            }
            told.push(Told {
                file: verdict.file.clone(),
                line: verdict.line,
                what: what.join("; "),
            });
        }
    }
    Ok(told)
}
