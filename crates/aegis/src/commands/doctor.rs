//! `aegis doctor`: the engine's invariants over a live database.
//!
//! Invariants: the exit code is the worst verdict: 0 ok or notice, 20 warning, 21 critical, 22 unknown; a check that could not
//! run is unknown. Nothing is written.

use std::time::Duration;

use aegis_store::doctor::{self, CHECKS, Check, Finding, Severity};
use clap::Args;
use serde_json::json;

use crate::database::DatabaseArguments;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{Output, harmless, line};

pub(crate) const EXAMPLES: &str = "Examples:
  aegis doctor --database-url postgresql://aegis_reader@db.internal/app
  aegis doctor --check stranded,expired-running --output json
  aegis doctor --list

Exit codes: 0 all ok (notices count as ok), 20 a warning, 22 something is unknown, 21 something is critical; the worst decides.";

#[derive(Debug, Args)]
pub(crate) struct DoctorArguments {
    /// Only these checks.
    #[arg(long, value_name = "ID", value_delimiter = ',')]
    check: Vec<String>,
    /// Lists the checks and what each means, without looking at a database.
    #[arg(long)]
    list: bool,
    /// How long one check may take, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=600))]
    timeout: u64,
}

/// Looks, prints, and ends with the worst verdict.
pub(crate) async fn run(
    arguments: DoctorArguments,
    database: &DatabaseArguments,
    output: Output,
) -> Result<Exit, Failure> {
    let checks = chosen(&arguments.check)?;
    if arguments.list {
        let rows = checks
            .iter()
            .map(|check| vec![check.id.to_owned(), check.means.to_owned()])
            .collect();
        let json = checks
            .iter()
            .map(|check| json!({ "id": check.id, "means": check.means }))
            .collect();
        output.list(&["check", "what it means when it is not ok"], rows, json);
        return Ok(Exit::Done);
    }
    let findings = doctor::examine(
        database.config()?,
        Duration::from_secs(arguments.timeout),
        &checks,
    )
    .await?;
    let worst = doctor::worst(&findings);
    print(&findings, worst, output);
    Ok(match worst {
        Severity::Ok | Severity::Notice => Exit::Done,
        Severity::Warning => Exit::Warning,
        Severity::Unknown => Exit::Unknown,
        Severity::Critical => Exit::Critical,
    })
}

fn chosen(ids: &[String]) -> Result<Vec<&'static Check>, Failure> {
    if ids.is_empty() {
        return Ok(CHECKS.iter().collect());
    }
    ids.iter()
        .map(|id| {
            doctor::find(id).ok_or_else(|| {
                Failure::new(
                    Exit::Usage,
                    format!("there is no check `{id}`; see `aegis doctor --list`"),
                )
            })
        })
        .collect()
}

fn print(findings: &[Finding], worst: Severity, output: Output) {
    match output {
        Output::Name => {
            for finding in findings
                .iter()
                .filter(|finding| finding.severity > Severity::Notice)
            {
                line(finding.check);
            }
        }
        Output::Json | Output::Yaml => {
            output.one(&[], &json!({ "worst": worst, "findings": findings }));
        }
        Output::Table => {
            let rows = findings
                .iter()
                .map(|finding| {
                    vec![
                        finding.check.to_owned(),
                        finding.severity.word().to_owned(),
                        finding.seen.clone(),
                    ]
                })
                .collect();
            output.list(&["check", "verdict", "seen"], rows, Vec::new());
            for finding in findings
                .iter()
                .filter(|finding| finding.severity > Severity::Ok)
            {
                line(&format!(
                    "\n{}: {}: {}",
                    finding.check,
                    finding.severity.word(),
                    harmless(&finding.seen)
                ));
                line(&format!("  means: {}", finding.means));
                for step in &finding.todo {
                    line(&format!("  do: {}", harmless(step)));
                }
            }
            let count = |severity| {
                findings
                    .iter()
                    .filter(|finding| finding.severity == severity)
                    .count()
            };
            line(&format!(
                "\n{} checks: {} ok, {} notices, {} warnings, {} unknown, {} critical",
                findings.len(),
                count(Severity::Ok),
                count(Severity::Notice),
                count(Severity::Warning),
                count(Severity::Unknown),
                count(Severity::Critical)
            ));
        }
    }
}
