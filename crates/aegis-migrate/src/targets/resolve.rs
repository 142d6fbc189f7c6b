//! From `targets.toml` to databases and schemas: variables of the environment, then queries.

use std::collections::BTreeSet;

use super::{NAME_TENANTS, Queried, TARGETS_FILE, Target, Targets, not_a_tenant};
use crate::change::Problem;

/// Names every database, before any is touched.
///
/// `connect` is how the binary connects, by its own rules of TLS.
pub async fn resolve<C, F>(
    targets: &Targets,
    variable: impl Fn(&str) -> Option<String>,
    connect: C,
) -> Result<Vec<Target>, Problem>
where
    C: Fn(String) -> F,
    F: Future<Output = Result<tokio_postgres::Client, String>>,
{
    let url = |name: &str, of: &str| {
        variable(of).ok_or_else(|| {
            Problem::of_file(
                TARGETS_FILE,
                format!("the environment has no {of}, which has the URL of `{name}`"),
                "set it",
            )
        })
    };
    let mut found = Vec::new();
    for named in &targets.targets {
        found.push(Target {
            name: named.name.clone(),
            url: url(&named.name, &named.url_env)?,
            schema: named.schema.clone(),
        });
    }
    for queried in &targets.queried {
        let refuse = |what: String| {
            Problem::of_file(
                TARGETS_FILE,
                format!("`{}`: {what}", queried.name),
                "mend the query, or the URL in the environment",
            )
        };
        let base = url(&queried.name, &queried.url_env)?;
        let client = connect(base.clone()).await.map_err(&refuse)?;
        let rows = client
            .query(asks(queried), &[])
            .await
            .map_err(|error| refuse(crate::targets::resolve::said(&error)))?;
        for row in rows {
            let name: String = row
                .try_get(0)
                .map_err(|_| refuse("the query's first column is no text".to_owned()))?;
            let is_schema = queried.schemas.is_some();
            if let Some(whose) = not_a_tenant(&name).filter(|_| is_schema) {
                let what = format!("the query of `{}` names {whose}", queried.name);
                let refused = Problem::of_file(TARGETS_FILE, what, NAME_TENANTS);
                return Err(refused.at(queried.schemas_line));
            }
            found.push(Target {
                url: if is_schema {
                    base.clone()
                } else {
                    with_database(&base, &name).map_err(&refuse)?
                },
                schema: is_schema.then(|| name.clone()),
                name: format!("{}/{name}", queried.name),
            });
        }
    }
    let mut seen = BTreeSet::new();
    if let Some(twice) = found
        .iter()
        .find(|target| !seen.insert(target.name.clone()))
    {
        return Err(Problem::of_file(
            TARGETS_FILE,
            format!("`{}` is named twice", twice.name),
            "let each query name a database, or a schema, once",
        ));
    }
    if found.is_empty() {
        return Err(Problem::of_file(
            TARGETS_FILE,
            "its queries name no database and no schema",
            "an empty list is no success; mend the query",
        ));
    }
    Ok(found)
}

/// Its query; the file has one of both.
fn asks(queried: &Queried) -> &str {
    let query = queried.schemas.as_ref().or(queried.databases.as_ref());
    query.map_or("", String::as_str)
}

/// An error of the server in its own words.
fn said(error: &tokio_postgres::Error) -> String {
    error
        .as_db_error()
        .map_or_else(|| error.to_string(), |error| error.message().to_owned())
}

/// The URL with another database; everything else of it stays.
fn with_database(url: &str, database: &str) -> Result<String, String> {
    let (head, query) = match url.split_once('?') {
        Some((head, query)) => (head, Some(query)),
        None => (url, None),
    };
    let (scheme, rest) = head
        .split_once("://")
        .ok_or("the URL is not postgresql://USER@HOST/DATABASE")?;
    let authority = rest.split('/').next().unwrap_or_default();
    let mut made = format!("{scheme}://{authority}/{}", escaped(database));
    if let Some(query) = query {
        if query.split('&').any(|pair| pair.starts_with("dbname=")) {
            return Err("the URL names its database by dbname=".to_owned());
        }
        made.push('?');
        made.push_str(query);
    }
    Ok(made)
}

/// Percent-encoded, but for what needs none.
fn escaped(text: &str) -> String {
    use std::fmt::Write as _;
    text.bytes().fold(String::new(), |mut out, byte| {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            // Into a string: cannot fail.
            write!(out, "%{byte:02X}").ok();
        }
        out
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_gets_another_database_and_keeps_the_rest() {
        assert_eq!(
            with_database("postgresql://u:p@h:5/a?sslmode=require", "b c/d").unwrap(),
            "postgresql://u:p@h:5/b%20c%2Fd?sslmode=require"
        );
        assert_eq!(
            with_database("postgres://h", "b").unwrap(),
            "postgres://h/b"
        );
        assert_eq!(
            with_database("postgresql:///a?host=/tmp", "b").unwrap(),
            "postgresql:///b?host=/tmp"
        );
        assert!(with_database("host=h dbname=a", "b").is_err());
        assert!(with_database("postgresql://h?dbname=a", "b").is_err());
    }
}
