//! `cargo xtask`: reads the command line and hands over to the library.
//!
//! Exit codes: 0 nothing to say, 1 something is wrong and was said, 2 the command line itself.

use std::io::Write as _;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use xtask::report::Report;
use xtask::{docs, facts, sql, tidy};

#[derive(Parser)]
#[command(about = "Checks and generators of this repository.")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Makes the blocks of the pages that the code knows better: states, steps, error codes.
    Docs(docs::Args),
    /// Measures what each form of DDL does on real servers, and writes the tables that the linter uses.
    MigrateFacts(facts::Args),
    /// Makes the typed functions of the statements in `sql/`.
    Sql(sql::Args),
    /// Checks the repository: heads, sizes, layers, links, codes, claims.
    Tidy(tidy::Args),
}

fn main() -> ExitCode {
    let report = match Cli::parse().command {
        Command::Docs(args) => docs::run(&args),
        Command::MigrateFacts(args) => facts::run(&args),
        Command::Sql(args) => sql::run(&args),
        Command::Tidy(args) => tidy::run(&args),
    };
    match report {
        Ok(report) => {
            print(&report);
            ExitCode::from(u8::from(!report.is_clean()))
        }
        Err(error) => {
            print(&Report {
                findings: vec![format!("{error:#}")],
                ..Report::default()
            });
            ExitCode::FAILURE
        }
    }
}

/// A closed pipe (`| head`) is nobody's error here.
fn print(report: &Report) {
    let mut out = std::io::stdout().lock();
    for finding in &report.findings {
        writeln!(out, "error: {finding}").ok();
    }
    if !report.summary.is_empty() {
        writeln!(out, "{}", report.summary).ok();
    }
}
