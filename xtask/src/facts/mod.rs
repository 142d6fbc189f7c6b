//! `cargo xtask migrate-facts`: what each form of DDL does to locks, storage and indexes, measured on real servers.
//!
//! The forms stand in `crates/aegis-ddl/facts/forms.toml`; what this makes are `pgNN.json` beside it and the page
//! `docs/migrate-facts.md`; and `functions.txt`, which functions of the servers are volatile.
//!
//! Invariants: a row is what a server did, never what somebody remembers; what could not be looked at is absent and not "no"; the
//! output depends on the forms and on the servers' majors alone (no time, no path, no OID).

mod concurrent;
mod forms;
mod functions;
mod measure;
mod page;
mod row;

use std::path::{Path, PathBuf};

use aegis_devpg::{Binaries, Options, Server, fetch_binaries_of, find_binaries};
use anyhow::Context as _;

use crate::report::Report;
use crate::repository;
use row::Facts;

/// The majors that are measured.
const MAJORS: [u32; 5] = [14, 15, 16, 17, 18];

/// The command line of `cargo xtask migrate-facts`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Compare instead of writing; differences are a failure.
    #[arg(long)]
    pub check: bool,
    /// Only these majors.
    #[arg(long = "major", value_delimiter = ',', default_values_t = MAJORS)]
    pub majors: Vec<u32>,
}

/// Runs the command: what was wrong, or what was written.
pub fn run(args: &Args) -> anyhow::Result<Report> {
    let folder = repository().join("crates/aegis-ddl/facts");
    let forms = forms::load(&folder.join("forms.toml"))?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start an async runtime")?;
    let mut report = Report::default();
    let mut skipped = Vec::new();
    let mut measured = 0;
    let mut volatility = functions::Functions::new();
    let mut asked = Vec::new();
    for &major in &args.majors {
        let binaries = match binaries(major) {
            Ok(binaries) => binaries,
            Err(error) => {
                skipped.push(format!("PostgreSQL {major} SKIPPED: {error:#}"));
                continue;
            }
        };
        let facts = runtime.block_on(on(&binaries, &forms, &mut volatility))?;
        asked.push(major);
        measured += facts.rows.len();
        let text = serde_json::to_string_pretty(&facts)? + "\n";
        compare_or_write(
            &folder.join(format!("pg{major}.json")),
            &text,
            args.check,
            &mut report,
        )?;
    }
    if asked == MAJORS {
        compare_or_write(
            &folder.join("functions.txt"),
            &functions::render(&volatility, &MAJORS),
            args.check,
            &mut report,
        )?;
    }
    let mut known = Vec::new();
    for major in MAJORS {
        let path = folder.join(format!("pg{major}.json"));
        if path.exists() {
            let text = std::fs::read_to_string(&path)?;
            known.push(serde_json::from_str(&text).with_context(|| path.display().to_string())?);
        }
    }
    let page = page::render(&forms, &known);
    compare_or_write(
        &repository().join("docs/migrate-facts.md"),
        &page,
        args.check,
        &mut report,
    )?;
    report.summary = format!(
        "migrate-facts: {measured} rows measured. {}",
        skipped.join(". ")
    );
    Ok(report)
}

/// The binaries of a major: installed, or fetched.
fn binaries(major: u32) -> anyhow::Result<Binaries> {
    let usual = PathBuf::from(format!("/usr/lib/postgresql/{major}/bin"));
    if usual.join("initdb").is_file() && major >= aegis_devpg::LOWEST_MAJOR {
        return Ok(find_binaries(Some(&usual))?);
    }
    Ok(fetch_binaries_of(major)?)
}

async fn on(
    binaries: &Binaries,
    forms: &forms::Forms,
    volatility: &mut functions::Functions,
) -> anyhow::Result<Facts> {
    let server = Server::start(&Options {
        binaries: Some(binaries.bin.clone()),
        lowest_major: 14,
        settings: vec![
            ("autovacuum".to_owned(), "off".to_owned()),
            ("timezone".to_owned(), "UTC".to_owned()),
        ],
        ..Options::for_tests()
    })?;
    let url = server.url(server.superuser(), "postgres");
    functions::ask(&url, volatility).await?;
    let mut rows = Vec::new();
    for case in forms.cases(binaries.major) {
        let row = if case.concurrent {
            concurrent::measure(&url, &case).await
        } else {
            measure::measure(&url, &case).await
        };
        rows.push(row.with_context(|| {
            format!(
                "{} with {}",
                case.form,
                case.with.as_deref().unwrap_or("nothing")
            )
        })?);
    }
    Ok(Facts {
        major: binaries.major,
        rows,
    })
}

fn compare_or_write(
    path: &Path,
    text: &str,
    check: bool,
    report: &mut Report,
) -> anyhow::Result<()> {
    let there = std::fs::read_to_string(path).unwrap_or_default();
    if there == text {
        return Ok(());
    }
    if check {
        let line = there
            .lines()
            .zip(text.lines())
            .position(|(old, new)| old != new);
        report.findings.push(format!(
            "{}:{}: not what the servers do now; `make migrate-facts` writes it",
            path.display(),
            line.map_or(1, |line| line + 1)
        ));
        return Ok(());
    }
    std::fs::write(path, text).with_context(|| path.display().to_string())
}
