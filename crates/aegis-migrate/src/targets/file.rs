//! Reads `targets.toml`.

use std::collections::BTreeSet;

use serde::Deserialize;
use toml::Spanned;

use super::{NAME_TENANTS, Named, Queried, Stop, TARGETS_FILE, Targets, not_a_tenant};
use crate::change::{Files, Problem, Problems};

/// The one format there is.
const FORMAT: i64 = 1;
/// Most targets at once; each is a connection and a run.
const PARALLEL_MAX: usize = 64;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    format: i64,
    #[serde(default = "four")]
    parallel: usize,
    #[serde(default = "first")]
    stop: Stop,
    #[serde(default)]
    target: Vec<NamedAt>,
    #[serde(default)]
    query: Vec<QueriedAt>,
}

/// `[[target]]`, with where its schema stands.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NamedAt {
    name: String,
    url_env: String,
    #[serde(default)]
    schema: Option<Spanned<String>>,
}

/// `[[query]]`, with where its schemas stand.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct QueriedAt {
    name: String,
    url_env: String,
    #[serde(default)]
    databases: Option<String>,
    #[serde(default)]
    schemas: Option<Spanned<String>>,
}

fn four() -> usize {
    4
}

fn first() -> Stop {
    Stop::First
}

/// Reads the file of a folder of changes; `None` where there is none.
pub fn read(files: &Files) -> Result<Option<Targets>, Problems> {
    let Some(bytes) = files.get(TARGETS_FILE) else {
        return Ok(None);
    };
    let path = files.name_of(TARGETS_FILE);
    let refuse = |what: String, help: &str| Problem::of_file(&path, what, help);
    let text = std::str::from_utf8(bytes)
        .map_err(|_| refuse("it is not UTF-8".to_owned(), "save it as UTF-8"))?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let line_at = |at: usize| 1 + text[..at.min(text.len())].matches('\n').count();
    let document: Document = toml::from_str(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        let message: Vec<&str> = error.message().split_whitespace().collect();
        refuse(
            message.join(" "),
            "see docs/guides/migrate.md, \"Many databases\"",
        )
        .at(line_at(at))
    })?;
    let mut problems = Vec::new();
    let mut check = |holds: bool, what: String, help: &str| {
        if !holds {
            problems.push(refuse(what, help));
        }
    };
    check(
        document.format == FORMAT,
        format!(
            "`format` is {}; this binary reads format {FORMAT}",
            document.format
        ),
        "write format = 1",
    );
    check(
        (1..=PARALLEL_MAX).contains(&document.parallel),
        format!("`parallel` is {}", document.parallel),
        "write 1 to 64",
    );
    check(
        document.stop != Stop::Failures(0),
        "`stop` is after 0 failures".to_owned(),
        "write \"first\", \"never\" or { failures = 3 }",
    );
    check(
        !document.target.is_empty() || !document.query.is_empty(),
        "it names no database".to_owned(),
        "write [[target]] with name and url_env, or [[query]] with databases or schemas too",
    );
    for query in &document.query {
        check(
            query.databases.is_some() != query.schemas.is_some(),
            format!(
                "the query `{}` has not one of `databases` and `schemas`",
                query.name
            ),
            "write one of them",
        );
    }
    let named = document.target.iter().map(|one| (&one.name, &one.url_env));
    let queried = document.query.iter().map(|one| (&one.name, &one.url_env));
    let mut seen = BTreeSet::new();
    for (name, variable) in named.chain(queried) {
        check(
            !name.trim().is_empty() && seen.insert(name),
            format!("the name `{name}` is blank or stands there twice"),
            "give each target a name of its own",
        );
        check(
            !variable.is_empty() && !variable.contains("://"),
            format!("`url_env` of `{name}` is no name of an environment variable"),
            "write the variable's name; the URL, which may hold a password, stands in the environment",
        );
    }
    for target in &document.target {
        if let Some(schema) = &target.schema
            && let Some(whose) = not_a_tenant(schema.get_ref())
        {
            let what = format!("`{}` is {whose}", target.name);
            problems.push(refuse(what, NAME_TENANTS).at(line_at(schema.span().start)));
        }
    }
    Problems::none_of(problems)?;
    Ok(Some(Targets {
        parallel: document.parallel,
        stop: document.stop,
        targets: document.target.into_iter().map(Named::from).collect(),
        queried: document
            .query
            .into_iter()
            .map(|query| Queried {
                name: query.name,
                url_env: query.url_env,
                databases: query.databases,
                schemas_line: query
                    .schemas
                    .as_ref()
                    .map_or(0, |schemas| line_at(schemas.span().start)),
                schemas: query.schemas.map(Spanned::into_inner),
            })
            .collect(),
    }))
}

impl From<NamedAt> for Named {
    fn from(target: NamedAt) -> Self {
        Self {
            name: target.name,
            url_env: target.url_env,
            schema: target.schema.map(Spanned::into_inner),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<Option<Targets>, Problems> {
        read(&Files::embedded("m", [(TARGETS_FILE, text.as_bytes())]))
    }

    #[test]
    fn a_file_names_databases_and_queries() {
        let targets = of("format = 1\nparallel = 8\nstop = { failures = 3 }\n\
            [[target]]\nname = \"eu\"\nurl_env = \"EU\"\n\
            [[query]]\nname = \"tenant\"\nurl_env = \"TENANTS\"\ndatabases = \"SELECT datname FROM pg_database\"\n")
        .unwrap()
        .unwrap();
        assert_eq!((targets.parallel, targets.stop), (8, Stop::Failures(3)));
        assert_eq!(targets.targets[0].url_env, "EU");
        assert_eq!(targets.queried[0].name, "tenant");
        assert_eq!(targets.queried[0].schemas_line, 0);
        let schemas =
            of("format = 1\n[[query]]\nname = \"t\"\nurl_env = \"T\"\nschemas = \"SELECT 'a'\"\n");
        assert_eq!(schemas.unwrap().unwrap().queried[0].schemas_line, 5);
        assert_eq!(read(&Files::default()).unwrap(), None);
    }

    #[test]
    fn each_mistake_is_named() {
        let one = "[[target]]\nname = \"eu\"\nurl_env = \"EU\"\n";
        for (text, told) in [
            ("format = 1\n".to_owned(), "it names no database"),
            (format!("format = 2\n{one}"), "`format` is 2"),
            (
                format!("format = 1\nparallel = 0\n{one}"),
                "`parallel` is 0; write 1 to 64",
            ),
            (
                format!("format = 1\nstop = {{ failures = 0 }}\n{one}"),
                "`stop` is after 0 failures",
            ),
            (
                format!("format = 1\nstop = \"later\"\n{one}"),
                "m/targets.toml:2: unknown variant `later`",
            ),
            (
                format!("format = 1\n{one}{one}"),
                "the name `eu` is blank or stands there twice",
            ),
            (
                "format = 1\n[[target]]\nname = \"eu\"\nurl_env = \"postgresql://u:p@h/d\"\n"
                    .to_owned(),
                "`url_env` of `eu` is no name of an environment variable",
            ),
            (
                "format = 1\n[[query]]\nname = \"t\"\nurl_env = \"T\"\n".to_owned(),
                "the query `t` has not one of `databases` and `schemas`",
            ),
            (
                format!("format = 1\nurl = \"x\"\n{one}"),
                "m/targets.toml:2: unknown field `url`",
            ),
            (
                format!("format = 1\n{one}schema = \"aegis_migrate\"\n"),
                "m/targets.toml:5: `eu` is the schema aegis_migrate, which belongs to a ledger of this tool: changes for a tenant would be made among its tables; name only schemas of tenants",
            ),
            (
                format!("format = 1\n{one}schema = \"aegis\"\n"),
                "m/targets.toml:5: `eu` is the schema aegis, which belongs to the engine",
            ),
            (
                format!("format = 1\n{one}schema = \"pg_toast\"\n"),
                "m/targets.toml:5: `eu` is the schema pg_toast, which belongs to the server",
            ),
        ] {
            let refused = of(&text).unwrap_err().to_string();
            assert!(refused.contains(told), "{text}\n{refused}");
            assert!(!refused.contains("u:p@h"), "{refused}");
        }
    }
}
