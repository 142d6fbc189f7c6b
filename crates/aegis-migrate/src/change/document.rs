//! From the bytes of a folder to a [`Change`]: TOML, then its files, then its rules.

use std::collections::BTreeMap;

use super::check;
use super::id::{ChangeId, ID_FORM};
use super::locate::{Located, line_at};
use super::problem::{Problem, Problems};
use super::sections::Document;
use super::{CHANGE_FILE, Change, Files, SQUASHED_FILE, SqlFile};
use crate::lock::LockFile;

/// The one format there is.
const FORMAT: i64 = 1;

pub(super) fn read(files: &Files, folder: &str) -> Result<Change, Problems> {
    let name = format!("{folder}/{CHANGE_FILE}");
    let path = files.name_of(&name);
    let bytes = files.get(&name).ok_or_else(|| {
        Problem::of_file(
            files.name_of(folder),
            "no change.toml in it",
            "write one (`aegis migrate new NAME` makes a folder with one), or move the folder away",
        )
    })?;
    let text = text(bytes, &path)?;
    let located = Located::parse(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        Problem::of_file(
            &path,
            format!("this is no TOML: {}", one_line(error.message())),
            "mend the line",
        )
        .at(line_at(text, at))
    })?;
    format_first(text, &located, &path)?;
    let document: Document = toml::from_str(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        let mut problem = Problem::of_file(
            &path,
            one_line(error.message()),
            "see docs/guides/migrate.md for every key",
        )
        .at(located.line_at(at));
        problem.key = located.key_at(at);
        problem
    })?;
    let (change, mut problems) = whole(document, files, folder, &located)?;
    check::rules(&change, files, &located, &mut problems);
    problems.sort_by_key(|problem| (problem.file.clone(), problem.line));
    Problems::none_of(problems)?;
    Ok(change)
}

fn text<'a>(bytes: &'a [u8], path: &str) -> Result<&'a str, Problem> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        Problem::of_file(path, "it is not UTF-8", "save it as UTF-8")
            .at(super::sql_file::line_of(&bytes[..error.valid_up_to()]))
    })?;
    Ok(text.strip_prefix('\u{feff}').unwrap_or(text))
}

/// A file of another format has other keys: its format is what is wrong, and nothing else is said.
fn format_first(text: &str, located: &Located<'_>, path: &str) -> Result<(), Problem> {
    let table: toml::Table = toml::from_str(text).map_err(|error| {
        Problem::of_file(path, one_line(error.message()), "mend the line")
            .at(line_at(text, error.span().map_or(0, |span| span.start)))
    })?;
    let found = match table.get("format") {
        Some(toml::Value::Integer(FORMAT)) => return Ok(()),
        Some(toml::Value::Integer(other)) => {
            format!("it is {other}; this binary reads format {FORMAT}")
        }
        Some(other) => format!(
            "it is a {}; this binary reads format {FORMAT}",
            other.type_str()
        ),
        None => "it is missing".to_owned(),
    };
    let mut problem = Problem::of_file(
        path,
        found,
        "write format = 1, or use the version of aegis that the change was written for",
    );
    problem.key = Some("format".to_owned());
    problem.line = located.line("format");
    Err(problem)
}

fn whole(
    document: Document,
    files: &Files,
    folder: &str,
    located: &Located<'_>,
) -> Result<(Change, Vec<Problem>), Problem> {
    let mut problems = Vec::new();
    let path = files.name_of(&format!("{folder}/{CHANGE_FILE}"));
    let id: ChangeId = document.id.parse().map_err(|what: String| {
        let mut problem = Problem::of_file(&path, what, ID_FORM);
        problem.key = Some("id".to_owned());
        problem.line = located.line("id");
        problem
    })?;
    if id.as_str() != folder {
        let mut problem = Problem::of_file(
            &path,
            format!("`{id}` is not the name of its folder, `{folder}`"),
            "rename one of them",
        );
        problem.key = Some("id".to_owned());
        problem.line = located.line("id");
        problems.push(problem);
    }
    debug_assert_eq!(document.format, FORMAT);
    let mut sql = BTreeMap::new();
    for name in files.below(folder).filter(|name| is_sql(name)) {
        let whole = format!("{folder}/{name}");
        let path = files.name_of(&whole);
        match SqlFile::new(name, path.clone(), files.get(&whole).unwrap_or_default()) {
            Ok(file) => {
                sql.insert(name.to_owned(), file);
            }
            Err(refused) => problems.push(
                Problem::of_file(path, "it is not UTF-8", "save it as UTF-8").at(refused.line),
            ),
        }
    }
    let change = Change {
        id,
        schema: document.schema,
        run_as: document.run_as,
        requires: document.requires,
        baseline: document.baseline,
        squashed: squashed(files, folder, &mut problems),
        expand: document.expand,
        migrate: document.migrate,
        sync: document.sync,
        backfill: document.backfill,
        throttle: document.throttle.unwrap_or_default(),
        reconcile: document.reconcile,
        switch: document.switch,
        contract: document.contract,
        path: files.name_of(folder),
        files: sql,
    };
    Ok((change, problems))
}

/// The lines that a squash has replaced.
fn squashed(files: &Files, folder: &str, problems: &mut Vec<Problem>) -> Option<LockFile> {
    let name = format!("{folder}/{SQUASHED_FILE}");
    let bytes = files.get(&name)?;
    let path = files.name_of(&name);
    let Ok(text) = std::str::from_utf8(bytes) else {
        problems.push(Problem::of_file(
            path,
            "it is not UTF-8",
            "put it back as it was committed",
        ));
        return None;
    };
    match LockFile::parse(text, &path) {
        Ok(lock) => Some(lock),
        Err(refused) => {
            problems.extend(refused.all().iter().cloned());
            None
        }
    }
}

pub(super) fn is_sql(name: &str) -> bool {
    std::path::Path::new(name)
        .extension()
        .is_some_and(|extension| extension.eq_ignore_ascii_case("sql"))
}

/// A message of the parser on one line.
fn one_line(message: &str) -> String {
    message.split_whitespace().collect::<Vec<_>>().join(" ")
}
