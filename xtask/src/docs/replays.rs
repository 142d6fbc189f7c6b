//! The public failures of `docs/replays.toml` with the tests that replay them, as they are found in the code.

use std::fmt::Write as _;
use std::path::Path;

use crate::tidy::{Failure, replays};

/// How many of each sort there are, and the table of those with tests.
pub(super) fn replayed(root: &Path) -> anyhow::Result<String> {
    let (failures, tests) = replays(root)?;
    let all = failures.len();
    let shown = failures
        .iter()
        .filter(|one| tests.contains_key(&one.id))
        .count();
    let whole = failures
        .iter()
        .filter(|one| tests.contains_key(&one.id) && one.open.is_none())
        .count();
    let mut text = format!(
        "{all} failures: {shown} are replayed by tests, of which {whole} leave nothing open that we know of; {} are not replayed.\n\n\
         | number | what its users met | tests | what they leave open |\n| --- | --- | --- | --- |\n",
        all - shown
    );
    for one in &failures {
        let Some(tests) = tests.get(&one.id) else {
            continue;
        };
        let tests: Vec<String> = tests
            .iter()
            .map(|(file, test)| format!("[`{test}`](../{file})"))
            .collect();
        writeln!(
            text,
            "| {} | {} ({}) | {} | {} |",
            one.id,
            one.met,
            one.report,
            tests.join("<br>"),
            one.open.as_deref().unwrap_or_default()
        )?;
    }
    Ok(text)
}

/// The table of those without, and why.
pub(super) fn not_replayed(root: &Path) -> anyhow::Result<String> {
    let (failures, tests) = replays(root)?;
    let mut text = String::from("| number | what its users met | why |\n| --- | --- | --- |\n");
    for Failure {
        id,
        report,
        met,
        not_here,
        ..
    } in &failures
    {
        if tests.contains_key(id) {
            continue;
        }
        let why = not_here.as_deref().unwrap_or("**no reason given**");
        writeln!(text, "| {id} | {met} ({report}) | {why} |")?;
    }
    Ok(text)
}
