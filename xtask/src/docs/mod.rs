//! `cargo xtask docs`: the blocks of the pages that the code knows better than their authors.
//!
//! A block stands between `<!-- generated: NAME -->` and `<!-- end of NAME -->`, each alone on its line. What is
//! outside of blocks belongs to the author of the page.
//!
//! Invariants: every mistake of a run is listed, not only the first; nothing is written unless there is none; the
//! output depends on the code and on the pages alone. Never: create a page, or move a block.

mod block;
mod dependencies;
mod errors;
mod operations;
mod replays;
mod tasks;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use crate::report::Report;
use crate::repository;

/// The command line of `cargo xtask docs`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Compare instead of writing; differences are a failure.
    #[arg(long)]
    pub check: bool,
    /// The root of the repository.
    #[arg(long, default_value_os_t = repository())]
    pub root: PathBuf,
}

/// A block: its page, its name, and what makes it from the root of the repository.
type Block = (
    &'static str,
    &'static str,
    fn(&Path) -> anyhow::Result<String>,
);

const BLOCKS: [Block; 8] = [
    ("docs/task-states.md", "task-diagram", tasks::diagram),
    ("docs/task-states.md", "task-states", tasks::states),
    ("docs/task-states.md", "task-changes", tasks::changes),
    ("docs/task-states.md", "operation-steps", operations::steps),
    ("docs/errors/README.md", "error-codes", errors::index),
    ("docs/dependencies.md", "dependencies", dependencies::table),
    ("docs/replayed-failures.md", "replayed", replays::replayed),
    (
        "docs/replayed-failures.md",
        "not-replayed",
        replays::not_replayed,
    ),
];

/// Runs the command: what was wrong, or what was written.
pub fn run(args: &Args) -> anyhow::Result<Report> {
    let mut pages: BTreeMap<&str, String> = BTreeMap::new();
    let mut mistakes = Vec::new();
    let mut differences = Vec::new();
    for (page, name, make) in BLOCKS {
        let text = match pages.remove(page) {
            Some(text) => text,
            None => read(&args.root, page)?,
        };
        let made = make(&args.root)?;
        let replaced = match block::replace(&text, name, &made) {
            Ok(replaced) => replaced,
            Err(what) => {
                mistakes.push(format!("{page}: {what}"));
                pages.insert(page, text);
                continue;
            }
        };
        if let Some(line) = replaced.differs_at {
            differences.push(format!("{page}:{line}: block `{name}` differs"));
        }
        pages.insert(page, replaced.text);
    }
    if !mistakes.is_empty() {
        return Ok(Report {
            summary: format!("docs: {} mistakes, nothing written", mistakes.len()),
            findings: mistakes,
        });
    }
    let changed = differences.len();
    if args.check {
        return Ok(Report {
            findings: differences
                .iter()
                .map(|found| format!("{found}: run `cargo xtask docs` and commit what it makes"))
                .collect(),
            summary: format!("docs: {} blocks, {changed} differ", BLOCKS.len()),
        });
    }
    for (page, text) in &pages {
        if *text != read(&args.root, page)? {
            let path = args.root.join(page);
            fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        }
    }
    Ok(Report {
        findings: Vec::new(),
        summary: format!("docs: {} blocks, {changed} changed", BLOCKS.len()),
    })
}

fn read(root: &Path, page: &str) -> anyhow::Result<String> {
    let path = root.join(page);
    fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
}
