//! `cargo xtask sql`: typed functions from the `.sql` files of a store.
//!
//! A store is a folder with `migrations/` (changes, applied in order to an empty database), `sql/<aggregate>/<verb>.sql`
//! (statements), `sql/include/` (what they share) and `src/generated/` (what this makes). Each statement is
//! described by a real PostgreSQL, so a renamed column is an error here and not in production.
//!
//! Invariants: every mistake of a run is listed, not only the first; nothing is written unless there is none;
//! the output depends on the input files alone.

mod describe;
mod header;
mod names;
mod render;
mod scan;
mod server;
mod source;
mod statement;
mod types;
mod write;

use std::path::PathBuf;

use anyhow::Context as _;

use crate::report::Report;
use crate::repository;

/// The command line of `cargo xtask sql`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Compare instead of writing; differences are a failure.
    #[arg(long)]
    pub check: bool,
    /// A running server to describe on (`postgres://…`, a superuser); without it a private one is started.
    #[arg(long, env = "AEGIS_SQL_SERVER", hide_env_values = true)]
    pub server: Option<String>,
    /// The store's folder.
    #[arg(long, default_value_os_t = repository().join("crates/aegis-store"))]
    pub store: PathBuf,
}

/// Something wrong in one place of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// Path below the store's folder.
    pub file: String,
    /// Line and column, from 1; line 0 means the file as a whole.
    pub at: (u32, u32),
    /// What is wrong and what to do.
    pub what: String,
}

impl std::fmt::Display for Mistake {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.at {
            (0, _) => write!(f, "{}: {}", self.file, self.what),
            (line, column) => write!(f, "{}:{line}:{column}: {}", self.file, self.what),
        }
    }
}

/// Runs the command: what was wrong, or what was written.
pub fn run(args: &Args) -> anyhow::Result<Report> {
    let mut mistakes = Vec::new();
    let statements = statement::load_all(&args.store, &mut mistakes)?;
    if !mistakes.is_empty() {
        return Ok(refused(&mistakes));
    }

    let server = server::open(args.server.as_deref())?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start an async runtime")?;
    let described = runtime.block_on(describe::all(
        server.url(),
        &args.store,
        &statements,
        &mut mistakes,
    ))?;
    if !mistakes.is_empty() {
        return Ok(refused(&mistakes));
    }

    let files = render::files(&described)?;
    write::compare_or_write(&args.store, &files, args.check, statements.len())
}

fn refused(mistakes: &[Mistake]) -> Report {
    Report {
        findings: mistakes.iter().map(Mistake::to_string).collect(),
        summary: format!("sql: {} mistakes, nothing written", mistakes.len()),
    }
}
