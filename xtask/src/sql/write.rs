//! Writes the generated files, or says how those that stand there differ.

use std::fs;
use std::path::Path;

use anyhow::Context as _;

use super::render::Files;
use super::statement::sorted;
use crate::report::Report;

/// Writes what differs and removes what no statement makes any more; with `check` only says so.
pub(super) fn compare_or_write(
    store: &Path,
    files: &Files,
    check: bool,
    statements: usize,
) -> anyhow::Result<Report> {
    let folder = store.join("src/generated");
    let mut differences = Vec::new();
    for (name, text) in files {
        let path = folder.join(name);
        let found = fs::read_to_string(&path).ok();
        if found.as_ref() == Some(text) {
            continue;
        }
        differences.push(match &found {
            Some(found) => format!(
                "src/generated/{name}:{}: differs",
                first_difference(found, text)
            ),
            None => format!("src/generated/{name}: is missing"),
        });
        if !check {
            fs::create_dir_all(&folder)
                .and_then(|()| fs::write(&path, text))
                .with_context(|| format!("cannot write {}", path.display()))?;
        }
    }
    for (stem, path) in sorted(&folder, "rs")? {
        if !files.contains_key(&format!("{stem}.rs")) {
            differences.push(format!("src/generated/{stem}.rs: no statement makes it"));
            if !check {
                fs::remove_file(&path)
                    .with_context(|| format!("cannot remove {}", path.display()))?;
            }
        }
    }

    let changed = differences.len();
    if !check {
        return Ok(Report {
            findings: Vec::new(),
            summary: format!("sql: {statements} statements described, {changed} files changed"),
        });
    }
    Ok(Report {
        findings: differences
            .iter()
            .map(|found| format!("{found}: run `cargo xtask sql` and commit what it makes"))
            .collect(),
        summary: format!("sql: {statements} statements described, {changed} files differ"),
    })
}

fn first_difference(left: &str, right: &str) -> usize {
    1 + left
        .lines()
        .zip(right.lines())
        .take_while(|(left, right)| left == right)
        .count()
}
