//! `lint`: folders and files of anybody, each statement with its class, its locks, and what waits behind them.
//!
//! Invariants: a class comes from the judge and from nobody else; a file that cannot be read as SQL is a finding and never passes, and the others are judged all the same; a
//! size or a rate that nobody knows is absent, not small. Each change is judged as a set of its own; the
//! files of another tool are deployed one by one, so what an earlier one made is live and its types and proofs are known.
//!
//! Never: a write, or a connection.

mod base;
mod key;
mod made;
mod place;
mod sarif;
mod sound;
mod source;
mod steady;
mod table;
mod wrapped;

use std::collections::BTreeSet;

use aegis_catalog::Catalog;
use aegis_ddl::{
    Class, Compatible, Context, Level, Phase, Report, SourceFile, SyntaxError, Verdict,
};
use serde::Serialize;

use crate::change::Problems;

pub use aegis_ddl::{Finding, rules};
pub use base::Since;
pub use key::MovedRows;
pub use sarif::sarif;
pub use sound::unfit;
pub(crate) use source::holds_changes;
pub use source::{Input, read};
pub use table::{table, totals};
pub use wrapped::Wrapped;

/// What is judged together, in the order in which it runs.
#[derive(Debug, Clone)]
pub struct Unit {
    /// Its files.
    pub files: Vec<SourceFile>,
    /// `search_path` names it first.
    pub schema: String,
    /// Overrides of compatibility rules.
    pub compatible: Vec<Compatible>,
    /// Whether it is for a database that nobody uses yet, as a dump of a structure is.
    pub fresh: bool,
    /// Files that are known and not judged, as they were there before `--base`.
    pub quiet: BTreeSet<String>,
    /// Where its overrides stand.
    pub document: Option<String>,
    /// What is moved by a backfill.
    pub rows: Option<MovedRows>,
    /// How each of the files is run, of another tool's; empty for a change.
    pub wrapped: Vec<Wrapped>,
    /// What is to be said of files beside their statements: those that cannot be read have none.
    pub told: Vec<Judged>,
}

/// What is known beside the files.
#[derive(Debug, Clone, Copy)]
pub struct Known<'a> {
    /// The server's major version.
    pub server: u32,
    /// The live database, when it was looked at.
    pub catalog: Option<&'a Catalog>,
}

/// A relation that a statement locks.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Locked {
    /// Its name.
    pub relation: String,
    /// The mode, as in LOCK TABLE.
    pub mode: &'static str,
    /// Whether reads wait.
    pub blocks_reads: bool,
    /// Whether writes wait.
    pub blocks_writes: bool,
    /// Its size with its indexes; absent: nobody knows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<i64>,
    /// Statements a minute that would wait behind the lock; absent: nobody counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queued_a_minute: Option<f64>,
}

/// One statement, judged.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Judged {
    /// The file, as it was named.
    pub file: String,
    /// From 1.
    pub line: usize,
    /// From 1, in characters; absent: the whole line is meant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<usize>,
    /// One line of it; empty for what is about a file.
    pub statement: String,
    /// Where it may run.
    pub class: Class,
    /// Whether that is where it stands.
    pub passes: bool,
    /// The file's phase; absent outside of a change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// The strongest mode; absent: none on what is live.
    pub lock: Option<&'static str>,
    /// All of them, the strongest first.
    pub locks: Vec<Locked>,
    /// The names of the rules that speak.
    pub rules: Vec<&'static str>,
    /// What they say.
    pub findings: Vec<Finding>,
    /// What could not be read.
    pub unread: Vec<String>,
    /// Of what is no SQL: the line as it stands, with a mark below the place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shown: Option<String>,
}

/// Judges units in their order: of a set a change knows what the changes before it made.
pub fn lint(units: &[Unit], known: Known<'_>) -> Vec<Judged> {
    let changes: Vec<_> = units
        .iter()
        .map(|unit| (unit.files.as_slice(), context(unit, known)))
        .collect();
    let reports = aegis_ddl::judge_in_order(&changes);
    let judged = units.iter().zip(reports);
    judged
        .flat_map(|(unit, report)| of_unit(unit, report, known))
        .collect()
}

/// A baseline runs on a fresh database, where nothing is before it.
fn context<'a>(unit: &'a Unit, known: Known<'a>) -> Context<'a> {
    Context {
        server: known.server,
        catalog: known.catalog,
        schema: &unit.schema,
        fresh: unit.fresh,
        compatible: &unit.compatible,
    }
}

fn of_unit(unit: &Unit, report: Report, known: Known<'_>) -> Vec<Judged> {
    let mut judged: Vec<Judged> = unit
        .told
        .iter()
        .filter(|one| !unit.quiet.contains(&one.file))
        .cloned()
        .collect();
    let mut verdicts = report.verdicts.into_iter();
    for (number, file) in unit.files.iter().enumerate() {
        let count = file.script.statements.len();
        let mut of_file: Vec<Judged> = verdicts
            .by_ref()
            .take(count)
            .map(|verdict| of_verdict(verdict, unit, known.catalog))
            .collect();
        if unit.quiet.contains(&file.path) {
            continue;
        }
        if let Some(wrapped) = unit.wrapped.get(number) {
            wrapped.add(file, &mut of_file);
        }
        judged.extend(of_file);
    }
    if let (Some(rows), Some(catalog)) = (&unit.rows, known.catalog) {
        judged.extend(rows.judged(catalog));
    }
    let document = unit.document.as_deref().unwrap_or("change.toml");
    judged.extend(report.unused_overrides.into_iter().map(|unused| {
        of_file(
            document,
            place::of_override(document, &unused),
            "unused-override",
            &unused.said,
            "name only rules that speak here, with a reason",
        )
    }));
    judged
}

/// Something about a file, which does not pass.
fn of_file(
    file: &str,
    line: usize,
    rule: &'static str,
    message: &str,
    safe: &'static str,
) -> Judged {
    Judged {
        file: file.to_owned(),
        line,
        column: None,
        statement: String::new(),
        class: Class::E,
        passes: false,
        phase: None,
        lock: None,
        locks: Vec::new(),
        rules: vec![rule],
        findings: vec![Finding {
            rule,
            class: Class::E,
            level: Level::Error,
            message: message.to_owned(),
            safe,
            overridden: None,
            unless: None,
            declare: None,
        }],
        unread: Vec::new(),
        shown: None,
    }
}

/// A file that is no SQL.
fn unreadable(file: &str, error: &SyntaxError) -> Judged {
    let safe = rules::find("unreadable").map_or("", |rule| rule.safe);
    let said = format!("column {}: {}", error.column, error.message);
    Judged {
        column: Some(error.column),
        shown: Some(error.caret.clone()),
        ..of_file(file, error.line, "unreadable", &said, safe)
    }
}

fn of_verdict(verdict: Verdict, unit: &Unit, catalog: Option<&Catalog>) -> Judged {
    let mut locks = verdict.locks;
    locks.sort_by(|a, b| {
        b.mode
            .cmp(&a.mode)
            .then_with(|| a.relation.cmp(&b.relation))
    });
    let mut rules: Vec<&'static str> = Vec::new();
    for finding in &verdict.findings {
        if !rules.contains(&finding.rule) {
            rules.push(finding.rule);
        }
    }
    Judged {
        file: verdict.file,
        line: verdict.line,
        column: None,
        statement: verdict.statement,
        class: verdict.class,
        passes: verdict.passes,
        phase: verdict.phase,
        lock: locks.first().map(|lock| lock.mode.sql()),
        locks: locks
            .iter()
            .map(|lock| locked(lock, unit, catalog))
            .collect(),
        rules,
        findings: verdict.findings,
        unread: verdict.unread,
        shown: None,
    }
}

fn locked(lock: &aegis_ddl::Lock, unit: &Unit, catalog: Option<&Catalog>) -> Locked {
    let name = lock.relation.resolve(&unit.schema);
    let size = catalog
        .and_then(|catalog| catalog.relation(&name))
        .and_then(|relation| relation.size.as_ref());
    Locked {
        relation: lock.relation.to_string(),
        mode: lock.mode.sql(),
        blocks_reads: lock.mode.blocks_reads(),
        blocks_writes: lock.mode.blocks_writes(),
        bytes: size.map(|size| size.total_bytes),
        queued_a_minute: catalog
            .and_then(|catalog| crate::plan::queued_a_minute(catalog, lock.mode, &name)),
    }
}

/// Reads a path, keeps what was added since a commit, and judges it.
pub fn run(
    input: &Input,
    since: Option<&Since>,
    known: Known<'_>,
) -> Result<Vec<Judged>, Problems> {
    let mut told = Vec::new();
    let units = match since {
        None => read(input, None)?,
        Some(since) => {
            told = since.edited(input)?;
            read(input, Some(since))?
        }
    };
    told.extend(lint(&units, known));
    Ok(told)
}
