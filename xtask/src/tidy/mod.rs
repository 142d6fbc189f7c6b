//! `cargo xtask tidy`: what the compiler cannot see and reviewers should not have to.
//!
//! Each check is a pure function over the files of the repository, in a file of its own, with tests that show
//! it failing. All findings of a run are listed. No check needs a server or the network.

mod bad_input;
mod claims;
mod error_codes;
mod finding;
mod heads;
mod layers;
mod links;
mod lints;
mod markdown;
mod measured;
mod replays;
mod rooms;
mod rust;
mod sizes;
mod todos;
mod tree;
mod unwraps;

use std::path::PathBuf;

use crate::report::Report;
use crate::repository;
use finding::Finding;
use tree::Tree;

pub(crate) use replays::{Failure, load as replays};

/// The command line of `cargo xtask tidy`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The root of the repository.
    #[arg(long, default_value_os_t = repository())]
    pub root: PathBuf,
}

type Check = fn(&Tree) -> Vec<Finding>;

const CHECKS: [(&str, Check); 12] = [
    ("heads", heads::check),
    ("sizes", sizes::check),
    ("lints", lints::check),
    ("unwraps", unwraps::check),
    ("todos", todos::check),
    ("links", links::check),
    ("rooms", rooms::check),
    ("error codes", error_codes::check),
    ("measured", measured::check),
    ("replays", replays::check),
    ("bad input", bad_input::check),
    ("claims", claims::check),
];

/// Runs every check.
pub fn run(args: &Args) -> anyhow::Result<Report> {
    let tree = Tree::load(&args.root)?;
    let mut findings: Vec<Finding> = CHECKS.iter().flat_map(|(_, check)| check(&tree)).collect();
    findings.extend(layers::check(&layers::packages(&args.root)?));
    findings.sort();
    let summary = format!(
        "tidy: {} checks of {} files, {} findings",
        CHECKS.len() + 1,
        tree.len(),
        findings.len()
    );
    Ok(Report {
        findings: findings.iter().map(Finding::to_string).collect(),
        summary,
    })
}
