//! Writes the generated files, or says how those that stand there differ.

use std::fs;
use std::path::Path;

use anyhow::Context as _;

use super::render::Files;
use super::statement::sorted;
use crate::say;

/// Writes what differs and removes what no statement makes any more; with `check` only says so.
/// `false` when `check` found something.
pub(super) fn compare_or_write(
    store: &Path,
    files: &Files,
    check: bool,
    statements: usize,
) -> anyhow::Result<bool> {
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

    if check && !differences.is_empty() {
        for difference in &differences {
            say!("error: {difference}: run `cargo xtask sql` and commit what it makes");
        }
        return Ok(false);
    }
    let done = if check { "up to date" } else { "written" };
    let count = if check {
        files.len()
    } else {
        differences.len()
    };
    say!("sql: {statements} statements described, {count} files {done}");
    Ok(true)
}

fn first_difference(left: &str, right: &str) -> usize {
    1 + left
        .lines()
        .zip(right.lines())
        .take_while(|(left, right)| left == right)
        .count()
}
