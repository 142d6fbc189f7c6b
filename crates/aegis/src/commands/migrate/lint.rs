//! `aegis migrate lint`: SQL of anybody, each statement with its class. Needs no database; asks one only for sizes and columns.

use std::path::PathBuf;

use aegis_catalog::{Catalog, Scope};
use aegis_migrate::foreign::Tool;
use aegis_migrate::lint::{Input, Judged, Known, Since, rules, run as lint, sarif, table, totals};
use clap::{Args, ValueEnum};

use super::{Place, connect};
use crate::exit::Exit;
use crate::failure::{Failure, chain};
use crate::output::{self, Output, harmless, note};

pub(super) const AFTER: &str = "\
Exit codes: 0 every statement may run where it stands; 3 findings, a file that is no SQL among them; 2 a folder or a file makes no sense.

Without --catalog or --database-url a class is the worst that it can be.

Examples:
  aegis migrate lint                          the folder of changes
  aegis migrate lint db/migrations            a folder of another tool, or of plain files
  aegis migrate lint --base origin/main       what a branch adds, and whether it edits history
  aegis migrate lint --fix                    edits what has one safe form, and tells the rest
  aegis migrate lint --format sarif > a.sarif for code scanning
  aegis migrate lint --explain set-not-null";

/// The server whose rules hold where nobody says which one it is.
const NEWEST_MAJOR: u32 = 18;

#[derive(Debug, Args)]
pub(crate) struct LintArguments {
    /// Folders or .sql files; default: the folder of the changes.
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Whose folder it is: sqlx, refinery, goose, flyway, rails, liquibase, dbmate, golang-migrate, diesel, prisma, supabase, atlas,
    /// node-pg-migrate, sqitch or plain; default: what is in it tells.
    #[arg(long, value_name = "TOOL")]
    tool: Option<Tool>,
    /// A file of `aegis migrate snapshot`; default: the database, where one is given.
    #[arg(long, value_name = "FILE")]
    catalog: Option<PathBuf>,
    /// The major version whose rules hold, where neither a catalog nor a database says it; default: 18.
    #[arg(long, value_name = "MAJOR", value_parser = clap::value_parser!(u32).range(14..=19))]
    server_version: Option<u32>,
    /// The schema of unqualified names in folders of other tools.
    #[arg(long, value_name = "SCHEMA", default_value = "public")]
    schema: String,
    /// Only what was added since this commit; edited history and a contract sealed with its expand are told.
    #[arg(long, value_name = "REF")]
    base: Option<String>,
    /// `json` is an array with an object for each statement; `sarif` is version 2.1.0; default: as --output says.
    #[arg(long, value_enum, value_name = "FORMAT")]
    format: Option<Format>,
    /// Edits changes until nothing more of them is sure to be better, then judges them; what is sealed is never edited.
    #[arg(long, conflicts_with_all = ["base", "tool"])]
    fix: bool,
    /// Says what a rule is about and what to do instead; `all` lists them.
    #[arg(long, value_name = "RULE", conflicts_with = "paths")]
    explain: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Table,
    Json,
    Sarif,
}

pub(crate) async fn run(arguments: &LintArguments, place: &Place<'_>) -> Result<Exit, Failure> {
    if let Some(rule) = &arguments.explain {
        return explain(rule, place.output);
    }
    let catalog = catalog(arguments, place).await?;
    let known = Known {
        server: catalog
            .as_ref()
            .map(Catalog::server_major)
            .or(arguments.server_version)
            .unwrap_or(NEWEST_MAJOR),
        catalog: catalog.as_ref(),
    };
    let since = arguments.base.as_ref().map(Since::new);
    let mut paths = arguments.paths.clone();
    if paths.is_empty() {
        paths.push(place.dir.clone());
    }
    if arguments.fix {
        for path in &paths {
            fix(path, known)?;
        }
    }
    let mut judged = Vec::new();
    for path in paths {
        let input = Input {
            path,
            tool: arguments.tool,
            schema: arguments.schema.clone(),
        };
        read_as(&input)?;
        judged.extend(lint(&input, since.as_ref(), known)?);
    }
    print(&judged, arguments, place.output, catalog.is_some())?;
    if judged.iter().all(|one| one.passes) {
        return Ok(Exit::Done);
    }
    Ok(Exit::Migrate(3))
}

/// Says whose folder it was taken for, as the same statement is right in one and wrong in another.
fn read_as(input: &Input) -> Result<(), Failure> {
    if let Some(tool) = input.read_as()? {
        let named = if input.tool.is_some() {
            ""
        } else {
            "; --tool names another"
        };
        note(&format!(
            "{}: read as {tool}: {}{named}",
            harmless(&input.path.display().to_string()),
            tool.about()
        ));
    }
    Ok(())
}

/// Edits what is sure to be better; on stderr what was edited and what was not.
fn fix(path: &std::path::Path, known: Known<'_>) -> Result<(), Failure> {
    let fixed = aegis_migrate::fix::run(path, known)?;
    for (file, text) in &fixed.files {
        let done = if text.is_some() { "edited" } else { "removed" };
        note(&format!("{done} {}", harmless(file)));
    }
    for told in &fixed.told {
        // What is to be copied stands on lines of its own.
        let lines: Vec<String> = told.what.lines().map(harmless).collect();
        note(&format!(
            "not mended: {}:{}: {}",
            harmless(&told.file),
            told.line,
            lines.join("\n")
        ));
    }
    if fixed.files.is_empty() {
        note("--fix: nothing to edit");
    }
    Ok(())
}

fn print(
    judged: &[Judged],
    arguments: &LintArguments,
    output: Output,
    has_catalog: bool,
) -> Result<(), Failure> {
    let broken = |error: serde_json::Error| Failure::new(Exit::Broken, error.to_string());
    let format = arguments.format.unwrap_or(match output {
        Output::Json => Format::Json,
        _ => Format::Table,
    });
    match (format, output) {
        (Format::Sarif, _) => {
            let text = serde_json::to_string_pretty(&sarif(judged)).map_err(broken)?;
            output::line(&text);
        }
        (Format::Json, _) => {
            // An array, and a line for each: both readers are served.
            let lines: Result<Vec<String>, _> = judged.iter().map(serde_json::to_string).collect();
            output::line(&format!("[\n{}\n]", lines.map_err(broken)?.join(",\n")));
        }
        (Format::Table, Output::Yaml | Output::Name) => {
            let rows = judged
                .iter()
                .map(|one| vec![format!("{}:{}", one.file, one.line)]);
            let json = judged
                .iter()
                .map(serde_json::to_value)
                .collect::<Result<_, _>>();
            output.list(&["where"], rows.collect(), json.map_err(broken)?);
        }
        (Format::Table, _) => {
            let text = table(judged, output::colours(), &|text| harmless(text));
            output::raw(text.as_bytes());
            output::line(&totals(judged));
            if !has_catalog && !judged.is_empty() {
                note(
                    "without a catalog (--catalog, or a database): sizes are unknown, and each class is the worst it can be",
                );
            }
        }
    }
    Ok(())
}

fn explain(name: &str, output: Output) -> Result<Exit, Failure> {
    let wanted: Vec<_> = rules::RULES
        .iter()
        .filter(|rule| name == "all" || rule.name == name)
        .collect();
    if wanted.is_empty() {
        let near: Vec<&str> = rules::RULES
            .iter()
            .map(|rule| rule.name)
            .filter(|known| {
                name.split('-')
                    .any(|word| word.len() > 2 && known.contains(word))
            })
            .collect();
        let near = if near.is_empty() {
            String::new()
        } else {
            format!("; near: {}", near.join(", "))
        };
        let said = format!(
            "there is no rule {}{near}; `--explain all` lists them",
            name.escape_default()
        );
        return Err(Failure::new(Exit::Usage, said));
    }
    let rows = wanted.iter().map(|rule| {
        let overridden = if rule.compatibility {
            "with a reason"
        } else {
            "never"
        };
        let cells = [rule.name, rule.about, rule.safe, overridden];
        cells.map(str::to_owned).to_vec()
    });
    let json = wanted
        .iter()
        .map(serde_json::to_value)
        .collect::<Result<_, _>>();
    let json =
        json.map_err(|error: serde_json::Error| Failure::new(Exit::Broken, error.to_string()))?;
    if let (Output::Table, [rule]) = (output, &wanted[..]) {
        output.one(
            &[
                ("rule", rule.name.to_owned()),
                ("about", rule.about.to_owned()),
                ("instead", rule.safe.to_owned()),
                (
                    "overridden",
                    if rule.compatibility {
                        "with a reason"
                    } else {
                        "never"
                    }
                    .to_owned(),
                ),
            ],
            &serde_json::Value::Null,
        );
    } else {
        output.list(
            &["rule", "about", "instead", "overridden"],
            rows.collect(),
            json,
        );
    }
    Ok(Exit::Done)
}

async fn catalog(arguments: &LintArguments, place: &Place<'_>) -> Result<Option<Catalog>, Failure> {
    if let Some(path) = &arguments.catalog {
        let refuse = |why: String| {
            let said = format!(
                "the catalog {} cannot be read: {why}; `aegis migrate snapshot --out FILE` writes one",
                path.display()
            );
            Failure::new(Exit::Usage, said)
        };
        let text = std::fs::read_to_string(path).map_err(|error| refuse(error.to_string()))?;
        let catalog = Catalog::from_json(&text).map_err(|error| refuse(chain(&error)))?;
        return Ok(Some(catalog));
    }
    if place.database.given().is_none() {
        return Ok(None);
    }
    let client = connect(place.database.direct()?).await?;
    aegis_catalog::read(&client, &Scope::everything())
        .await
        .map(Some)
        .map_err(|error| Failure::new(Exit::Migrate(17), chain(&error)))
}
